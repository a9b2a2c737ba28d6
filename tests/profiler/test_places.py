"""Places that a profile does not have are refused by name, wherever they are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError


@cache
def profile() -> Any:
    kind = jax.ShapeDtypeStruct((8, 8), "float32")
    return wb.profile(lambda x: x @ x.T, kind, target=wb.target("ipu2", tiles_per_ipu=4))


ASKED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "blocks": ("ipu", lambda ipu: profile().blocks(ipu=ipu)),
    "live_variables of an IPU": ("ipu", lambda ipu: profile().live_variables(profile().peak.step, ipu)),
    "live_variables of a tile": ("tile", lambda tile: profile().live_variables(profile().peak.step, 0, tile)),
    "live_variables of a step": ("step", lambda step: profile().live_variables(step)),
    "explain a step": ("step", lambda step: profile().explain(step=step)),
    "explain a tile": ("tile", lambda tile: profile().explain(tile=tile)),
    "explain a tile of an IPU": ("ipu", lambda ipu: profile().explain(tile=0, ipu=ipu)),
    "addresses": ("tile", lambda tile: profile().addresses.tile(0, tile)),
    "memory": ("ipu", lambda ipu: profile().memory.of(ipu=ipu)),
    "memory of a tile": ("tile", lambda tile: profile().memory.tile(tile)),
    "xray of an IPU": ("ipu", lambda ipu: profile().xray.of(ipu, 0)),
    "xray of a tile": ("tile", lambda tile: profile().xray.of(0, tile)),
    "liveness of an IPU": ("ipu", lambda ipu: profile().liveness_view.of(ipu=ipu)),
    "liveness of a tile": ("tile", lambda tile: profile().liveness_view.of(tile=tile)),
    "tile map": ("ipu", lambda ipu: profile().tile_map.of(ipu=ipu)),
}


@pytest.mark.parametrize("value", [99, -1, 0.5, "0", True, np.int64(99), 2**70, [0]], ids=repr)
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_not_there_is_refused(asked: str, value: Any) -> None:
    word, ask = ASKED[asked]
    with pytest.raises(WorkbenchError) as caught:
        ask(value)
    assert word in caught.value.what
    assert str(value) in caught.value.what
    assert caught.value.expected


@pytest.mark.parametrize("asked", ASKED)
def test_numbers_of_numpy_are_numbers(asked: str) -> None:
    assert ASKED[asked][1](np.int64(0)) is not None


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: profile().blocks(max_rows=-1), "max_rows is -1"),
        (lambda: profile().blocks(max_rows=None), "max_rows is None"),
        (lambda: profile().blocks(cycles_from="0"), "cycles_from is '0'"),
        (lambda: profile().blocks(cycles_to=float("nan")), "cycles_to is nan"),
        (lambda: profile().column("steps", "nosuch"), "a profile has no column 'nosuch' in a table 'steps'"),
        (lambda: profile().column("nosuch", "id"), "a profile has no column 'id' in a table 'nosuch'"),
        (lambda: wb.load_profile(3), "the path of a profile is 3"),  # type: ignore[arg-type]
        (lambda: wb.views(3), "views was given 3"),  # type: ignore[arg-type]
        (lambda: wb.diagnose("mlp"), "executable is 'mlp'"),  # type: ignore[arg-type]
        (lambda: wb.diagnose(profile(), levers=["nosuch"]), "unknown lever 'nosuch' in levers"),
        (lambda: wb.diagnose(profile(), levers=3), "unknown lever 3 in levers"),
    ],
)
def test_other_mistakes(ask: Callable[[], Any], what: str) -> None:
    with pytest.raises(wb.InputError) as caught:
        ask()
    assert caught.value.what == what


def test_a_program_without_steps_says_so_where_it_is_asked_for_one() -> None:
    """Nothing has an element: there is nothing to do, and the peak is of no step."""
    empty = wb.profile(lambda x: x * 2, jax.ShapeDtypeStruct((0, 3), np.float32))
    assert empty.steps.empty
    for ask in (empty.live_variables, lambda step: empty.explain(step=step)):
        with pytest.raises(wb.InputError, match=r"^no step -1; the program runs none, and .* always lives") as caught:
            ask(empty.peak.step)
        assert caught.value.todo == "profile.explain(tile=...) says what lies on a tile"
    assert empty.explain(tile=empty.peak.tile).value == empty.peak.bytes


def test_an_executable_is_not_its_profile_and_a_model_not_its_executable() -> None:
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="small")
    with pytest.raises(
        wb.InputError, match=r"^executable is <Sequential name=small.*write wb\.diagnose\(wb\.compile\("
    ):
        wb.diagnose(model)
    with pytest.raises(wb.InputError, match=r"^views was given <executable small.*give executable\.profile"):
        wb.views(wb.compile(model, batch_size=2, target=wb.target("ipu2", tiles_per_ipu=4)))


def test_one_lever_by_its_name() -> None:
    assert (
        wb.diagnose(profile(), levers="half_partials").skipped
        == wb.diagnose(profile(), levers=["half_partials"]).skipped
    )
