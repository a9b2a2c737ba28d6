"""Models of rows: shapes, parameters and problems are Keras' own, and the code shown builds what is compiled."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InputError
from workbench.executable import layered_source
from workbench.widgets.app.builder.kinds import ACTIVATIONS, KINDS, Setting
from workbench.widgets.app.builder.layers import (
    PRESETS,
    Layer,
    described,
    input_type,
    keras_code,
    names,
    notes_of,
    read_shape,
    reordered,
)
from workbench.widgets.app.form.source import READY


def built(shape: tuple[int, ...], layers: Any) -> Any:
    return layered_source("drawn", shape, described(layers), input_type(layers))()


def test_code_is_what_the_rows_say() -> None:
    layers = (Layer.new("Conv2D", 8, 5, 2), Layer.new("Dropout", 0.5), Layer.new("Dense", 3, activation="none"))
    assert keras_code("cnn", (8, 8, 1), layers).splitlines()[2:] == [
        "model = keras.Sequential(",
        "    [",
        "        keras.Input((8, 8, 1)),",
        '        keras.layers.Conv2D(filters=8, kernel_size=5, strides=2, padding="same", activation="relu", '
        'name="conv2d_1"),',
        '        keras.layers.Dropout(rate=0.5, name="dropout_2"),',
        '        keras.layers.Dense(units=3, name="dense_3"),',
        "    ],",
        '    name="cnn",',
        ")",
    ]


def test_of_two_inputs_the_code_has_calls() -> None:
    layers = (
        Layer.new("Dense", 8),
        Layer.new("Dense", 8),
        Layer.new("Add", other=1),
        Layer.new("Concatenate", other=0),
    )
    assert keras_code("skip", (8,), layers).splitlines()[2:] == [
        "x0 = keras.Input((8,))",
        'x1 = keras.layers.Dense(units=8, activation="relu", name="dense_1")(x0)',
        'x2 = keras.layers.Dense(units=8, activation="relu", name="dense_2")(x1)',
        'x3 = keras.layers.Add(name="add_3")([x2, x1])',
        'x4 = keras.layers.Concatenate(name="concatenate_4")([x3, x0])',
        'model = keras.Model(x0, x4, name="skip")',
    ]


def test_names_are_snake_case_with_the_place() -> None:
    layers = [Layer.new(kind) for kind in ("MaxPooling2D", "GlobalAveragePooling2D", "BatchNormalization")]
    assert names(layers) == ["max_pooling2d_1", "global_average_pooling2d_2", "batch_normalization_3"]


@pytest.mark.parametrize(("text", "shape"), [("64", (64,)), ("28, 28, 1", (28, 28, 1)), ("(32, 32,)", (32, 32))])
def test_shapes_are_read(text: str, shape: tuple[int, ...]) -> None:
    assert read_shape(text) == shape


@pytest.mark.parametrize("text", ["", "64, x", "-1", "0", "3.5"])
def test_other_shapes_are_errors(text: str) -> None:
    with pytest.raises(InputError, match="positive whole numbers"):
        read_shape(text)


@pytest.mark.parametrize("text", ["9" * 30, "9" * 5_000, "65536, 65536", "0" * 40 + "1"])
def test_shapes_of_more_than_a_model_holds_are_errors(text: str) -> None:
    with pytest.raises(InputError, match="at most 2,147,483,648 elements"):
        read_shape(text)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_stand_and_hold_what_keras_says(preset: str) -> None:
    text, layers = PRESETS[preset]
    notes = notes_of(read_shape(text), layers)
    model = built(read_shape(text), layers)
    assert [note.problem for note in notes] == [None] * len(layers)
    for layer, note, name in zip(layers, notes, names(layers), strict=True):
        own = model.get_layer(name)
        assert tuple(own.output.shape[1:]) == note.shape, layer
        assert own.count_params() == note.parameters, layer


@pytest.mark.parametrize("preset", [each for each in PRESETS if each.lower() in READY])
def test_a_preset_named_as_a_ready_model_is_that_model(preset: str) -> None:
    text, layers = PRESETS[preset]
    mine, ready = built(read_shape(text), layers), wb.ready(preset.lower()).builder()

    def held(model: Any) -> Any:
        rows = [each for each in model.layers if not isinstance(each, keras.layers.InputLayer)]
        return model.input_shape, [(type(each), each.output.shape, each.count_params()) for each in rows]

    assert held(mine) == held(ready)


def drawn_layers(draw: Any) -> tuple[tuple[int, ...], list[Layer]]:
    """A shape and rows of any kinds, most of which can stand where they are."""
    shape = draw(st.sampled_from([(7,), (5, 4), (6, 6, 3), (9, 8, 2)]))
    rows = []
    for place in range(1, draw(st.integers(1, 5)) + 1):
        kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        values = [value_of(draw, each) for each in kind.settings]
        activation = draw(st.sampled_from(ACTIVATIONS)) if kind.activation else None
        rows.append(Layer.new(kind.name, *values, activation=activation, other=draw(st.integers(0, place - 1))))
    return shape, rows


def value_of(draw: Any, setting: Setting) -> float:
    if setting.step != 1:
        return round(draw(st.integers(0, 9)) / 10, 1)
    return draw(st.integers(int(setting.minimum), int(min(setting.maximum, 6))))


@settings(max_examples=60)
@given(st.data())
def test_rows_stand_where_keras_lets_them_and_hold_what_it_says(data: st.DataObject) -> None:
    shape, layers = drawn_layers(data.draw)
    notes = notes_of(shape, layers)
    if any(note.problem for note in notes):
        return  # what the rows refuse is refused before Keras is asked
    model = built(shape, layers)
    for layer, note, name in zip(layers, notes, names(layers), strict=True):
        own = model.get_layer(name)
        assert tuple(own.output.shape[1:]) == note.shape, layer
        assert own.count_params() == note.parameters, layer


@pytest.mark.parametrize("preset", PRESETS)
def test_the_code_shown_builds_what_is_compiled(preset: str) -> None:
    text, layers = PRESETS[preset]
    made: dict[str, Any] = {}
    exec(keras_code("drawn", read_shape(text), layers), made)
    shown, compiled = made["model"], built(read_shape(text), layers)
    assert [(type(each), each.get_config()) for each in shown.layers[1:]] == [
        (type(each), each.get_config()) for each in compiled.layers[1:]
    ]
    shown.set_weights(compiled.get_weights())
    inputs = np.arange(2 * np.prod(read_shape(text))).reshape(2, *read_shape(text)) % 7
    np.testing.assert_array_equal(shown(inputs), compiled(inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_keras_layer_and_says_what_it_needs(kind: str) -> None:
    rank = KINDS[kind].rank
    shape = {0: (8, 8, 2), 1: (9,), 2: (6, 4), 3: (8, 8, 2)}[rank]
    (note,) = notes_of(shape, [Layer.new(kind)])
    assert note.problem is None
    assert type(built(shape, [Layer.new(kind)]).layers[-1]).__name__ == kind
    if rank:
        (note,) = notes_of((2,) * (rank % 3 + 1), [Layer.new(kind)])
        assert note.problem is not None
        assert kind in note.problem.what
        assert note.problem.expected == KINDS[kind].needs


@pytest.mark.parametrize(
    ("layers", "at", "what"),
    [
        ([Layer.new("Dense", 4), Layer.new("Add", other=0)], 1, "not alike"),
        ([Layer.new("Flatten"), Layer.new("Concatenate", other=0)], 1, "differ before their last axis"),
        ([Layer.new("Add", other=1)], 0, "comes after it"),
        ([Layer.new("Dense", 4), Layer.new("Embedding")], 1, "cannot take an input"),
        ([Layer.new("MaxPooling2D", 64)], 0, "does not fit into"),
        ([Layer.new("Dense", 65_536)] * 3, None, ""),
    ],
)
def test_what_cannot_stand_is_told_at_its_row(layers: list[Layer], at: int | None, what: str) -> None:
    notes = notes_of((8, 8, 3), layers)
    assert [place for place, note in enumerate(notes) if note.problem] == ([] if at is None else [at])
    if at is not None:
        assert what in str(notes[at].problem)
        assert all(note.shape is None for note in notes[at:])


def test_second_inputs_follow_their_rows() -> None:
    layers = [Layer.new("Dense", 8), Layer.new("Dense", 9), Layer.new("Add", other=2)]
    moved = reordered(layers, [2, 1, 3])
    assert [layer.values for layer in moved] == [(9,), (8,), ()]
    assert moved[2].other == 1
    assert reordered(layers, [1, 3])[1].other == 0  # its row is gone
    assert reordered(layers, [None, 1, 2, 3])[2].other == 3


@pytest.mark.parametrize("value", ["", "x", "1.5", "0", "65537", "nan", "1e400", None, True, [], {}, "9" * 400])
def test_settings_refuse_what_is_none(value: Any) -> None:
    with pytest.raises(InputError, match="units is"):
        KINDS["Dense"].settings[0].checked(value)


def test_settings_take_numbers_as_they_are_typed() -> None:
    assert KINDS["Dense"].settings[0].checked(" 12 ") == 12
    assert KINDS["Dropout"].settings[0].checked("0.35") == 0.35
