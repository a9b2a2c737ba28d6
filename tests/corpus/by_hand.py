"""Programs written on the tiles: loops, branches, functions, copies, and ones drawn at random."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import workbench as wb
from tests.corpus.drawing import drawn
from tests.corpus.registry import add, program
from tests.engine.random_programs import programs

TILES = 16


@program
def hand_add() -> Any:
    """Sums of neighbours, a little more on each tile, with exchanges and host copies, all tiles of an IPU."""
    tiles = np.arange(1472)
    sizes = 40 + 2 * (tiles % 97)
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]
    g = wb.tiles.Graph("ipu2", name="by hand")
    numbers = g.variable("numbers", int(ends[-1]), kind="state").map(dict(enumerate(parts)))
    sums = g.variable("sums", int(ends[-1])).map(dict(enumerate(parts)))
    step = g.compute_set("add")
    for tile, part in enumerate(parts[:-1]):
        here, further = numbers[part], numbers[part.start + 20 : part.stop + 20]
        step.vertex("popops::BinaryOp1D", tile=tile, op="ADD", a=here, b=further, out=sums[part])
    return wb.profile(g.sequence(g.host_copy(numbers), g.repeat(4, step, g.copy(sums, numbers))))


@program
def hand_control() -> Any:
    """A function called in a loop and in a branch, interleaved memory and several kinds of vertices."""
    g = wb.tiles.Graph("bow", tiles=TILES, name="control")
    x = g.variable("x", (TILES, 120), "float16", interleaved=True).map_linearly(tiles=TILES)
    y = g.variable("y", (TILES, 120), "float16").map_linearly(tiles=TILES)
    z = g.variable("z", (TILES, 120), "float16").map_linearly(tiles=TILES - 2, first_tile=2)
    flag = g.variable("flag", 1, "int32").map({0: slice(0, 1)})
    square, halve = g.compute_set("square"), g.compute_set("halve")
    for tile in range(TILES):
        square.vertex("popops::UnaryOp1DInPlace", tile=tile, op="SQUARE", inOut=x[tile])
        halve.vertex("popops::BinaryOp1D", tile=tile, op="MULTIPLY", a=x[tile], b=y[(tile + 3) % TILES], out=z[tile])
    halve.vertex("stub", tile=5, cycles=1234)
    body = g.function("body", square, g.repeat(3, halve, g.copy(z, y)))
    branch = g.if_(flag, g.call(body), g.sequence(g.copy(x, y), square))
    return wb.profile(g.sequence(g.host_copy(flag), g.host_copy(x), g.call(body), branch, g.host_copy(y, "to_host")))


@program
def hand_reuse() -> Any:
    """An early variable that is used late, on a machine of few tiles of an ipu1."""
    g = wb.tiles.Graph("ipu1", tiles=10, name="late reuse")
    early = g.variable("early", (10, 2000), "float32").map_linearly(tiles=10)
    b, c, d, e = (g.variable(name, (10, 1000)).map_linearly(tiles=10) for name in "bcde")

    def sums(name: str, first: Any, second: Any, out: Any) -> Any:
        step = g.compute_set(name)
        for tile in range(10):
            one, two = first[tile, :1000], second[tile, -1000:]
            step.vertex("popops::BinaryOp1D", tile=tile, op="ADD", a=one, b=two, out=out[tile])
        return step

    steps = [sums("b", early, early, b), sums("c", b, b, c), sums("d", c, c, d), sums("e", d, early, e)]
    return wb.profile(g.sequence(g.host_copy(early), *steps, g.host_copy(e, "to_host")))


@program
def hand_out_of_memory() -> Any:
    """More on one tile than it holds."""
    g = wb.tiles.Graph("ipu2", tiles=4, name="too much")
    table = g.variable("table", 200_000, kind="state").map({1: slice(0, 180_000), 2: slice(180_000, 200_000)})
    work = g.compute_set("square")
    work.vertex("popops::UnaryOp1DInPlace", tile=1, op="SQUARE", inOut=table[:180_000])
    found = wb.profile(g.sequence(work))
    assert not found.fits
    return found


class _Drawn:
    """A drawn tile program as a source."""

    def __init__(self, made: Any) -> None:
        self.made, self.target = made, made.target

    def compile_program(self, **_: Any) -> Any:
        return self.made


def _random(seed: int) -> Any:
    return wb.profile(_Drawn(drawn(programs(), seed)))


for number in range(1, 4):
    add(f"hand_random_{number}", partial(_random, number))
