"""Arrays of no elements: loops of no turns are their carries, and no operation is left that reads or makes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import workbench as wb
from tests.engine import reconcile
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import walk

NOTHING = np.zeros((0, 3), "float32")
SOME = np.arange(12, dtype="float32").reshape(4, 3)
SQUARE = np.eye(3, dtype="float32") * 2


def nodes(function: Callable[..., Any], *operands: Any) -> list[Any]:
    return [node for _, node in walk(trace_function(function, *operands).graph)]


def scanned(carry: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c @ SQUARE + x, c * x.sum()), carry, xs)


def test_a_scan_of_no_turns_is_its_carry_and_empty_stacks() -> None:
    graph = trace_function(scanned, SOME, NOTHING).graph
    assert graph.body.results[0] is graph.body.params[0]
    assert graph.body.results[1].shape == (0, 4, 3)
    assert [node.op for _, node in walk(graph)] == ["constant", "broadcast_in_dim"]


def test_a_loop_that_ends_before_it_begins_is_its_carry() -> None:
    graph = trace_function(lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * 2), (5, x)), SOME)
    assert graph.graph.body.results[1] is graph.graph.body.params[0]


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x: jnp.sum(x, 0), 0.0),
        (lambda x: jnp.prod(x, 0), 1.0),
        (lambda x: lax.reduce_max(x, (0,)), -np.inf),
        (lambda x: lax.reduce_min(x, (0,)), np.inf),
        (lambda x: jnp.all(x > 0, 0), True),
        (lambda x: jnp.any(x > 0, 0), False),
        (lambda x: x.T @ x, 0.0),
        (lambda x: lax.reduce_max(x.astype("int32"), (0,)), -(2**31)),
    ],
)
def test_nothing_reduced_is_the_neutral_element(function: Callable[..., Any], value: Any) -> None:
    source = trace_function(function, NOTHING)
    made = list(walk(source.graph))
    assert [node.op for _, node in made] == ["constant", "broadcast_in_dim"]
    assert made[0][1].attr("value") == value
    np.testing.assert_array_equal(source.compute([NOTHING])[0], np.broadcast_to(value, made[1][1].results[0].shape))


def test_what_is_joined_to_nothing_or_updated_with_nothing_stays() -> None:
    none = np.zeros(0, "int32")
    assert nodes(lambda x, y: jnp.concatenate([x, y]), NOTHING, SOME) == []
    assert nodes(lambda x, y: lax.dynamic_update_slice(y, x, (0, 0)), NOTHING, SOME) == []
    assert {node.op for node in nodes(lambda x, i: x.at[i].add(x[i]), SOME, none)} <= {"constant", "broadcast_in_dim"}
    (joined,) = nodes(lambda x, y: jnp.concatenate([y, x, y]), NOTHING, SOME)
    assert len(joined.operands) == 2


def test_padding_around_nothing_is_the_padding() -> None:
    graph = trace_function(lambda x: jnp.pad(x, ((1, 1), (0, 0)), constant_values=3.0), NOTHING).graph
    made = [node for _, node in walk(graph)]
    assert (made[-1].op, made[-1].results[0].shape) == ("broadcast_in_dim", (2, 3))
    assert made[-2].attr("value") == 3.0


@pytest.mark.parametrize("tiles", [1, 16])
@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (scanned, (SOME, NOTHING)),
        (lambda c, x: jax.grad(lambda c: sum(r.sum() for r in scanned(c, x)))(c), (SOME, NOTHING)),
        (lambda x: lax.scan(lambda c, x: (c + x.mean(), jnp.sort(x)), 0.0, x), (NOTHING,)),
        (lambda x, y: lax.scan(lambda c, x: (c * x.sum(), x > 2), y, x)[1], (np.zeros((4, 0), "float32"), SOME)),
        (lambda x, y: lax.cond(y.sum() > 0, lambda: (x * 2, y), lambda: (x, y + 1)), (NOTHING, SOME)),
        (lambda x, y: jnp.split(y, [0, 2]), (NOTHING, SOME)),
        (lambda c: lax.scan(lambda c, _: (jax.random.split(c)[0], c), c, length=0)[0], (jax.random.key(1),)),
    ],
)
def test_programs_with_nothing_in_them_compile_and_run(
    function: Callable[..., Any], operands: tuple[Any, ...], tiles: int
) -> None:
    found = wb.compile(function, *operands, target=wb.target("ipu2", tiles_per_ipu=tiles))
    assert found.profile.unmodelled.empty
    reconcile.reconciles(found.compiled)


def test_they_run_as_jax_does() -> None:
    found = wb.compile(scanned, SOME, NOTHING, target=wb.target("ipu2", tiles_per_ipu=4))
    carry, stack = found.run(SOME, NOTHING)
    np.testing.assert_array_equal(carry, SOME)
    assert stack.shape == (0, 4, 3)
