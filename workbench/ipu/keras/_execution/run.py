"""An execution as Keras calls it: compiled once for what it is asked with, its numbers made turn by turn."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.base.units import things_text
from workbench.engine.frontends.describe.replicas import check_groups, groups_asked
from workbench.engine.frontends.numbers.replicated import seeds_of
from workbench.engine.graph.execution import Execution as Described
from workbench.errors import InputError
from workbench.ipu._feeds import EndOfFeedError
from workbench.ipu.config import current_options
from workbench.ipu.config._flags import flags
from workbench.ipu.config.config import in_force
from workbench.ipu.keras._execution.data import on_device
from workbench.ipu.keras._execution.given import explained
from workbench.ipu.keras._execution.on_host import on_host
from workbench.ipu.keras._execution.pipelined import Held, PipelinedProgram
from workbench.ipu.keras._execution.program import ExecutionProgram, Feed, described_variables
from workbench.ipu.keras._execution.turns import LISTS, State, Turns
from workbench.ipu.keras._extensions.assignment import Stages
from workbench.ipu.keras._extensions.model_options import ModelOptions
from workbench.ipu.keras._extensions.options import Accumulation, ReplicatedMetricReductionMethod
from workbench.tf import _hooks

LOGGER = logging.getLogger("workbench.ipu.keras")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compiled:
    """A compiled execution: its executable, and the functions that make its numbers on all replicas."""

    executable: Any
    turns: Turns
    batch: Callable[..., Any]
    update: Callable[..., Any]
    pipelined: PipelinedProgram | None = None


@dataclass(slots=True, eq=False)
class Execution:
    """What `make_train_function` and its siblings make: `(state, iterator)` to results and the new state.

    The model's `_ipu_hear`, if there is one, is told the results of each turn as they leave the outfeed.
    """

    model: Any
    mode: str
    strategy: Any
    options: ModelOptions
    accumulation: Accumulation
    replicas: int
    stages: Stages | None = None
    _compiled: dict[Any, Compiled] = field(default_factory=dict)

    def __call__(self, state: State, iterator: Iterator[Any]) -> tuple[Any, State]:
        """One execution. An exception of the data or of `hear` leaves the model as it was before it."""
        try:
            return self._execute(state, iterator)
        except BaseException:
            # Keras took the values out of the variables for the time of an epoch; they go back in.
            self._show(state)
            self.model.jax_state_sync()
            raise

    def _show(self, state: State) -> None:
        """A state that callbacks see while the execution goes on."""
        self.model._jax_state = dict(zip(LISTS[self.mode], state, strict=True))
        self.model._jax_state_synced = False

    def _execute(self, state: State, iterator: Iterator[Any]) -> tuple[Any, State]:
        first = on_device(next(iterator))
        count = self._turns_of_an_execution()
        compiled = self.compiled(state, first, count)
        compiled.executable.check_fits()
        if self.model._ipu_hear is not None:
            self._show(state)
        held: State = tuple(state)
        if compiled.pipelined is not None:
            return self._in_stages(compiled, compiled.pipelined, held, first, iterator, count)
        if self.replicas > 1:
            held = self._on_each(compiled.turns, held)
        taken = self._elements(first, iterator, count * self.replicas)
        results: list[Any] = []
        for made, after in self._turns(compiled, held, taken, count):
            self._given(made, results)
            held = after
        if self.replicas > 1:
            held = self._of_one(held)
        return self._returned(results), held

    def _turns_of_an_execution(self) -> int:
        """Batches of each replica; they are as many for each, and a whole number of updates."""
        steps, batches = int(self.model.steps_per_execution), 1
        if self.mode == "training":
            batches = self.accumulation.steps
        if steps % (batches * self.replicas):
            what = "gradient_accumulation_steps_per_replica times the number of replicas"
            raise StepsError(
                f"steps_per_execution of the model {self.model.name!r} is {steps}",
                expected=f"a multiple of {what}, {batches} × {self.replicas}",
                todo=f"compile the model with steps_per_execution={batches * self.replicas}",
            )
        return steps // self.replicas

    # -- compiled once ----------------------------------------------------------------------------------

    def compiled(self, state: State, element: Any, count: int) -> Compiled:
        """The execution of so many batches of each replica, compiled the first time."""
        options = current_options()
        key = (*_kinds((state, element)), count, options, flags(), in_force() is not None)
        if key not in self._compiled:
            with explained(self.model, [element]):
                self._compiled[key] = self._compile(state, element, count, options)
        return self._compiled[key]

    def _compile(self, state: State, element: Any, count: int, options: Any) -> Compiled:
        turns = Turns(model=self.model, mode=self.mode, accumulation=self.accumulation, replicas=self.replicas)
        kinds = (jax.tree_util.tree_map(_type, tuple(state)), jax.tree_util.tree_map(_type, element))
        if self.stages is not None:
            program: Any = self._pipelined(turns, *kinds, count)
            written = program.asked.options
        else:
            program = self._alone(turns, *kinds, count)
            written = self.accumulation.written if self.mode == "training" else {}
        # The options speak of all devices; this one's IPUs are shared out here.
        own = options.with_values({"auto_select_ipus": (), "select_ipus": ()})
        try:
            with groups_asked() as groups:
                executable = _hooks.compiler.get()(program, own.with_values(written), replicas=self.replicas)
            check_groups(groups, self.replicas)
        except InputError as error:
            wanted = error.mends.get("gradient_accumulation_steps")
            if self.stages is None or wanted is None:
                raise
            raise self._fill_no_round(program.micro_batches, wanted) from error
        self.strategy._keep(executable)
        LOGGER.info("%s: compiled %s of %s", self.model.name, self.mode, executable)
        step = turns.add if turns.accumulates else turns.whole
        return Compiled(
            executable=executable,
            turns=turns,
            batch=on_host(step, turns, executable),
            update=on_host(turns.update, turns, executable),
            pipelined=program if self.stages is not None else None,
        )

    def _fill_no_round(self, batches: int, wanted: int) -> InputError:
        """What is said of so many batches of the stages, in the words of who set them, and of how many would do."""
        name = self.model.name
        if self.mode == "training":
            return InputError(
                f"gradient_accumulation_steps_per_replica of the model {name!r} is {batches}, which fills no round of "
                "its pipeline",
                todo=f"call set_pipelining_options(gradient_accumulation_steps_per_replica={wanted}, ...)",
            )
        return InputError(
            f"an execution of the {self.mode} of the model {name!r} has {things_text(batches, 'batch')} of each "
            f"replica, which {'fills' if batches == 1 else 'fill'} no round of its pipeline",
            todo=f"give data or steps for {things_text(wanted * self.replicas, 'batch')}, and steps_per_execution as "
            "many",
        )

    def _alone(self, turns: Turns, state: State, data: Any, count: int) -> ExecutionProgram:
        """A program of one IPU."""
        return ExecutionProgram(
            turns=turns,
            count=count,
            state=state,
            data=data,
            infeed=Feed(name=f"infeed_{self.mode}", queue=self.options.infeed_queue),
            outfeed=Feed(name=f"outfeed_{self.mode}", queue=self.options.outfeed_queue),
        )

    def _pipelined(self, turns: Turns, state: State, data: Any, count: int) -> PipelinedProgram:
        """A program of several stages: all updates, or all batches where nothing is updated."""
        assert self.stages is not None
        training, pipelining = self.mode == "training", self.options.pipelining
        batches = (pipelining.steps or 1) if training else count
        return PipelinedProgram(
            turns=turns,
            micro_batches=batches,
            state=state,
            data=data,
            stages=self.stages,
            asked=pipelining.asked(self.stages.count, batches, training=training),
            execution=Described(
                updates=count // self.accumulation.steps if training else 1,
                infeed=self.options.infeed_queue,
                outfeed=self.options.outfeed_queue,
            ),
            kept=[Held() for _ in jax.tree_util.tree_leaves(state)],
            fed=[Held(from_host=True) for _ in jax.tree_util.tree_leaves(data)],
            results=[],
        )

    # -- numbers ----------------------------------------------------------------------------------------

    def _turns(self, compiled: Compiled, held: State, taken: Iterator[Any], count: int) -> Iterator[tuple[Any, State]]:
        """Results and state of each turn."""
        turns, sums = compiled.turns, None
        for number in range(count):
            element = self._of_all(taken)
            if not turns.accumulates:
                made, held = compiled.batch(held, element)
                yield made, held
                continue
            place = number % turns.accumulation.steps
            if sums is None or place == 0:
                sums = turns.sums(held)
            before = np.full(self.replicas, place, np.int32) if self.replicas > 1 else np.int32(place)
            made, held, sums = compiled.batch(held, sums, before, element)
            if place == turns.accumulation.steps - 1:
                held = compiled.update(held, sums)
            yield made, held

    def _in_stages(
        self,
        compiled: Compiled,
        program: PipelinedProgram,
        held: State,
        first: Any,
        iterator: Iterator[Any],
        count: int,
    ) -> tuple[Any, State]:
        """All updates of an execution, each a run of the program with its batches."""
        taken = self._elements(first, iterator, count * self.replicas)
        each = self.accumulation.steps if self.mode == "training" else count
        results: list[Any] = []
        held = program.spread(held)
        for _ in range(count // each):
            elements = list(itertools.islice(taken, each * self.replicas))
            turns = list(program.run(compiled.executable, held, elements))
            held = turns[-1][1]
            given = [made for made, _ in turns]
            if self.options.pipelining.accumulate_outfeed and self.mode != "prediction":
                given = [jax.tree_util.tree_map(lambda *several: np.mean(several, axis=0), *given)]
            for made in given:
                self._given(made, results)
        return self._returned(results), program.joined(held)

    def _of_all(self, taken: Iterator[Any]) -> Any:
        """The next element, or that of every replica, which take them in turn."""
        if self.replicas == 1:
            return next(taken)
        several = [next(taken) for _ in range(self.replicas)]
        return jax.tree_util.tree_map(lambda *leaves: np.stack(leaves), *several)

    def _elements(self, first: Any, iterator: Iterator[Any], count: int) -> Iterator[Any]:
        """So many elements."""
        yield first
        for number in range(1, count):
            try:
                element = on_device(next(iterator))
            except StopIteration:
                raise EndOfFeedError(
                    f"the data ended after {things_text(number, 'batch')} of an execution of {count}",
                    expected="batches for every step of an execution",
                    todo="give as many batches as steps, or compile with fewer steps_per_execution",
                ) from None
            yield element

    def _given(self, made: Any, results: list[Any]) -> None:
        """What a turn gives to the host."""
        if self.mode == "prediction":
            results.append(made)
        else:
            results[:] = [made]
        if self.model._ipu_hear is not None:
            for each in self._heard(made):
                self.model._ipu_hear(each)

    def _heard(self, made: Any) -> list[Any]:
        """What each batch of a turn gave: on several replicas one each, reported for all where metrics are reduced."""
        if self.replicas == 1:
            return [made]
        if self.options.metrics is ReplicatedMetricReductionMethod.NONE or self.mode == "prediction":
            return [_of_replica(made, place) for place in range(self.replicas)]
        return [self._one_of(made)] * self.replicas

    def _one_of(self, made: Any) -> Any:
        if self.replicas == 1 or self.mode == "prediction":
            return made
        return self.options.metrics.reduced(made)

    def _returned(self, results: Sequence[Any]) -> Any:
        if self.mode != "prediction":
            return self._one_of(results[-1])
        if self.replicas > 1:
            results = [_of_replica(made, place) for made in results for place in range(self.replicas)]
        if len(results) == 1:
            return results[0]
        return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts), *results)

    def _on_each(self, turns: Turns, held: State) -> State:
        """The state on every replica: the same, but for seeds."""
        leaves, tree = jax.tree_util.tree_flatten(held)
        spread = [
            seeds_of(value, self.replicas) if described.role == "seed" else jax.numpy.stack([value] * self.replicas)
            for value, described in zip(leaves, described_variables(turns), strict=True)
        ]
        state: State = jax.tree_util.tree_unflatten(tree, spread)
        return state

    def _of_one(self, held: State) -> State:
        """The state of the first replica, but for metrics, which are those of the last."""
        kept = list(jax.tree_util.tree_map(lambda each: each[0], held))
        if self.mode != "prediction":
            kept[-1] = [each[-1] for each in held[-1]]
        return tuple(kept)


class StepsError(InputError, RuntimeError):
    """Steps of an execution that are no whole number of updates on every replica."""


def _of_replica(made: Any, place: int) -> Any:
    return jax.tree_util.tree_map(lambda each: each[place], made)


def _type(value: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(value.shape), value.dtype)


def _kinds(tree: Any) -> tuple[Any, ...]:
    leaves, structure = jax.tree_util.tree_flatten(tree)
    return structure, tuple((tuple(each.shape), dtype_name(each.dtype)) for each in leaves)


__all__ = ["Compiled", "Execution", "StepsError"]
