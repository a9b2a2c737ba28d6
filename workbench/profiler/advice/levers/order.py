"""How the same operations are laid out: their order, shared code, tiles for the host."""

from __future__ import annotations

from workbench.base.units import things_text
from workbench.profiler.advice.levers.change import Change
from workbench.profiler.advice.levers.registry import Proposal, lever
from workbench.profiler.advice.levers.situation import OVERLAPPED, Situation

OUTLINING = "optimizations.enable_graph_outlining"
SCHEDULER = "scheduling.algorithm"
SCHEDULERS = ("SHORTEST_PATH", "CLUSTERING", "LOOK_AHEAD", "POST_ORDER")
IO_TILES = (32, 64)


@lever("outlining", "code of its own for each operation", doubt=(0.1, 0.05))
def outlining(situation: Situation) -> Proposal:
    """Equal operations without shared code: no copies into and out of it, and more code."""
    if situation.without_operators:
        return (), _without_operators(situation)
    if situation.profile.config.get(OUTLINING) is False:
        return (), "equal operations share no code already"
    change = Change(
        lever="outlining",
        title="no shared code for equal operations",
        options=((OUTLINING, False),),
        estimated_bytes=situation.profile.max_tile_bytes,
        slower=0.97,
    )
    return (change,), ""


@lever("scheduler", "another order of the operations", doubt=(0.06, 0.03))
def scheduler(situation: Situation) -> Proposal:
    """Operations in the order of another scheduler."""
    if situation.without_operators:
        return (), _without_operators(situation)
    present = str(situation.profile.config.get(SCHEDULER, "")).rpartition(".")[2]
    return tuple(
        Change(
            lever="scheduler",
            title=f"operations in the order of {name}",
            options=((SCHEDULER, name),),
            estimated_bytes=situation.profile.max_tile_bytes,
            to=name,
        )
        for name in SCHEDULERS
        if name != present
    ), ""


@lever("io_tiles", "tiles for the host", doubt=(0.05, 0.1))
def io_tiles(situation: Situation) -> Proposal:
    """Copies to and from the host on tiles of their own. Estimate: what waits for the host is hidden at best."""
    if situation.without_operators:
        return (), _without_operators(situation)
    if situation.profile.config.get("io_tiles.num_io_tiles"):
        return (), "there are tiles for the host already"
    schedule = str(situation.profile.config.get("pipeline.schedule", "")).rpartition(".")[2]
    if situation.profile.ipus > 1 and len(situation.profile.stages) and schedule != "Grouped":
        return (), f"under the {schedule} schedule no stage computes beside their copies"
    if not situation.takes(situation.accumulation, overlapped=True):
        return (), f"stages that copy beside compute need more than the {situation.accumulation:,} micro-batches"
    waits = situation.profile.cycle_breakdown
    host = int(waits["cycles"][waits["cause"].isin(["host", "idle_wait_host"])].sum())
    if not host:
        return (), "nothing waits for the host"
    hidden = host / max(1, situation.profile.total_cycles * situation.profile.ipus)
    tiles = int(situation.profile.target["tiles_per_ipu"])
    return tuple(
        Change(
            lever="io_tiles",
            title=f"{count} tiles for the host",
            options=(("io_tiles.num_io_tiles", count), (OVERLAPPED, True)),
            estimated_bytes=int(situation.profile.max_tile_bytes * tiles / (tiles - count)),
            slower=tiles / (tiles - count) - hidden,
            steps=steps,
        )
        for steps, count in enumerate(IO_TILES, 1)
        if 2 * count < tiles
    ), ("" if tiles > 2 * IO_TILES[0] else f"an IPU has {things_text(tiles, 'tile')}")


def _without_operators(situation: Situation) -> str:
    """Why nothing can be laid out otherwise."""
    told = "was made by hand" if situation.made_by_hand else "moves data alone"
    return f"the program has no operators: it {told}"
