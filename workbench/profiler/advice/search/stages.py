"""More IPUs: stages found for a program that does not fit one, or only dearly, each split compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from workbench.errors import Cancelled, WorkbenchError
from workbench.profiler.advice.levers import LEVELS, LEVERS, SAME, Change, Situation, joined
from workbench.profiler.advice.search.beliefs import Parts
from workbench.profiler.advice.search.trial import Outcome, Progress, Trial, cost_of

# split(request, ipus, compiles, progress) gives what was compiled: (arguments, options, profile, problem) of each.
Attempts = list[tuple[dict[str, Any], dict[str, Any], Any, str]]
SplitFinder = Callable[[Any, int, int, Progress], Attempts]

DEAR = 1.5  # stages are looked for where nothing that fits is cheaper than so many times the program as it is
EACH = 5  # compiles of one number of stages
SPREAD = 0.6  # stages are not tried where they have less than this share of the bytes that the program needs
CARRIED = ("half_precision", "half_partials", "available_memory")  # levers that act the same on every stage
_WHERE = ("pipeline.device_mapping", "pipeline.recomputation_checkpoints")  # said by the cuts, and by recomputation
_SCHEDULE, _SEQUENTIAL = "pipeline.schedule", "Sequential"


def with_stages(trial: Trial, split: SplitFinder, situation: Situation, ipus: int, keep_numbers: str) -> None:
    """Compile splits over 2, 4, 8 … IPUs, until one fits."""
    carrier = _carrier(trial)
    share = _spread(trial, carrier) * SPREAD
    for count in (2**power for power in range(1, ipus.bit_length()) if 2**power <= ipus):
        if count < share or trial.budget.left <= 0:
            continue
        found = list(_split(trial, split, carrier, _change(situation, count, keep_numbers), count))
        for outcome in found:
            trial.outcomes.append(outcome)
            trial.heard(outcome)
        if any(each.profile is not None and each.profile.fits for each in found):
            return


def wanted(trial: Trial) -> bool:
    """Whether what fits so far is none, or dear."""
    return trial.best > DEAR


def _carrier(trial: Trial) -> Parts:
    """Changes to make in stages too: those that cost least on as many IPUs as hold their bytes."""

    def spread(outcome: Outcome) -> float:
        assert outcome.profile is not None
        return cost_of(outcome.profile) * max(1.0, outcome.profile.max_tile_bytes / trial.limit)

    plain = [
        each
        for each in trial.outcomes
        if each.profile is not None and all(part.lever in CARRIED for part in each.parts)
    ]
    now = Outcome(parts=(), profile=trial.base)
    return min([now, *plain], key=spread).parts


def _spread(trial: Trial, parts: Parts) -> float:
    """How many tiles' worth of bytes the fullest tile needs with these changes."""
    found = next((each.profile for each in trial.outcomes if each.parts == parts), None) or trial.base
    return found.max_tile_bytes / trial.limit


def _change(situation: Situation, ipus: int, keep_numbers: str) -> Change:
    """How a batch goes through so many stages: the largest micro-batch that fills them, else one stage at a time."""
    batch, steps = situation.batch_size, situation.accumulation
    kept: dict[str, Any] = {
        "lever": "stages",
        "title": f"{ipus} stages",
        "estimated_bytes": 0,
        "steps": math.log2(ipus),
    }
    if situation.mode != "training":
        return Change(**kept, arguments=(("gradient_accumulation_steps", 8 * ipus),))
    smaller = {
        dict(change.arguments)["batch_size"]: change for change in LEVERS.get("micro_batch").propose(situation)[0]
    }
    for size in sorted({batch, *smaller}, reverse=True):
        count = steps * batch // size
        change = smaller.get(size)
        level = "exact" if change is None else change.numbers
        if count % (2 * ipus) == 0 and LEVELS.index(level) <= LEVELS.index(keep_numbers):
            arguments = (("batch_size", size), ("gradient_accumulation_steps", count))
            effect = SAME if change is None else change.effect
            return Change(**kept, numbers=level, effect=effect, arguments=arguments)
    options = ((_SCHEDULE, _SEQUENTIAL),)
    return Change(**kept, note="One stage works at a time.", options=options)


def _split(trial: Trial, split: SplitFinder, carrier: Parts, how: Change, ipus: int) -> Iterator[Outcome]:
    """What a search for stages compiled, as changes of the program as it is."""
    base = trial.base.max_tile_bytes
    change = joined((*carrier, how), base)

    def heard(phase: str) -> None:
        trial.progress(f"{change.title}, {phase}")

    try:
        attempts = split(change.applied(trial.executable.request), ipus, min(EACH, trial.budget.left), heard)
    except Cancelled:
        raise
    except WorkbenchError as error:
        yield Outcome(parts=(*carrier, how), profile=None, problem=str(error))
        return
    trial.budget.used += len(attempts)
    for arguments, options, profile, problem in attempts:
        cut = ", ".join(arguments.get("stages", ()))
        told = "".join(f", {name.rpartition('.')[2]}" for name in options if name not in _WHERE)
        staged = Change(
            lever="stages",
            title=f"{ipus} stages cut after {cut}{told}",
            options=(*how.options, *options.items()),
            arguments=(*how.arguments, *arguments.items()),
            estimated_bytes=base // ipus,
            numbers=how.numbers,
            effect=how.effect,
            note=how.note,
        )
        yield Outcome(parts=(*carrier, staged), profile=profile, problem=problem)


__all__ = ["SplitFinder", "wanted", "with_stages"]
