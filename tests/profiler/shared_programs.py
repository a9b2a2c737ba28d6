"""Hypothesis strategies: programs whose bodies several layers share, as tile programs and as models.

The tile programs have outlined bodies (of one operator or of parts for several), stage bodies that run again, loops,
branches and columns; the models repeat equal blocks under layers, under none, in loops and in branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.engine.small_programs import Builder, small_target
from workbench.engine.compile import Clock, Compiled, measure
from workbench.engine.emit.context import Operator
from workbench.engine.graph.origin import Origin
from workbench.engine.lower import Lowered
from workbench.engine.options import Options
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Sequence

LAYERS = ("", "a", "b", "b/inner")
LINES = ("", "model.py:3", "model.py:9")


def sequence(*children: Program, name: str = "") -> Sequence:
    return Sequence(children=children, name=name)


@dataclass(frozen=True)
class Drawn:
    """A measured program, and of each call's operator those of all parts of the body."""

    compiled: Compiled
    operators: dict[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return str(self.compiled.program)


class _Body(NamedTuple):
    name: str
    parts: int
    direction: str


class _Drawing:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.b = Builder(small_target(4, non_interleaved_bytes=1 << 20), 2)
        self.rows: list[Operator] = []
        self.operators: dict[str, tuple[str, ...]] = {}
        self.seen: set[_Body] = set()
        self.bodies: dict[int, list[_Body]] = {0: [], 1: []}

    def origin(self, direction: str) -> Origin:
        layer, line = self.draw(st.sampled_from(LAYERS)), self.draw(st.sampled_from(LINES))
        return Origin(layer=layer, layer_class=layer.upper(), direction=direction, source=line)

    def leaf(self, ipu: int, origin: Origin, operator: str = "") -> Program:
        name = f"{origin.layer}/word" if origin.layer else "small/word"
        cycles = self.draw(st.integers(1, 40))
        return replace(self.b.compute(cycles, ipu=ipu, origin=origin, operator=operator), name=name)

    def row(self, origin: Origin, body: str = "") -> str:
        name = f"{origin.layer or 'small'}/word:{origin.direction}#{len(self.rows)}"
        fields = {"name": name, "layer": origin.layer, "direction": origin.direction, "op": "word", "flops": 10}
        self.rows.append(Operator(id=name, body=body, plan="", modelled=True, **fields))
        return name

    def shared(self, ipu: int) -> None:
        """An outlined body, named for the layer that it is lowered for."""
        parts = self.draw(st.integers(1, 3))
        origin = self.origin(self.draw(st.sampled_from(["forward", "backward"])))
        body = _Body(f"shared{len(self.b.functions)}", parts, origin.direction)
        made: list[Program] = []
        for number in range(parts):
            step: Program = self.leaf(ipu, origin)
            if self.draw(st.booleans()):
                step = Repeat(times=self.draw(st.integers(1, 3)), body=sequence(step), name="inner")
            made.append(sequence(step, name=f"{number}_word") if parts > 1 else step)
        self.b.functions[body.name] = sequence(*made, name=body.name)
        self.bodies[ipu].append(body)

    def called(self, ipu: int) -> Program:
        """A call of a shared body: copies, the call, and rows for the operators of its parts."""
        body = self.draw(st.sampled_from(self.bodies[ipu]))
        origin = self.origin(body.direction)
        if body not in self.seen:  # whose first caller is what the body was lowered for
            origin = replace(origin, source=LINES[1])
            self.seen.add(body)
        paths = [f"{body.name}/{number}_word" for number in range(body.parts)] if body.parts > 1 else [body.name]
        names = tuple(self.row(origin, path) for path in paths)
        self.operators[names[0]] = names
        sources = tuple(self.draw(st.sampled_from(LINES[1:])) for _ in names) if body.parts > 1 else ()
        call = Call(function=body.name, ipu=ipu, origin=origin, operator=names[0], sources=sources)
        return sequence(self.leaf(ipu, origin, names[0]), call)

    def work(self, ipu: int, depth: int = 2) -> Program:
        kinds = ["own", *["call"] * (2 * bool(self.bodies[ipu])), *(["several", "repeat", "if"] * bool(depth))]
        kind = self.draw(st.sampled_from(kinds))
        if kind == "own":
            origin = self.origin(self.draw(st.sampled_from(["forward", "backward", "update"])))
            return self.leaf(ipu, origin, self.row(origin))
        if kind == "call":
            return self.called(ipu)
        inner = [self.work(ipu, depth - 1) for _ in range(self.draw(st.integers(1, 3)))]
        if kind == "repeat":
            return Repeat(times=self.draw(st.integers(1, 3)), body=sequence(*inner), name="loop")
        return If(arms=tuple(inner), name="either") if kind == "if" else sequence(*inner)

    def stage(self, ipu: int) -> list[Call]:
        """The calls of a stage's body: going forward, and some of them computing again."""
        name = f"stage{ipu}"
        self.b.functions[name] = sequence(*(self.work(ipu) for _ in range(self.draw(st.integers(1, 3)))), name=name)
        ways = self.draw(st.lists(st.sampled_from(["forward", "recompute"]), min_size=1, max_size=3))
        return [Call(function=name, ipu=ipu, stage=ipu, direction=way, micro_batch=0) for way in ways]


@st.composite
def tile_programs(draw: st.DrawFn) -> Drawn:
    """A program for two IPUs, measured, with a row for each operator."""
    drawing = _Drawing(draw)
    for ipu in (0, 1):
        for _ in range(draw(st.integers(0, 2))):
            drawing.shared(ipu)
    steps: list[Program] = [drawing.work(ipu) for ipu in draw(st.lists(st.integers(0, 1), max_size=4))]
    first, second = drawing.stage(0), drawing.stage(1)
    for number in range(max(len(first), len(second))):
        column = [calls[number] for calls in (first, second) if number < len(calls)]
        turned: Program = Overlap(branches=tuple(column), phase=draw(st.sampled_from(["fill", "steady", "drain"])))
        steps.append(Repeat(times=draw(st.integers(1, 3)), body=sequence(turned)) if draw(st.booleans()) else turned)
    program = drawing.b.program(*steps)
    rows = tuple(drawing.rows)
    lowered = Lowered(target=program.target, program=program, operators=rows, unmodelled=(), bodies=(), plans={})
    compiled = measure(program, Options(), Clock(lambda phase: None), lowered=lowered)
    return Drawn(compiled, drawing.operators)


# Models

KINDS = ("product", "product", "norm", "chain", "wide")
SIZE = 32


def _block(kind: str, x: Any, w: Any) -> Any:
    import jax.numpy as jnp

    if kind == "product":
        return jnp.tanh(x @ w)
    if kind == "wide":
        return (x @ w) @ w + x
    if kind == "norm":
        return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + 1e-3)
    return jnp.exp(-x * x) * 2 + x


@st.composite
def functions(draw: st.DrawFn) -> Callable[[Any, Any], Any]:
    """A function of an array and a weight that repeats a few blocks: how often, where and for which layer differs."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
    item = st.tuples(st.sampled_from(kinds), st.sampled_from(["", "a", "b", "c", "d"]), st.integers(1, 2))
    plain = draw(st.lists(item, min_size=3, max_size=7))
    turns, looped = draw(st.integers(2, 5)), draw(st.lists(item, max_size=2))
    either = draw(st.lists(item, max_size=2))

    def run(items: list[tuple[str, str, int]], x: Any, w: Any) -> Any:
        import jax

        for kind, layer, times in items:
            for _ in range(times):
                if layer:
                    with jax.named_scope(layer):
                        x = _block(kind, x, w)
                else:
                    x = _block(kind, x, w)
        return x

    def function(x: Any, w: Any) -> Any:
        from jax import lax

        x = run(plain, x, w)
        if looped:
            x = lax.fori_loop(0, turns, lambda _, value: run(looped, value, w), x)
        if either:
            x = lax.cond(x[0, 0] > 0, lambda value: run(either, value, w), lambda value: value, x)
        return run(plain[:2], x, w)

    return function
