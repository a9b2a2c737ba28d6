"""Every single change, every pair, and fifty seeded triples of a stated lattice of values, each compiled.

Written without the code of the search: what is tried stands in the table below, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

from tests.decide.cases import READS_BATCH, Case

TRIPLES = 50
MOST = 200  # compiles of a case
SHARE, PARTIALS = "{}.poplar_options.availableMemoryProportion", "{}.poplar_options.partialsType"
ORDER = ("exact", "reassociated", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of one axis: options, arguments, and what becomes of the numbers."""

    axis: str
    level: str
    options: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[tuple[str, Any], ...] = ()


Point = tuple[Value, ...]


def both(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((name.format(group), value) for group in ("matmuls", "convolutions"))


def values(case: Case) -> list[Value]:
    """The lattice of a case, without what its constraint keeps out."""
    found = [Value(axis="share", level="reassociated", options=both(SHARE, share)) for share in (0.2, 0.05, 1.0)]
    found += [
        Value(axis="precision", level="any", arguments=(("precision", name),)) for name in ("float16", "mixed_float16")
    ]
    found += [Value(axis="partials", level="any", options=both(PARTIALS, "half"))]
    found += [
        Value(axis="order", level="exact", options=(("scheduling.algorithm", name),))
        for name in ("SHORTEST_PATH", "CLUSTERING")
    ]
    found += [Value(axis="shared code", level="exact", options=(("optimizations.enable_graph_outlining", False),))]
    sizes = [case.batch // part for part in (2, 4, 8) if case.batch % part == 0]
    if case.way == "inference":
        found += [Value(axis="batch", level="reassociated", arguments=(("batch_size", size),)) for size in sizes]
    else:
        found += training(case, sizes)
    most = ORDER.index(case.keep_numbers)
    return [each for each in found if ORDER.index(each.level) <= most and each.axis not in case.without]


def training(case: Case, sizes: Sequence[int]) -> list[Value]:
    """What only training has."""
    level = "any" if case.model in READS_BATCH else "reassociated"
    batches = [(("batch_size", size), ("gradient_accumulation_steps", case.batch // size)) for size in sizes]
    streamed = ("weights", "weight_update_variables", "gradient_accumulation_buffers", "activations")
    return [
        *(Value(axis="batch", level=level, arguments=each) for each in batches),
        Value(axis="recomputation", level="exact", options=(("allow_recompute", True),)),
        *(Value(axis=name, level="exact", options=((f"pipeline.offload_{name}", True),)) for name in streamed),
    ]


def points(case: Case, seed: int) -> list[Point]:
    """Singles, pairs of two axes, and triples of three that the seed chooses."""
    every = values(case)
    singles: list[Point] = [(each,) for each in every]
    pairs: list[Point] = [each for each in combinations(every, 2) if apart(each)]
    triples: list[Point] = [each for each in combinations(every, 3) if apart(each)]
    found = singles + pairs + Random(seed).sample(triples, min(TRIPLES, len(triples)))
    assert len(found) <= MOST, len(found)
    return found


def apart(point: Point) -> bool:
    return len({each.axis for each in point}) == len(point)


def options(point: Point) -> dict[str, Any]:
    return {name: value for each in point for name, value in each.options}


def arguments(point: Point) -> dict[str, Any]:
    return {name: value for each in point for name, value in each.arguments}


def measured(base: Any, every: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
    """The profile of each point, None where it does not compile; points of equal arguments share a trace."""
    from workbench.errors import WorkbenchError
    from workbench.executable.compile import compile_request

    last: dict[str, Any] = {}
    for point in sorted(every, key=lambda each: repr(arguments(each))):
        asked = repr(arguments(point))
        request = base.request.replace(options=options(point), **arguments(point))
        try:
            last = {asked: compile_request(request, None, last.get(asked, base))}
        except WorkbenchError:
            yield point, None
        else:
            yield point, last[asked].profile


def cost(profile: Any) -> float:
    """Cycles x IPUs a sample."""
    return float(profile.total_cycles * profile.ipus / profile.meta["samples_per_call"])
