"""The search: every cut of every role with every method, costed in arrays; the cheapest that fits is the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from workbench.base.arrays import FloatArray, IntArray, ceil_div
from workbench.engine.cost import Cost, term
from workbench.engine.options import Options
from workbench.engine.planner.alike import Cut, cut_of_one_alike, note_cut
from workbench.engine.planner.bytes import bounds, floor_bytes, temporary_bytes
from workbench.engine.planner.estimate import (
    filled_up,
    floor_cycles,
    floor_in_steps,
    term_specs,
    total_cycles,
)
from workbench.engine.planner.method import Rules, Shares
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.reduction import stages
from workbench.engine.planner.variant import (
    Variant,
    chosen_columns,
    macs_of,
    rules_of,
    shares_of,
    tables_of,
    variants_of,
)
from workbench.engine.remembered import remembered
from workbench.engine.target import Target
from workbench.engine.vertices.sizes import Sizes

# Steps over input and over output channels, never over both: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:3350, which
# tries every count up to the blocks. These are no further apart than a quarter, beyond the first.
COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
Steps = tuple[tuple[int, int], ...]
ONCE: Steps = ((1, 1),)
SERIAL: Steps = (*ONCE, *((count, 1) for count in COUNTS), *((1, count) for count in COUNTS))
UNREACHED = np.iinfo(np.int64).max
PROPORTION = "available_memory_proportion"  # of a node whose IPU has a number of its own
FIRST_LOOK = 256  # candidates costed exactly before the others are ruled out by their lower bound
FIRST_CUTS = 128  # that do not fit at once and are tried in steps before the others are ruled out
MOST_CHOICES = 64  # that are kept of one problem's searches with different bounds
REACH = 2  # times the cost of the best: cuts that promised as much are kept for searches with another bound
FEWER_CYCLES = 0.8  # serial steps never make a cut cheaper than this part of its cost without them


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of one planner run."""

    proportion: float = 0.6
    multi_stage: bool = True
    wide_load: bool = False
    fast_reduce: bool = False
    travelling: str = ""  # type in which partials are exchanged; empty: that in which they were computed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Cuts of one variant, each with every number of serial steps: lower bounds of cycles and temporary bytes.

    `cuts` are the flat positions in the product of the variant's tables. Both bounds are int64[cuts, serial], or
    int64[cuts] with `serial` one step only. Cuts that cannot cost `below` cycles may be missing.
    """

    variant: Variant
    rules: Rules
    serial: Steps
    cuts: IntArray
    cycles: IntArray
    temporary: IntArray
    below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One candidate: rows of the variant's tables and serial steps; ordered by cycles, then bytes, then position."""

    order: tuple[int, ...]
    variant: Variant
    rules: Rules
    rows: tuple[int, ...]
    serial_in: int = 1
    serial_out: int = 1


def settings_of(problem: ConvProblem, options: Options, proportion: float | None = None) -> Settings:
    """The options of matmuls or of convolutions; `proportion` in place of theirs."""
    group = "matmuls" if problem.kind == "matmul" else "convolutions"
    prefix = f"{group}.poplar_options."
    travelling = options.get(prefix + "partialsType.interTile") if group == "convolutions" else ""
    return Settings(
        proportion=options.get(prefix + "availableMemoryProportion") if proportion is None else proportion,
        multi_stage=options.get(prefix + "enableMultiStageReduce"),
        wide_load=options.get(prefix + "use128BitConvUnitLoad"),
        fast_reduce=options.get(prefix + "enableFastReduce"),
        travelling=travelling or "",
    )


@remembered(4096)
def plan(problem: ConvProblem, target: Target, settings: Settings) -> ConvPlan:
    """The cheapest plan whose temporary bytes keep the bound of availableMemoryProportion.

    If none does, the bound is doubled until it exceeds twice a tile's memory, then dropped; the plan says so. With
    proportion 0 the plan with the least temporary bytes is taken. Deterministic; more tiles only add candidates, so the
    modelled total never rises with the tile count.
    """
    return finished(problem, *search(problem, target, settings))


def search(problem: ConvProblem, target: Target, settings: Settings) -> tuple[Choice, str]:
    """The choice that becomes the plan, and what there is to say of its bound."""
    choice, note = _searched(problem, target, settings)
    _note(problem, target, settings, choice)
    return choice, note


def _searched(problem: ConvProblem, target: Target, settings: Settings) -> tuple[Choice, str]:
    tried = bounds(target, settings.proportion)
    for number, bound in enumerate(tried):
        found = _cheapest(problem, target, settings, bound)
        if found is not None:
            return found, f"no plan within {tried[0]} B: the bound was doubled {number} times" if number else ""
    if tried:
        found = _cheapest(problem, target, settings, UNREACHED)
        assert found is not None
        return found, f"no plan within {tried[-1]} B: planned without a bound"
    return _smallest(problem, target, settings), ""


def choice_of(problem: ConvProblem, target: Target, settings: Settings, order: tuple[int, ...]) -> Choice:
    """The choice that a search has made, from its order alone."""
    _, _, number, serial_in, serial_out, cut = order
    variant = variants_of(problem, target)[number]
    choice = Choice(
        order=order,
        variant=variant,
        rules=_rules(variant, target, settings),
        rows=tuple(int(row) for row in _rows(variant, np.asarray(cut))),
        serial_in=serial_in,
        serial_out=serial_out,
    )
    _note(problem, target, settings, choice)
    return choice


def _rules(variant: Variant, target: Target, settings: Settings) -> Rules:
    """What the variant's layout rearranges, with the settings."""
    return replace(
        rules_of(variant, target, multi_stage=settings.multi_stage, wide_load=settings.wide_load),
        fast_reduce=settings.fast_reduce,
        travelling=settings.travelling,
    )


@lru_cache(maxsize=16)
def _candidates(variant: Variant, target: Target, settings: Settings, below: int) -> Candidates:
    """Every cut into no more parts than there are tiles, without serial steps; none whose products alone take longer
    than a cut that costs `below` can be worth, serial steps or not.
    """
    rules = _rules(variant, target, settings)
    tables = tables_of(variant)
    tiles = reduce(np.multiply.outer, [cuts.product for cuts in tables])
    possible = tiles <= target.tiles_per_ipu
    if below != UNREACHED:
        macs = reduce(np.multiply.outer, [macs_of(variant.problem, cuts) for cuts in tables])
        possible &= macs * FEWER_CYCLES <= below * variant.method.macs_per_cycle(variant.problem.in_type)
    within = np.flatnonzero(possible)
    shares = shares_of(variant, *chosen_columns(tables, _rows(variant, within)))
    return Candidates(
        variant=variant,
        rules=rules,
        serial=ONCE,
        cuts=within,
        cycles=np.broadcast_to(floor_cycles(variant.problem, variant.method, shares, rules), within.shape),
        temporary=np.broadcast_to(floor_bytes(variant.problem, variant.method, shares, rules), within.shape),
        below=below,
    )


def _with_steps(once: Candidates, chosen: IntArray) -> Candidates:
    """Some cuts with every number of serial steps."""
    variant, (steps_in, steps_out) = once.variant, np.asarray(SERIAL, np.int64).T
    share, parts = chosen_columns(tables_of(variant), _rows(variant, once.cuts[chosen]))
    share, parts = ({axis: _beside_steps(sizes) for axis, sizes in side.items()} for side in (share, parts))
    shares = shares_of(variant, share, parts, steps_in, steps_out)
    shape = (len(chosen), len(SERIAL))
    return Candidates(
        variant=variant,
        rules=once.rules,
        serial=SERIAL,
        cuts=once.cuts[chosen],
        cycles=np.broadcast_to(floor_cycles(variant.problem, variant.method, shares, once.rules), shape),
        temporary=np.broadcast_to(floor_bytes(variant.problem, variant.method, shares, once.rules), shape),
        below=once.below,
    )


def _beside_steps(sizes: Sizes) -> Sizes:
    """Sizes of cuts, to be combined with numbers of steps."""
    return sizes[:, None] if isinstance(sizes, np.ndarray) else sizes


@dataclass(frozen=True, slots=True)
class Promising:
    """What a search leaves for one with another bound: by variant the cuts that can cost at most `upto` cycles, and
    for choices the largest bound within which each is the cheapest. No variant has others that can cost `limit`.
    """

    limit: int = 0
    cuts: Mapping[int, Candidates] = field(default_factory=dict)
    upto: Mapping[int, int] = field(default_factory=dict)
    cheapest: Mapping[Choice, int] = field(default_factory=dict)

    def keeping(self, tried: Mapping[int, Candidates], limit: int) -> Promising:
        """With the cuts of what was tried that can, and those that a smaller bound may make worth trying."""
        upto = {number: min(found.below, REACH * limit) for number, found in tried.items()}
        cuts = {number: _below(found, upto[number]) for number, found in tried.items()}
        return replace(self, limit=limit, cuts={**self.cuts, **cuts}, upto={**self.upto, **upto})

    def has_all(self, number: int, below: int) -> bool:
        """Whether all of a variant's cuts that can cost so much are among the promising ones."""
        return below <= self.upto.get(number, -1)

    def within(self, bound: int) -> Choice | None:
        """The choice that is the cheapest within a larger bound too, and keeps this one."""
        return next((each for each, most in self.cheapest.items() if each.order[1] <= bound <= most), None)

    def finding(self, choice: Choice, bound: int) -> Promising:
        """With a choice that is the cheapest within a bound, the latest of those that are kept."""
        others = {each: most for each, most in self.cheapest.items() if each != choice}
        cheapest = {**others, choice: max(bound, self.cheapest.get(choice, bound))}
        if len(cheapest) > MOST_CHOICES:
            del cheapest[next(iter(cheapest))]
        return replace(self, cheapest=cheapest)

    def beyond(self, number: int, found: Candidates) -> Candidates:
        """Those of a variant's cuts that are not among the promising ones."""
        if number not in self.cuts:
            return found
        return _of_cuts(found, np.flatnonzero(found.cycles * FEWER_CYCLES > self.upto[number]))


@dataclass(slots=True, eq=False)
class Searches:
    """The searches of one problem that differ in their bounds alone, and what they have left up to `now`.

    Threads search at once, and any may be interrupted: each goes by what was there as it began, and leaves its own
    whole. Without a lock, as a process that is forked meanwhile would wait for it for ever.
    """

    now: Promising = field(default_factory=Promising)


@remembered(512)
def searches_of(problem: ConvProblem, target: Target, settings: Settings) -> Searches:
    """What was kept of the searches that differ in their bounds alone."""
    return Searches()


def _cheapest(problem: ConvProblem, target: Target, settings: Settings, bound: int) -> Choice | None:
    """The cheapest candidate within the bound, exactly, as lower bounds only rule out what cannot be cheaper.

    Cuts that promised as much as the plan of another bound cost are tried first. If none is as cheap, the best of them
    says how cheap the others have to be.
    """
    searches = searches_of(problem, target, replace(settings, proportion=0.0))
    kept = searches.now
    best = kept.within(bound)
    if best is not None:
        return best
    if kept.cuts:
        best = _cheapest_of(problem, target, settings, bound, dict(kept.cuts))
    if best is None or best.order[0] > kept.limit:
        tried: dict[int, Candidates] = {}
        limit = best.order[0] if best else UNREACHED if kept.cuts else _reached(problem, target, settings, bound)
        other = _cheapest_of(problem, target, settings, bound, tried, limit, kept)
        best = other if best is None or (other is not None and other.order < best.order) else best
        if best is not None:
            kept = kept.keeping(tried, best.order[0])
    if best is not None:
        searches.now = kept.finding(best, bound)
    return best


def _reached(problem: ConvProblem, target: Target, settings: Settings, bound: int) -> int:
    """Cycles that some candidate within the bound costs, cut as a problem alike was; `UNREACHED` if none is known."""
    cut = cut_of_one_alike(problem, _beside(target, settings))
    variant = next((each for each in variants_of(problem, target) if cut is not None and cut.is_of(each)), None)
    if cut is None or variant is None:
        return UNREACHED
    columns, rules = chosen_columns(tables_of(variant), cut.rows(variant)), _rules(variant, target, settings)

    def needed(shares: Shares) -> int:
        return int(temporary_bytes(variant.problem, variant.method, shares, rules))

    shares = shares_of(variant, *columns, cut.serial_in, cut.serial_out)
    in_steps = cut.serial_in * cut.serial_out > 1
    if needed(shares) > bound or (in_steps and needed(shares_of(variant, *columns)) <= bound):
        return UNREACHED  # what fits at once is no candidate in steps
    return int(total_cycles(term_specs(variant.problem, variant.method, shares, rules)))


def _note(problem: ConvProblem, target: Target, settings: Settings, choice: Choice) -> None:
    """Keep how a problem was cut for searches of others that are alike."""
    cut = Cut.of(choice.variant, choice.rows, choice.serial_in, choice.serial_out)
    note_cut(problem, _beside(target, settings), cut)


def _beside(target: Target, settings: Settings) -> tuple[Target, Settings]:
    """What a cut was found for besides a problem; with another proportion it is near to it."""
    return target, replace(settings, proportion=0.0)


def _cheapest_of(
    problem: ConvProblem,
    target: Target,
    settings: Settings,
    bound: int,
    known: dict[int, Candidates],
    limit: int = UNREACHED,
    done: Promising | None = None,
) -> Choice | None:
    """The cheapest candidate within the bound: of `known` cuts by variant, or, where there are none yet, of all that
    can cost at most `limit`, which are then known; none of those of `done`.
    """
    best: Choice | None = None
    macs, complete = problem.macs(), bool(known)
    for in_steps in (False, True):
        for number, variant in _in_turn(variants_of(problem, target), known if in_steps else {}):
            below = min(limit, best.order[0]) if best else limit
            if below < ceil_div(macs, variant.method.macs_per_cycle(variant.problem.in_type) * target.tiles_per_ipu):
                continue
            if number not in known:
                if complete or (done is not None and done.has_all(number, below)):
                    continue
                known[number] = _candidates(variant, target, settings, below)
            search = _best_in_steps if in_steps else _best_of
            left = known[number] if done is None else done.beyond(number, known[number])
            found = search(left, number, bound, below)
            if found is not None and (best is None or found.order < best.order):
                best = found
    return best


def _in_turn(variants: Sequence[Variant], known: Mapping[int, Candidates]) -> list[tuple[int, Variant]]:
    """Variants with their numbers, that of the lowest bound first where bounds are known: what it costs rules out most
    cuts of the others, whose turn is after it."""
    least = {number: int(found.cycles.min(initial=UNREACHED)) for number, found in known.items()}
    return sorted(enumerate(variants), key=lambda each: least.get(each[0], UNREACHED))


def _below(found: Candidates, limit: int) -> Candidates:
    """Those of some cuts that can cost at most `limit`."""
    return _of_cuts(found, np.flatnonzero(found.cycles * FEWER_CYCLES <= limit))


def _of_cuts(found: Candidates, rows: IntArray) -> Candidates:
    return replace(found, cuts=found.cuts[rows], cycles=found.cycles[rows], temporary=found.temporary[rows])


def _best_in_steps(once: Candidates, number: int, bound: int, below: int) -> Choice | None:
    """The cheapest of the cuts that do not fit at once, in serial steps.

    Cuts are taken in order of their lower bound in steps, few at first: what these cost rules out most others.
    """
    best: Choice | None = None
    promising = np.flatnonzero(once.cycles * FEWER_CYCLES <= below)
    if not len(promising):
        return None
    least = _floors_in_steps(once, promising)
    left = np.flatnonzero(least <= below)
    left = left[np.argsort(least[left], kind="stable")]
    least = least[left]
    done, size = 0, FIRST_CUTS
    while done < (end := min(done + size, int(least.searchsorted(below, side="right")))):
        chosen = _not_at_once(once, np.sort(promising[left[done:end]]), bound)
        choice = _best_of(_with_steps(once, chosen), number, bound, below) if len(chosen) else None
        if choice is not None and (best is None or choice.order < best.order):
            best, below = choice, min(below, choice.order[0])
        done, size = end, 4 * size
    return best


def _not_at_once(once: Candidates, chosen: IntArray, bound: int) -> IntArray:
    """Those of some cuts that need more bytes at once than the bound."""
    near = once.temporary[chosen] <= bound  # by their lower bounds
    if not near.any():
        return chosen
    shares, _ = _chosen(once, chosen[near])
    exact = temporary_bytes(once.variant.problem, once.variant.method, shares, once.rules)
    near[near] = np.broadcast_to(exact, int(near.sum())) <= bound
    return chosen[~near]


def _floors_in_steps(once: Candidates, chosen: IntArray) -> FloatArray:
    """Lower bounds of the cycles of some cuts in any number of steps."""
    variant = once.variant
    columns = chosen_columns(tables_of(variant), _rows(variant, once.cuts[chosen]))
    shares = shares_of(variant, *columns)
    alone = shares_of(variant, *columns, ceil_div(shares.in_chans, variant.method.in_block))
    found = floor_in_steps(variant.problem, variant.method, shares, alone, once.rules)
    return np.broadcast_to(found, chosen.shape)


def _best_of(found: Candidates, number: int, bound: int, below: int) -> Choice | None:
    """The cheapest candidate that fits and costs at most `below`.

    Candidates are costed exactly in order of their lower bounds, until the next cannot beat what was found.
    """
    lower = found.cycles.reshape(-1)
    left = np.flatnonzero((lower <= below) & (found.temporary.reshape(-1) <= bound))
    left = left[np.argsort(lower[left], kind="stable")]
    lower = lower[left]
    best: Choice | None = None
    done, size = 0, FIRST_LOOK
    while done < (end := min(done + size, int(lower.searchsorted(below, side="right")))):
        choice = _exact(found, number, bound, left[done:end])
        if choice is not None and (best is None or choice.order < best.order):
            best, below = choice, choice.order[0]
        done, size = end, 4 * size
    return best


def _exact(found: Candidates, number: int, bound: int, chunk: IntArray) -> Choice | None:
    """The best of some candidates by their exact cost and temporary bytes."""
    shares, steps = _chosen(found, chunk)
    variant, rules = found.variant, found.rules
    cycles = total_cycles(term_specs(variant.problem, variant.method, shares, rules))
    temporary = np.broadcast_to(temporary_bytes(variant.problem, variant.method, shares, rules), chunk.shape)
    cycles = np.where(temporary <= bound, cycles, UNREACHED)
    at = int(np.lexsort((chunk, temporary, cycles))[0])
    if cycles[at] == UNREACHED:
        return None
    cut = int(found.cuts[chunk[at] // len(found.serial)])
    return Choice(
        order=(int(cycles[at]), int(temporary[at]), number, int(steps[0][at]), int(steps[1][at]), cut),
        variant=variant,
        rules=rules,
        rows=tuple(int(row) for row in _rows(variant, np.asarray(cut))),
        serial_in=int(steps[0][at]),
        serial_out=int(steps[1][at]),
    )


def _rows(variant: Variant, cuts: IntArray) -> list[IntArray]:
    """Rows of the variant's tables of some cuts."""
    shape = tuple(len(table) for table in tables_of(variant))
    return [np.asarray(rows, np.int64) for rows in np.unravel_index(cuts, shape)]


def _chosen(found: Candidates, chunk: IntArray) -> tuple[Shares, tuple[IntArray, IntArray]]:
    """Sizes of some candidates, and their serial steps."""
    count = len(found.serial)
    share, parts = chosen_columns(tables_of(found.variant), _rows(found.variant, found.cuts[chunk // count]))
    if count == 1:
        ones = np.ones(len(chunk), np.int64)
        return shares_of(found.variant, share, parts), (ones, ones)
    steps_in, steps_out = np.asarray(found.serial, np.int64)[chunk % count].T
    return shares_of(found.variant, share, parts, steps_in, steps_out), (steps_in, steps_out)


def _smallest(problem: ConvProblem, target: Target, settings: Settings) -> Choice:
    """The candidate with the least temporary bytes, then the fewest cycles."""
    best: Choice | None = None
    for number, variant in enumerate(variants_of(problem, target)):
        once = _candidates(variant, target, settings, UNREACHED)
        # A cut that needs little at once needs little in steps: the exact figure exceeds the bound by what is staged.
        order = np.argsort(once.temporary, kind="stable")[: 4 * FIRST_LOOK]
        for tried in (once, _with_steps(once, order)):
            choice = _least_of(tried, number)
            if best is None or _by_bytes(choice) < _by_bytes(best):
                best = choice
    assert best is not None
    return best


def _least_of(found: Candidates, number: int) -> Choice:
    low = found.temporary.reshape(-1)
    chunk = np.sort(np.argsort(low, kind="stable")[: 4 * FIRST_LOOK])
    shares, _ = _chosen(found, chunk)
    exact = temporary_bytes(found.variant.problem, found.variant.method, shares, found.rules)
    choice = _exact(found, number, int(np.min(exact)), chunk)
    assert choice is not None
    return choice


def _by_bytes(choice: Choice) -> tuple[int, ...]:
    return (choice.order[1], choice.order[0], *choice.order[2:])


_ALIVE: WeakValueDictionary[tuple[ConvProblem, Choice, str], ConvPlan] = WeakValueDictionary()


def finished(problem: ConvProblem, choice: Choice, warning: str) -> ConvPlan:
    """The plan of a choice; one object for all bounds that lead to it, by which compiles tell that nothing changed.

    So it is while anything holds that object, whatever else of the planner's is forgotten between compiles.
    """
    key = (problem, choice, warning)
    found = _ALIVE.get(key)
    return _ALIVE.setdefault(key, _plan_of(problem, choice, warning)) if found is None else found


def _plan_of(problem: ConvProblem, choice: Choice, warning: str) -> ConvPlan:
    """The plan of a choice, with its cost as terms."""
    variant, rules = choice.variant, choice.rules
    share, parts = chosen_columns(tables_of(variant), choice.rows)
    shares = shares_of(variant, share, parts, choice.serial_in, choice.serial_out)
    specs = term_specs(variant.problem, variant.method, shares, rules)
    fills = filled_up(shares, rules)
    moved = {
        "inputs": rules.rearrange_inputs,
        "weights": rules.rearrange_weights and not fills,
        "outputs": rules.rearrange_outputs and not rules.trims_outputs,
    }
    return ConvPlan(
        problem=problem,
        method=variant.method,
        splits=tuple((axis, parts[axis]) for axis in variant.all_axes()),
        grains=tuple((axis, variant.grain(axis)) for axis in variant.all_axes()),
        swapped=variant.swapped,
        expanded=variant.expanded,
        serial_in=choice.serial_in,
        serial_out=choice.serial_out,
        stages=stages(int(shares.depth), rules.multi_stage),
        transforms=tuple(name for name, needed in moved.items() if needed),
        pads=rules.pads_operands,
        fills=bool(fills),
        paired=bool(shares.out_parts % 2 == 0),
        wide_load=rules.wide_load,
        cost=Cost(tuple(term(name, formula_id, **_plain(arguments)) for name, formula_id, arguments in specs)),
        temporary_bytes=int(temporary_bytes(variant.problem, variant.method, shares, rules)),
        warning=warning,
    )


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = (bool, str, type(None))
    return {name: value if isinstance(value, kept) else int(value) for name, value in arguments.items()}
