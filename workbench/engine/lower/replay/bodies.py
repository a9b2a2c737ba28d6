"""Stage bodies lowered once: what another schedule, graph or stage lowers alike is taken over under new numbers.

Schedules differ in what waits between the stages, seldom in the stages; graphs of one model that compute again in one
way or another have most bodies in common; and stages of equal layers differ in the names of these. What a body is
lowered to follows from its form, from where its parameters lie and from what the lowering has met before it; where all
are as they were, its variables and steps are those of before, renumbered and renamed. Only what differs is lowered
anew, so the result is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.layout import find_wishes
from workbench.engine.lower.outline import Outlining, outlining
from workbench.engine.lower.replay.form import Form, form_of
from workbench.engine.lower.replay.tape import Tape, play, record
from workbench.engine.options import NotedOptions, answers_alike
from workbench.engine.program.remote_buffers import LOAD, STORE
from workbench.engine.target import Target

KEPT = 4  # ways one body was lowered


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Start:
    """What a lowering knows before its first body: wishes, what finding them left behind, and what can be shared.

    `target` and `options` (as they were noted) are what that was found for.
    """

    target: Target
    options: Mapping[tuple[str, str], Any]
    wishes: Mapping[Value, Any]
    summed_halves: frozenset[Value]
    plans: Mapping[Node, Any]
    next_tile: Mapping[int, int]
    outlining: Outlining | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBody:
    """How a body came to be: `like` is the body that was played for it, "" where it was lowered for itself."""

    name: str
    like: str = ""


@dataclass(slots=True)
class StageBodies:
    """What lowerings of one graph have in common.

    `kept` is how many ways of lowering a body are remembered, `made` are the bodies of the latest lowering, in order,
    `of_nodes` what families read of nodes alone.
    """

    kept: int = KEPT
    made: list[StageBody] = field(default_factory=list)
    of_nodes: dict[Node, Any] = field(default_factory=dict)
    _start: _Start | None = None
    _outlined: dict[bool, tuple[Graph, Mapping[Value, Value], Outlining]] = field(default_factory=dict)
    _tapes: dict[Any, list[Tape]] = field(default_factory=dict)
    _forms: dict[Function, Form] = field(default_factory=dict)
    _turns: Iterator[int] = field(default_factory=count)  # lowerings that share the tapes
    _turn: int = 0

    def of_another_graph(self, graph: Graph) -> StageBodies:
        """For another graph of the same model: bodies of one form are shared."""
        forms = {name: form for name, form in self._forms.items() if form.is_of(graph)}
        return StageBodies(kept=self.kept, _tapes=self._tapes, _forms=forms, _turns=self._turns)

    def begin(self, lowering: Driver) -> None:
        """Find wishes and an outliner, as before where it is the same."""
        start, self.made, self._turn = self._start, [], next(self._turns)
        if start is None or start.target != lowering.target or not answers_alike(lowering.options, start.options):
            self._start = self._started(lowering)
            return
        lowering.wishes, lowering.summed_halves = dict(start.wishes), set(start.summed_halves)
        lowering.plans.update(start.plans)
        lowering.next_tile.update(start.next_tile)
        if start.outlining is not None:
            lowering.outliner = start.outlining.outliner()

    def begin_anew(self, lowering: Driver) -> Outlining | None:
        """Find an outliner and wishes; returns what can be shared, found once a graph; None: nothing is to be."""
        shared = self._outlining(lowering)  # first, since wishes wait for plans that are searched meanwhile
        if shared is not None:
            lowering.outliner = shared.outliner()
        lowering.wishes = find_wishes(lowering)
        return shared

    def _outlining(self, lowering: Driver) -> Outlining | None:
        if not lowering.options.get("optimizations.enable_graph_outlining"):
            return None
        # A run reads all its arguments at its start, where inputs copied one by one have not come yet.
        runs = bool(lowering.options.get("optimizations.merge_infeed_io_copies"))
        known = self._outlined.get(runs)
        if known is None or not known[0].is_but_for_words(lowering.graph) or known[1] is not lowering.reuse:
            known = (lowering.graph, lowering.reuse, outlining(lowering.graph, lowering.reuse, runs=runs))
            self._outlined[runs] = known
        return known[2]

    def _started(self, lowering: Driver) -> _Start:
        """Find wishes and an outliner, and what that reads."""
        options, noted = lowering.options, NotedOptions.of(lowering.options)
        lowering.options = noted
        shared = self.begin_anew(lowering)
        lowering.options = options
        return _Start(
            target=lowering.target,
            options=noted.noted,
            wishes=dict(lowering.wishes),
            summed_halves=frozenset(lowering.summed_halves),
            plans=dict(lowering.plans),
            next_tile=dict(lowering.next_tile),
            outlining=shared,
        )

    def lower(self, lowering: Driver, function: Function) -> None:
        """Lower every node of a stage's body, whose parameters are bound."""
        self.made.append(StageBody(name=function.name, like=self._lower(lowering, function)))

    def _lower(self, lowering: Driver, function: Function) -> str:
        form = self._form(lowering, function)
        away = lowering.emit.settled or lowering.homes or any(node.op in (LOAD, STORE) for node in form.nodes)
        if away or not self.kept:  # what lies off the chip is loaded where it is first read
            lowering.lower_function(function)
            return ""
        tapes = self._tapes.setdefault(form.key, [])
        for tape in tapes:
            outside = tape.reads.again(lowering, form)
            if outside is not None and play(tape, lowering, function, form, outside, self._turn):
                return tape.function.name
        made = record(lowering, function, form)
        if made is not None:
            tapes.insert(0, made)
            del tapes[self.kept :]
        return ""

    def _form(self, lowering: Driver, function: Function) -> Form:
        known = self._forms.get(function)
        if known is None:
            known = self._forms[function] = form_of(lowering.graph, function)
        return known
