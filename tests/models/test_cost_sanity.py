"""Costs that cannot be otherwise: half as many bits, in inputs and partials together, never cost more."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.planner.cases import slower_vectors
from tests.engine.small_graphs import Draft
from tests.engine.small_programs import Builder
from tests.engine.vertices.machine import MACHINE
from workbench.engine import vertices
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.target import target
from workbench.engine.time.execute import execute

SIZES = st.sampled_from([1, 3, 8, 16, 17, 29, 30, 40, 64, 96, 100, 128, 183])
TILES = st.sampled_from([1, 4, 16, 64, 200])
EXAMPLES = settings(max_examples=max(25, settings.default.max_examples // 2), derandomize=True)
PARTIALS = {"float32": "float", "float16": "half"}


def device_cycles(found: Compiled) -> int:
    """All cycles but those of host copies."""
    spent = found.trace.cycle_breakdown[0]
    return found.trace.total_cycles - spent["host"]


def both(make: Any, tiles: int) -> tuple[int, int]:
    """Device cycles in half and in single precision."""
    half, single = compiled(make, tiles)
    return device_cycles(half), device_cycles(single)


def compiled(make: Any, tiles: int) -> tuple[Compiled, Compiled]:
    """The program in half and in single precision."""
    found = []
    for dtype in ("float16", "float32"):
        chosen = Options().with_values(
            {
                "matmuls.poplar_options.partialsType": PARTIALS[dtype],
                "convolutions.poplar_options.partialsType": PARTIALS[dtype],
            }
        )
        graph: Graph = make(dtype)
        found.append(compile_graph(graph, target("ipu2", tiles_per_ipu=tiles), chosen))
    return found[0], found[1]


@EXAMPLES
@given(SIZES, SIZES, SIZES, TILES)
@example(17, 17, 64, 64)  # two operands rearranged in one step
@example(17, 64, 16, 16)  # parts of an uneven axis, their results shared out
@example(41, 29, 96, 200)  # channels that fill no whole block
@example(3, 1, 3, 4)  # an outer product of one vector of halves, where floats have two for more tiles
def test_a_matmul_in_half_costs_no_more(m: int, k: int, n: int, tiles: int) -> None:
    """Beyond what a vector of four halves takes longer than one of two floats: the least an outer product can have."""

    def product(dtype: str) -> Graph:
        d = Draft()
        with d.at(layer="dense"):
            out = d.dot(d.param("x", (m, k), dtype=dtype), d.weight("dense/kernel", (k, n), dtype))
        return d.graph(out)

    half, single = compiled(product, tiles)
    longer = sum(slower_vectors(plan) for plan in set(single.lowered.plans.values()) if isinstance(plan, ConvPlan))
    assert device_cycles(half) <= device_cycles(single) + longer


@EXAMPLES
@given(SIZES, SIZES, TILES, st.booleans())
@example(1, 6, 1, True)  # six sums for six workers
@example(183, 183, 1, False)
@example(100, 6, 1, True)  # a vector that fills no whole vectors of halves
@example(8, 100, 200, False)  # terms that fill several tiles
@example(8, 40, 200, True)  # partial sums across tiles
@example(1, 100, 4, True)  # one term
@example(3, 1, 16, True)  # a sum shorter than a vector
@example(64, 3, 64, True)  # fewer sums than workers
def test_a_product_with_a_vector_in_half_costs_no_more(k: int, n: int, tiles: int, row: bool) -> None:
    """As the driver rewrites it: a product and a sum."""

    def product(dtype: str) -> Graph:
        d = Draft()
        with d.at(layer="dense"):
            left, right = ((1, k), (k, n)) if row else ((n, k), (k, 1))
            out = d.dot(d.param("x", left, dtype=dtype), d.weight("dense/kernel", right, dtype))
        return d.graph(out)

    half, single = both(product, tiles)
    assert half <= single


@EXAMPLES
@given(st.integers(1, 3), st.sampled_from([4, 7, 8, 14]), SIZES, SIZES, st.sampled_from([1, 3]), TILES)
@example(3, 7, 1, 30, 3, 64)  # parts of an uneven axis that are empty
def test_a_convolution_in_half_costs_no_more(b: int, size: int, c: int, o: int, kernel: int, tiles: int) -> None:
    def convolved(dtype: str) -> Graph:
        d = Draft()
        with d.at(layer="conv"):
            images = d.param("x", (b, size, size, c), dtype=dtype)
            out = d.conv(images, d.weight("conv/kernel", (kernel, kernel, c, o), dtype))
        return d.graph(out)

    half, single = both(convolved, tiles)
    assert half <= single


@EXAMPLES
@given(st.sampled_from([1, 2, 3, 7, 16, 30, 64, 100, 128]), SIZES, TILES)
def test_a_transposed_sum_in_half_costs_no_more(m: int, n: int, tiles: int) -> None:
    """Elements that lie elsewhere: an exchange, then an elementwise operation."""

    def added(dtype: str) -> Graph:
        d = Draft()
        with d.at(layer="sum"):
            one = d.point("tanh", d.param("x", (m, n), dtype=dtype))
            other = d.transpose(d.point("exp", d.param("y", (n, m), dtype=dtype)), 1, 0)
            return d.graph(d.point("add", one, other))

    half, single = both(added, tiles)
    assert half <= single


@EXAMPLES
@given(st.integers(1, 100_000))
def test_a_copy_of_half_the_bytes_costs_no_more(size: int) -> None:
    assert vertices.cycles(MACHINE, "poplar::Memcpy", bytes=2 * size) <= vertices.cycles(
        MACHINE, "poplar::Memcpy", bytes=4 * size
    )


@EXAMPLES
@given(st.lists(st.integers(0, 5000), min_size=3, max_size=3), st.lists(st.integers(1, 400), min_size=4, max_size=4))
@example([100, 0, 0], [1, 1, 1, 1])
def test_an_exchange_of_half_the_bytes_costs_no_more(received: list[int], fragments: list[int]) -> None:
    def cycles(itemsize: int) -> int:
        b = Builder()
        incoming = [0, *(itemsize * count for count in received)]
        step = b.exchange(b.exchanged([sum(incoming)], incoming, fragments))
        return execute(b.program(step)).steps[step.id].cycles

    assert cycles(2) <= cycles(4)
