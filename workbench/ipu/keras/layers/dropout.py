"""Dropout whose backward pass draws its mask again from the seed, so that no mask lies in memory between the two."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.text import short
from workbench.errors import InputError
from workbench.ipu.keras.layers._given import Layer, for_keras


@keras.saving.register_keras_serializable(package="ipu")
class Dropout(Layer):
    """Sets elements to zero with frequency `rate` in training, and scales the others by 1 / (1 - rate).

    `noise_shape`: that of the mask, of the inputs' rank, 1 where elements share a decision. `seed`: None for a state of
    the layer's own, which each call advances, or a pair of 32-bit whole numbers: then every call has the same mask.
    Errors: `InputError` for a rate outside [0, 1), a seed that is no pair, and a noise shape that does not fit.
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: Any = None, **kwargs: Any) -> None:
        if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate < 1:
            raise InputError(f"rate is {short(rate)}", expected="a number from 0 to below 1")
        if noise_shape is not None and not _are_sizes(noise_shape):
            raise InputError(f"noise_shape is {short(noise_shape)}", expected="a list of sizes")
        words = _pair(seed)
        super().__init__(**for_keras(self, kwargs))
        self.rate = float(rate)
        self.noise_shape = None if noise_shape is None else tuple(None if s is None else int(s) for s in noise_shape)
        self.seed = words
        self.supports_masking = True
        if rate > 0 and self.seed is None:
            self.seed_generator = keras.random.SeedGenerator()
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The inputs with elements set to zero in training; the inputs in inference."""
        if not training or self.rate == 0:
            return inputs
        shape = self._mask_shape(tuple(inputs.shape))
        seed = self.seed_generator.next() if self.seed is None else np.array(self.seed, "uint32")
        return _dropped(inputs, jnp.asarray(seed), self.rate, shape)

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.noise_shape is None:
            return shape
        given = self.noise_shape
        found = tuple(own if each is None else each for each, own in zip(given, shape, strict=False))
        if len(given) != len(shape) or any(each not in (1, own) for each, own in zip(found, shape, strict=True)):
            raise InputError(
                f"noise_shape is {given} for inputs of shape {shape}", expected="1 or the size of each dimension"
            )
        return found

    def compute_output_shape(self, input_shape: Any) -> Any:
        """That of the inputs."""
        return input_shape

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        """Shape and type of the inputs."""
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        seed = None if self.seed is None else list(self.seed)
        return {**super().get_config(), "rate": self.rate, "noise_shape": self.noise_shape, "seed": seed}


def _are_sizes(given: Any) -> bool:
    listed = list(given) if isinstance(given, list | tuple | np.ndarray) else [""]
    whole = [each for each in listed if isinstance(each, int | np.integer) and not isinstance(each, bool) and each > 0]
    return len(whole) + sum(each is None for each in listed) == len(listed)


def _pair(seed: Any) -> tuple[int, int] | None:
    """Two 32-bit whole numbers, None for a state of the layer's own."""
    if seed is None:
        return None
    try:
        words = np.asarray(seed)
    except (TypeError, ValueError):
        words = np.zeros(0)
    if words.shape != (2,) or words.dtype.kind not in "iu" or words.min() < -(2**31) or words.max() >= 2**32:
        raise InputError(f"seed is {short(seed)}", expected="two whole numbers of 32 bits, or None")
    return int(words[0]) % 2**32, int(words[1]) % 2**32


def _mask(seed: Any, rate: float, shape: tuple[int, ...]) -> Any:
    return jax.random.bernoulli(seed, 1 - rate, shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _dropped(inputs: Any, seed: Any, rate: float, shape: tuple[int, ...]) -> Any:
    """The inputs, zero where the mask is."""
    kept = jnp.broadcast_to(_mask(seed, rate, shape), inputs.shape)
    return jnp.where(kept, inputs / jnp.asarray(1 - rate, inputs.dtype), jnp.zeros_like(inputs))


def _forward(inputs: Any, seed: Any, rate: float, shape: tuple[int, ...]) -> tuple[Any, Any]:
    return _dropped(inputs, seed, rate, shape), seed


def _backward(rate: float, shape: tuple[int, ...], seed: Any, gradient: Any) -> tuple[Any, Any]:
    """The same mask over the gradient, drawn once more; a seed has no gradient."""
    return _dropped(gradient, seed, rate, shape), np.zeros(seed.shape, jax.dtypes.float0)


_dropped.defvjp(_forward, _backward)

__all__ = ["Dropout"]
