"""Calls of the host: what goes there and comes back is copied, behind a synchronisation with it."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import io_callback

import workbench as wb
from workbench.ipu.config import IPUConfig


def steps(function: object, *inputs: object) -> list[tuple[str, int, int, int]]:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 4
    table = wb.profile(function, *inputs, config=config).steps.query("kind == 'StreamCopy'")
    return [
        (row["name"].split("/")[-1], row["times"], row["bytes_sent"], row["bytes_received"])
        for _, row in table.iterrows()
    ]


X = np.zeros(6, np.float32)


def test_a_function_of_the_host_costs_a_copy_each_way() -> None:
    def function(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((3,), "float32"), x)

    copies = steps(function, X)
    assert copies[1:3] == [("to_host", 1, 24, 0), ("from_host", 1, 0, 12)]  # six floats, three floats


def test_a_call_for_its_effect_is_kept_though_nothing_reads_it_and_runs_every_turn() -> None:
    def function(x: jax.Array) -> jax.Array:
        def body(_: int, value: jax.Array) -> jax.Array:
            io_callback(print, None, value, ordered=True)
            return value + 1

        return jax.lax.fori_loop(0, 5, body, x)

    assert ("to_host", 5, 24, 0) in steps(function, X)


def test_two_calls_that_look_alike_are_two() -> None:
    def take() -> jax.Array:
        return io_callback(lambda: X, jax.ShapeDtypeStruct((6,), "float32"), ordered=True)

    copies = steps(lambda x: take() + take() + x, X)
    assert [copy for copy in copies if copy[0] == "from_host"].count(("from_host", 1, 0, 24)) == 3
