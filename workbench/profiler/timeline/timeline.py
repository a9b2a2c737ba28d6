"""The executed program as a tree with durations, from which windows of time are unrolled when asked for.

A body that runs many times is one node with one duration, so a window costs what it shows, not what came before it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeAlias

from workbench.base.causes import CAUSES
from workbench.profiler.schema import Stored
from workbench.profiler.timeline.tree import Call, Part, Step, in_order

Totals: TypeAlias = "Counter[tuple[int, str]]"


def recomputed(direction: str) -> str:
    """The direction of what runs again to compute something anew."""
    return "recompute" if direction == "forward" else direction or "recompute"


def renamed(name: str, layer: str, other: str) -> str:
    """The name of a step of a shared body, which begins with the `layer` it was lowered for, in another layer."""
    if not layer or layer == other or not name.startswith(f"{layer}/"):
        return name
    word = name.removeprefix(f"{layer}/")
    return f"{other}/{word}" if other else word


class Enclosing(NamedTuple):
    """What the enclosing calls and loops say about a block; a stage or micro-batch of -1 is none.

    `iteration` is that of the innermost loop, `lexical` that of the innermost loop of the same body. `layer` is the one
    an outlined body is called for, which its steps take over; None leaves them their own.
    """

    stage: int = -1
    micro_batch: int = -1
    iteration: int = 0
    direction: str = ""
    lexical: int = 0
    layer: str | None = None

    def layer_of(self, own: str) -> str:
        """The layer that a step with a layer of its `own` belongs to here."""
        return own if self.layer is None else self.layer

    def direction_of(self, own: str) -> str:
        """The direction in which a step of an `own` direction runs: what a forward body does when a recomputing call
        runs it again is recomputation. A call that runs several directions, as that of an accumulated micro-batch,
        leaves each step its own."""
        return recomputed(own) if self.direction == "recompute" else own or self.direction

    def name_of(self, own: str, layer: str) -> str:
        """The name of a step that a `layer` of its own stands in: it is lowered for one layer and named for it."""
        return renamed(own, layer, self.layer_of(layer))


class Block(NamedTuple):
    """A node of the tree at one time."""

    node: TimedNode
    start: int
    context: Enclosing

    @property
    def end(self) -> int:
        """The cycle after its last."""
        return self.start + self.node.cycles


@dataclass(slots=True, eq=False, kw_only=True)
class Later:
    """Nodes that are made when they are first asked for: one of each branch of an overlap, or of each step of a
    sequence, by `make`. `known` are those that were made before, by their places."""

    branches: Sequence[Part]
    make: Callable[[Part], TimedNode]
    known: Mapping[int, TimedNode] = field(default_factory=dict)
    _made: tuple[TimedNode, ...] | None = None

    @property
    def asked_for(self) -> bool:
        """Whether the nodes are made."""
        return self._made is not None

    @property
    def nodes(self) -> tuple[TimedNode, ...]:
        """The nodes."""
        if self._made is None:
            known = self.known
            self._made = tuple([known.get(place) or self.make(part) for place, part in enumerate(self.branches)])
        return self._made


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TimedNode:
    """One node: `cycles` of one execution; `totals` cycles by (ipu, cause) of the IPUs that work in it, busy and idle,
    summing per IPU to `cycles`; `rest` cycles by cause of each other IPU, summing to `cycles` too.

    `kind` is step, sequence, repeat, call, if, overlap or run (some neighbours of a sequence). `arm` is the dearest arm
    of an `if`. `offsets` are the starts of a sequence's children. `ipus` are those that work in it. `function` names
    the body of a call. `sums` keeps what `totals` add up to before each child of a sequence, once it was asked for.
    `parts` are the children; those of an overlap, and the steps of a sequence, are made when somebody looks into it.
    """

    kind: str
    name: str
    cycles: int
    totals: Totals
    rest: Counter[str]
    ipus: frozenset[int]
    parts: tuple[TimedNode, ...] | Later = ()
    offsets: tuple[int, ...] = ()
    times: int = 1
    step: int = -1
    idle_cause: str = ""
    arm: int = 0
    function: str = ""
    call: Enclosing = field(default=Enclosing())
    sums: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)

    @property
    def children(self) -> tuple[TimedNode, ...]:
        """The nodes below."""
        return self.parts.nodes if isinstance(self.parts, Later) else self.parts

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of a sequence that has nothing else, whose nodes need not be made; of any other node none."""
        if self.kind != "sequence" or not isinstance(self.parts, Later) or self.parts.known:
            return ()
        return tuple([part.id for part in self.parts.branches if isinstance(part, Step)])

    @property
    def members(self) -> Sequence[TimedNode | int]:
        """The children of a sequence, steps by their ids: no nodes are made of these."""
        if not isinstance(self.parts, Later):
            return [child.step if child.kind == "step" else child for child in self.parts]
        known = self.parts.known
        return [part.id if isinstance(part, Step) else known[place] for place, part in enumerate(self.parts.branches)]

    @property
    def inner(self) -> Sequence[TimedNode]:
        """The children but the steps of a sequence."""
        if self.kind != "sequence":
            return self.children
        return [member for member in self.members if isinstance(member, TimedNode)]

    @property
    def spent(self) -> Spent:
        """Cycles of one execution by cause."""
        return Spent(self.totals, self.rest, self.ipus)

    def cycles_of(self, ipu: int, cause: str) -> int:
        """Cycles of one execution that an IPU spends on a cause."""
        return self.totals[ipu, cause] if ipu in self.ipus else self.rest[cause]


def _is_step(node: TimedNode) -> bool:
    return node.kind == "step"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """The tree of a whole call of the program on `ipus` IPUs; `functions` stand behind those that they call."""

    root: TimedNode
    functions: Mapping[str, TimedNode]
    ipus: int

    def walk(
        self,
        first: int,
        last: int,
        ipu: int | None = None,
        *,
        whole: Callable[[TimedNode], bool] = _is_step,
        smallest: int = 0,
    ) -> Iterator[Block]:
        """Blocks that touch cycles [first, last), in order of start: steps, and the nodes that are to come `whole`.

        What is shorter than `smallest` comes whole too, neighbours of one sequence and turns of one repeat together as
        a node of kind "run" up to that length: a window costs what it shows, however often its loops turn. Nodes
        without duration are left out.
        """
        return _walk(Block(self.root, 0, Enclosing()), (first, last, ipu, whole, smallest))

    def totals(self, first: int, last: int) -> Totals:
        """Cycles by (ipu, cause) inside [first, last); each IPU sums to the window's length within the program."""
        found = _window(self.root, 0, first, last)
        everywhere = Spent(Counter(), Counter(), frozenset(range(self.ipus)))
        own = in_turn([found, everywhere]).own
        return Counter({key: own[key] for ipu in range(self.ipus) for cause in CAUSES if own[key := (ipu, cause)]})


_Window: TypeAlias = "tuple[int, int, int | None, Callable[[TimedNode], bool], int]"


def _walk(block: Block, window: _Window) -> Iterator[Block]:
    node, start, context = block
    first, last, ipu, whole, smallest = window
    if not node.cycles or start >= last or block.end <= first or (ipu is not None and ipu not in node.ipus):
        return
    if node.kind in ("step", "run") or node.cycles < smallest or whole(node):
        yield block
    elif node.kind == "overlap":
        parts = [_walk(Block(child, start, context), window) for child in node.children]
        yield from heapq.merge(*parts, key=lambda found: found.start)
    else:
        for child in _inside(block, first, last, smallest):
            yield from _walk(child, window)


def _inside(block: Block, first: int, last: int, smallest: int = 0) -> Iterator[Block]:
    node, start, context = block
    if node.kind == "sequence":
        place = max(0, bisect_right(node.offsets, first - start) - 1)
        while place < len(node.children) and start + node.offsets[place] < last:
            offset = node.offsets[place]
            stop = (
                max(place + 1, bisect_right(node.offsets, offset + smallest, lo=place) - 1) if smallest else place + 1
            )
            child = node.children[place] if stop == place + 1 else _run(node, place, stop)
            yield Block(child, start + offset, context)
            place = stop
    elif node.kind == "repeat":
        body = node.children[0]
        together = max(1, smallest // body.cycles)
        begin = max(0, (first - start) // body.cycles)
        # From a multiple on, so that neighbouring windows cut a loop at the same turns.
        for turn in range(begin - begin % together, node.times, together):
            if start + turn * body.cycles >= last:
                return
            found = body if together == 1 else _turns_of(body, min(together, node.times - turn))
            yield Block(found, start + turn * body.cycles, context._replace(iteration=turn, lexical=turn))
    else:
        yield Block(node.children[node.arm], start, called(node, context))


def _turns_of(body: TimedNode, times: int) -> TimedNode:
    """Turns of a loop as one node."""
    spent = repeated(body.spent, times)
    return TimedNode(
        kind="run",
        name=body.name,
        cycles=body.cycles * times,
        totals=spent.own,
        rest=spent.rest,
        ipus=body.ipus,
        parts=(body,),
        times=times,
    )


def _run(node: TimedNode, first: int, stop: int) -> TimedNode:
    """Children [first, stop) of a sequence as one node, by sums kept with the sequence."""
    if not node.sums:
        for key in node.totals:
            parts = accumulate((child.cycles_of(*key) for child in node.children), initial=0)
            node.sums[key] = tuple(parts)
    totals: Totals = Counter()
    for key, sums in node.sums.items():
        if sums[stop] > sums[first]:
            totals[key] = sums[stop] - sums[first]
    longest = max(node.children[first:stop], key=lambda child: child.cycles)
    return TimedNode(
        kind="run",
        name=longest.name,
        cycles=node.offsets[stop] - node.offsets[first]
        if stop < len(node.offsets)
        else node.cycles - node.offsets[first],
        totals=totals,
        rest=Counter(),
        ipus=frozenset(key[0] for key in totals if not key[1].startswith("idle_")),
        parts=node.children[first:stop],
    )


def called(node: TimedNode, context: Enclosing) -> Enclosing:
    """What holds inside a node: of a call its own stage, micro-batch and direction, else what held before."""
    return entered(node.call, context) if node.kind == "call" else context


def entered(call: Enclosing, context: Enclosing) -> Enclosing:
    """What holds inside a call that says `call` of itself, where `context` held before."""
    return Enclosing(
        call.stage if call.stage >= 0 else context.stage,
        call.micro_batch + context.lexical if call.micro_batch >= 0 else context.micro_batch,
        context.iteration,
        call.direction or context.direction,
        layer=context.layer if call.layer is None else call.layer,
    )


def enclosing_of(call: Call) -> Enclosing:
    """What a call of the control tree says of itself."""
    return Enclosing(
        stage=-1 if call.stage is None else call.stage,
        micro_batch=-1 if call.micro_batch is None else call.micro_batch,
        direction=call.direction,
        layer=call.for_layer,
    )


def plain_calls(node: TimedNode) -> list[tuple[Call, ...]] | None:
    """The calls that each branch of an overlap makes in turn, without a node for each; None where anything else
    runs."""
    if node.kind != "overlap" or not isinstance(node.parts, Later):
        return None
    found = [tuple([part for part in in_order(branch) if isinstance(part, Call)]) for branch in node.parts.branches]
    pairs = zip(found, node.parts.branches, strict=True)
    return found if all(len(calls) == len(in_order(branch)) for calls, branch in pairs) else None


class Spent(NamedTuple):
    """Cycles of one stretch: `own` by (ipu, cause) of the IPUs that work in it, `rest` by cause of each other IPU.

    The IPUs that only wait all wait alike, so what a part costs does not grow with the number of IPUs.
    """

    own: Totals
    rest: Counter[str]
    ipus: frozenset[int]


Stretch: TypeAlias = "tuple[Mapping[tuple[int, str], int], Mapping[str, int], frozenset[int]]"
"""As `Spent`, in dictionaries of any kind: plain ones are added up in half the time."""


def in_turn(parts: Sequence[Stretch]) -> Spent:
    """Stretches one after another: an IPU that works in some of them waits in the others."""
    if len(parts) == 1 and isinstance(parts[0], Spent):
        return parts[0]
    ipus = frozenset[int]().union(*{working for _, _, working in parts})
    own: dict[tuple[int, str], int] = {}
    rest: dict[str, int] = {}
    for spent, waited, working in parts:
        for key, cycles in spent.items():
            own[key] = own.get(key, 0) + cycles
        for cause, cycles in waited.items():
            rest[cause] = rest.get(cause, 0) + cycles
        if working != ipus:
            for ipu in ipus - working:
                for cause, cycles in waited.items():
                    own[ipu, cause] = own.get((ipu, cause), 0) + cycles
    return Spent(Counter(own), Counter(rest), ipus)


def side_by_side(parts: Sequence[Spent], cycles: int, idle: str) -> Spent:
    """Stretches on different IPUs at the same time: each its own, and idle until all have ended."""
    own: Totals = Counter()
    for part in parts:
        spent: Counter[int] = Counter()
        for key, amount in part.own.items():
            own[key] += amount
            spent[key[0]] += amount
        for ipu in part.ipus:
            if cycles > spent[ipu]:
                own[ipu, idle] += cycles - spent[ipu]
    return Spent(own, Counter({idle: cycles} if cycles else {}), frozenset(ipu for part in parts for ipu in part.ipus))


def repeated(part: Spent, times: int) -> Spent:
    """A stretch so many times."""
    own = {key: cycles * times for key, cycles in part.own.items()}
    return Spent(Counter(own), Counter({cause: cycles * times for cause, cycles in part.rest.items()}), part.ipus)


def _window(node: TimedNode, start: int, first: int, last: int) -> Spent:
    begin, end = max(start, first), min(start + node.cycles, last)
    if begin >= end:
        return Spent(Counter(), Counter(), node.ipus)
    length = end - begin
    if length == node.cycles:
        return node.spent
    if node.kind == "step":
        return Spent(Counter(dict.fromkeys(node.totals, length)), Counter(dict.fromkeys(node.rest, length)), node.ipus)
    if node.kind == "overlap":
        return side_by_side([_window(child, start, first, last) for child in node.children], length, node.idle_cause)
    if node.kind == "repeat":
        return in_turn(_turns(node, start, begin, end))
    inside = _inside(Block(node, start, Enclosing()), first, last)
    return in_turn([_window(child.node, child.start, first, last) for child in inside])


def _turns(node: TimedNode, start: int, begin: int, end: int) -> list[Spent]:
    """The first and the last turn inside a window as far as they are, those between them as a product."""
    body = node.children[0]
    low, high = (begin - start) // body.cycles, -((start - end) // body.cycles)
    edges = [_window(body, start + turn * body.cycles, begin, end) for turn in {low, high - 1}]
    return [*edges, repeated(body.spent, max(0, high - low - 2))]


BLOCK_COLUMNS = (
    "step",
    "ipu",
    "replica",
    "stage",
    "micro_batch",
    "iteration",
    "direction",
    "layer",
    "cycles_from",
    "cycles_to",
    "cause",
)


class Timed(Stored, Protocol):
    """A profile whose trace has been made a tree."""

    @property
    def timeline(self) -> Timeline:
        """The tree."""


def block_rows(
    profile: Timed, ipu: int | None = None, first: int = 0, last: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Rows of `BLOCK_COLUMNS` in order of time, one per IPU a step occupies; replicas run alike, so one is shown.

    A profile of the device alone has one row for a step, of IPU -1.
    """
    whole = profile.meta.get("execution_profile") == "DEVICE_PROFILE"
    steps = profile.tables["steps"]
    columns = [steps[name].tolist() for name in ("id", "layer", "direction", "stage", "cause")]
    known = {row[0]: row for row in zip(*columns, strict=True)}
    end = profile.timeline.root.cycles + 1 if last is None else last
    for node, start, context in profile.timeline.walk(first, end, ipu):
        step, layer, direction, stage, cause = known[node.step]
        for place in (-1,) if whole else sorted(node.ipus) if ipu is None else (ipu,):
            yield (
                step,
                place,
                0,
                context.stage if context.stage >= 0 else stage,
                context.micro_batch,
                context.iteration,
                context.direction_of(direction),
                context.layer_of(layer),
                start,
                start + node.cycles,
                cause,
            )
