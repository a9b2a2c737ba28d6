"""Random numbers: drawn from a seed that every run advances, so that `reset_ipu_seed` makes runs repeatable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.text import short
from workbench.engine.frontends.describe.replicas import replica_index, replicas_here
from workbench.errors import InputError
from workbench.ipu.config._state import STATE
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, Tensor
from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.math import OPERATIONS, sized

_SEEDS = "ipu seed"


def seed_variable(graph: _graph.Graph | None = None, stage: int | None = None) -> Variable:
    """The variable two 32-bit words are kept in that all random operations of a graph draw from.

    Each stage of a pipeline has one of its own, on its IPU.
    """
    root = (graph or _graph.get_default_graph()).root
    key, name = (_SEEDS, "seed") if stage is None else (f"{_SEEDS} of stage {stage}", f"stage{stage}_seed")
    kept = root.collections.setdefault(key, [])
    if not kept:
        words = _words(key, STATE.seed)
        with root.as_default(), _graph.scoped(names=(), device="", after=(), stage=None):
            made = Variable(words, False, name, "uint32", deferred=True, role="seed", collections=(key,))
        made.load(words)
    found: Variable = root.collections[key][0]
    return found


def _words(key: str, seed: int) -> Any:
    """The words of a seed; the stages of a pipeline begin apart from each other."""
    _, _, stage = key.partition(f"{_SEEDS} of stage ")
    return np.asarray([int(stage) + 1 if stage else 0, int(seed) % 2**32], np.uint32)


def set_seed(seed: int) -> None:
    """Begin the random numbers of the default graph at a seed."""
    seed_variable().load(_words(_SEEDS, seed))
    for key, kept in _graph.get_default_graph().root.collections.items():
        if key.startswith(_SEEDS) and kept:
            kept[0].load(_words(key, seed))


def draw(
    kind: str, shape: Any, dtype: Any, function: Callable[[Any, tuple[int, ...], str], Any], name: Any, deferred: bool
) -> Any:
    """Random numbers: an operation where a graph is built or `deferred` says so, an array elsewhere."""
    size, wanted = sized(shape, dtype), str(as_dtype(dtype))
    seed = seed_variable(stage=_graph.current_scopes().stage)
    if not (deferred or _graph.building()):
        words = jax.random.split(jnp.asarray(seed.held()))
        seed.load(words[0])
        return function(words[1], size, wanted)

    def compute(run: Any, values: Any) -> Any:
        words = jax.random.split(jax.random.wrap_key_data(run.state.read(seed)))
        run.state.write(seed, jax.random.key_data(words[0]))
        alike = replicas_here() == 1 or STATE.identical_replicas
        key = words[1] if alike else jax.random.fold_in(words[1], replica_index())
        return [function(key, size, wanted)]

    touched = Effects(reads=frozenset({seed}), writes=frozenset({seed}))
    return Operation(kind, (), [(size, wanted)], compute, name=name, effects=touched).outputs[0]


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = 1,
    dtype: Any = "float32",
    seed: Any = None,
    name: Any = None,
    deferred: bool = False,
) -> Any:
    """Numbers spread evenly from `minval` up to `maxval`."""
    return draw(
        "RandomUniform",
        shape,
        dtype,
        lambda key, size, kind: jax.random.uniform(key, size, kind, minval, maxval),
        name,
        deferred,
    )


def _scaled(kind: str, standard: Callable[[Any, tuple[int, ...], str], Any], text: str) -> Callable[..., Any]:
    """A function that draws standard numbers, scaled and moved."""

    def drawn(
        shape: Any,
        mean: float = 0.0,
        stddev: float = 1.0,
        dtype: Any = "float32",
        seed: Any = None,
        name: Any = None,
        deferred: bool = False,
    ) -> Any:
        return draw(
            kind, shape, dtype, lambda key, size, wanted: standard(key, size, wanted) * stddev + mean, name, deferred
        )

    drawn.__doc__ = text
    return drawn


random_normal = _scaled("RandomNormal", jax.random.normal, "Numbers of a normal distribution.")
truncated_normal = _scaled(
    "TruncatedNormal",
    lambda key, size, kind: jax.random.truncated_normal(key, -2.0, 2.0, size, kind),
    "Numbers of a normal distribution within two standard deviations.",
)


def dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, rate: Any = None, name: Any = None) -> Any:
    """Elements set to zero with probability `rate`, or 1 - `keep_prob`, the others scaled up; one of the two is given.

    Errors: `InputError` for a share that is none: a rate from 0 to below 1.
    """
    if (rate is None) == (keep_prob is None):
        raise InputError("dropout takes rate or keep_prob, one of the two", expected="a rate from 0 to below 1")
    share = _share("rate", rate) if keep_prob is None else 1 - _share("keep_prob", keep_prob)
    noise = random_uniform(tuple(noise_shape or x.shape), dtype=x.dtype)
    kept = OPERATIONS["cast"](OPERATIONS["greater_equal"](noise, share), x.dtype)
    return OPERATIONS["multiply"](OPERATIONS["multiply"](x, kept), 1.0 / (1.0 - share))


def _share(name: str, value: Any) -> Any:
    """A part of the elements; a tensor is taken as it is, for its number is known when the program runs."""
    if isinstance(value, Tensor | Variable):
        return value
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not known or not (0 <= value < 1 or (name == "keep_prob" and value == 1)) or (name == "keep_prob" and not value):
        expected = "a number from 0 to below 1" if name == "rate" else "a number above 0, to 1"
        raise InputError(f"{name} is {short(value)}", expected=expected)
    return value


__all__ = ["draw", "dropout", "random_normal", "random_uniform", "seed_variable", "set_seed", "truncated_normal"]
