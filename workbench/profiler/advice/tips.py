"""What to look at in a profile, each with the number that says so, and with what mends it in this program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from workbench.base.causes import CAUSE_WORDS
from workbench.base.units import bytes_text, percent_text
from workbench.profiler.advice.levers import LOWER_PROPORTIONS, Situation
from workbench.profiler.advice.regions import full_region
from workbench.profiler.profile import Profile

# A tip is given from these shares on: a fifth of a tile, or of all cycles, is worth a look.
WORTH_BYTES = 0.2
WORTH_CYCLES = 0.2

LARGEST = 3  # variables that are named where room is to be made

# What mends something, for those programs where it can; "" where nothing that a user may say does.
Mend = Callable[[Situation], str]


def memory_tips(profile: Profile, peak_categories: Mapping[str, int]) -> Iterator[str]:
    """Tips on what fills the fullest tile at its peak, the largest first, and on the region that is full."""
    region = full_region(profile)
    if region is not None:
        yield f"on tile {profile.peak.tile} {region}"
    situation, limit = Situation(profile=profile), int(profile.target["bytes_per_tile"])
    where = f"on tile {profile.peak.tile} at the peak"
    found = [(sum(peak_categories.get(name, 0) for name in names), what, mend) for names, what, mend in _MEMORY]
    for amount, what, mend in sorted(found, key=lambda item: -item[0]):
        if amount >= WORTH_BYTES * limit:
            yield _joined(
                f"{bytes_text(amount)} of {what} {where}, {percent_text(amount / limit)} of the tile", mend(situation)
            )


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


def mapping_advice(profile: Profile) -> str:
    """What evens out the tiles: a mapping is a user's own only where the program is made by hand."""
    mend = "a more even mapping of the largest variables there lowers the peak"
    return mend if Situation(profile=profile).by_hand else ""


def hand_made_advice(profile: Profile) -> str:
    """What makes room on the fullest tile of a program made by hand: its largest variables there, where they may lie.

    "" for every other program, whose memory `diagnose` has levers for.
    """
    situation, tile = Situation(profile=profile), profile.peak.tile
    if not situation.by_hand:
        return ""
    tiles = int(profile.target["tiles_per_ipu"])
    live = situation.live.sort_values("bytes", ascending=False, kind="stable").head(LARGEST)
    if live.empty:
        return f"place fewer vertices, of fewer kinds, on tile {tile}: no variable lies there at the peak"
    held = profile.variables.set_index("id")["tiles"]
    rows = [
        (str(name), int(there), int(held[number]))
        for name, there, number in zip(live["name"], live["bytes"], live["id"], strict=True)
    ]
    named = ", ".join(f"{name} ({bytes_text(there)} there, on {count} of {tiles} tiles)" for name, there, count in rows)
    spread = any(count < tiles for _, _, count in rows)
    ways = [f"map the largest variables of tile {tile} over more tiles" if spread else "declare smaller variables"]
    if not live["always_live"].all():
        ways.append("write in place or a part after the other")
    return f"{', or '.join(ways)}; the largest on tile {tile} at step {profile.peak.step}: {named}"


def _temporaries(situation: Situation) -> str:
    if situation.by_hand:
        return "vertices that write in place, or a part after the other, need less"
    if situation.plans and max(situation.proportions) > LOWER_PROPORTIONS[-1]:
        return "a lower availableMemoryProportion makes them smaller"
    return _fewer_samples(situation, "makes them smaller")


def _fewer_samples(situation: Situation, does: str) -> str:
    small = situation.batch_size < 2 or situation.mode == "function"
    return "" if small else f"a smaller {'micro-batch' if situation.mode == 'training' else 'batch'} {does}"


def _optimizer(situation: Situation) -> str:
    return "a simpler optimizer, or offloading its state, frees it" if situation.mode == "training" else ""


def _stash(situation: Situation) -> str:
    if situation.can_recompute:
        return "recomputation keeps fewer of them"
    return _fewer_samples(situation, "makes them smaller")


def _activations(situation: Situation) -> str:
    fewer = _fewer_samples(situation, "")
    ways = [*([fewer.strip()] if fewer else []), *(["recomputation"] if situation.can_recompute else [])]
    return f"{' or '.join(ways)} keeps fewer of them" if ways else ""


def _exchange_code(situation: Situation) -> str:
    return "larger contiguous pieces and fewer distinct exchanges need less" if situation.by_hand else ""


def _vertex_code(situation: Situation) -> str:
    return "fewer kinds of vertices on one tile need less" if situation.by_hand else ""


def _exchange(situation: Situation) -> str:
    if situation.by_hand:
        return "less data has to move when vertices lie where their data are"
    ways = ["when neighbouring layers share a layout"] if situation.layers > 1 else []
    if situation.mode != "function" and not situation.has_half():
        ways.append("with half precision")
    return f"less data has to move {', or '.join(ways)}" if ways else ""


def _host(situation: Situation) -> str:
    if situation.by_hand:
        return "fewer and larger copies take less"
    return "prefetching, or larger batches per copy, hides it" if situation.mode != "function" else ""


def _waiting(situation: Situation) -> str:
    if str(situation.profile.config.get("pipeline.schedule")).endswith("Sequential"):
        return "another schedule lets stages work at the same time"
    return "a more even split of the layers over the stages shortens it"


_MEMORY: tuple[tuple[tuple[str, ...], str, Mend], ...] = (
    (("temporary",), "temporaries", _temporaries),
    (("optimizer",), "optimizer state", _optimizer),
    (("stash",), "stashed activations", _stash),
    (("activation",), "activations", _activations),
    (("internal_exchange_code", "host_exchange_code", "global_exchange_code"), "exchange code", _exchange_code),
    (("vertex_code",), "vertex code", _vertex_code),
)
_CYCLES: Mapping[str, Mend] = {
    "exchange": _exchange,
    "host": _host,
    "sync": lambda situation: "fewer and larger steps synchronise less" if situation.by_hand else "",
    "idle_fill": lambda situation: "more micro-batches per update shorten the pipeline's start",
    "idle_drain": lambda situation: "more micro-batches per update shorten the pipeline's end",
    "idle_wait_stage": _waiting,
}
