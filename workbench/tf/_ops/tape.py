"""`tf.GradientTape` in a graph: gradients of what was made while it was open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, StateError
from workbench.tf import _graph
from workbench.tf._graph import Tensor
from workbench.tf._graph.convert import check_depth, is_symbolic, symbolic
from workbench.tf._graph.evaluate import GradientOf, path_between
from workbench.tf._graph.layers import known
from workbench.tf._graph.variables import GLOBAL, TRAINABLE, Variable
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.gradients import all_agree, depends, gradient_operation
from workbench.tf._ops.math import OPERATIONS

NONE, ZERO = "none", "zero"


class GradientTape:
    """Notes which operations are made inside, and differentiates through those.

    `persistent`: `gradient` may be asked for more than once. `watch_accessed_variables`: trainable variables are
    watched without being named. What was computed before is a constant. Gradients run on the shards of what they
    differentiate, whatever `ipu_shard` surrounds the call.
    """

    @checked
    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._watched: dict[int, Any] = {}
        self._spans: list[tuple[int, int]] = []
        self._opened: int | None = None
        self._used = False

    def __enter__(self) -> GradientTape:
        if self._opened is not None:
            raise InputError("A GradientTape that is open was entered again. To mend it: leave it first.")
        self._opened = _graph.next_number()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._pause()

    def _pause(self) -> None:
        if self._opened is not None:
            self._spans.append((self._opened, _graph.next_number()))
            self._opened = None

    def watch(self, tensor: Any) -> None:
        """Differentiate with respect to these tensors or variables too."""
        for each in _leaves("tensor", tensor):
            if not isinstance(each, Tensor | Variable):
                raise InputError(
                    f"tensor is {short(tensor)}: a GradientTape cannot watch {short(each)}",
                    expected="a tensor of a graph or a variable",
                )
            self._watched[id(each)] = each

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """What is made inside is a constant for the tape."""
        if self._opened is None:
            raise InputError("A GradientTape that is not open cannot stop recording.")
        self._pause()
        try:
            yield
        finally:
            self._opened = _graph.next_number()

    def reset(self) -> None:
        """Forget all that was made and watched."""
        self._spans.clear()
        self._watched.clear()
        if self._opened is not None:
            self._opened = _graph.next_number()

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables it differentiates with respect to, in the order of their making."""
        known = _graph.get_default_graph().root.get_collection(GLOBAL)
        return tuple(each for each in known if self._is_watched(each))

    def _is_watched(self, source: Any) -> bool:
        if id(source) in self._watched:
            return True
        if isinstance(source, Variable):
            return bool(source.trainable) and self._watches_variables
        automatic = _graph.get_default_graph().root.get_collection(TRAINABLE) if self._watches_variables else []
        first = (*self._watched.values(), *automatic)
        return source.op in path_between(GradientOf((source,), first, self._inside()))

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = NONE
    ) -> Any:
        """The gradients of the sum of `target` in the structure of `sources`.

        None (or zeros, when `unconnected_gradients` is "zero") for what the target does not depend on through the
        tape. Errors: `RuntimeError` for a second call of a tape that is not persistent.
        """
        if self._used and not self._persistent:
            raise StateError(
                "A GradientTape gives gradients once. To mend it: make it with tf.GradientTape(persistent=True)."
            )
        held = _leaves("sources", sources)
        asked_for = str(getattr(unconnected_gradients, "value", unconnected_gradients)).lower()
        if asked_for not in (NONE, ZERO):
            raise InputError(f"unconnected_gradients is {short(unconnected_gradients)}", expected='"none" or "zero"')
        for each in held:
            if not isinstance(each, Variable) and not is_symbolic(each):
                raise InputError(f"sources is {short(sources)}", expected="tensors of a graph and variables")
        self._used = True
        if self._opened is not None and not self._persistent:
            self._pause()
        _, tree = jax.tree_util.tree_flatten(sources, is_leaf=lambda each: isinstance(each, Variable))
        wanted = [each if isinstance(each, Variable) else as_tensor(symbolic(each)) for each in held]
        targets = self._targets(target)
        asked = [self._reaches(targets, source) for source in wanted]
        connected = [source for source, reached in zip(wanted, asked, strict=True) if reached]
        given = [] if output_gradients is None else _given(output_gradients, targets)
        made = iter(self._gradients(targets, connected, given))
        zeros = asked_for == ZERO
        found = [
            next(made) if reached else _zeros(source) if zeros else None
            for source, reached in zip(wanted, asked, strict=True)
        ]
        return jax.tree_util.tree_unflatten(tree, found)

    def _targets(self, target: Any) -> tuple[Tensor, ...]:
        flat = _leaves("target", target)
        if not flat or not all(is_symbolic(each) for each in flat):
            raise InputError(
                f"target is {short(target)}: a GradientTape was asked for the gradient of a value that no graph "
                "computes",
                todo="compute it inside the function given to ipu_compiler.compile, or from tf.placeholder tensors",
            )
        return tuple(as_tensor(symbolic(each)) for each in flat)

    def _inside(self) -> tuple[tuple[int, int], ...]:
        still = () if self._opened is None else ((self._opened, _graph.next_number()),)
        return (*self._spans, *still)

    def _reaches(self, targets: Sequence[Tensor], source: Any) -> bool:
        """Whether a target depends on a watched source through operations of the tape."""
        return self._is_watched(source) and depends(targets, source, self._inside())

    def _gradients(self, targets: Sequence[Tensor], sources: Sequence[Any], given: Sequence[Tensor]) -> Sequence[Any]:
        if not sources:
            return ()
        return gradient_operation(GradientOf(tuple(targets), tuple(sources), self._inside()), given, "gradient_tape")


def _leaves(called: str, given: Any) -> list[Any]:
    """What is inside lists and dicts; an `InputError` for lists that hold themselves."""
    try:
        check_depth(given)
    except RecursionError as error:
        raise InputError(f"{called} is {short(given)}: {error}", expected="tensors and variables") from None
    found = jax.tree_util.tree_leaves(given, is_leaf=lambda each: isinstance(each, Variable))
    return [given] if given is None else [_of_graph(each) for each in found]


def _of_graph(each: Any) -> Any:
    """The variable that stands for one of Keras while a function is recorded; everything else as it is."""
    return known(each) if isinstance(each, keras.Variable) and _graph.in_function() else each


def _given(output_gradients: Any, targets: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of the targets: one of each target's shape."""
    try:
        found = [as_tensor(each) for each in _leaves("output_gradients", output_gradients)]
    except InputError as error:
        raise InputError(f"output_gradients is {short(output_gradients)}: {error.what}", expected="numbers") from None
    if not all_agree(found, targets):
        raise InputError(
            f"output_gradients is {short(output_gradients)}", expected="a gradient of the shape of each target"
        )
    return found


def _zeros(source: Any) -> Any:
    return OPERATIONS["zeros"](source.shape, source.dtype)


__all__ = ["GradientTape"]
