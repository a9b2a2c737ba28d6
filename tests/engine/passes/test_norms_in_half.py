"""Norms of halves make what is as large as their input in half; statistics and sums stay float."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.small_graphs import Draft, before_and_after
from workbench.engine.compile import compile_graph
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Graph, verify_graph, walk
from workbench.engine.options import Options
from workbench.engine.passes.norms_in_half import norms_in_half
from workbench.engine.target import target

NORM = {"layer": "norm", "layer_class": "LayerNormalization"}


def whitened(layer_class: str, dtype: str = "float16", *, outside: bool = False) -> Graph:
    """(x - mean) * scale of 8 rows of 16, in float; `outside`: another layer reads the floats."""
    d = Draft()
    x, scale = d.param("x", (8, 16), dtype=dtype), d.weight("norm/gamma", (1, 16))
    with d.at(layer="norm", layer_class=layer_class):
        wide = d.cast(x, "float32") if dtype != "float32" else x
        mean = d.point("div", d.reshape(d.reduce("reduce_sum", wide, 1), 8, 1), d.constant(16.0))
        product = d.point("mul", d.point("sub", wide, mean), scale)
        found = [d.cast(product, "float16")]
    with d.at(layer="after"):
        found += [d.point("exp", product)] if outside else []
    return d.graph(*found)


def test_what_is_as_large_as_the_input_is_half_and_the_rest_as_it_was() -> None:
    found = verify_graph(norms_in_half(whitened("LayerNormalization")))
    assert [(node.op, *(f"{v.dtype}{v.shape}" for v in node.results)) for node in found.body.nodes] == [
        ("reduce_sum", "float32(8,)"),
        ("reshape", "float32(8, 1)"),
        ("constant", "float32()"),
        ("div", "float32(8, 1)"),
        ("convert_element_type", "float16(8, 1)"),
        ("sub", "float16(8, 16)"),
        ("convert_element_type", "float16(1, 16)"),
        ("mul", "float16(8, 16)"),
    ]
    assert found.body.results[0] is found.body.nodes[-1].results[0]


def test_who_reads_floats_outside_the_norm_gets_floats() -> None:
    found = verify_graph(norms_in_half(whitened("LayerNormalization", outside=True)))
    ending = [(node.op, node.origin.layer, node.results[0].dtype) for node in found.body.nodes[-3:]]
    assert ending == [
        ("mul", "norm", "float16"),
        ("convert_element_type", "after", "float32"),
        ("exp", "after", "float32"),
    ]


@pytest.mark.parametrize(("layer_class", "dtype"), [("Softmax", "float16"), ("LayerNormalization", "float32")])
def test_other_layers_and_norms_of_floats_are_left_alone(layer_class: str, dtype: str) -> None:
    before = whitened(layer_class, dtype)
    assert norms_in_half(before).body is before.body


def small(kind: str) -> Any:
    import keras

    inputs = keras.Input((8, 8, 8))
    x = keras.layers.Conv2D(16, 1, use_bias=False, name="conv")(inputs)
    norm = keras.layers.BatchNormalization if kind == "batch" else keras.layers.GroupNormalization
    x = norm(name="norm", **({} if kind == "batch" else {"groups": 4}))(x)
    x = keras.layers.Conv2D(16, 1, activation="relu", name="next")(x)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling2D(name="pool")(x))


@pytest.mark.parametrize("kind", ["group", "batch"])
def test_no_float_tensor_of_a_norm_is_as_large_as_its_input(kind: str) -> None:
    """4 samples of 8 x 8 x 16: forward and backward, with the gradient that comes from the next layer."""
    import keras

    traced = trace_keras(
        lambda: small(kind),
        4,
        "training",
        loss="mean_squared_error",
        optimizer=keras.optimizers.SGD(0.1),
        precision="float16",
    )
    compiled = compile_graph(traced.graph, target("ipu2", tiles_per_ipu=16), Options())
    whole = 4 * 8 * 8 * 16
    of_norm = [v for _, node in walk(compiled.graph) if node.origin.layer == "norm" for v in node.results]
    assert {v.dtype for v in of_norm if v.elements == whole} == {"float16"}
    assert "float32" in {v.dtype for v in of_norm if v.elements < whole}
    held = [v for v in compiled.program.variables if v.origin.layer == "norm"]
    assert max(v.size_bytes for v in held) == whole * 2


def test_text(golden: Any) -> None:
    before = whitened("LayerNormalization")
    golden("passes/norms_in_half.txt", before_and_after(before, norms_in_half(before)))
