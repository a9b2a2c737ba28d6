"""The search: every cut of every role with every method, costed in arrays; the cheapest that fits is the plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.engine.cost import Cost, term
from workbench.engine.options import Options
from workbench.engine.plan import ConvPlan, ConvProblem
from workbench.engine.planner.estimate import Rules, term_specs, total_cycles
from workbench.engine.planner.memory import bounds, temporary_bytes
from workbench.engine.planner.methods import macs_per_cycle, rules_of, variants_of
from workbench.engine.planner.reduction import stages
from workbench.engine.planner.variant import Variant, broadcast_columns, chosen_columns, shares_of, tables_of
from workbench.engine.target import Target
from workbench.engine.tileset import IntArray

SERIAL = (1, 2, 4, 8, 16, 32)
UNREACHED = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of one planner run."""

    proportion: float = 0.6
    multi_stage: bool = True
    wide_load: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """All cuts of one variant without serial steps: cycles and temporary bytes, int64 over the tables' rows.

    Cuts into more parts than there are tiles have cycles `UNREACHED`.
    """

    variant: Variant
    rules: Rules
    cycles: IntArray
    temporary: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One candidate: rows of the variant's tables and serial steps; ordered by cycles, then bytes, then position."""

    order: tuple[int, ...]
    variant: Variant
    rules: Rules
    rows: tuple[int, ...]
    serial_in: int = 1
    serial_out: int = 1


def settings_of(problem: ConvProblem, options: Options) -> Settings:
    """The options of matmuls or of convolutions."""
    group = "matmuls" if problem.kind == "matmul" else "convolutions"
    prefix = f"{group}.poplar_options."
    return Settings(
        proportion=options.get(prefix + "availableMemoryProportion"),
        multi_stage=options.get(prefix + "enableMultiStageReduce"),
        wide_load=options.get(prefix + "use128BitConvUnitLoad"),
    )


@lru_cache(maxsize=4096)
def plan(problem: ConvProblem, target: Target, settings: Settings) -> ConvPlan:
    """The cheapest plan whose temporary bytes keep the bound of availableMemoryProportion.

    If none does, the bound is doubled until it exceeds twice a tile's memory, then dropped; the plan says so. With
    proportion 0 the plan with the least temporary bytes is taken. Deterministic; more tiles only add candidates, so the
    modelled total never rises with the tile count.
    """
    tried = bounds(target, settings.proportion)
    for number, bound in enumerate(tried):
        found = _cheapest(problem, target, settings, bound)
        if found is not None:
            note = f"no plan within {tried[0]} B: the bound was doubled {number} times" if number else ""
            return _finished(problem, found, bound, note)
    if tried:
        found = _cheapest(problem, target, settings, UNREACHED)
        assert found is not None
        return _finished(problem, found, 0, f"no plan within {tried[-1]} B: planned without a bound")
    return _finished(problem, _smallest(problem, target, settings), 0, "")


def _candidates(variant: Variant, target: Target, settings: Settings) -> Candidates:
    rules = rules_of(variant, target, multi_stage=settings.multi_stage, wide_load=settings.wide_load)
    share, parts = broadcast_columns(tables_of(variant))
    shares = shares_of(variant, share, parts)
    cycles = total_cycles(term_specs(variant.problem, variant.method, shares, rules))
    temporary = temporary_bytes(variant.problem, variant.method, shares, rules)
    shape = tuple(len(cuts) for cuts in tables_of(variant))
    reached = np.where(shares.tiles <= target.tiles_per_ipu, cycles, UNREACHED)
    return Candidates(
        variant=variant,
        rules=rules,
        cycles=np.broadcast_to(reached, shape),
        temporary=np.broadcast_to(np.asarray(temporary), shape),
    )


def _cheapest(problem: ConvProblem, target: Target, settings: Settings, bound: int) -> Choice | None:
    best: Choice | None = None
    for number, variant in enumerate(variants_of(problem, target)):
        least = -(-problem.macs() // (macs_per_cycle(variant) * target.tiles_per_ipu))
        if best is not None and best.order[0] < least:
            continue
        found = _candidates(variant, target, settings)
        for choice in (_best_of(found, number, bound), _best_serial(found, number, bound, best)):
            if choice is not None and (best is None or choice.order < best.order):
                best = choice
    return best


def _best_of(found: Candidates, number: int, bound: int) -> Choice | None:
    """The cheapest cut that fits without serial steps."""
    cycles = np.where(found.temporary <= bound, found.cycles, UNREACHED)
    least = int(cycles.min())
    if least == UNREACHED:
        return None
    flat = np.flatnonzero(cycles.reshape(-1) == least)
    at = int(flat[np.argmin(found.temporary.reshape(-1)[flat])])
    order = (least, int(found.temporary.reshape(-1)[at]), number, 1, at)
    rows = tuple(int(row) for row in np.unravel_index(at, cycles.shape))
    return Choice(order=order, variant=found.variant, rules=found.rules, rows=rows)


def _best_serial(found: Candidates, number: int, bound: int, best: Choice | None) -> Choice | None:
    return None


def _smallest(problem: ConvProblem, target: Target, settings: Settings) -> Choice:
    choices = []
    for number, variant in enumerate(variants_of(problem, target)):
        found = _candidates(variant, target, settings)
        temporary = np.where(found.cycles < UNREACHED, found.temporary, UNREACHED)
        choice = _best_of(found, number, int(temporary.min()))
        assert choice is not None
        choices.append(choice)
    return min(choices, key=lambda choice: (choice.order[1], choice.order[0], *choice.order[2:]))


def _finished(problem: ConvProblem, choice: Choice, bound: int, warning: str) -> ConvPlan:
    """The plan of a choice, with its cost as terms."""
    variant, rules = choice.variant, choice.rules
    share, parts = chosen_columns(tables_of(variant), choice.rows)
    shares = shares_of(variant, share, parts, choice.serial_in, choice.serial_out)
    specs = term_specs(variant.problem, variant.method, shares, rules)
    moved = {
        "inputs": rules.rearrange_inputs,
        "weights": rules.rearrange_weights,
        "outputs": rules.rearrange_outputs,
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
        paired=bool(shares.out_parts % 2 == 0),
        cost=Cost(tuple(term(name, formula_id, **_plain(arguments)) for name, formula_id, arguments in specs)),
        temporary_bytes=int(temporary_bytes(variant.problem, variant.method, shares, rules)),
        bound_bytes=bound,
        warning=warning,
    )


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = (bool, str, type(None))
    return {name: value if isinstance(value, kept) else int(value) for name, value in arguments.items()}
