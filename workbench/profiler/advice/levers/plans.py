"""How products are planned: the share of a tile they may take, and the precision of their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.profiler.advice.levers.change import REORDERED, Change
from workbench.profiler.advice.levers.registry import Proposal, lever
from workbench.profiler.advice.levers.situation import GROUPS, PROPORTION, Situation

PARTIALS = "{}.poplar_options.partialsType"
LOWER_PROPORTIONS = (0.4, 0.2, 0.1, 0.05)
HIGHER_PROPORTIONS = (0.8, 1.0)


def _set_in_groups(name: str, value: Any, groups: Sequence[str] = GROUPS) -> tuple[tuple[str, Any], ...]:
    return tuple((name.format(group), value) for group in groups)


@lever("available_memory", "more or less memory for the plans of matmuls and convolutions", doubt=(0.1, 0.08))
def available_memory(situation: Situation) -> Proposal:
    """Plans of matmuls and convolutions under another share of a tile's memory: of both, of one kind, of one IPU.

    Estimate: temporaries live at the peak shrink to the share of the tile that plans may take.
    """
    if not situation.plans:
        return (), "no matmul or convolution is planned in this program"
    present = situation.proportions
    lower = [share for share in LOWER_PROPORTIONS if share < max(present)]
    higher = [share for share in HIGHER_PROPORTIONS if share > min(present)]
    changes = [_share(situation, share, steps) for shares in (lower, higher) for steps, share in enumerate(shares, 1)]
    if all(situation.has_plans(group) for group in GROUPS):
        changes += [
            _share(situation, share, steps, (group,))
            for group in GROUPS
            for steps, share in enumerate(lower, 1)
            if share in lower[1::2]
        ]
    changes += _of_fullest(situation, lower[1::2])
    return tuple(changes), "" if changes else f"availableMemoryProportion is already {present[0]:g}"


def _share(situation: Situation, share: float, steps: int, groups: tuple[str, ...] = GROUPS) -> Change:
    temporary = int(situation.passing["bytes"][situation.passing["kind"] == "temporary"].sum())
    limit = int(situation.profile.target["bytes_per_tile"])
    raised = share > min(situation.proportions)
    return Change(
        lever="available_memory",
        title=f"availableMemoryProportion {share:g} for {' and '.join(groups)}",
        options=_set_in_groups(PROPORTION, share, groups),
        estimated_bytes=situation.profile.max_tile_bytes if raised else situation.left(temporary - share * limit),
        slower=1.0 if raised else 1.0 + 0.02 * steps,
        numbers="reassociated",
        effect=REORDERED,
        steps=steps,
        to=("up" if raised else "down") + ("" if groups == GROUPS else f" {groups[0]}"),
    )


def _of_fullest(situation: Situation, shares: Sequence[float]) -> list[Change]:
    """A lower share on the IPU of the fullest tile alone."""
    ipus, present = situation.profile.ipus, situation.proportions
    if ipus < 2 or len(set(present)) > 1:
        return []
    fullest, found = situation.profile.peak.ipu, []
    for steps, share in enumerate(shares, 1):
        values = tuple(share if ipu == fullest else present[0] for ipu in range(ipus))
        one = _share(situation, share, steps)
        options = _set_in_groups(PROPORTION, values)
        title = f"availableMemoryProportion {share:g} on IPU {fullest}"
        found.append(
            Change(
                lever=one.lever,
                title=title,
                options=options,
                estimated_bytes=one.estimated_bytes,
                numbers=one.numbers,
                effect=one.effect,
                steps=steps,
                to=f"IPU {fullest}",
            )
        )
    return found


@lever("half_partials", "half partials", doubt=(0.1, 0.1))
def half_partials(situation: Situation) -> Proposal:
    """Sums of half-precision matmuls and convolutions kept in half.

    Estimate: float temporaries live at the peak take half their bytes.
    """
    if all(value == "half" for value in situation.present(PARTIALS, "")):
        return (), "partials are half already"
    if not situation.plans:
        return (), "no matmul or convolution is planned in this program"
    half = situation.has_half()
    if not half and situation.mode not in ("training", "inference"):
        return (), "half partials need half inputs, and nothing here is in half precision"
    passing = situation.passing
    wide = passing[(passing["kind"] == "temporary") & (passing["dtype"] == "float32")]
    change = Change(
        lever="half_partials",
        title="half partials for matmuls and convolutions",
        options=_set_in_groups(PARTIALS, "half"),
        estimated_bytes=situation.left(int(wide["bytes"].sum()) / 2),
        slower=0.9,
        numbers="any",
        effect="Sums in half precision lose accuracy.",
        needs=() if half else ("half_precision",),
    )
    return (change,), ""
