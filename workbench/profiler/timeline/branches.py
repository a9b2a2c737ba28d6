"""The executed program as a tree to look into: a call shows the body it runs, a long sequence is folded by direction
and by layer. What is below a branch is made when it is asked for, so that a large program costs what is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from workbench.base.causes import CAUSES
from workbench.profiler.timeline import tree
from workbench.profiler.timeline.timeline import Enclosing, Later, Timed, TimedNode, called, in_turn

LEAST_DIRECTION = 8  # neighbours of one direction that are folded
LEAST_LAYER = 2  # neighbours of one layer that are folded
DEEPEST = 8  # parts of a layer's path that are told apart


class About(NamedTuple):
    """What a step of a program is, as the table of steps has it."""

    cause: str
    layer: str
    direction: str
    ipu: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Branch:
    """A place of the program: a node of the timeline, or a fold of `members` that follow one another.

    `kind` is that of the node, of a step its cause, of a fold direction or layer. `cycles` are of one execution, a
    repeat with all its turns; `runs` is how often this place is executed in one call of the program, 0 in an arm that
    is not taken. `start` is the cycle at which it first begins. `ipu` is -1 for what is not one IPU's.
    """

    kind: str
    name: str
    cycles: int
    runs: int
    start: int
    context: Enclosing
    layer: str = ""
    direction: str = ""
    ipu: int = -1
    node: TimedNode | None = None
    members: tuple[Branch, ...] = ()
    depth: int = 0

    @property
    def total_cycles(self) -> int:
        """Cycles of all executions."""
        return self.cycles * self.runs

    @property
    def is_leaf(self) -> bool:
        """Whether nothing is below."""
        return not self.members and (self.node is None or self.node.kind == "step" or not self.node.parts)

    @property
    def step(self) -> int:
        """The id of a step, -1 of anything else."""
        return -1 if self.node is None else self.node.step

    @property
    def function(self) -> str:
        """The function a call runs, "" of anything else."""
        return "" if self.node is None else self.node.function

    @property
    def micro_batch(self) -> int:
        """The micro-batch that a call is for, in a loop that of the first turn; -1 of anything else."""
        if self.node is None or self.node.kind != "call" or self.node.call.micro_batch < 0:
            return -1
        return called(self.node, self.context).micro_batch

    @property
    def times(self) -> int:
        """Turns of a repeat, 1 of anything else."""
        return 1 if self.node is None or self.node.kind != "repeat" else self.node.times


class Branches:
    """Makes the branches of a profile's program."""

    def __init__(self, profile: Timed) -> None:
        steps = profile.tables["steps"]
        columns = [steps[name].tolist() for name in ("id", "cause", "layer", "direction", "ipu")]
        self._steps = {row[0]: About(*row[1:]) for row in zip(*columns, strict=True)}
        self._timeline = profile.timeline

    @cached_property
    def root(self) -> Branch:
        """The whole call of the program."""
        return self._of(self._timeline.root, Enclosing(), 1, 0)

    def below(self, branch: Branch) -> tuple[Branch, ...]:
        """What is directly below, in the order of the program. Cycles of a sequence, a fold and a call's body add up
        to the branch's; those of a repeat are of one turn; side by side the longest counts, of arms the dearest."""
        if branch.members:
            return _folded(branch.members, "layer", branch.depth)
        node = branch.node
        if node is None or node.kind == "step":
            return ()
        if node.kind == "sequence":
            return _folded(tuple(self._in_turn(node, branch)), "direction", 0)
        if node.kind == "repeat":
            return self._inside(node.children[0], branch.context, branch.runs * node.times, branch.start)
        if node.kind == "call":
            return self._inside(node.children[0], called(node, branch.context), branch.runs, branch.start)
        runs = [branch.runs * (node.kind != "if" or place == node.arm) for place in range(len(node.children))]
        pairs = zip(node.children, runs, strict=True)
        return tuple(self._of(child, branch.context, times, branch.start) for child, times in pairs)

    def spent(self, branch: Branch) -> Mapping[str, int]:
        """Cycles of one execution by cause, added up over the IPUs that work in it; each of them sums to `cycles`."""
        nodes = [each.node for each in branch.members or (branch,)]
        sums: Counter[str] = Counter()
        for (_, cause), cycles in in_turn([node.spent for node in nodes if node is not None]).own.items():
            sums[cause] += cycles
        return {cause: sums[cause] for cause in CAUSES if sums[cause]}

    @cached_property
    def calls(self) -> Mapping[str, int]:
        """How often each function runs in one call of the program, in the order of the program."""
        functions = self._timeline.functions
        direct = {name: _calls_in(node) for name, node in functions.items()}
        runs = _calls_in(self._timeline.root)
        for name in _callers_first(direct):
            for other, times in direct[name].items():
                runs[other] += runs[name] * times
        return {name: runs[name] for name in functions}

    def _in_turn(self, node: TimedNode, branch: Branch) -> Iterator[Branch]:
        for child, offset in zip(node.children, node.offsets, strict=True):
            yield self._of(child, branch.context, branch.runs, branch.start + offset)

    def _inside(self, body: TimedNode, context: Enclosing, runs: int, start: int) -> tuple[Branch, ...]:
        """A body: of a sequence what it consists of."""
        found = self._of(body, context, runs, start)
        return self.below(found) if body.kind == "sequence" else (found,)

    def _of(self, node: TimedNode, context: Enclosing, runs: int, start: int) -> Branch:
        cause, layer, direction, ipu = self._about(node, context)
        own = self._steps[node.step].layer if node.kind == "step" else ""
        return Branch(
            kind=cause or node.kind,
            name=context.name_of(node.name, own),
            cycles=node.cycles,
            runs=runs,
            start=start,
            context=context,
            layer=layer,
            direction=direction,
            ipu=ipu,
            node=node,
        )

    def _about(self, node: TimedNode, context: Enclosing) -> About:
        """Of a step what it is in its context; of a call, layer and direction of what it is made for."""
        ipu = next(iter(node.ipus)) if len(node.ipus) == 1 else -1
        if node.kind == "step":
            known = self._steps[node.step]
            return About(known.cause, context.layer_of(known.layer), context.direction_of(known.direction), ipu)
        if node.kind != "call":
            return About("", "", "", ipu)
        inside = called(node, context)
        first = _first_step(node)
        direction = inside.direction if first is None else inside.direction_of(self._steps[first].direction)
        return About("", inside.layer or "", direction, ipu)


def _first_step(node: TimedNode) -> int | None:
    """The step with which a node begins, if it can be told without making nodes."""
    while node.kind != "step":
        if not node.parts or node.kind == "overlap":
            return None
        first = node.members[0] if node.kind == "sequence" else node.children[0]
        if isinstance(first, int):
            return first
        node = first
    return node.step


def _folded(members: tuple[Branch, ...], kind: str, depth: int) -> tuple[Branch, ...]:
    """Neighbours of one direction, below it of one layer and then of one part of its path, as one branch each."""
    if len(members) <= LEAST_LAYER or depth > DEEPEST:
        return members
    least = LEAST_DIRECTION if kind == "direction" else LEAST_LAYER
    stretches = [(key, tuple(found)) for key, found in groupby(members, _key(kind, depth))]
    made: list[Branch] = []
    plain: list[Branch] = []
    for key, found in [*stretches, ("", ())]:
        folds = bool(key) and len(found) >= least and len(found) < len(members)
        if found and not folds:
            plain += found
        if plain and (folds or not found):
            made += _deeper(tuple(plain), kind, depth)
            plain = []
        if folds:
            made.append(_fold(found, kind, key, depth))
    return tuple(made)


def _deeper(members: tuple[Branch, ...], kind: str, depth: int) -> tuple[Branch, ...]:
    """What a level does not fold, by the next."""
    if kind == "layer" and not any(member.layer.count("/") > depth for member in members):
        return members
    return _folded(members, "layer", depth + (kind == "layer"))


def _key(kind: str, depth: int) -> Callable[[Branch], str]:
    """What neighbours of one fold have in common, "" of what is in none."""
    if kind == "direction":
        return lambda branch: branch.direction
    return lambda branch: "/".join(branch.layer.split("/")[: depth + 1]) if branch.layer.count("/") >= depth else ""


def _fold(members: tuple[Branch, ...], kind: str, name: str, depth: int) -> Branch:
    first = members[0]
    paths = {member.layer for member in members}
    directions, ipus = {member.direction for member in members}, {member.ipu for member in members}
    layer = "" if kind == "direction" else name if len(paths) > 1 else first.layer
    return Branch(
        kind=kind,
        name=layer or name,
        cycles=sum(member.cycles for member in members),
        runs=first.runs,
        start=first.start,
        context=first.context,
        layer=layer,
        direction=first.direction if len(directions) == 1 else "",
        ipu=first.ipu if len(ipus) == 1 else -1,
        members=members,
        depth=0 if kind == "direction" else depth + 1,
    )


def _calls_in(node: TimedNode) -> Counter[str]:
    """Calls that one execution of a node makes, by function; what those call is not counted."""
    found: Counter[str] = Counter()
    todo = [(node, 1)]
    while todo:
        each, times = todo.pop()
        if each.kind == "call":
            found[each.function] += times
        elif isinstance(each.parts, Later) and not any(map(_chooses, each.parts.branches)):
            found.update({name: times * count for name, count in _called_by(each.parts.branches).items()})
        elif each.kind == "if" and each.children:
            todo.append((each.children[each.arm], times))
        else:
            todo += [(child, times * (each.times if each.kind == "repeat" else 1)) for child in each.children]
    return found


def _called_by(parts: Sequence[tree.Part]) -> Counter[str]:
    """Calls of branches side by side, whose nodes need not be made."""
    found: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, tree.Call):
            found[part.function] += 1
        elif isinstance(part, tree.Repeat):
            found.update({name: part.times * count for name, count in _called_by((part.body,)).items()})
        else:
            found.update(_called_by(tree.children(part)))
    return found


def _chooses(part: tree.Part) -> bool:
    """Whether there is an arm to take, which only nodes with their durations know."""
    return isinstance(part, tree.If) or any(map(_chooses, tree.children(part)))


def _callers_first(direct: Mapping[str, Counter[str]]) -> list[str]:
    """The functions, each after all that call it."""
    found: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name not in seen:
            seen.add(name)
            for other in direct[name]:
                visit(other)
            found.append(name)

    for name in direct:
        visit(name)
    return found[::-1]
