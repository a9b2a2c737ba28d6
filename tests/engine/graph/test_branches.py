"""A branch that a number chooses counts by its dearest, and the verdict says so."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

import workbench as wb
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph.branches import with_branches_said

KIND = jax.ShapeDtypeStruct((64,), "float32")
MACHINE = wb.target("ipu2", tiles_per_ipu=4)
SAID = "branches: which of the {} of {} runs depends on numbers, and the dearest counts"


def chosen(number: Any, x: Any) -> Any:
    with jax.named_scope("first"):
        x = jax.lax.switch(number, [jnp.sin, jnp.tanh, jnp.abs], x)
    return jax.lax.cond(x.sum() > 0, jnp.tanh, jnp.abs, x)  # here


LINE = f"test_branches.py:{chosen.__code__.co_firstlineno + 3}"


def assumed(function: Any, *given: Any) -> list[str]:
    return [each for each in wb.profile(function, *given, target=MACHINE).assumptions if each.startswith("branches")]


def test_a_branch_that_a_number_chooses_is_an_assumption() -> None:
    found = assumed(chosen, jax.ShapeDtypeStruct((), "int32"), KIND)
    assert found == [SAID.format(3, "'first'"), SAID.format(2, repr(LINE))]


def test_a_branch_that_is_known_is_none() -> None:
    assert assumed(lambda x: jax.lax.cond(True, jnp.sin, jnp.tanh, x), KIND) == []


def test_the_dearest_of_them_is_what_counts() -> None:
    def either(x: Any) -> Any:
        return jax.lax.cond(x[0] > 0, jnp.sin, jnp.abs, x)

    def cycles(function: Any) -> int:
        return int(wb.profile(function, KIND, target=MACHINE).total_cycles)

    assert cycles(either) > cycles(jnp.sin) > 10 * cycles(jnp.abs)


def test_an_optimizer_that_accumulates_says_that_each_step_counts_as_one_that_updates() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="out")])
    model.compile(keras.optimizers.SGD(gradient_accumulation_steps=2), "mse")
    executable = wb.compile(model, batch_size=2, target=MACHINE)
    assert SAID.format(2, "the update of 'out'") in executable.profile.assumptions
    assert np.isfinite(executable.run(np.ones((2, 4), "float32"), np.ones((2, 2), "float32"))["loss"])


def test_a_graph_without_branches_is_the_same() -> None:
    graph = trace_function(lambda x: x + 1, KIND).graph
    assert with_branches_said(graph) is graph
