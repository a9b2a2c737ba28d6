"""Runs with the numbers a configuration asks for: floating-point behaviour, random numbers from the IPU's seed, and
zeros from a device that is never attached to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.engine.frontends.numbers.numerics import with_numerics
from workbench.engine.options import Options
from workbench.errors import InputError
from workbench.ipu.config._flags import flags
from workbench.ipu.config._state import STATE


@dataclass(slots=True, eq=False)
class Numbers:
    """A runner whose source computes as configured, and whose seeds begin anew after `reset_ipu_seed`."""

    runner: Any
    options: Options
    configured: bool = False
    _resets: int = -1

    def __post_init__(self) -> None:
        self._resets = 0
        source = with_numerics(self.runner.source, self.options, STATE.draw, self.configured)
        if self._connection() == "PRE_COMPILE":
            source = replace(source, compute=_zeros(source), weighted=None)
        if self._synthetic("parameters"):
            source = _made_up(source)
        self.runner.source = source

    def _synthetic(self, category: str) -> bool:
        return category in self.options.get("synthetic_data")

    def _connection(self) -> str:
        return str(self.options.get("device_connection.type")).rpartition(".")[2]

    def run(self, *args: Any, sample_weight: Any = None) -> Any:
        """One call of the program. An `InputError` when the configuration never attaches to a device."""
        if self._connection() == "NEVER":
            raise InputError(
                "the configuration never attaches to a device, so nothing can run",
                todo="set config.device_connection.type = DeviceConnectionType.ON_DEMAND, or PRE_COMPILE for zeros",
            )
        if self._resets != STATE.resets and not self._synthetic("seed"):
            self._reseed()
        return self.runner.run(*args, sample_weight=sample_weight)

    def _reseed(self) -> None:
        """Every seed of the program follows from the one that was set, each its own."""
        source = self.runner.source
        for number, (described, held) in enumerate(zip(source.graph.inputs, source.variables, strict=False)):
            if described.role == "seed" and held is not None:
                words = np.random.default_rng([abs(STATE.seed), number]).integers(0, 2**32, 2, dtype=np.uint32)
                held.assign(words.reshape(np.shape(held.value)).astype(held.value.dtype))
        self._resets = STATE.resets


def _zeros(source: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Zeros for every output; what a program updates keeps its value."""

    def compute(values: Sequence[Any]) -> Sequence[Any]:
        made = jax.eval_shape(lambda given: list(source.compute(given)), list(values))
        return [
            jnp.zeros(each.shape, each.dtype) if output.updates is None else values[output.updates]
            for output, each in zip(source.graph.outputs, made, strict=True)
        ]

    return compute


def _made_up(source: Any) -> Any:
    """The source with made-up variables, and arguments if it is a function; nothing is copied back to the host's."""
    fill, whole = flags().synthetic_value, source.called_as == "function"
    roles = [item.role for item in source.graph.inputs if item.role != "constant"]
    made = [role in ("parameter", "state", "optimizer") or (whole and role in ("input", "target")) for role in roles]

    def compute_with(function: Any) -> Any:
        def compute(values: Sequence[Any], *more: Any) -> list[Any]:
            pairs = zip(values, made, strict=True)
            results = function([jnp.full_like(value, fill) if new else value for value, new in pairs], *more)
            return [
                value if output.updates is None else values[output.updates]
                for output, value in zip(source.graph.outputs, results, strict=True)
            ]

        return compute

    weighted = source.weighted
    return replace(source, compute=compute_with(source.compute), weighted=weighted and compute_with(weighted))


__all__ = ["Numbers"]
