"""A program of loops in loops, far too long to be unrolled."""

from __future__ import annotations

import workbench as wb
from workbench.profiler.profile import Profile

TILES = 4


def nested(outer: int, inner: int) -> Profile:
    """`outer` turns of a step, a loop of `inner` turns of a step and a copy, and a step."""
    g = wb.tiles.Graph("ipu2", tiles=TILES)
    x, y = (g.variable(name, TILES * 100).map_linearly(tiles=TILES) for name in "xy")
    there, back = g.compute_set("there"), g.compute_set("back")
    for tile in range(TILES):
        part = slice(tile * 100, tile * 100 + (100 if tile else 40))  # tile 0 has less to do
        there.vertex("popops::BinaryOp1D", tile=tile, op="ADD", a=x[part], b=x[part], out=y[part])
        back.vertex("popops::BinaryOp1D", tile=tile, op="ADD", a=y[part], b=y[part], out=x[part])
    loop = g.repeat(inner, there, g.copy(y, x), name="inner")
    body = g.repeat(outer, back, loop, there, name="outer")
    return wb.profile(g.sequence(g.host_copy(x), body, g.host_copy(y, "to_host")))
