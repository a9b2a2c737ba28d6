"""Reads: what the lowering of a body asks of all that was there before it, noted as it asks.

While a body is recorded, each table of the lowering stands behind a view that notes what is read, by the numbers of the
body's form: a value, a node or a function by its own number, a variable by when it was met first, an IPU by its
distance from the body's. The body may be taken over wherever the same questions have the same answers. What no number
stands for cannot be asked again: such a body is not kept. A field of a lowering that `FIELDS` does not name is an
error, so that no family can read past the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.identity import ByIdentity
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.outline.room import Heard
from workbench.engine.lower.replay.form import Form
from workbench.engine.lower.replay.views import GraphView, SetView, TableView, VariablesView
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.options import NotedOptions, answers_alike
from workbench.errors import VerificationError

Kind: TypeAlias = Literal["plain", "value", "node", "function", "label", "ipu", "outlined"]
Answer: TypeAlias = Literal["plain", "there", "value", "tensor", "run", "spans", "place"]

ABSENT = "absent"


class Unsaid(Exception):
    """What no number of a form stands for."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NotedTable:
    """A table of a lowering that is noted by key. `grows`: what a body writes stays in it, else a body writes none."""

    owner: str
    name: str
    key: Kind
    answer: Answer = "plain"
    grows: bool = False

    def of(self, lowering: Driver) -> Any:
        """The table."""
        return getattr(OWNERS[self.owner](lowering), self.name)


OWNERS: dict[str, Callable[[Driver], Any]] = {
    "lowering": lambda lowering: lowering,
    "emitter": lambda lowering: lowering.emit,
    "outliner": lambda lowering: lowering.outliner,
    "runs": lambda lowering: lowering.outliner.runs,
    "room": lambda lowering: lowering.outliner.runs.room,
}
TABLES = (
    NotedTable(owner="lowering", name="_tensors", key="value", answer="tensor", grows=True),
    NotedTable(owner="lowering", name="reuse", key="value", answer="value"),
    NotedTable(owner="lowering", name="wishes", key="value"),
    NotedTable(owner="lowering", name="destinations", key="value", answer="tensor"),
    NotedTable(owner="lowering", name="summed_halves", key="value", answer="there"),
    NotedTable(owner="lowering", name="names", key="label", grows=True),
    NotedTable(owner="lowering", name="next_tile", key="ipu", grows=True),
    NotedTable(owner="lowering", name="homes", key="plain", answer="there"),
    NotedTable(owner="emitter", name="settled", key="plain", answer="there"),
    NotedTable(owner="emitter", name="functions", key="plain", answer="there", grows=True),
    NotedTable(owner="outliner", name="keys", key="plain", answer="there"),
    NotedTable(owner="outliner", name="bodies", key="outlined", answer="there", grows=True),
    NotedTable(owner="runs", name="starts", key="node", answer="run", grows=True),
    NotedTable(owner="runs", name="paths", key="node", grows=True),
    NotedTable(owner="room", name="spans", key="function", answer="spans"),
    NotedTable(owner="room", name="places", key="node", answer="place"),
    NotedTable(owner="room", name="shares", key="function"),
)
NOTED = {(table.owner, table.name): table for table in TABLES}
# Empty when a body begins; what it leaves there is added to what there was.
FRESH = {
    ("lowering", "bound"),
    ("lowering", "plans"),
    ("lowering", "operators"),
    ("lowering", "unmodelled"),
    ("emitter", "repeated"),
    ("runs", "bodies"),
}
# Asked of every body, since all it emits is stamped so.
CONTEXT = {
    ("lowering", "target"),
    ("emitter", "target"),
    ("emitter", "origin"),
    ("emitter", "operator"),
    ("emitter", "prefetched"),
    ("emitter", "stage"),
}
# Behind views of their own, or with fields that are named here.
BESIDE = {
    ("lowering", "graph"),
    ("lowering", "options"),
    ("lowering", "emit"),
    ("lowering", "outliner"),
    ("emitter", "variables"),
    ("outliner", "runs"),
    ("runs", "room"),
    ("room", "needed"),
    ("room", "heard"),
    ("room", "live"),  # begun anew in each body, from what it reads then
}
# Where a body stands, and numbers that go on from body to body: those of another place are put in their stead. And what
# says nothing that a body could depend on: who may cancel, who has found a class of runs that `starts` describes, what
# follows from nodes alone, what steps were found to
# take, and trials of runs that are looked up where nothing is noted.
PLACE = {
    ("emitter", "ipu"),
    ("emitter", "function"),
    ("emitter", "next_step"),
    ("emitter", "_stack"),
    ("runs", "made"),
    ("lowering", "check"),
    ("lowering", "of_nodes"),
    ("runs", "finders"),
    ("runs", "sizes"),
    ("runs", "costs"),
    ("runs", "refused"),
}
FIELDS = NOTED.keys() | FRESH | CONTEXT | BESIDE | PLACE


class Numbers:
    """What the numbers of a form stand for in one lowering, on one IPU; variables are numbered as they are met."""

    def __init__(self, lowering: Driver, form: Form) -> None:
        self.lowering = lowering
        self.form = form
        self.ipu = lowering.emit.ipu
        self.variables: dict[int, int] = {}
        self._told: ByIdentity[Any, tuple[Any, ...]] = ByIdentity()  # runs that are equal
        self._functions = {function.name: place for place, function in enumerate(form.functions)}
        self._labels = {label: place for place, label in enumerate(form.labels)}

    def key(self, kind: Kind, key: Any) -> Any:
        """How a key is said."""
        if kind == "plain":
            return key
        if kind == "ipu":
            return key - self.ipu
        if kind == "outlined":
            body, ipu, function = key
            return (body, ipu - self.ipu, _known(self._functions, function))
        numbers = {"value": self.form.number, "node": self.form.place, "function": self._functions}
        return _known(numbers.get(kind, self._labels), key)

    def meant(self, kind: Kind, said: Any) -> Any:
        """The key that is said so."""
        form = self.form
        if kind == "plain":
            return said
        if kind == "ipu":
            return said + self.ipu
        if kind == "outlined":
            body, ipu, function = said
            return (body, ipu + self.ipu, form.functions[function].name)
        if kind == "function":
            return form.functions[said].name
        if kind == "label":
            return form.labels[said]
        return form.values[said] if kind == "value" else form.nodes[said]

    def variable(self, number: int) -> int:
        """The number of a variable."""
        return self.variables.setdefault(number, len(self.variables))

    def asking(self, table: NotedTable) -> Callable[[Any], Any]:
        """What a table answers to what is said: asked thousands of times of a body, so all that is one for a table is
        found once."""
        held, form = table.of(self.lowering), self.form
        places: dict[Kind, Any] = {"value": form.values, "node": form.nodes, "label": form.labels}
        meant = places[table.key].__getitem__ if table.key in places else partial(self.meant, table.key)
        if table.answer == "there":
            return lambda said: meant(said) in held
        if table.answer == "plain":
            return lambda said: ABSENT if (found := held.get(meant(said))) is None else found
        told = self._telling(table)
        return lambda said: ABSENT if (found := held.get(meant(said))) is None else told(found)

    def answer(self, table: NotedTable, held: Any, key: Any) -> Any:
        """What a table answers."""
        if table.answer == "there":
            return key in held
        found = held.get(key)
        return ABSENT if found is None else self._telling(table)(found)

    def _telling(self, table: NotedTable) -> Callable[[Any], Any]:
        """How what a table holds is said."""
        match table.answer:
            case "tensor":
                return self.tensor
            case "value":
                return lambda found: self.form.number.get(found, ABSENT)
            case "run":
                return lambda found: self._run(*found)
            case "spans":
                return self._spans
            case "place":
                return lambda found: (_known(self._functions, found[0]), found[1])
            case _:
                return lambda found: found

    def _spans(self, spans: Any) -> tuple[Any, ...]:
        values = tuple(_known(self.form.number, value) for value in spans.values)
        return (values, spans.made.tobytes(), spans.last.tobytes())

    def tensor(self, tensor: Tensor) -> tuple[Any, ...]:
        """Where a value is."""
        variables = tuple(map(self.variable, tensor.variables))
        return (variables, tensor.mapping, tensor.shape, tensor.dtype, tensor.ipu - self.ipu)

    def _run(self, shared: Any, run: Any) -> tuple[Any, ...]:
        """A run of operators, and those that are equal to it: of which nodes, with what memory for their results."""
        told = self._told.get(shared)
        if told is None:
            told = self._told[shared] = self._of_runs(shared)
        number = next(place for place, each in enumerate(shared.runs) if each is run)
        return (number, *told)

    def _of_runs(self, shared: Any) -> tuple[Any, ...]:
        reuse = self.lowering.reuse
        held: Any = reuse.held if isinstance(reuse, TableView) else reuse
        runs = tuple(tuple(_known(self.form.place, node) for node in each.nodes) for each in shared.runs)
        over = tuple(self.form.number.get(held.get(value), ABSENT) for each in shared.runs for value in each.values)
        return (runs, over, shared.results, shared.shown, shared.common)

    def of_variable(self, number: int, name: str) -> Any:
        """What a field of a variable says."""
        variables: Any = self.lowering.emit.variables
        held = variables.held if isinstance(variables, VariablesView) else variables
        found = getattr(held[number], name)
        return found - self.ipu if name == "ipu" else self.variable(found) if name == "id" else found


def _known(numbers: Any, thing: Any) -> Any:
    if thing not in numbers:
        raise Unsaid(str(thing))
    return numbers[thing]


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one is other or np.array_equal(one, other)
    return bool(one == other)


@dataclass(slots=True)
class Reads:
    """The questions of one body, with their answers; `variables` are those it met, `why_not` why it cannot be kept."""

    context: tuple[Any, ...]
    notes: list[tuple[NotedTable, Any, Any]] = field(default_factory=list)
    of_variables: list[tuple[int, str, Any]] = field(default_factory=list)
    of_graph: list[tuple[Any, Any]] = field(default_factory=list)
    options: dict[tuple[str, str], Any] = field(default_factory=dict)
    heard: Heard = field(default_factory=Heard)
    variables: tuple[int, ...] = ()
    written: dict[tuple[str, str], set[Any]] = field(default_factory=dict)
    why_not: str = ""

    def again(self, lowering: Driver, form: Form) -> tuple[int, ...] | None:
        """The variables in the place of those it met, where a body of a form is lowered alike now; else None."""
        if self.context != context_of(lowering):
            return None
        numbers = Numbers(lowering, form)
        asked = {table: numbers.asking(table) for table in TABLES}
        try:
            for table, said, answer in self.notes:
                found = asked[table](said)
                if found is not answer and not _alike(found, answer):
                    return None
        except Unsaid:
            return None
        met = tuple(numbers.variables)
        if not all(_alike(numbers.of_variable(met[n], name), was) for n, name, was in self.of_variables):
            return None
        if not all(_of_graph(lowering.graph, question) == was for question, was in self.of_graph):
            return None
        if not answers_alike(lowering.options, self.options):
            return None
        return met if self._has_room(needed_on(lowering)) else None

    def _has_room(self, needed: IntArray | None) -> bool:
        return needed is None or all(bool((needed >= least).all()) is answer for least, answer in self.heard.asked)


def _of_graph(graph: Any, question: Any) -> Any:
    return graph.name if question == "name" else graph.meta.get(question[1])


def needed_on(lowering: Driver) -> IntArray | None:
    """What outlining knows to be needed on the IPU, int64[tiles]."""
    return lowering.outliner.runs.room.needed.get(lowering.emit.ipu)


def context_of(lowering: Driver) -> tuple[Any, ...]:
    """What every body depends on: what its steps are stamped with, and whether it is known what the IPU needs."""
    emit = lowering.emit
    stamps = (emit.origin, emit.operator, emit.prefetched, emit.stage is None)
    return (lowering.target, emit.target, *stamps, needed_on(lowering) is None)


@contextmanager
def reading(lowering: Driver, form: Form) -> Iterator[Reads]:
    """Note what is read of a lowering inside, where the function of a form is lowered."""
    check_fields(lowering)
    reads, numbers = Reads(context=context_of(lowering)), Numbers(lowering, form)
    views = _Views(lowering, reads, numbers)
    lowering.outliner.runs.room.heard = reads.heard
    views.put()
    try:
        yield reads
    finally:
        views.take()
        lowering.outliner.runs.room.heard = None
        reads.variables = tuple(numbers.variables)


def check_fields(lowering: Driver) -> None:
    """A field that `FIELDS` does not name is a `VerificationError`: bodies would not be told apart by it."""
    for owner, of in OWNERS.items():
        for each in fields(of(lowering)):
            if (owner, each.name) not in FIELDS:
                raise VerificationError(
                    f"{each.name!r} of the {owner} is read by bodies of stages, and nothing notes it: "
                    "name it in FIELDS of engine/lower/replay/reads.py"
                )


class _Views:
    """Puts views in the place of a lowering's tables, and takes them away again."""

    def __init__(self, lowering: Driver, reads: Reads, numbers: Numbers) -> None:
        self.lowering = lowering
        self.reads = reads
        self.numbers = numbers
        self.first = len(lowering.emit.variables)
        self.seen: set[tuple[Any, Any]] = set()
        self.fresh: dict[tuple[str, str], Any] = {}

    def put(self) -> None:
        """Put the views there."""
        lowering, emit = self.lowering, self.lowering.emit
        for table in TABLES:
            self._set(table.owner, table.name, self._view(table))
        for owner, name in FRESH:
            self.fresh[owner, name] = held = getattr(OWNERS[owner](lowering), name)
            self._set(owner, name, type(held)())
        inside = frozenset(function.name for function in self.numbers.form.functions)
        self._set("lowering", "graph", GraphView(lowering.graph, inside, self._of_graph, self._spoiler("graph")))
        self._set("lowering", "options", NotedOptions.of(lowering.options, self.reads.options))
        self._set("emitter", "variables", VariablesView(emit.variables, self._of_variable, self._spoiler("variables")))

    def take(self) -> None:
        """Take them away; what the body wrote is in the tables."""
        for table in TABLES:
            view = table.of(self.lowering)
            self.reads.written[table.owner, table.name] = view.own
            if view.own and not table.grows:
                self.spoil(f"{table.name!r} was written")
            self._set(table.owner, table.name, view.held)
        for (owner, name), held in self.fresh.items():
            made = getattr(OWNERS[owner](self.lowering), name)
            held.extend(made) if isinstance(held, list) else held.update(made)
            self._set(owner, name, held)
        lowering: Any = self.lowering
        lowering.graph, lowering.options = lowering.graph.held, lowering.options.held
        lowering.emit.variables = lowering.emit.variables.held

    def spoil(self, why: str) -> None:
        """The body is not kept."""
        self.reads.why_not = self.reads.why_not or why

    def _set(self, owner: str, name: str, value: Any) -> None:
        setattr(OWNERS[owner](self.lowering), name, value)

    def _spoiler(self, name: str) -> Callable[[str], None]:
        return lambda why: self.spoil(f"{name!r} {why}")

    def _view(self, table: NotedTable) -> Any:
        held = table.of(self.lowering)

        seen: set[Any] = set()

        def note(held: Any, key: Any) -> None:
            if key not in seen:
                seen.add(key)
                self._note(table, held, key)

        view = SetView if isinstance(held, set | frozenset) else TableView
        return view(held, note, self._spoiler(table.name))

    def _note(self, table: NotedTable, held: Any, key: Any) -> None:
        try:
            said = self.numbers.key(table.key, key)
            self.reads.notes.append((table, said, self.numbers.answer(table, held, key)))
        except Unsaid as unsaid:
            if key in held:  # else it is something that the body made for itself
                self.spoil(f"{table.name!r} was asked for {unsaid}")

    def _of_variable(self, question: tuple[int, str]) -> None:
        number, name = question
        if number not in self.numbers.variables:
            self.spoil(f"a variable was asked for its {name!r} that no value is in")
        elif question not in self.seen:
            self.seen.add(question)
            answer = self.numbers.of_variable(number, name)
            self.reads.of_variables.append((self.numbers.variables[number], name, answer))

    def _of_graph(self, question: Any) -> None:
        graph: Any = self.lowering.graph
        if ("graph", question) not in self.seen:
            self.seen.add(("graph", question))
            self.reads.of_graph.append((question, _of_graph(graph.held, question)))
