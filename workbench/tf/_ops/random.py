"""Random numbers: drawn from a seed that every run advances, so that `reset_ipu_seed` makes runs repeatable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.engine.frontends.describe.replicas import replica_index, replicas_here
from workbench.errors import InputError
from workbench.ipu.config._state import STATE
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, Tensor
from workbench.tf._graph.convert import convert_to_tensor, is_symbolic
from workbench.tf._graph.dtypes import as_dtype, given_type
from workbench.tf._graph.shapes import known_sizes, sizes
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.math import OPERATIONS, sized

_SEEDS = "ipu seed"


def seed_variable(
    graph: _graph.Graph | None = None, stage: int | None = None, own: tuple[int, int] | None = None
) -> Variable:
    """The variable two 32-bit words are kept in that all random operations of a graph draw from.

    Each stage of a pipeline has one of its own, on its IPU, and so has each operation that was given a seed: `own` is
    that seed and the operation's place among those with one.
    """
    root = (graph or _graph.get_default_graph()).root
    key, name = (_SEEDS, "seed") if stage is None else (f"{_SEEDS} of stage {stage}", f"stage{stage}_seed")
    if own is not None:
        key, name = f"{_SEEDS} of operation {own[1]} with {own[0]}", f"operation{own[1]}_seed"
    kept = root.collections.setdefault(key, [])
    if not kept:
        words = _words(key, STATE.seed)
        with root.as_default(), _graph.scoped(names=(), device="", after=(), stage=None):
            made = Variable(words, False, name, "uint32", deferred=True, role="seed", collections=(key,))
        made.load(words)
    found: Variable = root.collections[key][0]
    return found


def _words(key: str, seed: int) -> Any:
    """The words of a seed; the stages of a pipeline begin apart from each other, operations where their seed says."""
    _, _, own = key.partition(" with ")
    if own:
        return np.asarray([(int(own) * 0x9E3779B1 + 0x85EBCA6B) % 2**32, int(seed) % 2**32], np.uint32)
    _, _, stage = key.partition(f"{_SEEDS} of stage ")
    return np.asarray([int(stage) + 1 if stage else 0, int(seed) % 2**32], np.uint32)


@checked
def set_seed(seed: int) -> None:
    """Begin the random numbers of the default graph at a seed; its low 32 bits count."""
    seed_variable().load(_words(_SEEDS, seed))
    for key, kept in _graph.get_default_graph().root.collections.items():
        if key.startswith(_SEEDS) and kept:
            kept[0].load(_words(key, seed))


def draw(
    kind: str,
    shape: Any,
    dtype: Any,
    function: Callable[[Any, tuple[int, ...], str], Any],
    name: Any,
    deferred: bool,
    own: int | None = None,
) -> Any:
    """Random numbers: an operation where a graph is built or `deferred` says so, an array elsewhere.

    `own`: a seed of the operation's own, which tells its numbers from all others' and makes them the same in every
    program with the same seed of the graph.
    """
    size, wanted = checked_size(shape, dtype), str(given_type(dtype))
    later = deferred or _graph.building()
    seed = _seed_of(own) if later else seed_variable()
    if not later:
        words = jax.random.split(jnp.asarray(seed.held()))
        seed.load(words[0])
        return function(words[1] if own is None else jax.random.fold_in(words[1], own % 2**32), size, wanted)

    def compute(run: Any, values: Any) -> Any:
        words = jax.random.split(jax.random.wrap_key_data(run.state.read(seed)))
        run.state.write(seed, jax.random.key_data(words[0]))
        alike = replicas_here() == 1 or STATE.identical_replicas
        key = words[1] if alike else jax.random.fold_in(words[1], replica_index())
        return [function(key, size, wanted)]

    touched = Effects(reads=frozenset({seed}), writes=frozenset({seed}))
    return Operation(kind, (), [(size, wanted)], compute, name=name, effects=touched).outputs[0]


def _seed_of(own: int | None) -> Variable:
    """Where an operation's numbers come from: the graph's or its stage's seed, or, given a seed, one of its own."""
    if own is None:
        return seed_variable(stage=_graph.current_scopes().stage)
    root = _graph.get_default_graph().root
    place = sum(key.startswith(f"{_SEEDS} of operation ") for key in root.collections)
    return seed_variable(own=(own, place))


def checked_size(shape: Any, dtype: Any) -> tuple[int, ...]:
    """The sizes of an array of random numbers, if this machine can hold it."""
    return sized(known_sizes(shape), given_type(dtype))


@checked
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
    deferred: bool = False,
) -> Any:
    """Numbers spread evenly from `minval` up to `maxval`, which is 1 for real numbers; whole ones are below it.

    `seed`: one of the operation's own; see `draw`. Errors: `InputError` for bounds that are none, or whole numbers
    without the upper one.
    """
    kind = given_type(dtype)
    whole = kind.is_integer
    if not (whole or kind.is_floating):
        raise InputError(f"dtype is {kind!r}", expected="a type of real or whole numbers")
    if whole and maxval is None:
        raise InputError("maxval is None", expected="the bound that whole numbers stay below")
    low, high = _bound("minval", minval, whole), _bound("maxval", 1 if maxval is None else maxval, whole)
    if whole and np.any(low >= high):
        raise InputError(f"minval is {short(minval)} and maxval {short(maxval)}", expected="minval below maxval")
    _broadcast(known_sizes(shape), minval=low, maxval=high)
    drawn = jax.random.randint if whole else jax.random.uniform
    given: tuple[Any, ...] = (low, high)

    def uniform(key: Any, size: tuple[int, ...], wanted: str) -> Any:
        return (
            drawn(key, size, *given, wanted)
            if whole
            else drawn(key, size, wanted, *(jnp.asarray(each, wanted) for each in given))
        )

    return draw("RandomUniform", shape, dtype, uniform, name, deferred, seed)


def _bound(called: str, value: Any, whole: bool = False) -> Any:
    """A number, or an array of them, that is known."""
    try:
        found = np.asarray(value.held() if isinstance(value, Variable) and not is_symbolic(value) else value)
        if found.dtype.kind in ("iu" if whole else "iuf") and (
            _in_32_bits(found) if whole else np.all(np.isfinite(found))
        ):
            return found
    except (TypeError, ValueError, RecursionError):
        pass
    expected = "a whole number of 32 bits" if whole else "a finite number, or an array of them"
    raise InputError(f"{called} is {short(value)}", expected=f"{expected}, known when the graph is built")


def _in_32_bits(found: Any) -> bool:
    return bool(np.all((found >= -(2**31)) & (found < 2**31)))


def _broadcast(size: tuple[int, ...], **given: Any) -> None:
    """Arrays of what numbers are drawn with broadcast to the shape that is drawn."""
    for called, found in given.items():
        try:
            fits = np.broadcast_shapes(found.shape, size) == size
        except ValueError:
            fits = False
        if not fits:
            raise InputError(
                f"{called} is {short(found)}", expected=f"one number, or an array that broadcasts to {size}"
            )


def _scaled(called: str, kind: str, standard: Callable[[Any, tuple[int, ...], str], Any], text: str) -> Any:
    """A function that draws standard numbers, scaled and moved; `called`: its name in `tf.random`."""

    def drawn(
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = "float32",
        seed: int | None = None,
        name: str | None = None,
        deferred: bool = False,
    ) -> Any:
        if not given_type(dtype).is_floating:
            raise InputError(f"dtype is {given_type(dtype)!r}", expected="a type of real numbers")
        middle, width = _bound("mean", mean), _bound("stddev", stddev)
        _broadcast(known_sizes(shape), mean=middle, stddev=width)

        def scaled(key: Any, size: tuple[int, ...], wanted: str) -> Any:
            return standard(key, size, wanted) * jnp.asarray(width, wanted) + jnp.asarray(middle, wanted)

        return draw(kind, shape, dtype, scaled, name, deferred, seed)

    drawn.__doc__ = text
    return checked(drawn, f"tf.random.{called}")


random_normal = _scaled("normal", "RandomNormal", jax.random.normal, "Numbers of a normal distribution.")
truncated_normal = _scaled(
    "truncated_normal",
    "TruncatedNormal",
    lambda key, size, kind: jax.random.truncated_normal(key, -2.0, 2.0, size, kind),
    "Numbers of a normal distribution within two standard deviations.",
)


@checked
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Elements set to zero with probability `rate`, or 1 - `keep_prob`, the others scaled up; one of the two is given.

    `seed`: as that of `tf.random.uniform`. Errors: `InputError` for a share that is none: a rate from 0 to below 1, for
    an `x` that holds no real numbers, and for a noise shape that does not broadcast to its shape.
    """
    if (rate is None) == (keep_prob is None):
        raise InputError(
            f"rate is {short(rate)} and keep_prob {short(keep_prob)}",
            expected="one of the two, such as a rate from 0 to below 1",
        )
    share = _share("rate", rate) if keep_prob is None else 1 - _share("keep_prob", keep_prob)
    given = _reals("x", x)
    # Drawn in every run where x is known only then, else the zeros of the first would be those of all.
    noise = random_uniform(_noise(noise_shape, given), dtype=given.dtype, seed=seed, deferred=isinstance(given, Tensor))
    kept = OPERATIONS["cast"](OPERATIONS["greater_equal"](noise, share), given.dtype)
    return OPERATIONS["multiply"](OPERATIONS["multiply"](given, kept), 1.0 / (1.0 - share), name=name)


def _reals(called: str, value: Any) -> Any:
    """A tensor or an array of real numbers."""
    try:
        found = convert_to_tensor(value)
        if as_dtype(found.dtype).is_floating:
            return found
        why = f"it is of type {found.dtype}"
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        why = str(error)
    raise InputError(f"{called} is {short(value)}: {why}", expected="real numbers, such as tf.float32")


def _noise(noise_shape: Any, x: Any) -> tuple[int, ...]:
    """The shape decisions are drawn in, 1 for a dimension whose elements share them."""
    whole = tuple(x.shape)
    if noise_shape is None:
        return whole
    parts = sizes(noise_shape, "noise_shape")
    found = tuple(own if each is None else each for each, own in zip(parts, whole, strict=False))
    if len(parts) != len(whole) or any(each not in (1, own) for each, own in zip(found, whole, strict=True)):
        raise InputError(f"noise_shape is {short(noise_shape)}", expected=f"1 or the size of each dimension of {whole}")
    return found


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
