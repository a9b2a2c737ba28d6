"""What no table can tell and no host can hold is refused with its number, before it is tried."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from workbench.base.host import host_bytes, refuse_beyond_host
from workbench.errors import InputError


def shaped(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


@pytest.mark.parametrize(
    ("function", "arguments", "told"),
    [
        (lambda x: x + 1, [shaped(2**40, 2**40)], f"an input of shape ({2**40}, {2**40}) of {2**82:,} B"),
        (lambda x, y: jnp.outer(x, y), [shaped(2**30), shaped(2**30)], f"makes an array of shape ({2**30}, {2**30})"),
        (lambda x: jnp.broadcast_to(x, (2**52, 1)), [shaped(1)], f"makes an array of shape ({2**52}, 1)"),
    ],
    ids=["input", "result", "broadcast"],
)
def test_arrays_beyond_what_a_table_tells(function: Any, arguments: list[Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        wb.profile(function, *arguments)
    assert told in str(caught.value)
    assert f"at most {2**53:,} B" in str(caught.value)


def test_a_large_array_that_a_table_can_tell_is_out_of_memory() -> None:
    profile = wb.profile(lambda x: x + 1, shaped(2**40))
    assert not profile.fits


def hand(*turns: int) -> Any:
    g = wb.tiles.Graph("ipu2", tiles=4)
    x = g.variable("x", (4,), "float32").map_linearly(tiles=4)
    step: Any = g.host_copy(x)
    for each in turns:
        step = g.repeat(each, step)
    return g.sequence(step)


def test_runs_beyond_what_a_table_tells() -> None:
    assert wb.profile(hand(10**9)).total_cycles > 10**9
    with pytest.raises(InputError, match=r"one run takes [0-9,]+ cycles") as caught:
        wb.profile(hand(10**9, 10**9))
    assert f"at most {2**53:,}" in str(caught.value)
    with pytest.raises(InputError, match="times of a repeat is 4294967296"):
        hand(2**32)


def test_variables_by_hand_beyond_what_a_table_tells() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    with pytest.raises(InputError, match=f"is of {2**54:,} B"):
        g.variable("x", (2**50, 4), "float32")
    assert g.variable("x", (4,), "float32").map_linearly(tiles=4) is not None  # nothing was kept of the refused one


def test_a_run_by_hand_beyond_this_machine() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    x = g.variable("x", (2**45,), "float32").map_linearly(tiles=4)
    with pytest.raises(InputError, match=f"a run takes {2**47:,} B of this machine's memory") as caught:
        g.run(g.sequence(g.host_copy(x)), x=np.zeros(1))
    assert f"at most {host_bytes():,} B" in str(caught.value)


def test_what_the_machine_holds_is_not_refused() -> None:
    most = host_bytes()
    if most is None:
        pytest.skip("the system does not tell its memory")
    refuse_beyond_host("a run", most)
    with pytest.raises(InputError):
        refuse_beyond_host("a run", most + 1)
