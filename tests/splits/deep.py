"""A model of equal blocks with narrow results, whose insides are wide."""

from __future__ import annotations

from typing import Any


def deep() -> Any:
    import keras

    def block(name: str) -> Any:
        inner = [keras.layers.Dense(512, "gelu", name="wide"), keras.layers.Dense(32, name="narrow")]
        return keras.Sequential([keras.Input((32,)), *inner], name=name)

    return keras.Sequential([keras.Input((32,)), *(block(f"b{place}") for place in range(6))])
