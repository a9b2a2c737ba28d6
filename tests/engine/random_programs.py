"""Hypothesis strategy: tile programs of a few tiles with loops, branches, calls, columns and every kind of step."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.small_programs import Builder, small_target
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Sequence, TileProgram

KINDS = ("activation", "gradient", "temporary", "parameter", "constant", "stash")


class _Drawn:
    """One program being drawn: `mine[ipu]` are the variables a body on that IPU may touch."""

    def __init__(self, draw: st.DrawFn, ipus: int) -> None:
        self.draw = draw
        self.b = Builder(small_target(4), ipus)
        self.mine: dict[int, list[int]] = {ipu: [] for ipu in range(ipus)}

    def variables(self, ipu: int, count: int, function: str = "") -> list[int]:
        made = []
        for _ in range(count):
            row = self.draw(st.lists(st.integers(0, 5).map(lambda words: 40 * words), min_size=4, max_size=4))
            always = function == "" and self.draw(st.integers(0, 4)) == 0
            kind = self.draw(st.sampled_from(KINDS))
            interleaved = self.draw(st.booleans())
            made.append(
                self.b.variable(row, ipu=ipu, kind=kind, always_live=always, interleaved=interleaved, function=function)
            )
        return made

    def some(self, names: list[int]) -> list[int]:
        return self.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []

    def leaf(self, ipu: int, names: list[int]) -> Program:
        b, draw = self.b, self.draw
        touched = {"reads": self.some(names), "writes": self.some(names), "ipu": ipu}
        kind = draw(st.sampled_from(["compute", "compute", "exchange", "sync", "stream"]))
        if kind == "compute":
            cycles = draw(st.dictionaries(st.integers(0, 3), st.integers(1, 50), min_size=1, max_size=4))
            return b.compute(cycles, **touched)
        if kind == "exchange":
            size = draw(st.integers(0, 100))
            return b.exchange(b.exchanged([4 * size], [0, 4 * size, 4 * size], [2, 1, 1]), **touched)
        if kind == "sync":
            return b.sync(draw(st.sampled_from(["internal", "external"])), ipu=ipu)
        return b.stream(4 * draw(st.integers(1, 100)), draw(st.sampled_from(["to_device", "to_host"])), **touched)

    def body(self, ipu: int, names: list[int], depth: int, functions: list[str]) -> Program:
        draw = self.draw
        kinds = ["leaf", "leaf", "leaf"]
        if depth:
            kinds += ["sequence", "sequence", "repeat", "if", *(["call"] * bool(functions))]
        kind = draw(st.sampled_from(kinds))
        if kind == "leaf":
            return self.leaf(ipu, names)
        if kind == "call":
            return Call(function=draw(st.sampled_from(functions)), micro_batch=draw(st.sampled_from([None, 0, 2])))
        count = 1 if kind == "repeat" else draw(st.integers(1, 4 if kind == "sequence" else 2))
        inner = tuple(self.body(ipu, names, depth - 1, functions) for _ in range(count))
        if kind == "repeat":
            return Repeat(times=draw(st.integers(1, 3)), body=inner[0])
        return If(arms=inner) if kind == "if" else Sequence(children=inner)


@st.composite
def programs(draw: st.DrawFn, max_ipus: int = 2) -> TileProgram:
    """A verified program."""
    ipus = draw(st.integers(1, max_ipus))
    drawn = _Drawn(draw, ipus)
    functions: dict[int, list[str]] = {ipu: [] for ipu in range(ipus)}
    for ipu in range(ipus):
        drawn.mine[ipu] = drawn.variables(ipu, draw(st.integers(1, 5)))
        for number in range(draw(st.integers(0, 2))):
            name = f"body{ipu}_{number}"
            own = drawn.variables(ipu, draw(st.integers(0, 3)), name)
            inner = drawn.body(ipu, drawn.mine[ipu] + own, 2, list(functions[ipu]))
            drawn.b.functions[name] = inner
            functions[ipu].append(name)
            drawn.mine[ipu] = drawn.mine[ipu] + own
    steps: list[Program] = []
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.booleans()) and ipus > 1:
            branches = tuple(drawn.body(ipu, drawn.mine[ipu], 1, functions[ipu]) for ipu in range(ipus))
            chosen = draw(st.lists(st.sampled_from(branches), min_size=1, unique=True))
            steps.append(Overlap(branches=tuple(chosen), phase=draw(st.sampled_from(["fill", "steady", "drain"]))))
            steps.append(drawn.b.link(64, 0, 1, reads=drawn.some(drawn.mine[0]), writes=drawn.some(drawn.mine[1])))
        else:
            ipu = draw(st.integers(0, ipus - 1))
            steps.append(drawn.body(ipu, drawn.mine[ipu], 3, functions[ipu]))
    if draw(st.booleans()):
        return drawn.b.program(Repeat(times=draw(st.integers(1, 3)), body=Sequence(children=tuple(steps))))
    return drawn.b.program(*steps)
