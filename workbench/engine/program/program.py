"""The tile program: a control tree of bulk-synchronous steps over variables that are mapped to tiles.

Encoding. Leaves are steps (`OnTileExecute`, `DoExchange`, `StreamCopy`, `GlobalExchange`, `Sync`); each has one cause
of cost and names the variables it reads and writes. Inner nodes are `Sequence`, `Repeat`, `Call`, `If` and `Overlap`
(branches on different IPUs that run at the same time and end together: a column of a pipeline). A body that is called
several times is stored once in `functions`. One clock runs over all IPUs: a step occupies its IPUs and the others wait,
except under `Overlap`.

Per-tile quantities are read-only int64 arrays over the tiles of one IPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

from workbench.base.arrays import IntArray
from workbench.base.categories import VariableKind
from workbench.base.causes import Phase
from workbench.base.text import shown
from workbench.engine.cost import Inputs
from workbench.engine.graph.origin import NOWHERE, Origin
from workbench.engine.mapping.tileset import TileSet
from workbench.engine.mapping.types import Placement
from workbench.engine.program.links import Topology
from workbench.engine.program.moves import Move
from workbench.engine.program.remote_buffers import RemoteBuffer
from workbench.engine.remembered import remembered
from workbench.engine.target import Target


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Variable:
    """Memory of one tensor on one IPU. `bytes_per_tile` is int64[tiles]; `always_live` ones never share addresses.

    `function` names the body that owns it ("" for the entry). `interleaved`: read by 128-bit or dual loads, so it
    must lie in the interleaved region. `mapped`: where its elements are, or words where no placement says it.
    """

    id: int
    name: str
    kind: VariableKind
    dtype: str
    shape: tuple[int, ...]
    bytes_per_tile: IntArray
    always_live: bool
    ipu: int = 0
    origin: Origin = NOWHERE
    interleaved: bool = False
    mapped: Placement | str = ""
    function: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes over all tiles, padding and replication included."""
        return int(self.bytes_per_tile.sum())

    @property
    def mapping_text(self) -> str:
        """The tile mapping, printed: few ask, and it takes as long as declaring the variable."""
        return self.mapped if isinstance(self.mapped, str) else _text(self.mapped)

    def __str__(self) -> str:
        live = " always-live" if self.always_live else ""
        shape = ",".join(map(str, self.shape))
        return f"v{self.id} {self.name}: {self.kind} {self.dtype}[{shape}] on ipu {self.ipu}{live} {self.mapping_text}"


@remembered(8192)
def _text(mapping: Placement) -> str:
    return str(mapping)


@dataclass(frozen=True, slots=True, eq=False)
class VertexGroup:
    """`count` vertices of one class with equal arguments on each of `tiles`."""

    vertex: str
    arguments: Inputs
    tiles: TileSet
    count: int = 1

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.vertex}({shown}) x{self.count} on {self.tiles}"


@dataclass(frozen=True, slots=True, eq=False)
class ComputeSet:
    """Vertices that run at the same time on their tiles."""

    name: str
    groups: tuple[VertexGroup, ...]

    def __str__(self) -> str:
        return f"{self.name} [" + "; ".join(map(str, self.groups)) + "]"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """Bytes each tile sends and receives, and the contiguous pieces it sends or receives them in.

    A multicast piece counts once for its sender and once per receiver; `multicast_extra_bytes` is what receivers get
    beyond what was sent, so that sum(sent) + multicast_extra == sum(received). `shared_bytes`: what of the received
    bytes neighbouring tiles receive alike, over the bus they share, at twice the rate (None: nothing). `moves` is what
    it is made of, none where the other end is no tile of this IPU.
    """

    name: str
    sent_bytes: IntArray
    received_bytes: IntArray
    fragments: IntArray
    shared_bytes: IntArray | None = None
    moves: tuple[Move, ...] = ()

    @property
    def multicast_extra_bytes(self) -> int:
        """Bytes received beyond the bytes sent, because one send reached several tiles."""
        return int(self.received_bytes.sum() - self.sent_bytes.sum())

    def __str__(self) -> str:
        return f"{self.name} sent {int(self.sent_bytes.sum())} B received {int(self.received_bytes.sum())} B"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """What every leaf has. `reads` and `writes` are variable ids; `id` is its place in the static program."""

    id: int
    name: str
    origin: Origin = NOWHERE
    ipu: int = 0
    stage: int | None = None
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    operator: str = ""  # id of the operator it was lowered from (`.operators` row)

    @property
    def kind(self) -> str:
        """The class name."""
        return type(self).__name__

    @property
    def ipus(self) -> tuple[int, ...]:
        """The IPUs it occupies."""
        return (self.ipu,)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OnTileExecute(Step):
    """Compute on tiles."""

    compute_set: ComputeSet


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DoExchange(Step):
    """Exchange between the tiles of one IPU."""

    exchange: Exchange


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamCopy(Step):
    """Copy between host (or streaming memory when `remote`) and tiles; per-tile bytes in `exchange`.

    `buffer` is the variable whose remote buffer it is, -1 for the host. `hidden_cycles` run beside compute.
    `prefetched`: the host has fetched what it sends while the IPUs computed; else they wait until it has. `ahead`:
    elements of a feed that the host has room for; 0 where it is no feed.
    """

    exchange: Exchange
    direction: Literal["to_device", "to_host"]
    size_bytes: int
    remote: bool = False
    buffer: int = -1
    hidden_cycles: int = 0
    prefetched: bool = True
    ahead: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalExchange(Step):
    """Copy over IPU-Links from `ipu` to `to_ipu`; or a collective of that IPU over `group_size` replicas."""

    to_ipu: int
    size_bytes: int
    collective: str = ""
    group_size: int = 1
    sent: Exchange | None = None
    received: Exchange | None = None

    @property
    def ipus(self) -> tuple[int, ...]:
        """Both ends."""
        return (self.ipu,) if self.ipu == self.to_ipu else (self.ipu, self.to_ipu)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sync(Step):
    """All tiles of the IPU (`internal`), or of all IPUs and the host (`external`), wait for each other."""

    scope: Literal["internal", "external"] = "internal"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sequence:
    """Children one after the other."""

    children: tuple[Program, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repeat:
    """The body `times` times."""

    times: int
    body: Program
    name: str = ""
    unknown_times: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Call:
    """Run a function of the program. For a pipeline stage: its stage, direction and micro-batch.

    In a `Repeat` the micro-batch is `micro_batch` plus the iteration, from 0. An outlined body is called for an
    `operator` and takes over its `origin`; of a body that has a part for each of several operators, `sources` are
    theirs, part by part.
    """

    function: str
    name: str = ""
    ipu: int | None = None
    stage: int | None = None
    direction: str = ""
    micro_batch: int | None = None
    origin: Origin = NOWHERE
    operator: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class If:
    """One of the arms runs; the cost is that of the dearest."""

    arms: tuple[Program, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Overlap:
    """Branches on different IPUs at the same time; `phase` says why an IPU without work waits."""

    branches: tuple[Program, ...]
    name: str = ""
    phase: Phase = "steady"


Leaf: TypeAlias = OnTileExecute | DoExchange | StreamCopy | GlobalExchange | Sync
Program: TypeAlias = Leaf | Sequence | Repeat | Call | If | Overlap


@dataclass(frozen=True, eq=False, kw_only=True)
class TileProgram:
    """A program for `ipus` IPUs of one target: variables, bodies stored once, and the entry.

    `topology` says which IPUs of the system they are; without it they are the first, by number.
    """

    name: str
    target: Target
    ipus: int
    variables: tuple[Variable, ...]
    functions: Mapping[str, Program]
    entry: Program
    pipeline: Mapping[str, int | str] = field(default_factory=dict)
    topology: Topology | None = None
    remote_buffers: tuple[RemoteBuffer, ...] = ()

    @cached_property
    def leaves_of_bodies(self) -> tuple[tuple[Leaf, ...], ...]:
        """The leaves of each function's body, and those of the entry."""
        return tuple(tuple(leaves(body)) for body in (*self.functions.values(), self.entry))

    @cached_property
    def steps(self) -> tuple[Leaf, ...]:
        """Every leaf once, in order of id."""
        return tuple(sorted(chain.from_iterable(self.leaves_of_bodies), key=lambda step: step.id))

    def __str__(self) -> str:
        return program_text(self)


def children(program: Program) -> tuple[Program, ...]:
    """The direct children of a control node; none for leaves and calls."""
    if isinstance(program, Sequence):
        return program.children
    if isinstance(program, Repeat):
        return (program.body,)
    if isinstance(program, If):
        return program.arms
    if isinstance(program, Overlap):
        return program.branches
    return ()


def rewritten(program: Program, change: Callable[[Leaf], Program]) -> Program:
    """The tree with every step replaced by what `change(step)` makes of it; what does not change is what it was."""
    if isinstance(program, Step):
        return change(program)
    before = children(program)
    after = tuple(rewritten(child, change) for child in before)
    if all(one is other for one, other in zip(before, after, strict=True)):
        return program
    if isinstance(program, Sequence):
        return replace(program, children=after)
    if isinstance(program, Repeat):
        return replace(program, body=after[0])
    if isinstance(program, If):
        return replace(program, arms=after)
    assert isinstance(program, Overlap)
    return replace(program, branches=after)


def leaves(program: Program) -> Iterator[Leaf]:
    """Every step below a node, calls not followed."""
    waiting = [program]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Step):
            yield node
        else:
            waiting += reversed(children(node))


def _head(program: Program) -> str:
    if isinstance(program, OnTileExecute):
        return f"{program.id} OnTileExecute {program.compute_set}"
    if isinstance(program, DoExchange):
        return f"{program.id} DoExchange {program.exchange}"
    if isinstance(program, StreamCopy):
        return f"{program.id} StreamCopy {program.direction} {program.name} {program.size_bytes} B"
    if isinstance(program, GlobalExchange):
        return f"{program.id} GlobalExchange {program.ipu}->{program.to_ipu} {program.name} {program.size_bytes} B"
    if isinstance(program, Sync):
        return f"{program.id} Sync {program.scope}"
    if isinstance(program, Call):
        return f"Call @{program.function}" + ("" if program.micro_batch is None else f" mb{program.micro_batch}")
    if isinstance(program, Repeat):
        return f"Repeat {program.times} {program.name}".rstrip()
    if isinstance(program, Overlap):
        return f"Overlap {program.phase} {program.name}".rstrip()
    return f"{type(program).__name__} {program.name}".rstrip()


def tree_text(program: Program, indent: str = "") -> list[str]:
    """The control tree, a line per node."""
    line = indent + _head(program)
    if isinstance(program, Step) and (program.reads or program.writes):
        line += f"  reads {list(program.reads)} writes {list(program.writes)}"
    return [line, *(text for child in children(program) for text in tree_text(child, indent + "  "))]


def program_text(program: TileProgram) -> str:
    """The whole program as stable text: variables, functions, entry."""
    lines = [f"program {program.name} for {program.ipus} x {program.target.name}"]
    lines += [f"  {variable}" for variable in program.variables]
    for name, body in program.functions.items():
        lines += [f"function @{name}", *tree_text(body, "  ")]
    return "\n".join(map(shown, [*lines, "entry", *tree_text(program.entry, "  ")]))
