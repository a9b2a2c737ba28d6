"""The rows as a widget: they are set, inserted, moved and removed by messages; what cannot be is told at its row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.widgets.kit.javascript import evaluate
from workbench.errors import InputError
from workbench.widgets.app import App
from workbench.widgets.app.builder import Builder
from workbench.widgets.app.builder.layers import Layer
from workbench.widgets.app.builder.rows import MOST_ROWS


def kinds(builder: Builder) -> list[str]:
    return [layer.kind for layer in builder.layers()]


def hear(builder: Builder, content: Any) -> None:
    """What ipywidgets does with a message from the browser."""
    builder.rows._handle_custom_msg(content, [])


def test_rows_are_added_moved_set_and_removed() -> None:
    builder = App().picker.builder
    hear(builder, {"do": "insert", "at": 1})
    hear(builder, {"do": "choose", "at": 1, "name": "kind", "value": "Dropout"})
    assert kinds(builder) == ["Dense", "Dropout", "Dense", "Dense"]
    hear(builder, {"do": "set", "at": 0, "setting": 0, "value": "7"})
    hear(builder, {"do": "move", "at": 0, "to": 1})
    hear(builder, {"do": "move", "at": 0, "to": -1})
    assert kinds(builder) == ["Dropout", "Dense", "Dense", "Dense"]
    assert builder.layers()[1].values == (7,)
    hear(builder, {"do": "choose", "at": 2, "name": "kind", "value": "Flatten"})
    hear(builder, {"do": "choose", "at": 1, "name": "activation", "value": "tanh"})
    assert builder.layers()[1].activation == "tanh"
    hear(builder, {"do": "add", "at": None})
    assert kinds(builder) == ["Dropout", "Dense", "Flatten", "Dense", "Dense"]
    for _ in range(9):
        hear(builder, {"do": "remove", "at": 0})
    assert kinds(builder) == ["Dense"]


def test_rows_say_what_they_give_and_hold() -> None:
    builder = Builder()
    builder.set("8, 8, 3", [Layer.new("Conv2D", 4), Layer.new("Flatten"), Layer.new("Dense", 10)])
    rows = builder.rows.rows
    assert [row["gives"] for row in rows] == ["8 × 8 × 4", "256", "10"]
    assert [row["holds"] for row in rows] == [(9 * 3 + 1) * 4, 0, 257 * 10]
    builder.input_shape.value = "64"
    assert "layer 1, Conv2D, cannot take" in builder.rows.rows[0]["problem"]
    assert [row["gives"] for row in builder.rows.rows] == ["", "", ""]
    builder.input_shape.value = "what"
    assert "the input shape is 'what'" in builder.rows.problem


def test_a_row_keeps_its_identity_while_it_moves() -> None:
    builder = Builder()
    before = [row["id"] for row in builder.rows.rows]
    hear(builder, {"do": "move", "at": 0, "to": 2})
    assert [row["id"] for row in builder.rows.rows] == [before[1], before[2], before[0]]
    assert len(set(before)) == 3


def test_a_value_that_cannot_be_is_told_at_its_row_and_the_last_one_stays() -> None:
    builder = Builder()
    before = builder.layers()
    hear(builder, {"do": "set", "at": 1, "setting": 0, "value": "<img src=x>"})
    assert "units is '<img src=x>'" in builder.rows.rows[1]["problem"]
    assert builder.layers() == before
    hear(builder, {"do": "set", "at": 1, "setting": 0, "value": "5"})
    assert builder.rows.rows[1]["problem"] == ""


@pytest.mark.parametrize(
    "content",
    [
        None,
        "add",
        {},
        {"do": "nosuch", "at": 0},
        {"do": "remove", "at": 3},
        {"do": "remove", "at": -1},
        {"do": "remove", "at": True},
        {"do": "remove", "at": "0"},
        {"do": "move", "at": 0},
        {"do": "move", "at": 0, "to": 9},
        {"do": "set", "at": 0, "setting": 5, "value": "1"},
        {"do": "set", "at": 0, "setting": "0", "value": "1"},
        {"do": "choose", "at": 0, "name": "kind", "value": "os.system"},
        {"do": "choose", "at": 0, "name": "kind", "value": []},
        {"do": "choose", "at": 0, "name": "other", "value": 99},
        {"do": "choose", "at": 0, "name": "activation", "value": "<b>"},
        {"do": ["add"], "at": 0},
    ],
)
def test_other_messages_change_nothing(content: Any) -> None:
    builder = Builder()
    before = builder.layers()
    hear(builder, content)
    assert builder.layers() == before


def test_there_is_an_end_to_rows() -> None:
    builder = Builder()
    builder.set("8", [Layer.new("Dense", 8)] * MOST_ROWS)
    hear(builder, {"do": "add"})
    assert len(builder.layers()) == MOST_ROWS


def test_a_layer_that_cannot_stand_there_is_named_before_anything_compiles() -> None:
    app = App()
    app.picker.builder.set("64", [Layer.new("Conv2D")])
    app.compile()
    assert isinstance(app.error, InputError) or app.progress.data["state"] == "failed"
    assert app.progress.data["problem"]["what"] == "layer 1, Conv2D, cannot take an input of shape (64,)"
    assert app.progress.data["problem"]["todo"] == "change or move the layer; Flatten turns images into rows"
    assert "layer 1, Conv2D" in app.code.problem


@pytest.mark.parametrize(
    ("preset", "layer"),
    [("LSTM", "lstm_1"), ("Transformer", "multi_head_attention_2"), ("Depthwise", "depthwise_conv2d_3")],
)
def test_presets_compile(preset: str, layer: str) -> None:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 32
    app.run.batch_size.value = 2
    app.picker.builder.preset.value = preset
    app.compile()
    assert app.wait(300)
    assert app.error is None
    assert app.profile is not None
    assert layer in {name.partition("/")[0] for name in app.profile.tables["steps"]["layer"].tolist()}


def test_the_page_places_and_says(node: str) -> None:
    told = evaluate(
        node,
        """
        import {holds, noteOf, placeFor, totalOf} from "WIDGETS/app/builder/rows.js";
        const middles = [10, 30, 50];
        console.log(JSON.stringify({
          places: [-5, 20, 40, 99].map((y) => placeFor(middles, 0, y)),
          up: [-5, 20, 40].map((y) => placeFor(middles, 2, y)),
          notes: [noteOf({gives: "8 × 8", holds: 1}), noteOf({gives: "", holds: 0}), holds(0), holds(12345)],
          totals: [totalOf([{gives: "8", holds: 5}, {gives: "9", holds: 6}]), totalOf([{gives: "", holds: 0}])],
        }));
        """,
    )
    assert told["places"] == [0, 0, 1, 2]
    assert told["up"] == [0, 1, 2]
    assert told["notes"] == ["gives 8 × 8, 1 parameter", "", "no parameters", "12,345 parameters"]
    assert told["totals"] == ["2 layers, 11 parameters", ""]
