"""Numbers of a program written by hand, with numpy: for vertices whose arithmetic is known here, and all copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Mapping as Named
from math import erf, prod, sqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.base.host import refuse_beyond_host
from workbench.base.text import meant, short
from workbench.base.units import things_text
from workbench.engine.by_hand import by_hand as hand
from workbench.engine.by_hand.tensor import HandVariable, Tensor
from workbench.engine.by_hand.vertex import Vertex, not_held
from workbench.errors import InputError

Array: TypeAlias = npt.NDArray[Any]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_erf(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.array([erf(value / sqrt(2)) for value in x.tolist()])))


BINARY: Named[str, Callable[..., Array]] = {
    "ADD": np.add,
    "ATAN2": np.arctan2,
    "BITWISE_AND": np.bitwise_and,
    "BITWISE_OR": np.bitwise_or,
    "BITWISE_XOR": np.bitwise_xor,
    "DIVIDE": np.divide,
    "EQUAL": np.equal,
    "GREATER_THAN": np.greater,
    "GREATER_THAN_EQUAL": np.greater_equal,
    "LESS_THAN": np.less,
    "LESS_THAN_EQUAL": np.less_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MULTIPLY": np.multiply,
    "NOT_EQUAL": np.not_equal,
    "POWER": np.power,
    "REMAINDER": np.fmod,
    "SHIFT_LEFT": np.left_shift,
    "SUBTRACT": np.subtract,
}
UNARY: Named[str, Callable[[Array], Array]] = {
    "ABSOLUTE": np.abs,
    "ASIN": np.arcsin,
    "BITWISE_NOT": np.bitwise_not,
    "CBRT": np.cbrt,
    "CEIL": np.ceil,
    "COS": np.cos,
    "EXPONENT": np.exp,
    "EXPONENT2": np.exp2,
    "EXPONENT_MINUS_ONE": np.expm1,
    "FLOOR": np.floor,
    "GELU_ERF": _gelu_erf,
    "INVERSE": np.reciprocal,
    "IS_FINITE": np.isfinite,
    "IS_INF": np.isinf,
    "IS_NAN": np.isnan,
    "LOGARITHM": np.log,
    "LOGARITHM_ONE_PLUS": np.log1p,
    "LOGICAL_NOT": np.logical_not,
    "NEARBY_INT": np.rint,
    "NEGATE": np.negative,
    "RELU": lambda x: np.maximum(x, 0),
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "SIGMOID": _sigmoid,
    "SIGNUM": np.sign,
    "SIN": np.sin,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "TAN": np.tan,
    "TANH": np.tanh,
    "TRUNC": np.trunc,
}


def _binary(vertex: Vertex, reads: list[Array]) -> Array:
    first, second = reads
    return _operation(vertex, BINARY)(first, second)


def _unary(vertex: Vertex, reads: list[Array]) -> Array:
    return _operation(vertex, UNARY)(reads[0])


def _copy(vertex: Vertex, reads: list[Array]) -> Array:
    return reads[0]


def _fill(vertex: Vertex, reads: list[Array]) -> Array:
    return np.asarray(dict(vertex.settings).get("value", 0))


def _operation(vertex: Vertex, table: Named[str, Callable[..., Array]]) -> Callable[..., Array]:
    name = str(dict(vertex.arguments)["op"])
    if name not in table:
        raise InputError(
            f"{vertex.vertex} with op {name!r} has no arithmetic here", expected=f"one of: {', '.join(table)}"
        )
    return table[name]


# How a vertex is called, its arithmetic, and how many tensors it reads.
_FAMILIES: tuple[tuple[str, Callable[[Vertex, list[Array]], Array], int], ...] = (
    ("popops::BinaryOp", _binary, 2),
    ("popops::BroadcastScalar", _binary, 2),
    ("popops::UnaryOp", _unary, 1),
    ("popnn::NonLinearity1D", _unary, 1),
    ("popnn::NonLinearity2D", _unary, 1),
    ("popops::Cast", _copy, 1),
    ("poplar::Memcpy", _copy, 1),
    ("poplar::StridedMemcpy", _copy, 1),
    ("poplar::DstStridedMemcpy", _copy, 1),
    ("popops::Fill", _fill, 0),
    ("poplar::Memset", _fill, 0),
)


def _check_fields(vertex: Vertex, count: int) -> None:
    """It reads as many tensors as its arithmetic has operands, of as many elements as it writes, or of one."""
    read = [f"{key or 'reads'} of {tensor.elements}" for key, tensor in vertex.reads]
    if len(read) != count:
        raise InputError(
            f"vertex {vertex.vertex!r} on tile {vertex.tile} reads "
            f"{things_text(len(read), 'tensor')} ({', '.join(read)})",
            expected=f"{count}",
            todo="give each operand as a field, and the result as out=",
        )
    for key, tensor in vertex.writes:
        if any(other.elements not in (1, tensor.elements) for _, other in vertex.reads):
            raise InputError(
                f"vertex {vertex.vertex!r} on tile {vertex.tile} writes {key or 'writes'} of {tensor.elements} elements"
                f" and reads {', '.join(read)}",
                expected="as many elements in each, or one",
            )


def _array(name: str, values: npt.ArrayLike) -> Array:
    """Numbers as an array; an error for what is none."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # lists of several lengths
        found = np.asarray(None)
    if found.dtype.kind not in "biuf":
        raise InputError(f"{name!r} was given {short(values)}", expected="an array of numbers")
    return found


class HandRun:
    """The memory of one run: `values[variable]` is flat. What nothing has written is zero."""

    def __init__(self, variables: Iterable[HandVariable], given: Named[str, npt.ArrayLike]) -> None:
        variables = tuple(variables)
        refuse_beyond_host(
            "a run", sum(prod(variable.shape) * ITEMSIZE_BYTES[variable.dtype] for variable in variables)
        )
        self.values = {variable: np.zeros(prod(variable.shape), np.dtype(variable.dtype)) for variable in variables}
        self.given = {name: _array(name, values) for name, values in given.items()}
        self.returned: dict[str, Array] = {}
        self._check_names()

    def _check_names(self) -> None:
        names = [variable.name for variable in self.values]
        for name in self.given:
            if name not in names:
                raise InputError(
                    f"run was given {name!r}",
                    expected=f"variables: {', '.join(names) or 'none'}",
                    todo=meant(name, names),
                )
        for variable in self.values:
            if variable.name in self.given:
                self._store(variable, self.given[variable.name])

    def _store(self, variable: HandVariable, array: Array) -> None:
        if array.shape != variable.shape:
            raise InputError(f"{variable.name!r} was given shape {array.shape}", expected=f"{variable.shape}")
        outside = not_held(array, variable.dtype)
        if outside is not None:
            raise InputError(f"{variable.name!r} was given {outside}", expected=f"numbers that {variable.dtype} holds")
        self.values[variable] = array.astype(variable.dtype).reshape(-1)

    def run(self, step: hand.Step) -> None:
        """Execute a step and all it contains."""
        if isinstance(step, hand.ComputeSet):
            self._compute(step)
        elif isinstance(step, hand.Repeat):
            for _ in range(step.times):
                self.run(step.body)
        elif isinstance(step, hand.If):
            self.run(step.arms[0] if self.read(step.condition).any() else step.arms[1])
        elif isinstance(step, hand.Copy):
            self.write(step.destination, self.read(step.source))
        elif isinstance(step, hand.HostCopy):
            self._stream(step)
        else:
            for part in step.parts:
                self.run(part)

    def _stream(self, step: hand.HostCopy) -> None:
        variable = step.tensor.variable
        if step.direction == "to_host":
            self.returned[variable.name] = self.values[variable].reshape(variable.shape).copy()
        elif variable.name not in self.given:
            raise InputError(f"the host has no value for {variable.name!r}", todo=f"pass {variable.name}=array to run")
        else:
            self._store(variable, self.given[variable.name])

    def read(self, tensor: Tensor) -> Array:
        """A copy of its elements, in order."""
        return self.values[tensor.variable][tensor.flat()]

    def write(self, tensor: Tensor, values: Array) -> None:
        """Store elements, cast to the variable's type."""
        with np.errstate(all="ignore"):  # what a type cannot hold stops nothing either
            self.values[tensor.variable][tensor.flat()] = values.astype(tensor.dtype)

    def _compute(self, step: hand.ComputeSet) -> None:
        """All vertices read before any writes: they run at the same time."""
        results = [(vertex, self._result(vertex)) for vertex in step.vertices if vertex.vertex != "stub"]
        for vertex, values in results:
            for _, tensor in vertex.writes:
                self.write(tensor, values)

    def _result(self, vertex: Vertex) -> Array:
        found = next((each for each in _FAMILIES if vertex.vertex.startswith(each[0])), None)
        if found is None:
            raise InputError(
                f"vertex {vertex.vertex!r} has no arithmetic here",
                expected="vertices of: " + ", ".join(family for family, _, _ in _FAMILIES),
                todo="profile the program, which needs only its cost",
            )
        _, rule, count = found
        _check_fields(vertex, count)
        with np.errstate(all="ignore"):  # as on the machine, a division by zero is inf and stops nothing
            return np.asarray(rule(vertex, [self.read(tensor) for _, tensor in vertex.reads]))
