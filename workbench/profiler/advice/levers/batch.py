"""How a batch is cut into micro-batches."""

from __future__ import annotations

import math

from workbench.profiler.advice.levers.change import REORDERED, Change
from workbench.profiler.advice.levers.registry import Proposal, lever
from workbench.profiler.advice.levers.situation import Situation

BY_BATCH = ("activation", "input", "temporary", "stash")
# Halving a micro-batch makes a sample this much dearer before anything is measured: what a step costs however small.
SLOWER = 1.15


@lever("micro_batch", "smaller micro-batches", doubt=(0.3, 0.12))
def micro_batch(situation: Situation) -> Proposal:
    """A smaller micro-batch; in training with as many more micro-batches, so that a weight update sees as much.

    Estimate: activations, inputs and temporaries live at the peak shrink in proportion, as do gradients with the batch
    as their first dimension; the first accumulation adds a float accumulator for each parameter. For a program that
    fits, larger ones instead: in training out of fewer, of which its stages take as many; in inference twice and four
    times as many samples a call.
    """
    batch, steps = situation.batch_size, situation.accumulation
    if situation.mode not in ("training", "inference") or situation.fixed_inputs or not batch:
        return (), "the batch size is given by the inputs"
    training = situation.mode == "training"
    smaller = [size for size in range(batch - 1, 0, -1) if batch % size == 0]
    found = [_change(situation, size, steps * (batch // size)) for size in _spread(smaller)]
    if situation.profile.fits:
        if training:
            larger = [
                factor for factor in range(2, steps + 1) if steps % factor == 0 and situation.takes(steps // factor)
            ]
            found = [_change(situation, batch * factor, steps // factor) for factor in _spread(larger)]
        else:
            found = [_change(situation, batch * factor, steps) for factor in (2, 4)]
        few = "there are no micro-batches to put together" if steps == 1 else "fewer micro-batches fill no stages"
        return tuple(found), "" if found else few
    return tuple(found), "" if found else f"a batch of {batch:,} cannot be halved"


MOST = 8  # sizes


def _spread(sizes: list[int]) -> list[int]:
    """All sizes, or of many those nearest to even ratios, the first and the last among them."""
    if len(sizes) <= MOST:
        return sizes
    first, last = math.log(sizes[0]), math.log(sizes[-1])
    wanted = [first + (last - first) * place / (MOST - 1) for place in range(MOST)]
    return list(dict.fromkeys(min(sizes, key=lambda size: abs(math.log(size) - each)) for each in wanted))


def _change(situation: Situation, batch: int, steps: int) -> Change:
    factor = situation.batch_size / batch
    passing, training = situation.passing, situation.mode == "training"
    by_batch = [
        kind in BY_BATCH or situation.is_by_sample(str(shape))
        for kind, shape in zip(passing["kind"], passing["shape"], strict=True)
    ]
    saved = int(passing["bytes"][by_batch].sum()) * (1 - 1 / factor)
    arguments: dict[str, int] = {"batch_size": batch}
    title = f"a batch of {batch:,} instead of {situation.batch_size:,}"
    if training:
        arguments["gradient_accumulation_steps"] = steps
        title = f"micro-batches of {batch:,}, {steps:,} to a weight update"
        if situation.accumulation == 1:
            saved -= situation.live_bytes("parameter")
    layer = situation.reads_batch if training else ""
    return Change(
        lever="micro_batch",
        title=title,
        arguments=tuple(arguments.items()),
        estimated_bytes=max(0, situation.profile.max_tile_bytes - int(saved)),
        slower=SLOWER ** math.log2(factor),
        numbers="any" if layer else "reassociated",
        effect=_effect(training, layer),
        note="" if training else "A call then takes another number of samples.",
        steps=abs(math.log2(factor)),
        to="smaller" if factor > 1 else "larger",
    )


def _effect(training: bool, layer: str) -> str:
    if not training:
        return "Each sample gets the numbers it got."
    if not layer:
        return REORDERED
    return f"{layer} reads or draws over each micro-batch by itself, where it did over the whole batch."
