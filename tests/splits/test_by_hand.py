"""Cuts by hand: what is expected of them is what the search expects, here and in the page."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.widgets.kit.javascript import evaluate
from workbench.errors import InputError
from workbench.splits.by_hand import ByHand
from workbench.widgets.app.ribbon import Ribbon, content

LAYERS = 8


def model() -> Any:
    import keras

    sizes = [16, 64, 64, 32, 8, 64, 16, 4]
    layers = [keras.layers.Dense(size, "relu", name=f"dense_{place}") for place, size in enumerate(sizes)]
    return keras.Sequential([keras.Input((32,)), *layers], name="uneven")


@cache
def compiled(cuts: tuple[str, ...] = ("dense_2", "dense_4")) -> Any:
    return wb.compile(
        model,
        batch_size=4,
        mode="training",
        optimizer="adam",
        stages=list(cuts),
        gradient_accumulation_steps=12,
        target=wb.target("ipu2", tiles_per_ipu=8),
    )


@cache
def found() -> ByHand:
    made = ByHand.of(compiled())
    assert made is not None
    return made


CUTS = st.lists(st.integers(1, LAYERS - 1), min_size=2, max_size=2, unique=True).map(sorted)


def test_it_is_the_split_that_was_compiled() -> None:
    assert found().names == tuple(f"dense_{place}" for place in range(LAYERS))
    assert found().cuts == (3, 5)
    assert found().stages((3, 5)) == ["dense_2", "dense_4"]
    assert ByHand.of(wb.compile(model, batch_size=4, target=wb.target("ipu2", tiles_per_ipu=8))) is None


def test_of_the_compiled_cuts_it_expects_what_was_measured() -> None:
    cycles, size = found().expected(found().cuts)
    np.testing.assert_allclose(size, found().bytes, rtol=0.01)
    np.testing.assert_allclose(cycles, found().cycles, rtol=0.02)  # copies are by the byte


@given(CUTS)
def test_layers_move_with_what_they_cost(cuts: list[int]) -> None:
    """Cycles but those of copies over the cuts are the same however the layers are cut."""
    costs = found().costs
    cycles, _ = found().expected(cuts)
    assert sum(cycles) - 2 * sum(costs.copy[cut - 1] for cut in cuts) == pytest.approx(float(costs.cycles.sum()))


def test_the_page_expects_the_same(node: str) -> None:
    every = [[a, b] for a in range(1, LAYERS) for b in range(a + 1, LAYERS)]
    source = f"""
        import {{expected, moved, places}} from "WIDGETS/app/ribbon.js";
        const data = {content(found())!r};
        const cuts = {every};
        console.log(JSON.stringify({{
          expected: cuts.map((each) => expected(data, each).map(({{cycles, bytes}}) => [cycles, bytes])),
          moved: [moved([3, 5], 0, 9, 8), moved([3, 5], 1, 0, 8), moved([3, 5], 1, 99, 8), moved([3, 5], 0, -4, 8)],
          places: places(data),
        }}));
    """
    told = evaluate(node, source)
    for cuts, rows in zip(every, told["expected"], strict=True):
        np.testing.assert_allclose(np.array(rows).T, found().expected(cuts), rtol=1e-9)
    assert told["moved"] == [[4, 5], [3, 4], [3, 7], [1, 5]]
    assert told["places"][0] == 0
    assert told["places"][-1] == pytest.approx(1)
    assert np.all(np.diff(told["places"]) > 0)


@pytest.mark.parametrize("cuts", [[3], [5, 3], [3, 3], [0, 4], [4, 8], [3, 5.0], [True, 4], "35", None, {"a": 1}])
def test_other_cuts_are_refused_with_their_reason(cuts: Any) -> None:
    with pytest.raises(InputError, match="the cuts are"):
        found().checked(cuts)
    asked: list[Any] = []
    ribbon = Ribbon(found(), asked.append)
    ribbon._handle_custom_msg({"cuts": cuts}, [])
    assert "the cuts are" in ribbon.problem
    ribbon._handle_custom_msg({"cuts": [2, 6]}, [])
    assert ribbon.problem == ""
    assert asked == [["dense_1", "dense_5"]]
    ribbon._handle_custom_msg("cuts", [])
    assert len(asked) == 1


def test_a_stage_that_takes_as_long_is_not_told_as_faster(node: str) -> None:
    source = """
        import {changeText} from "WIDGETS/app/ribbon.js";
        console.log(JSON.stringify([0, 0.0001, -0.25, 0.25].map(changeText)));
    """
    same = "as many cycles as"
    assert evaluate(node, source) == [same, same, "25.0 % fewer cycles than", "25.0 % more cycles than"]
