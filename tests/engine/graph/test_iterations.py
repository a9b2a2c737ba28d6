"""What runs until it has converged counts a fixed number of turns, and the verdict says so."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import workbench as wb

MACHINE = wb.target("ipu2", tiles_per_ipu=4)
SWEEPS = "iterations: 10 sweeps of Jacobi's method are what {} of {} counts; how many converge depends on numbers"
STEPS = "iterations: 3 of Francis' steps for each row are what {} of {} counts; how many converge depends on numbers"


def assumed(function: Any, *shapes: tuple[int, ...]) -> list[str]:
    given = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    found = wb.profile(function, *given, target=MACHINE).assumptions
    return [each for each in found if each.startswith("iterations")]


def decomposed(a: Any) -> Any:
    with jax.named_scope("first"):
        values = jnp.linalg.eigh(a @ a.T)[0]
    with jax.named_scope("second"):
        return values, jnp.linalg.svd(a, compute_uv=False)


def test_sweeps_are_assumed_of_each_place() -> None:
    assert assumed(decomposed, (6, 6)) == [SWEEPS.format("eigh", "'first'"), SWEEPS.format("svd", "'second'")]


def test_in_a_batch_and_in_a_loop() -> None:
    (said,) = assumed(lambda a: jax.vmap(jnp.linalg.eigvalsh)(a), (3, 4, 4))
    assert said.startswith("iterations: 10 sweeps of Jacobi's method are what eigh of ")
    (again,) = assumed(lambda a: jax.lax.fori_loop(0, 3, lambda _, b: b @ jnp.linalg.eigh(b)[1], a), (4, 4))
    assert again.startswith("iterations: 10 sweeps of Jacobi's method are what eigh of ")


def test_francis_steps_are_assumed_where_there_are_any() -> None:
    (said,) = assumed(lambda a: jax.lax.linalg.schur(a)[0], (4, 4))
    assert said.startswith(STEPS[: STEPS.index("{} of {}")] + "schur of ")
    assert assumed(lambda a: jax.lax.linalg.schur(a)[0], (2, 2)) == []


def test_what_takes_as_long_as_its_size_says_assumes_nothing() -> None:
    assert assumed(lambda a: jnp.linalg.qr(a)[1] + jnp.linalg.cholesky(a @ a.T), (4, 4)) == []
    assert assumed(lambda a: jnp.linalg.svd(a) and a * 2, (4, 4)) == []  # nobody reads what it makes
