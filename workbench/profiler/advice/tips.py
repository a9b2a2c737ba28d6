"""What to look at in a profile, each with the number that says so, and with what mends it in this program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.causes import CAUSE_WORDS
from workbench.base.units import bytes_text, percent_text, things_text
from workbench.profiler.advice.columns import columns_cycles
from workbench.profiler.advice.levers import LOWER_PROPORTIONS, Situation, order
from workbench.profiler.advice.regions import full_region
from workbench.profiler.profile import Profile

# A tip is given from these shares on: a fifth of a tile, or of all cycles, is worth a look.
WORTH_BYTES = 0.2
WORTH_CYCLES = 0.2

STREAMING = "streaming memory"  # the name of the term that such a copy's cycles have
LARGEST = 3  # variables that are named where room is to be made

# What mends something, for those programs where it can; "" where nothing that a user may say does.
Mend = Callable[[Situation], str]


def tile_text(profile: Profile) -> str:
    """The fullest tile, `"tile 5"`; of one of several IPUs `"tile 5 of IPU 3"`."""
    return f"tile {profile.peak.tile:,}" + (f" of IPU {profile.peak.ipu}" if profile.ipus > 1 else "")


def memory_tips(profile: Profile, peak_categories: Mapping[str, int]) -> Iterator[str]:
    """Tips on what fills the fullest tile at its peak, the largest first, and on the region that is full."""
    region = full_region(profile)
    if region is not None:
        yield f"on {tile_text(profile)} {region}"
    situation, limit = Situation(profile=profile), int(profile.target["bytes_per_tile"])
    where = f"on {tile_text(profile)} at the peak"
    sizes = _accumulators_apart(situation, peak_categories)
    found = [(sum(sizes.get(name, 0) for name in names), what, mend) for names, what, mend in _MEMORY]
    for amount, what, mend in sorted(found, key=lambda item: -item[0]):
        if amount >= WORTH_BYTES * limit:
            yield _joined(
                f"{bytes_text(amount)} of {what} {where}, {percent_text(amount / limit)} of the tile", mend(situation)
            )


def _accumulators_apart(situation: Situation, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes by category, where accumulators of gradients are none of optimizer state: what frees it leaves them."""
    held = sizes.get("optimizer", 0)
    apart = min(held, situation.live_bytes("accumulator")) if held else 0
    return {**sizes, "optimizer": held - apart, "accumulator": apart}


def cycle_tips(profile: Profile) -> Iterator[str]:
    """Tips on causes that take much of all cycles."""
    return (text for _, text in tips_of_causes(profile))


def tips_of_causes(profile: Profile) -> Iterator[tuple[str, str]]:
    """The same, each after its cause."""
    breakdown = profile.cycle_breakdown.groupby("cause")["cycles"].sum()
    whole, situation = max(1, profile.total_cycles * profile.ipus), Situation(profile=profile)
    for cause, mend in _CYCLES.items():
        cycles = int(breakdown.get(cause, 0))
        if cycles >= WORTH_CYCLES * whole:
            fact = f"{CAUSE_WORDS[cause]} takes {percent_text(cycles / whole)} of all cycles"
            yield cause, _joined(fact, mend(situation))


def _joined(fact: str, mend: str) -> str:
    return f"{fact}: {mend}" if mend else fact


def gaps_tip(profile: Profile) -> str:
    """How much of the fullest tile's memory are gaps, and which piece beyond its end is too long for any of them."""
    told = f"{percent_text(profile.fragmentation)} of the fullest tile's memory in use are gaps"
    rows, _ = profile.addresses.tile(profile.peak.ipu, profile.peak.tile)
    beyond = np.flatnonzero(rows["address"] >= int(profile.target["bytes_per_tile"]))
    if not len(beyond):
        return told
    piece = beyond[rows["bytes"][beyond].argmax()]
    longest, size = max(end - start for start, end in profile.xray.gaps), int(rows["bytes"][piece])
    too_long = (
        f"{rows['label'][piece]}, {bytes_text(size)} in one piece, is longer than the longest, {bytes_text(longest)}"
    )
    return f"{told}: {too_long}" if size > longest else told


def mapping_advice(profile: Profile) -> str:
    """What evens out the tiles: where a model or function was lowered, the mapping is not the user's."""
    mend = "a more even mapping of the largest variables there lowers the peak"
    return mend if Situation(profile=profile).made_by_hand else ""


def hand_made_advice(profile: Profile) -> str:
    """What makes room on the fullest tile of a program made by hand: its largest variables there, where they may lie.

    "" for every other program, whose memory `diagnose` has levers for.
    """
    situation, tile = Situation(profile=profile), profile.peak.tile
    if not situation.made_by_hand:
        return ""
    tiles = int(profile.target["tiles_per_ipu"])
    live = situation.live.sort_values("bytes", ascending=False, kind="stable").head(LARGEST)
    if live.empty:
        return f"place fewer vertices, of fewer kinds, on tile {tile:,}: no variable lies there at the peak"
    held = profile.variables.set_index("id")["tiles"]
    rows = [
        (str(name), int(there), int(held[number]))
        for name, there, number in zip(live["name"], live["bytes"], live["id"], strict=True)
    ]
    all_tiles = things_text(tiles, "tile")
    named = ", ".join(f"{name} ({bytes_text(there)} there, on {count:,} of {all_tiles})" for name, there, count in rows)
    spread = any(count < tiles for _, _, count in rows)
    ways = [f"map the largest variables of tile {tile:,} over more tiles" if spread else "declare smaller variables"]
    if not live["always_live"].all():
        ways.append("write in place or a part after the other")
    return f"{', or '.join(ways)}; the largest on tile {tile:,} at step {profile.peak.step:,}: {named}"


def _temporaries(situation: Situation) -> str:
    if situation.made_by_hand:
        return "vertices that write in place, or a part after the other, need less"
    live = situation.passing[situation.passing["kind"] == "temporary"]
    most = int(live["bytes"].sum()) / 2
    if live["bytes"][live["id"].isin(_planned_within_share(situation))].sum() > most:
        return "a lower availableMemoryProportion makes them smaller"
    if live["bytes"][[situation.is_by_sample(shape) for shape in live["shape"]]].sum() > most:
        return _fewer_samples(situation, "makes them smaller")
    return ""


def _planned_within_share(situation: Situation) -> IntArray:
    """Variables that products write whose plans a lower share of the tile would bound: what takes more than its share
    already is bounded by none."""
    if max(situation.proportions) <= LOWER_PROPORTIONS[-1]:
        return np.empty(0, np.int64)
    profile = situation.profile
    rows = profile.operators
    bounds = [situation.share_of(op) * int(profile.target["bytes_per_tile"]) for op in rows["op"]]
    within = rows["name"][rows["temporary_bytes"] <= bounds]
    steps, accesses = profile.steps, profile.tables["accesses"]
    own = steps["id"][steps["operator"].isin(within)].to_numpy()
    return np.asarray(accesses["variable"][accesses["write"] & np.isin(accesses["step"], own)], np.int64)


def _fewer_samples(situation: Situation, does: str) -> str:
    small = situation.batch_size < 2 or situation.mode == "function"
    return "" if small else f"a smaller {'micro-batch' if situation.mode == 'training' else 'batch'} {does}"


def _optimizer(situation: Situation) -> str:
    if situation.mode != "training":
        return ""
    offloaded = situation.profile.config.get("pipeline.offload_weight_update_variables")
    return "a simpler optimizer holds less" if offloaded else "a simpler optimizer, or offloading its state, frees it"


def _accumulators(situation: Situation) -> str:
    offloaded = situation.profile.config.get("pipeline.offload_gradient_accumulation_buffers")
    return (
        "" if offloaded else "offloading gradient_accumulation_buffers keeps them on the tiles only where they are used"
    )


def _stash(situation: Situation) -> str:
    if situation.can_recompute:
        return f"{_recomputation(situation)} keeps fewer of them"
    return _fewer_samples(situation, "makes them smaller")


def _activations(situation: Situation) -> str:
    fewer = _fewer_samples(situation, "")
    ways = [*([fewer.strip()] if fewer else []), *([_recomputation(situation)] if situation.can_recompute else [])]
    return f"{' or '.join(ways)} keeps fewer of them" if ways else ""


def _recomputation(situation: Situation) -> str:
    alone = situation.profile.ipus == 1
    return "recomputation from recomputation_checkpoints" if alone else "recomputation"


def _exchange_code(situation: Situation) -> str:
    return "larger contiguous pieces and fewer distinct exchanges need less" if situation.made_by_hand else ""


def _vertex_code(situation: Situation) -> str:
    return "fewer kinds of vertices on one tile need less" if situation.made_by_hand else ""


def _exchange(situation: Situation) -> str:
    if situation.made_by_hand:
        return "less data has to move when vertices lie where their data are"
    ways = ["when neighbouring layers share a layout"] if situation.layers > 1 else []
    if situation.mode != "function" and not situation.has_half():
        ways.append("with half precision")
    return f"less data has to move {', or '.join(ways)}" if ways else ""


def _host(situation: Situation) -> str:
    if situation.made_by_hand:
        return "fewer and larger copies take less"
    if situation.mode == "function":
        returned = situation.profile.meta.get("returned_argument_bytes")
        return (
            "arguments that come back stay on the chip where jax.jit donates them (donate_argnums)" if returned else ""
        )
    if _mostly_streaming_memory(situation):
        return "most of it moves what is offloaded, and what stays on the tiles takes none"
    config, ways = situation.profile.config, []
    if not config.get("optimizations.prefetch_data_streams", True):
        ways.append("prefetching")
    if situation.accumulation > 1 and order.io_tiles(situation)[0]:
        ways.append("tiles for the host (io_tiles)")
    if _copies_floats(situation):
        ways.append("half precision")
    return f"it is shorter with {' or '.join(ways)}" if ways else ""


def _copies_floats(situation: Situation) -> bool:
    """Whether most bytes that the host sends are of floats, where nothing is in half precision yet."""
    variables = situation.profile.tables["variables"]
    inputs = np.isin(variables["kind"], ("input", "stream"))
    floats = variables["bytes"][inputs & (variables["dtype"] == "float32")].sum()
    return not situation.has_half() and bool(2 * floats > variables["bytes"][inputs].sum())


def _mostly_streaming_memory(situation: Situation) -> bool:
    """Whether more than half of the host's cycles are of copies to and from streaming memory."""
    steps, terms = situation.profile.tables["steps"], situation.profile.tables["terms"]
    cycles, remote = steps["total_cycles"], np.isin(steps["id"], terms["step"][terms["name"] == STREAMING])
    return bool(2 * cycles[remote].sum() > cycles[steps["cause"] == "host"].sum())


def _waiting(situation: Situation) -> str:
    schedule = str(situation.profile.config.get("pipeline.schedule"))
    if schedule.endswith("Sequential"):
        return "another schedule lets stages work at the same time"
    if schedule.endswith("Interleaved") and _is_shorter_grouped(situation):
        return "the Grouped schedule has passes of one direction beside each other, which wait less"
    return "a more even split of the layers over the stages shortens it"


def _more_micro_batches(situation: Situation, part: str) -> str:
    """The start and the end take as long however many micro-batches there are."""
    call = "weight update" if situation.mode == "training" else "call"
    return f"with more micro-batches to a {call} the pipeline's {part} is a smaller share of the cycles"


def _is_shorter_grouped(situation: Situation) -> bool:
    """Whether the Grouped schedule takes these micro-batches, and its longer start and end cost less than it saves."""
    stages, count = len(situation.profile.stages), situation.accumulation
    if situation.mode != "training" or not stages or count % (2 * stages):
        return False
    grouped, interleaved = (columns_cycles(situation.profile, each, count) for each in ("Grouped", "Interleaved"))
    return grouped < interleaved


_MEMORY: tuple[tuple[tuple[str, ...], str, Mend], ...] = (
    (("temporary",), "temporaries", _temporaries),
    (("optimizer",), "optimizer state", _optimizer),
    (("accumulator",), "gradient accumulators", _accumulators),
    (("stash",), "stashed activations", _stash),
    (("activation",), "activations", _activations),
    (("internal_exchange_code", "host_exchange_code", "global_exchange_code"), "exchange code", _exchange_code),
    (("vertex_code",), "vertex code", _vertex_code),
)
_CYCLES: Mapping[str, Mend] = {
    "exchange": _exchange,
    "host": _host,
    "sync": lambda situation: "fewer and larger steps synchronise less" if situation.made_by_hand else "",
    "idle_fill": lambda situation: _more_micro_batches(situation, "start"),
    "idle_drain": lambda situation: _more_micro_batches(situation, "end"),
    "idle_wait_stage": _waiting,
}
