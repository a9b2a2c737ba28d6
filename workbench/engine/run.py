"""Numbers: the traced program compiled by XLA for the host, advancing the model's own variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from workbench.base.units import things_text
from workbench.engine.frontends.describe.arguments import arrays_of, those_compared
from workbench.engine.frontends.describe.checks import check_array
from workbench.engine.frontends.describe.source import ArraySpec, Source
from workbench.engine.frontends.staging.staged_program import scheduled
from workbench.engine.frontends.step.without_weights import single_precision_factorisations
from workbench.engine.graph import Output
from workbench.errors import InputError

_BY_EXAMPLE = "compile with an example of what you have: wb.compile(model, x, y)"


class Runner:
    """Runs a source. XLA compiles at the first call; a model built without weights gets them then.

    `schedule` runs stages in the order of its columns, through FIFOs; `devices` is the IPU of each stage.
    """

    def __init__(self, source: Source, *, schedule: str = "", devices: Sequence[int] = (), **more: Any) -> None:
        self.source = scheduled(source, schedule, devices, **more) if schedule else source
        self._unset = source.lazy

    def run(self, *args: Any, sample_weight: Any = None) -> Any:
        """One call of the compiled program.

        Training: `run(x, y, sample_weight=None)` returns loss and metrics of the batch (an array of a metric that has
        several numbers), and advances weights, optimizer and seeds; of several outputs `sample_weight` is for all, or
        for each in a list or by name. On one IPU it may have a number for each step of a sequence too.
        Inference: `run(x)` returns the outputs. Functions: `run(*args)` returns theirs.
        With gradient accumulation, `x` and `y` hold the micro-batches of one update behind each other.
        Errors: `InputError` where the arrays are not those the program was compiled for.
        """
        data = self._check(self._flatten(args))
        if self._unset:
            self._initialise()
        values = self._gather(data)
        unweighted = sample_weight is None
        results = self.source.compute(values) if unweighted else self._weighted(values, sample_weight)
        self._store(results)
        return self._report(results)

    def _flatten(self, args: Sequence[Any]) -> list[Any]:
        if self.source.called_as not in ("training", "inference"):
            return list(self.source.unpack(args))
        targets = self._targets
        if len(args) != (2 if targets else 1):
            raise InputError(
                f"run was called with {things_text(len(args), 'array')}",
                expected="run(x, y)" if targets else "run(x)",
                todo=self._called_right(bool(targets), len(args)),
            )
        counts = (len(self.source.specs) - targets, targets)
        args = (args[0], *(those_compared(each, self.source.outputs, self.source.compared) for each in args[1:]))
        return [
            leaf
            for each, count in zip(args, counts, strict=False)
            for leaf in arrays_of(each, count, self.source.unpack)
        ]

    @property
    def _targets(self) -> int:
        return sum(item.role == "target" for item in self.source.graph.inputs)

    def _called_right(self, has_targets: bool, given: int) -> str:
        if has_targets and given == 3:
            return "name what weighs the samples: run(x, y, sample_weight=...)"
        if has_targets:
            return "pass inputs and targets"
        return "leave targets out" if self.source.called_as == "training" else "compile with mode='training' to train"

    def _check(self, data: Sequence[Any]) -> list[Any]:
        specs = self.source.specs
        if len(data) != len(specs):
            raise InputError(
                f"run was called with {things_text(len(data), 'array')}",
                expected=f"{len(specs)}: " + ", ".join(f"{spec.name} {spec}" for spec in specs),
            )
        inputs = len(specs) - self._targets
        return [
            check_array(spec, value, exemplified=_BY_EXAMPLE if place >= inputs else "")
            for place, (spec, value) in enumerate(zip(specs, data, strict=True))
        ]

    def _initialise(self) -> None:
        """Give variables that were made without values the initial ones Keras would have given them."""
        unset = [*self.source.model.variables, *(self.source.optimizer.variables if self.source.optimizer else ())]
        with single_precision_factorisations():
            for variable in unset:
                variable.assign(_initial_value(variable))
        self._unset = False

    def _gather(self, data: Sequence[Any]) -> list[Any]:
        remaining = iter(data)
        return [next(remaining) if held is None else held.value for held in self.source.variables]

    def _weighted(self, values: Sequence[Any], sample_weight: Any) -> Sequence[Any]:
        if self.source.weighted is None:
            raise InputError("sample_weight was given to a program that does not train", todo="leave sample_weight out")
        return self.source.weighted(values, self._one_weight(sample_weight))

    def _one_weight(self, given: Any) -> Any:
        """A weight of each sample or step; where there are several outputs, one for each of them."""
        names = self.source.outputs
        spec = ArraySpec(name="sample_weight", shape=(), dtype="float32")
        apart = isinstance(given, Mapping) or (isinstance(given, list | tuple) and any(map(np.ndim, given)))
        several = len(names) > 1
        if not apart and not several:
            return check_array(replace(spec, shape=self._weighed(given, 0)), given)
        if not apart:
            given = [given] * len(names)
        kept = dict(given) if isinstance(given, Mapping) else dict(zip(names, given, strict=False))
        if len(given) != len(names) or set(kept) != set(names):
            has = (
                f"weights for {', '.join(map(str, given))}"
                if isinstance(given, Mapping)
                else things_text(len(given), "array")
            )
            raise InputError(
                f"sample_weight has {has}",
                expected=f"one array, or one for each output: {', '.join(names)}",
            )
        weights = []
        for place, name in enumerate(names):
            shape = self._weighed(kept[name] if several else given, place)
            each = replace(spec, name=f"sample_weight[{name!r}]" if apart else spec.name, shape=shape)
            weights.append(check_array(each, kept[name]))
        return self._stacked(weights) if several else weights[0]

    def _stacked(self, weights: Sequence[Any]) -> Any:
        """Weights of several outputs along a last axis; one of a sample is of all its steps where others have some."""
        widest = max((weight.shape for weight in weights), key=len)
        wide = [weight[:, None] if weight.ndim < len(widest) else weight for weight in weights]
        common = tuple(map(max, zip(*(weight.shape for weight in wide), strict=True)))
        stepped = [self._weighed(np.empty(common), place) == common for place in range(len(weights))]
        if common[1:] not in ((), (1,)) and not all(stepped):
            raise InputError(
                f"sample_weight has shapes {', '.join(str(weight.shape) for weight in weights)}",
                expected="weights of samples, or of as many steps for every output",
                todo="give each output a weight of each sample",
            )
        return jax.numpy.stack([jax.numpy.broadcast_to(weight, common) for weight in wide], -1)

    def _weighed(self, given: Any, place: int) -> tuple[int, ...]:
        """What has a weight of its own: a sample, or also each element that the loss of an output is a number of.

        A loss is of what the target's last axis holds, or of each target where targets are class numbers.
        """
        target = self.source.specs[len(self.source.specs) - max(1, len(self.source.outputs)) + place]
        apart = len(target.shape) - (0 if target.dtype.startswith(("int", "uint")) else 1)
        if self.source.staged is not None or not self.source.outputs or apart < 2:
            return self.source.specs[0].shape[:1]
        held = list(given.values()) if isinstance(given, Mapping) else given
        shape = np.shape(held[0] if isinstance(held, list | tuple) and len(held) == 1 and np.ndim(held[0]) else held)
        if shape[1:] == (1,) or (len(shape) < 2 and apart == 2):
            return (*target.shape[:1], 1)  # a sample's, for all its steps
        return target.shape[: len(shape)] if 1 < len(shape) <= apart else target.shape[:1]

    def _store(self, results: Sequence[Any]) -> None:
        for output, value in zip(self.source.graph.outputs, results, strict=True):
            held = self._updated(output)
            if held is not None:
                held.assign(value)

    def _updated(self, output: Output) -> Any:
        """The variable that a result is the new value of; None for what is returned: state that a function donates."""
        return None if output.updates is None else self.source.variables[output.updates]

    def _report(self, results: Sequence[Any]) -> Any:
        described = list(zip(self.source.graph.outputs, results, strict=True))
        if self.source.called_as == "training":
            return {output.name: _number(value) for output, value in described if output.role in ("loss", "metric")}
        outputs = [
            value
            for output, value in described
            if output.role == "output" or (output.role == "update" and self._updated(output) is None)
        ]
        return jax.tree_util.tree_map(_array, self.source.pack(outputs))


def _array(value: Any) -> Any:
    """A result on the host; random keys, which only JAX has arrays of, as they are."""
    return value if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key) else np.asarray(value)


def _number(value: Any) -> Any:
    """A loss or metric: a number, or the array of a metric that has one for each class, as Keras gives it."""
    return np.asarray(value) if np.ndim(value) else float(value)


def _initial_value(variable: Any) -> Any:
    """What the initialiser gives; one number everywhere is filled in by numpy, which has nothing to compile."""
    program = jax.make_jaxpr(lambda: variable.value)().jaxpr
    if [eqn.primitive.name for eqn in program.eqns] == ["broadcast_in_dim"]:
        (filling,) = program.eqns[0].invars
        if isinstance(filling, Literal):
            return np.full(variable.shape, filling.val, variable.dtype)
    return variable.value
