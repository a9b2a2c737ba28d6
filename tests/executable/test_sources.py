"""Every kind of source comes in by its own door; what is of no kind is refused with the list of all."""

from __future__ import annotations

from typing import Any

import jax
import keras
import pytest

import workbench as wb
from workbench.executable import make_request
from workbench.executable.sources import DOORS, trace_source

NUMBERS = jax.ShapeDtypeStruct((4,), "float32")


class TracesItself:
    """As a cluster of a session does."""

    def trace_source(self) -> str:
        return "traced"


def test_the_first_door_is_asked_first() -> None:
    assert trace_source(make_request(TracesItself())) == "traced"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    ("what", "source", "inputs"),
    [
        ("what traces itself, as the clusters of `tf` do", TracesItself(), ()),
        ("a Keras model, or a ready one by name", "mlp", ()),
        ("a Keras model, or a ready one by name", wb.ready("mlp"), (NUMBERS,)),
        ("a JAX function with inputs", lambda x: x, (NUMBERS,)),
        ("a function that builds a Keras model", lambda: None, ()),
    ],
)
def test_each_kind_has_its_door(what: str, source: Any, inputs: tuple[Any, ...]) -> None:
    request = make_request(source, *inputs)
    assert next(door.what for door in DOORS if door.claims(request)) == what


def test_what_is_of_no_kind_is_refused() -> None:
    with pytest.raises(wb.InputError, match=r"^3 cannot be compiled\. Expected: a Keras model, .*, or tiles\.$"):
        wb.compile(3)


def test_the_count_of_micro_batches_is_an_option() -> None:
    request = make_request("mlp", gradient_accumulation_steps=4)
    assert request.options.get("pipeline.gradient_accumulation_steps") == request.gradient_accumulation_steps == 4
    more = request.replace(gradient_accumulation_steps=8)
    assert more == request.replace(options={"pipeline.gradient_accumulation_steps": 8})
    assert more.gradient_accumulation_steps == 8
    assert not request.same_trace(more)
    assert request.same_trace(request.replace(target=wb.target("bow")))


class OfSize(keras.Model):  # type: ignore[misc]
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


@pytest.mark.parametrize(
    ("source", "what", "todo"),
    [
        (keras.layers.Dense(3, name="d"), "is a layer", "make a model of it: keras.Sequential("),
        (keras.layers.Dense, "is a layer", "make a model of it: keras.Sequential("),
        (OfSize, "OfSize cannot be made without arguments: missing a required argument: 'size'", "give a model: OfSi"),
    ],
)
@pytest.mark.parametrize("inputs", [(), (jax.ShapeDtypeStruct((4, 8), "float32"),)])
def test_layers_and_classes_are_told_apart_from_models(
    source: Any, what: str, todo: str, inputs: tuple[Any, ...]
) -> None:
    with pytest.raises(wb.InputError) as caught:
        wb.compile(source, *inputs)
    assert what in caught.value.what
    assert (caught.value.todo or "").startswith(todo)


def test_a_number_that_no_bits_hold_names_the_setting_that_would() -> None:
    with pytest.raises(wb.InputError) as caught:
        wb.compile(lambda x: x * 2, 2**40)
    assert str(caught.value) == (
        "args[0] is 1099511627776. Expected: a number that 32 bits hold. To mend it: give it as a float, or switch "
        "jax_enable_x64 on."
    )
