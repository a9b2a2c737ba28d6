"""Equal content is compiled once, and what differs in anything a profile shows is not equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import pytest

from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import Graph, Input, Output
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.executable import cache


def graph() -> Graph:
    kind = jax.ShapeDtypeStruct((4,), "float32")
    return trace_function(lambda x, y: x + y, kind, kind, name="sum").graph


def key(of: Graph) -> str:
    return cache.key_of(of, Options(), target("ipu2", tiles_per_ipu=4), 1)


def test_equal_content_has_one_key() -> None:
    assert key(graph()) == key(graph())


@pytest.mark.parametrize(
    "other",
    [
        {"assumptions": ("one of two equal repetitions is shown",)},
        {"batch_size": 2},
        {"mode": "inference"},
        {"name": "other"},
        {"meta": {"stages": 2}},
        {"outputs": (Output(name="output", role="update", updates=0),)},
        {"inputs": tuple(Input(name=name, role="input", layer="l") for name in "ab")},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_a_profile_shows_is_in_the_key(other: dict[str, Any]) -> None:
    assert key(replace(graph(), **other)) != key(graph())
