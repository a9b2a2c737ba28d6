"""Profiles of whole pipelines, their trace written from a schedule with lengths given by hand; no compiler takes part.

Each column is followed by one copy between every pair of neighbours, even pairs first. A stage computes `forward`,
`recompute` and `backward` cycles a micro-batch; the host brings the data first, and every stage has an update at last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.profiler.builder import Builder, spread
from workbench.engine.pipeline_schedule import Column, StageWork, Stretch, stretches
from workbench.profiler.profile import Profile

HOST, COPY, UPDATE = 100, 20, 50


@cache
def scheduled_profile(
    schedule: str,
    stages: int,
    micro_batches: int,
    *,
    forward: int = 300,
    backward: int = 600,
    recompute: int = 0,
    slower: tuple[int, int] = (-1, 0),
) -> Profile:
    """`slower` is a stage and the cycles its forward pass takes longer."""
    build = Builder(f"{schedule} of {stages}", ipus=stages)
    lengths = {"forward": forward, "recompute": recompute, "backward": backward}
    again = tuple(range(stages)) if recompute else ()
    plan = stretches(schedule, stages, micro_batches, recomputed=again)
    build.step("StreamCopy", "images/copy", HOST, times=1)
    functions = {}
    for stage in range(stages):
        weights = build.variable(f"stage_{stage}/kernel", "parameter", spread(1_600), ipu=stage)
        build.timeline.append({"ipu": stage, "position": 0, "step": 0})
        for direction in [name for name, cycles in lengths.items() if cycles]:
            cycles = lengths[direction] + (slower[1] if (stage, direction) == (slower[0], "forward") else 0)
            common = {"ipu": stage, "stage": stage, "direction": direction, "times": micro_batches}
            # Two layers a stage, a third of the time and the rest.
            places = [
                build.step("OnTileExecute", f"block_{stage}/{layer}/{direction}", part, reads=[weights], **common)
                for layer, part in (("a", cycles // 3), ("b", cycles - cycles // 3))
            ]
            build.timeline += [{"ipu": stage, "position": len(build.timeline), "step": step} for step in places]
            functions[f"{direction}{stage}"] = ["sequence", "", [["step", step] for step in places]]
        common = {"ipu": stage, "stage": stage, "direction": "update"}
        update = build.step("OnTileExecute", f"block_{stage}/update", UPDATE, writes=[weights], **common)
        functions[f"update{stage}"] = ["step", update]
    for stage in range(stages - 1):
        copy = build.step(
            "GlobalExchange", f"copy_{stage}", COPY, ipu=stage, to_ipu=stage + 1, times=_columns(plan), stage=stage
        )
        functions[f"copy{stage}"] = ["step", copy]
    for ipu in range(stages):
        mine = [row for row in build.timeline if row["ipu"] == ipu]
        for position, row in enumerate(mine):
            row["position"] = position
    build.meta["pipeline"] = {"stages": stages, "micro_batches": micro_batches, "schedule": schedule}
    trace = {"entry": _entry(plan, stages), "functions": functions}
    draft = build.profile(trace)
    build.meta["total_cycles"] = draft.timeline.root.cycles
    return build.profile(trace, cycle_breakdown=_breakdown(draft, stages), stages=_stages(draft, stages))


def _columns(plan: Sequence[Stretch]) -> int:
    return sum(len(stretch.columns) * stretch.times for stretch in plan)


def _entry(plan: Sequence[Stretch], stages: int) -> list[Any]:
    updates = [_call("update", stage, stage, None) for stage in range(stages)]
    parts = [_stretch(stretch, stages) for stretch in plan]
    return ["sequence", "train", [["step", 0], *parts, ["overlap", "update", "steady", updates]]]


def _stretch(stretch: Stretch, stages: int) -> list[Any]:
    children: list[Any] = []
    for column in stretch.columns:
        branches = [
            ["sequence", f"ipu {ipu}", [_work(work, ipu) for work in cell]]
            for ipu, cell in enumerate(column.work)
            if cell
        ]
        children.append(["overlap", str(column), column.phase, branches])
        for parity in (0, 1):
            pairs = [_copy(column, stage) for stage in range(parity, stages - 1, 2)]
            if pairs:
                children.append(["overlap", "between IPUs", column.phase, pairs])
    body = ["sequence", stretch.columns[0].phase, children]
    return body if stretch.times == 1 else ["repeat", "columns", stretch.times, body]


def _copy(column: Column, stage: int) -> list[Any]:
    """The copy to the next stage: that of the forward pass of this column, if there is one."""
    ran = [work for cell in column.work for work in cell if (work.stage, work.direction) == (stage, "forward")]
    if not ran:
        return ["call", f"copy{stage}", "", None, None, "", None]
    return ["call", f"copy{stage}", "", None, stage, "forward", ran[0].micro_batch]


def _work(work: StageWork, ipu: int) -> list[Any]:
    return _call(work.direction, work.stage, ipu, work.micro_batch)


def _call(direction: str, stage: int, ipu: int, micro_batch: int | None) -> list[Any]:
    return ["call", f"{direction}{stage}", f"stage{stage}_{direction}", ipu, stage, direction, micro_batch]


def _breakdown(draft: Profile, stages: int) -> list[dict[str, Any]]:
    totals = Counter(draft.timeline.root.totals)
    return [{"ipu": ipu, "cause": cause, "cycles": cycles} for (ipu, cause), cycles in totals.items() if cycles]


def _stages(draft: Profile, stages: int) -> list[dict[str, Any]]:
    totals = draft.timeline.root.totals
    return [
        {
            "stage": ipu,
            "ipu": ipu,
            "compute_cycles": totals[ipu, "compute"],
            "exchange_cycles": 0,
            "copy_cycles": totals[ipu, "inter_ipu"] + totals[ipu, "host"],
            "idle_cycles": sum(cycles for (at, cause), cycles in totals.items() if at == ipu and "idle" in cause),
            "memory_bytes": 1_600,
            "stash_bytes": 100 * (stages - 1 - ipu),
        }
        for ipu in range(stages)
    ]
