"""Holds the tables and reports of one profile against each other: each function gives a line per disagreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from workbench.profiler.memory import live_bytes
from workbench.profiler.operators.callers import StepsByCaller
from workbench.profiler.profile import Profile

DIRECTIONS = ("forward", "recompute", "backward", "update")


def disagreements(profile: Profile) -> list[str]:
    """What no two places of a profile may say differently; empty when all agree."""
    return [line for check in CHECKS for line in check(profile)]


def _differ(what: str, left: Mapping[Any, Any] | pd.Series, right: Mapping[Any, Any] | pd.Series) -> Iterator[str]:
    for key in {**dict(left), **dict(right)}:
        one, other = int(left.get(key, 0)), int(right.get(key, 0))
        if one != other:
            yield f"{what} {key!r}: {one} and {other}"


def executed(profile: Profile) -> pd.DataFrame:
    """Every execution of every step, once for all its IPUs, with `cycles`."""
    rows = profile.blocks(max_rows=1_000_000)
    return rows.assign(cycles=rows["cycles_to"] - rows["cycles_from"]).drop_duplicates(["step", "cycles_from"])


def steps_and_blocks(profile: Profile) -> Iterator[str]:
    """Executions and cycles of `.steps` are those that `.blocks` unrolls; causes are those of `.cycle_breakdown`."""
    steps, blocks = profile.steps, executed(profile)
    running = steps[steps["cycles"] > 0].groupby("id")["times"].sum()
    yield from _differ("executions of step", blocks.groupby("step").size(), running)
    yield from _differ("cycles of stage", blocks.groupby("stage")["cycles"].sum(), _sums(steps, "stage"))
    for ipu in range(profile.ipus):
        own = profile.cycle_breakdown.query("ipu == @ipu").set_index("cause")["cycles"]
        here = steps[(steps["ipu"] == ipu) | (steps["to_ipu"] == ipu)]
        yield from _differ(f"IPU {ipu} cause", own[~own.index.str.startswith("idle_")], _sums(here, "cause"))
        yield from _differ("total of IPU", {ipu: own.sum()}, {ipu: profile.total_cycles})


def _sums(frame: pd.DataFrame, key: str) -> pd.Series:
    return frame.groupby(key)["total_cycles"].sum()


def callers(profile: Profile) -> Iterator[str]:
    """Steps by caller as the compile knows them are those of the tables alone."""
    known, found = profile.steps_by_caller, StepsByCaller.of_profile(profile)
    for name in known.columns:
        if known.columns[name].tolist() != found.columns[name].tolist():
            yield f"column {name!r} of the steps by caller: {known.columns[name]} and {found.columns[name]}"


def layers(profile: Profile) -> Iterator[str]:
    """Cycles by layer and direction are those of the blocks; flops and bytes those of operators and variables."""
    table, blocks = profile.operations.layers.set_index("layer"), executed(profile)
    steps, where = profile.steps, ["layer", "direction"]
    yield from _differ("cycles of layer", table["cycles"], blocks.groupby("layer")["cycles"].sum())
    yield from _differ("steps of", steps.groupby(where)["total_cycles"].sum(), blocks.groupby(where)["cycles"].sum())
    for name in DIRECTIONS:
        shown = blocks[blocks["direction"] == name].groupby("layer")["cycles"].sum()
        yield from _differ(f"{name} cycles of layer", table[f"{name}_cycles"], shown)
    yield from _differ("bytes of layer", table["variable_bytes"], profile.variables.groupby("layer")["bytes"].sum())
    yield from _differ("flops of layer", table["flops"], profile.operators.groupby("layer")["flops"].sum())


def trace(profile: Profile) -> Iterator[str]:
    """The trace's rectangles have the cycles of the blocks by layer, direction, stage and micro-batch."""
    for ipu in range(profile.ipus):
        window, blocks = profile.trace.window(ipu, max_rects=1_000_000), profile.blocks(ipu, max_rows=1_000_000)
        phases = window[window["lane"] == "phase"]
        for key in ("layer", "direction", "stage", "micro_batch", "cause"):
            shown, known = (_lengths(frame).groupby(key)["length"].sum() for frame in (phases, blocks))
            yield from _differ(f"trace of IPU {ipu}, {key}", shown, known)


def _lengths(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(length=frame["cycles_to"] - frame["cycles_from"])


def operators(profile: Profile) -> Iterator[str]:
    """Cycles of operators are those of their steps, explained and drawn alike, and none is faster than the machine."""
    rows, steps = profile.operators, profile.steps
    bodies = {body.partition("/")[0] for body in rows["body"]} - {""}
    owned = (steps["operator"] != "") | steps["parent"].map(lambda path: path.partition("/")[0] in bodies)
    yield from _differ("all", {"operators": rows["cycles"].sum()}, {"operators": steps["total_cycles"][owned].sum()})
    explained = {name: profile.explain(operator=name).value for name in rows["name"]}
    own = steps[owned].groupby("operator")["total_cycles"].sum()
    yield from _differ("operator", rows.set_index("name")["cycles"], explained)
    yield from _differ("steps of operator", rows.set_index("name")["cycles"], own)
    where = ["layer", "direction"]
    apart = rows.groupby(where)["cycles"].sum(), steps[owned].groupby(where)["total_cycles"].sum()
    yield from _differ("operators of", *apart)
    by_layer = rows.groupby("layer")["cycles"].sum()
    layers = profile.operations.layers.set_index("layer")["cycles"]
    yield from (f"operators of {name!r} take more than it" for name in by_layer.index if by_layer[name] > layers[name])
    yield from (f"{row.name} is above the peak rate" for row in rows[rows["utilisation"] > 1].itertuples(index=False))
    points = profile.roofline.points
    above = points[points["rate"] > points["ceiling"] * (1 + 1e-9)]
    yield from (f"{name} is above its ceiling" for name in above["name"])
    moved = int((steps["bytes_received"] * steps["times"])[owned].sum())
    if points["exchanged_bytes"].sum() > moved:
        yield "the roofline moves more bytes than the steps"


def peak(profile: Profile) -> Iterator[str]:
    """The fullest tile and step are the same everywhere, and so are the bytes there."""
    place, arrays = profile.peak, profile.arrays
    needed = int((arrays["always_live"] + arrays["live_peak"])[place.ipu, place.tile])
    live = profile.live_variables(place.step, place.ipu, place.tile)
    fixed = sum(
        int(live_bytes.footprint(profile, name)[place.ipu, place.tile]) for name in live_bytes.FOOTPRINT_CATEGORIES
    )
    xray, tile = profile.xray, profile.memory.tile(place.tile)
    position = int(arrays["live_peak_position"][place.ipu, place.tile])
    found = {
        "insights": sum(profile.insights.peak_categories.values()),
        "explain": profile.explain(tile=place.tile, step=place.step, ipu=place.ipu).value,
        "live variables": int(live["bytes"].sum()) + fixed,
        "x-ray": xray.bytes_at(position),
        "player": int(profile.playback.of(ipu=place.ipu).frame(position).live_bytes[place.tile]),
    }
    yield from _differ("at the peak", found, dict.fromkeys(found, needed))
    spans = sum(end - start for start, end in xray.gaps)
    used = {
        "x-ray": xray.data["total_bytes"] + spans,
        "memory": tile["total_bytes"] + tile["gap_bytes"],
        "explain": profile.explain(tile=place.tile, ipu=place.ipu).value,
        "tiles": int(profile.tiles["total_with_gaps_bytes"].max()),
    }
    yield from _differ("with gaps", used, dict.fromkeys(used, profile.max_tile_bytes))


def variables(profile: Profile) -> Iterator[str]:
    """A name, which several variables may have, stands for the same bytes wherever it is given."""
    sums = profile.variables.groupby(["ipu", "name"])["bytes"].sum()
    for (ipu, name), size in sums.items():
        chart = int(profile.memory.of(ipu=ipu).variables([name])[name].sum())
        found = {"explain": profile.explain(variable=name, ipu=ipu).value, "memory": chart}
        yield from _differ(f"variable {name}", found, dict.fromkeys(found, size))


def whole(profile: Profile) -> Iterator[str]:
    """The tree, the source and the pipeline are of the same call of the program."""
    roots = [node["cycles"] for node in profile.program_tree.nodes if node["parent"] < 0]
    spent = profile.pipeline.spent(0, profile.total_cycles).groupby("ipu")["cycles"].sum()
    yield from _differ("tree", {"entry": roots[-1]}, {"entry": profile.total_cycles})
    yield from _differ("pipeline of IPU", spent, dict.fromkeys(range(profile.ipus), profile.total_cycles))
    if profile.source.unattributed_cycles < 0:
        yield "lines of the source take more than all cycles"


CHECKS: tuple[Callable[[Profile], Iterator[str]], ...] = (
    steps_and_blocks,
    callers,
    layers,
    trace,
    operators,
    peak,
    variables,
    whole,
)
