"""Tile programs by hand: variables on tiles, vertices, copies and loops, with neither Keras nor JAX.

```python
g = Graph("ipu2", tiles=16)
x = g.variable("x", (1000,), "float32").map_linearly(tiles=10)
y = g.variable("y", (1000,), "float32").map_linearly(tiles=10)
double = g.compute_set("double")
double.vertex("popops::BinaryOp1D", tile=3, op="ADD", a=x[:100], b=x[:100], out=y[:100])
program = g.sequence(g.host_copy(x), double, g.host_copy(y, "to_host"))
program.compile_program()                 # the tile program; `wb.profile(program)` shows it
g.run(program, x=numbers)["y"]
```
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from workbench.base.categories import VariableKind
from workbench.base.checked import checked, checked_methods
from workbench.base.dtypes import DTYPE_OF_WORD, HAND_WORDS, ITEMSIZE_BYTES
from workbench.base.text import meant
from workbench.base.whole import MOST_EXACT, MOST_TURNS, whole
from workbench.engine import vertices
from workbench.engine.by_hand import (
    ComputeSet,
    Copy,
    Function,
    HostCopy,
    If,
    Repeat,
    Sequence,
    Step,
    check_graph,
    check_nesting,
)
from workbench.engine.by_hand.lower import lower_by_hand
from workbench.engine.by_hand.run import HandRun
from workbench.engine.by_hand.tensor import HandVariable, Tensor
from workbench.engine.mapping.types import row_major_strides
from workbench.engine.program import TileProgram
from workbench.engine.target import Target
from workbench.engine.target import target as find_target
from workbench.errors import InputError


@checked_methods
class Graph:
    """Variables, compute sets and programs for one IPU of a target.

    `target` is a name (`"ipu1"`, `"ipu2"`, `"bow"`, `"ipu21"`) or a `Target`; `tiles` are the tiles of the IPU to
    use (default: those of the target).
    """

    @checked
    def __init__(self, target: str | Target = "ipu2", *, tiles: int | None = None, name: str = "tiles") -> None:
        self.name = name
        count = None if tiles is None else whole("tiles of a graph", tiles)  # none are not all of them
        if isinstance(target, Target):
            self.target = target if count is None else target.replace(tiles_per_ipu=count)
        else:
            self.target = find_target(target, tiles_per_ipu=count)
        self._variables: dict[str, HandVariable] = {}

    def variable(
        self,
        name: str,
        shape: int | Listed[int],
        dtype: str = "float32",
        *,
        kind: VariableKind | None = None,
        interleaved: bool = False,
    ) -> Tensor:
        """Declare memory for `shape` elements of `dtype` (a numpy name); map it before compiling.

        `kind` is its category in memory reports; without one it follows from the program: "input" when the host
        fills it, "state" when it is read before it is written or never used, else "temporary". `interleaved` data
        lies in the region for 128-bit loads.
        Errors: a name twice, an unknown type, a negative size.
        """
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if name in self._variables:
            raise InputError(f"variable {name!r} is declared twice", expected="a name of its own")
        if dtype not in HAND_WORDS:
            raise InputError(
                f"variable {name!r} is of type {dtype!r}",
                expected=f"one of: {', '.join(HAND_WORDS)}",
                todo=meant(DTYPE_OF_WORD.get(dtype, dtype), HAND_WORDS),
            )
        if any(isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1 for size in sizes):
            raise InputError(f"variable {name!r} has shape {shape!r}", expected="positive whole numbers")
        if kind is not None and kind not in get_args(VariableKind):
            raise InputError(
                f"variable {name!r} is of kind {kind!r}", expected=f"one of: {', '.join(get_args(VariableKind))}"
            )
        extent = tuple(int(size) for size in sizes)
        size_bytes = prod(extent) * ITEMSIZE_BYTES[dtype]
        if size_bytes > MOST_EXACT:
            raise InputError(
                f"variable {name!r} of shape {extent} is of {size_bytes:,} B", expected=f"at most {MOST_EXACT:,} B"
            )
        variable = HandVariable(graph=self, name=name, shape=extent, dtype=dtype, kind=kind, interleaved=interleaved)
        self._variables[name] = variable
        return Tensor(variable=variable, shape=extent, strides=row_major_strides(extent))

    def compute_set(self, name: str) -> ComputeSet:
        """Vertices that run at the same time: fill it with `.vertex(...)`."""
        return ComputeSet(self, name)

    def sequence(self, *steps: Step, name: str = "") -> Sequence:
        """Steps one after the other."""
        self._own(*steps)
        return Sequence(self, steps, name)

    def repeat(self, times: int, *steps: Step, name: str = "") -> Repeat:
        """The steps `times` times, at least once and at most as often as the loop's 32 bits count."""
        turns = whole("times of a repeat", times, most=MOST_TURNS)
        self._own(*steps)
        return Repeat(self, turns, steps[0] if len(steps) == 1 else Sequence(self, steps), name)

    def copy(self, source: Tensor, destination: Tensor) -> Copy:
        """Overwrite `destination` with `source`: exchange between tiles, copies inside them."""
        self._own(source, destination)
        if (source.dtype, source.elements) != (destination.dtype, destination.elements):
            raise InputError(f"a copy of {source} to {destination}", expected="one type and number of elements")
        if source.variable is destination.variable and np.intersect1d(source.flat(), destination.flat()).size:
            raise InputError(f"a copy of {source} over itself", todo="copy to another variable first")
        return Copy(self, source, destination)

    def host_copy(self, tensor: Tensor, direction: Literal["to_device", "to_host"] = "to_device") -> HostCopy:
        """Copy a whole variable from the host, or to it."""
        self._own(tensor)
        if direction not in ("to_device", "to_host"):
            raise InputError(f"a host copy with direction {direction!r}", expected="'to_device' or 'to_host'")
        if not tensor.whole:
            raise InputError(f"a host copy of a part of {tensor.variable.name!r}", todo="copy the whole variable")
        return HostCopy(self, tensor, direction)

    def function(self, name: str, *steps: Step) -> Function:
        """A body stored once; `g.call` runs it."""
        self._own(*steps)
        return Function(self, name, Sequence(self, steps))

    def call(self, function: Function) -> Function:
        """Run a function's body here."""
        self._own(function)
        return function

    def if_(self, condition: Tensor, then: Step, otherwise: Step | None = None) -> If:
        """Run `then` when the one element of `condition` is not zero, else `otherwise`; costed as the dearer."""
        self._own(condition, then, *(() if otherwise is None else (otherwise,)))
        if condition.elements != 1:
            raise InputError(f"the condition {condition}", expected="one element")
        return If(self, condition, (then, otherwise or Sequence(self, ())))

    def compile_program(self, program: Step, *, prefetched: bool = True) -> TileProgram:
        """The tile program of a step and all it contains.

        `prefetched`: the host has fetched what it sends before it is asked for it; else the tiles wait until it has.
        Errors: variables with elements on no tile, vertices of a compute set that write what another touches, and
        steps that stand in one another more than 64 deep.
        """
        self._own(program)
        check_nesting(program)
        return lower_by_hand(self.name, self.target, tuple(self._variables.values()), program, prefetched=prefetched)

    def run(self, program: Step, **given: npt.ArrayLike) -> dict[str, npt.NDArray[Any]]:
        """Execute the program with numpy and return arrays by variable name: what it copies to the host, else all.

        `given` are initial values by variable name; a copy from the host takes its value from there too.
        Errors: unknown names, wrong shapes, vertices without arithmetic.
        """
        self._own(program)
        check_nesting(program)
        running = HandRun(self._variables.values(), given)
        running.run(program)
        if running.returned:
            return running.returned
        return {variable.name: values.reshape(variable.shape) for variable, values in running.values.items()}

    def _own(self, *parts: Tensor | Step) -> None:
        for part in parts:
            if not isinstance(part, (Tensor, Step)):
                raise InputError(f"{part!r} in a program", expected="steps and tensors of this graph")
            check_graph(part, self)

    def __repr__(self) -> str:
        total = sum(prod(variable.shape) for variable in self._variables.values())
        return f"<Graph {self.name} for {self.target.name}: {len(self._variables)} variables, {total} elements>"


def vertex_names() -> list[str]:
    """Names of all vertex classes, for `ComputeSet.vertex`."""
    return sorted(vertices.load())


__all__ = ["ComputeSet", "Graph", "Step", "Tensor", "vertex_names"]
