"""What a frontend delivers: the graph, and what running the same model on the host needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.engine.graph import Graph

Compute = Callable[..., Sequence[Any]]


class StagedProgram(Protocol):
    """A program of stages, which can be run in several ways: what a source says of the one it was assembled from."""

    @property
    def in_stages(self) -> bool:
        """Whether the program has a call per stage and direction."""

    def compute(self) -> Compute:
        """Values of the entry parameters to values of the results."""

    def compute_weighted(self) -> Compute | None:
        """The same with sample weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """An array the caller provides: its name in errors, full shape (batch first) and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class Source:
    """A traced model or function.

    `variables` holds, per entry parameter of the graph that is not a constant, the Keras variable it is the value
    of, or None for inputs and targets (those take `specs`, in order). `compute` maps values of those parameters to
    the entry's results with XLA on the host; `weighted` is the same step with sample weights behind the targets, a
    column for each of several `outputs`, which are named here: those with targets, which `compared` tells from others.
    `jaxpr` is the closed jaxpr the graph was made from (None for staged sources, which have one per function, in
    `jaxprs`). `pack` turns the results that are outputs back into the model's structure; `unpack` flattens the
    caller's structured input. `staged` is the program of stages it was assembled from, if it was.
    `lazy`: the variables have no values until the first run. `interface`: how it is called, where not as its graph's
    mode says: "function" takes the arrays of `specs` and returns what `pack` makes of the outputs.
    """

    graph: Graph
    compute: Callable[[Sequence[Any]], Sequence[Any]]
    specs: tuple[ArraySpec, ...]
    variables: tuple[Any, ...] = ()
    weighted: Callable[[Sequence[Any], Any], Sequence[Any]] | None = None
    jaxpr: Any = None
    jaxprs: Mapping[str, Any] = field(default_factory=dict)
    pack: Callable[[Sequence[Any]], Any] = tuple
    unpack: Callable[[Any], Sequence[Any]] = tuple
    model: Any = None
    optimizer: Any = None
    lazy: bool = False
    staged: StagedProgram | None = None
    interface: str = ""
    outputs: tuple[str, ...] = ()
    compared: tuple[bool, ...] = ()

    @property
    def called_as(self) -> str:
        """A training step, an inference pass or a function of arrays."""
        return self.interface or self.graph.mode

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed because nobody said it, one sentence each."""
        return self.graph.assumptions
