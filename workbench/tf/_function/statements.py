"""`if`, `while` and `for` on tensors, as AutoGraph hands them over: blocks, and the Python variables they change.

A branch becomes `tf.cond`'s operation, a loop one of `ipu.loops`. What is no tensor stays Python's. A Python variable
that is changed has to be a tensor, or tensors in one structure, of the same shapes and types on every way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from malt.operators import variables

from workbench.base.text import short
from workbench.errors import InputError
from workbench.tf import _graph, _hooks
from workbench.tf._function import lines
from workbench.tf._function.iteration import Turns, turns_of
from workbench.tf._function.kept import refuse_kept
from workbench.tf._graph import Graph, Tensor
from workbench.tf._graph.convert import array, is_symbolic, symbolic
from workbench.tf._ops.control import Body, as_tensor, choose, effects, type_of

Block = Callable[[], Any]
_NO_VALUE = (variables.Undefined, variables.UndefinedReturnValue)


class Missing(variables.Undefined):  # type: ignore[misc]
    """A variable that has a value on one way only: an error where it is read."""

    __slots__ = ("_why",)

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self._why = why

    def read(self) -> Any:
        """Always an `InputError`."""
        raise InputError(f"{self.symbol_name} {self._why}", todo="give it a value of the same shape and type before")


def _here() -> str:
    found = lines.here()
    return f" ({found})" if found else ""


def staged(value: Any) -> bool:
    """Whether only a running program knows the value, or it is one of TensorFlow's constants."""
    return is_symbolic(value) or isinstance(value, jax.Array)


def _tensor_like(value: Any) -> bool:
    kinds = bool | int | float | np.ndarray | np.generic | jax.Array
    return is_symbolic(value) or isinstance(value, kinds)


def _flat(value: Any) -> tuple[list[Any], Any]:
    leaves, tree = jax.tree_util.tree_flatten(value, is_leaf=lambda each: each is None)
    return list(leaves), tree


# -- branches -------------------------------------------------------------------------------------------


def if_stmt(
    cond: Any, body: Block, orelse: Block, get_state: Any, set_state: Any, symbol_names: Sequence[str], nouts: int
) -> None:
    """`if`: chosen when the program runs where `cond` is a tensor that nobody knows before."""
    if not is_symbolic(cond):
        (body if cond else orelse)()
        return
    chosen = as_tensor(symbolic(cond))
    if chosen.shape != () or str(chosen._dtype) != "bool":
        raise InputError(
            f"the condition of an `if` is {chosen}{_here()}",
            expected="one tf.bool",
            todo="compare it, such as x > 0, or reduce it with tf.reduce_any",
        )
    before = get_state()
    then, first = _branch(body, get_state)
    set_state(before)
    other, second = _branch(orelse, get_state)
    set_state(before)
    merge = _Merge(then, other)
    after = [merge.one(name, one, two) for name, one, two in zip(symbol_names[:nouts], first, second, strict=False)]
    made = merge.operation(chosen)
    set_state((*(each(made) for each in after), *before[nouts:]))


def _branch(block: Block, get_state: Any) -> tuple[Graph, Sequence[Any]]:
    graph = Graph(outer=_graph.get_default_graph())
    todo = "give a variable a tensor in both branches, and append that behind the `if`"
    with graph.as_default(), _graph.scoped(after=()), refuse_kept("branch of an `if`", todo, block):
        block()
        return graph, get_state()


class _Merge:
    """Values of variables after each of two branches, as results of both."""

    def __init__(self, then: Graph, other: Graph) -> None:
        self._graphs = then, other
        self._results: tuple[list[Tensor], list[Tensor]] = [], []

    def one(self, name: str, first: Any, second: Any) -> Callable[[Sequence[Tensor]], Any]:
        """What a variable is behind the branches, from the tensors that come out of them."""
        if first is second:
            return lambda made: first
        absent = [isinstance(each, _NO_VALUE) for each in (first, second)]
        if all(absent):
            return lambda made: first
        if any(absent) and not any(isinstance(each, variables.UndefinedReturnValue) for each in (first, second)):
            missing = Missing(name, f"has a value after one branch of an `if` on a tensor only{_here()}")
            return lambda made: missing
        if any(absent):  # a `return` in one branch: whether it was taken is a variable of its own
            present = second if absent[0] else first
            first, second = (_zeros(present), present) if absent[0] else (present, _zeros(present))
        return self._leaves(name, first, second)

    def _leaves(self, name: str, first: Any, second: Any) -> Callable[[Sequence[Tensor]], Any]:
        (ones, tree), (twos, alike) = _flat(first), _flat(second)
        if tree != alike:
            raise self._unlike(name, first, second)
        places = [self._leaf(name, one, two) for one, two in zip(ones, twos, strict=True)]

        def behind(made: Sequence[Tensor]) -> Any:
            found = [one if place is None else made[place] for one, place in zip(ones, places, strict=True)]
            return jax.tree_util.tree_unflatten(tree, found)

        return behind

    def _leaf(self, name: str, one: Any, two: Any) -> int | None:
        """The place of a result that is one or the other; None where both are the same."""
        if one is two or (_plain(one) and _plain(two) and type(one) is type(two) and one == two):
            return None
        if not (_tensor_like(one) and _tensor_like(two)):
            raise self._unlike(name, one, two)
        kinds = [None if _plain(each) else str(_dtype(each)) for each in (one, two)]
        found = [
            _in(graph, each, kinds[1 - side] if kinds[side] is None else None)
            for side, (graph, each) in enumerate(zip(self._graphs, (one, two), strict=True))
        ]
        if type_of(found[0]) != type_of(found[1]):
            raise self._unlike(name, *found)
        for results, tensor in zip(self._results, found, strict=True):
            results.append(tensor)
        return len(self._results[0]) - 1

    def _unlike(self, name: str, first: Any, second: Any) -> InputError:
        return InputError(
            f"{name} is {short(first)} after one branch of an `if` on a tensor and {short(second)} after the "
            f"other{_here()}",
            expected="tensors of the same shape and type from both, or the same value of Python",
        )

    def operation(self, chosen: Tensor) -> Sequence[Tensor]:
        """The operation of both branches; its outputs."""
        bodies = [
            Body(graph=graph, params=(), results=(*results, *effects(graph)))
            for graph, results in zip(self._graphs, self._results, strict=True)
        ]
        if not any(body.results for body in bodies):
            return ()
        return choose(chosen, bodies[0], bodies[1]).outputs


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str) or value is None


def _dtype(value: Any) -> Any:
    return value._dtype if isinstance(value, Tensor) else value.dtype


def _in(graph: Graph, value: Any, dtype: str | None = None) -> Tensor:
    """The value as a tensor of this graph."""
    with graph.as_default(), _graph.scoped(after=()):
        given = symbolic(value) if is_symbolic(value) else _constant(value, dtype)
        found = as_tensor(given)
        if found.graph is graph:
            return found
        made: Tensor = _graph.record("Identity", lambda held: held, found)
        return made


def _constant(value: Any, dtype: str | None) -> Any:
    """An array of a type where that has the value, else of the value's own: then it is unlike the other."""
    try:
        return array(value, dtype)
    except (TypeError, OverflowError):
        return array(value)


def _zeros(like: Any) -> Any:
    """Zeros of the shapes and types of a value's tensors: never read, as another variable says."""

    def zeros(each: Any) -> Any:
        if not is_symbolic(each):
            return each if _plain(each) else jnp.zeros_like(each)
        shape, dtype = type_of(as_tensor(symbolic(each)))
        return jnp.zeros(shape, dtype)

    return jax.tree_util.tree_map(zeros, like)


# -- loops ----------------------------------------------------------------------------------------------


def while_stmt(
    test: Callable[[], Any], body: Block, get_state: Any, set_state: Any, symbol_names: Sequence[str], opts: Any
) -> None:
    """`while`: a loop of the program from the turn on whose condition is a tensor."""
    _refuse_options(opts)
    while True:
        again = test()
        if staged(again):
            break
        if not again:
            return
        body()
    body = _turn("while", body)
    carry = _Carry("while", get_state, set_state, symbol_names, body)
    loops = _hooks.ipu.get().loops

    def holds(*values: Any) -> Any:
        carry.put(values)
        return _condition("while", test())

    made = loops.while_loop(holds, lambda *values: carry.turn(values, body), carry.first)
    carry.leave(made)


def _refuse_options(opts: Any) -> None:
    """AutoGraph's own options of a loop say nothing to a program for an IPU."""
    given = [name for name in opts or () if name != "iterate_names"]
    if given:
        raise InputError(f"options of a loop are {given}{_here()}", expected="none", todo="leave out set_loop_options")


def _condition(kind: str, value: Any) -> Tensor:
    found = as_tensor(symbolic(value))
    if found.shape != () or str(found._dtype) != "bool":
        raise InputError(
            f"the condition of a `{kind}` is {found}{_here()}", expected="one tf.bool", todo="compare it, or reduce it"
        )
    return found


def for_stmt(
    iter_: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], Any],
    get_state: Any,
    set_state: Any,
    symbol_names: Sequence[str],
    opts: Any,
) -> None:
    """`for`: a loop of the program over a tensor, `tf.range` and a `tf.data.Dataset`; Python's over all else."""
    _refuse_options(opts)
    turns = turns_of(iter_)
    if turns is None:
        _python_for(iter_, extra_test, body)
        return
    if turns.queue is not None and extra_test is not None:
        raise InputError(
            f"a loop over a dataset ends before the dataset does{_here()}",
            expected="a loop over all its elements",
            todo="loop over tf.range and take next(iterator), or dataset.take(count)",
        )
    if turns.count == 0 and isinstance(turns.count, int):
        return
    _Loop(turns, extra_test, _turn("for", body), get_state, set_state, symbol_names).run()


def _turn(kind: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """A loop's body, which keeps no tensor in a list from outside."""
    todo = (
        "give a variable a tensor before the loop and a new one inside, or loop over Python's range, whose turns are "
        "all recorded"
    )

    def turn(*target: Any) -> None:
        with refuse_kept(f"turn of a `{kind}`", todo, body):
            body(*target)

    return turn


def _python_for(iter_: Any, extra_test: Any, body: Callable[[Any], Any]) -> None:
    for target in iter_:
        if extra_test is not None:
            goes_on = extra_test()
            if is_symbolic(goes_on):
                raise InputError(
                    f"a loop over {short(iter_)}, which is Python's, ends where a tensor says so{_here()}",
                    expected="a loop over a tensor, which the program runs",
                    todo="loop over tf.range",
                )
            if not goes_on:
                return
        body(target)


@dataclass(slots=True)
class _Loop:
    """A `for` over tensors: its turns are counted by a tensor that is carried first."""

    turns: Turns
    extra_test: Callable[[], Any] | None
    body: Callable[[Any], Any]
    get_state: Any
    set_state: Any
    symbol_names: Sequence[str]

    def run(self) -> None:
        """Record it."""
        loops = _hooks.ipu.get().loops
        index = jnp.int32(0)
        carry = _Carry(
            "for", self.get_state, self.set_state, self.symbol_names, lambda: self.body(self.turns.element(index))
        )

        def turn(number: Any, *values: Any) -> list[Any]:
            made = carry.turn(values, lambda: self.body(self.turns.element(number)))
            return [number + 1, *made]

        first = [index, *carry.first]
        if isinstance(self.turns.count, int) and self.extra_test is None:
            made = loops.repeat(self.turns.count, turn, first)
        else:
            made = loops.while_loop(lambda number, *values: self._goes_on(carry, number, values), turn, first)
        carry.leave([] if not carry.first else list(made)[1:])

    def _goes_on(self, carry: _Carry, number: Any, values: Any) -> Any:
        here = number < self.turns.count
        if self.extra_test is None:
            return here
        carry.put(values)
        more = self.extra_test()
        return here & _condition("for", more) if staged(more) else here & bool(more)


class _Carry:
    """The Python variables that a loop changes, as tensors from turn to turn."""

    def __init__(self, kind: str, get_state: Any, set_state: Any, names: Sequence[str], body: Block) -> None:
        self._kind, self._get, self._set, self._names = kind, get_state, set_state, list(names)
        before = list(get_state())
        if any(isinstance(each, _NO_VALUE) for each in before):
            before = self._with_values(before, body)
        self._parts = [_flat(each) for each in before]
        flat = [leaf for leaves, _ in self._parts for leaf in leaves]
        self._carried = [_tensor_like(leaf) for leaf in flat]
        self._flat = flat
        given = zip(flat, self._carried, strict=True)
        self.first = [as_tensor(symbolic(each) if is_symbolic(each) else array(each)) for each, is_ in given if is_]

    def _with_values(self, before: list[Any], body: Block) -> list[Any]:
        """First values, of no turn, for variables that the body gives their first: zeros of what one turn gives."""
        graph = Graph(outer=_graph.get_default_graph())
        with graph.as_default(), _graph.scoped(after=()):
            body()
            after = list(self._get())
            found = [
                _zeros(new) if isinstance(old, _NO_VALUE) and _all_tensors(new) else old
                for old, new in zip(before, after, strict=True)
            ]
        self._set(tuple(before))
        return found

    def put(self, values: Sequence[Any]) -> None:
        """Give the Python variables these values."""
        given = iter(values)
        flat = [next(given) if is_carried else leaf for leaf, is_carried in zip(self._flat, self._carried, strict=True)]
        rest = iter(flat)
        self._set(
            tuple(jax.tree_util.tree_unflatten(tree, [next(rest) for _ in leaves]) for leaves, tree in self._parts)
        )

    def turn(self, values: Sequence[Any], body: Block) -> list[Any]:
        """One turn from these values: those behind it, and the operations that change something."""
        self.put(values)
        body()
        made: list[Any] = []
        place = 0
        for name, (leaves, tree), value in zip(self._names, self._parts, self._get(), strict=True):
            news, alike = _flat(value)
            if alike != tree:
                raise self._unlike(name, jax.tree_util.tree_unflatten(tree, leaves), value)
            for old, new in zip(leaves, news, strict=True):
                if self._carried[place]:
                    made.append(self._behind(name, values[len(made)], new))
                elif old is not new and not (_plain(old) and old == new):
                    raise self._unlike(name, old, new)
                place += 1
        return [*made, *effects(_graph.get_default_graph())]

    def _behind(self, name: str, old: Tensor, new: Any) -> Tensor:
        if not _tensor_like(new):
            raise self._unlike(name, old, new)
        dtype = str(old._dtype) if _plain(new) else None
        found = as_tensor(symbolic(new) if is_symbolic(new) else _constant(new, dtype))
        if type_of(found) != type_of(old):
            raise self._unlike(name, old, found)
        return found

    def _unlike(self, name: str, old: Any, new: Any) -> InputError:
        told = "a value of Python" if not _tensor_like(old) else "a tensor"
        return InputError(
            f"{name} is {short(old)} before a turn of a `{self._kind}` over tensors and {short(new)} behind "
            f"it{_here()}",
            expected=f"{told} that is the same, or a tensor of the same shape and type",
            todo="give it its first value as a tensor of the type that it has behind a turn, such as tf.constant(0.0)",
        )

    def leave(self, made: Any) -> None:
        """Give the Python variables what the loop ended with."""
        if not self.first:
            self.put([])
            return
        self.put(list(made) if isinstance(made, list | tuple) else [made])


def _all_tensors(value: Any) -> bool:
    leaves, _ = _flat(value)
    return bool(leaves) and all(_tensor_like(each) for each in leaves)


OPERATORS = {"if_stmt": if_stmt, "while_stmt": while_stmt, "for_stmt": for_stmt}

__all__ = ["OPERATORS", "Missing", "for_stmt", "if_stmt", "staged", "while_stmt"]
