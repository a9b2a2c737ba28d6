"""Hypothesis strategy: training steps of a few layers, forward, backward and update, over small random shapes."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.small_graphs import Draft
from workbench.engine.graph import Graph, Value

SIZES = (1, 2, 3, 4, 7, 8, 16)
MOST_ELEMENTS = 4096
KINDS = (
    "binary",
    "relu",
    "tanh",
    "dense",
    "multiply",
    "conv",
    "reduce",
    "transpose",
    "flatten",
    "halve",
    "join",
    "bias",
    "softmax",
    "mask",
    "cast",
)


class _Drawn:
    """One graph being drawn: `pool` holds what may be read."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.d = Draft()
        self.dtype = draw(st.sampled_from(["float32", "float16"]))
        self.weights: dict[str, Value] = {}
        self.layer = ""
        rank = draw(st.sampled_from([2, 2, 4]))
        self.pool = [self.d.param("x", self.shape(rank), dtype=self.dtype)]

    def shape(self, rank: int) -> tuple[int, ...]:
        return tuple(self.draw(st.sampled_from(SIZES[: 5 if rank == 4 else 7])) for _ in range(rank))

    def some(self, *ranks: int) -> Value | None:
        """A value of one of the ranks, the latest with favour."""
        fitting = [value for value in self.pool if not ranks or len(value.shape) in ranks]
        return self.draw(st.sampled_from(fitting[-3:])) if fitting else None

    def weight(self, kind: str, shape: tuple[int, ...]) -> Value:
        name = f"{self.layer}/{kind}{len(self.weights)}"
        self.weights[name] = self.d.weight(name, shape, self.dtype)
        return self.weights[name]

    def add(self, value: Value | None) -> None:
        if value is not None and value.dtype != "bool":
            self.pool.append(value)

    # -- one operation each ------------------------------------------------------------------------------

    def binary(self) -> Value:
        one = self.some()
        assert one is not None
        alike = [value for value in self.pool if value.shape == one.shape]
        op = self.draw(st.sampled_from(["add", "sub", "mul", "max"]))
        return self.d.point(op, one, self.draw(st.sampled_from(alike)))

    def relu(self) -> Value | None:
        value = self.some(1, 2, 4)
        return value and self.d.point("max", value, self.d.constant(0.0, self.dtype))

    def tanh(self) -> Value | None:
        value = self.some()
        return value and self.d.point("tanh", value)

    def dense(self) -> Value | None:
        value = self.some(2)
        return value and self.d.dot(value, self.weight("kernel", (value.shape[1], self.draw(st.sampled_from(SIZES)))))

    def multiply(self) -> Value | None:
        """Two values along axes of one size, as gradients are made."""
        one = self.some(2)
        if one is None:
            return None
        pairs = [
            (other, (a, b))
            for other in self.pool
            if len(other.shape) == 2
            for a in (0, 1)
            for b in (0, 1)
            if one.shape[a] == other.shape[b]
        ]
        other, axes = self.draw(st.sampled_from(pairs))
        return self.d.dot(one, other, axes)

    def conv(self) -> Value | None:
        value = self.some(4)
        if value is None:
            return None
        size = self.draw(st.sampled_from([1, 3]))
        return self.d.conv(
            value, self.weight("kernel", (size, size, value.shape[3], self.draw(st.sampled_from(SIZES))))
        )

    def reduce(self) -> Value | None:
        value = self.some(2, 4)
        if value is None:
            return None
        axes = (
            (self.draw(st.integers(0, 1)),)
            if len(value.shape) == 2
            else self.draw(st.sampled_from([(1, 2), (0, 1, 2)]))
        )
        return self.d.reduce(self.draw(st.sampled_from(["reduce_sum", "reduce_max"])), value, *axes)

    def transpose(self) -> Value | None:
        value = self.some(2, 4)
        if value is None:
            return None
        return self.d.transpose(value, *((1, 0) if len(value.shape) == 2 else (0, 3, 1, 2)))

    def flatten(self) -> Value | None:
        value = self.some(4)
        return value and self.d.reshape(value, value.shape[0], value.elements // value.shape[0])

    def halve(self) -> Value | None:
        value = self.some(2)
        if value is None or value.shape[1] < 2:
            return None
        return self.d.slice(value, (0, 0), (value.shape[0], value.shape[1] // 2))

    def join(self) -> Value | None:
        value = self.some(2)
        if value is None:
            return None
        fitting = [other for other in self.pool if len(other.shape) == 2 and other.shape[0] == value.shape[0]]
        return self.d.concatenate([value, self.draw(st.sampled_from(fitting))], 1)

    def bias(self) -> Value | None:
        value = self.some(2, 4)
        if value is None:
            return None
        last = len(value.shape) - 1
        held = self.weight("bias", value.shape[-1:])
        return self.d.point("add", value, self.d.broadcast(held, value.shape, (last,)))

    def softmax(self) -> Value | None:
        value = self.some(2)
        if value is None:
            return None
        with self.d.at(region="softmax"):
            top = self.d.broadcast(self.d.reduce("reduce_max", value, 1), value.shape, (0,))
            power = self.d.point("exp", self.d.point("sub", value, top))
            total = self.d.broadcast(self.d.reduce("reduce_sum", power, 1), value.shape, (0,))
            return self.d.point("div", power, total)

    def mask(self) -> Value | None:
        value = self.some(1, 2, 4)
        if value is None:
            return None
        zero = self.d.constant(0.0, self.dtype)
        return self.d.point("select_n", self.d.point("gt", value, zero), self.d.broadcast(zero, value.shape), value)

    def cast(self) -> Value | None:
        value = self.some()
        other = "float16" if self.dtype == "float32" else "float32"
        return value and self.d.cast(self.d.cast(value, other), self.dtype)

    # -- phases ------------------------------------------------------------------------------------------

    def phase(self, count: int, direction: str, kinds: tuple[str, ...]) -> None:
        for _ in range(count):
            self.layer = self.draw(st.sampled_from(["a", "b", "c"]))
            with self.d.at(layer=self.layer, direction=direction):
                made = getattr(self, self.draw(st.sampled_from(kinds)))()
            if made is not None and made.elements <= MOST_ELEMENTS:
                self.add(made)

    def updates(self) -> dict[str, Value]:
        """Every weight less a share of its own of some value of its shape, no two of the same, or of itself."""
        new = {}
        free = list(self.pool)
        for number, (name, weight) in enumerate(self.weights.items(), start=1):
            chosen = self.draw(st.sampled_from([value for value in free if value.shape == weight.shape] or [weight]))
            free = [value for value in free if value is not chosen]
            with self.d.at(layer=name.partition("/")[0], direction="update"):
                step = self.d.point("mul", chosen, self.d.constant(number / 16, self.dtype))
                new[name] = self.d.point("sub", weight, step)
        return new


class Drawing:
    """A graph that a failing test prints as text."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __repr__(self) -> str:
        return f"\n{self.graph}\n"


@st.composite
def graphs(draw: st.DrawFn) -> Drawing:
    """A verified training step."""
    drawn = _Drawn(draw)
    drawn.phase(draw(st.integers(2, 9)), "forward", KINDS)
    output = drawn.pool[-1]
    backward = tuple(kind for kind in KINDS if kind not in ("dense", "conv", "bias"))
    drawn.phase(draw(st.integers(0, 5)), "backward", backward)
    outputs = dict.fromkeys([output, drawn.pool[-1]])
    return Drawing(drawn.d.graph(*outputs, updates=drawn.updates()))
