"""Norms over groups of channels, single channels or axes, each with statistics of one pass in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.base.whole import MOST_COUNT, whole
from workbench.errors import InputError
from workbench.ipu.keras.layers._given import Layer, check, for_keras, initializer
from workbench.tf._graph.dtypes import DTYPES, given_type

FLOAT = DTYPES["float32"]


class _Norm(Layer):
    """A norm with an offset (`center`) and a factor (`scale`) for each channel; it keeps no statistics.

    Weights are of `dtype`; the result is of the inputs' type, its statistics in float32 whatever that is.
    """

    def __init__(
        self,
        dtype: Any,
        center: bool,
        scale: bool,
        epsilon: float,
        beta_initializer: Any,
        gamma_initializer: Any,
        **kwargs: Any,
    ) -> None:
        check(center=center, scale=scale, epsilon=epsilon)
        if not 0 <= epsilon < float("inf"):
            raise InputError(f"epsilon is {short(epsilon)}", expected="a number of at least 0")
        super().__init__(dtype=str(given_type(dtype)), autocast=False, **for_keras(self, kwargs))
        self.center, self.scale, self.epsilon = center, scale, epsilon
        self.beta_initializer = initializer("beta_initializer", beta_initializer, "zeros")
        self.gamma_initializer = initializer("gamma_initializer", gamma_initializer, "ones")

    def _make(self, shape: tuple[int, ...]) -> None:
        """The offset and the factor, of this shape."""
        self.beta = self.gamma = None
        if self.scale:
            self.gamma = self.add_weight(name="gamma", shape=shape, initializer=self.gamma_initializer)
        if self.center:
            self.beta = self.add_weight(name="beta", shape=shape, initializer=self.beta_initializer)
        self.built = True

    def _normalized(self, inputs: Any, axes: tuple[int, ...]) -> Any:
        """Inputs in float32 without their mean over axes, over the root of their variance there."""
        mean = ops.mean(inputs, axes, keepdims=True)
        variance = ops.mean(ops.square(inputs - mean), axes, keepdims=True)
        return (inputs - mean) * ops.rsqrt(variance + self.epsilon)

    def _scaled(self, normalized: Any, shape: list[int], dtype: str, order: Sequence[int] = (0,)) -> Any:
        """With its factor and offset, which are of this shape beside it, in the inputs' type.

        `order`: that of the weights' dimensions in the inputs, where the axes were named in another one.
        """

        def beside(weight: Any) -> Any:
            turned = weight if list(order) == sorted(order) else ops.transpose(weight, order)
            return ops.cast(ops.reshape(turned, shape), "float32")

        if self.gamma is not None:
            normalized = normalized * beside(self.gamma)
        if self.beta is not None:
            normalized = normalized + beside(self.beta)
        return ops.cast(normalized, dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """That of the inputs."""
        return input_shape

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        """Shape and type of the inputs."""
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        config = super().get_config()
        return {
            **{name: config[name] for name in ("name", "trainable")},
            "dtype": str(self.variable_dtype),
            "center": self.center,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "beta_initializer": keras.initializers.serialize(self.beta_initializer),
            "gamma_initializer": keras.initializers.serialize(self.gamma_initializer),
        }


def _axis_of(name: str, axis: int, rank: int) -> int:
    """The number of a dimension from the first; an `InputError` where there is none of it."""
    if not -rank <= axis < rank:
        raise InputError(f"{name} is {axis} for inputs of {rank} dimensions", expected=f"from {-rank} to {rank - 1}")
    return axis % rank


@keras.saving.register_keras_serializable(package="ipu")
class GroupNormalization(_Norm):
    """Norms over groups of channels and all their places, each sample apart.

    `groups`: how many; `channels_axis`: 1 or the last dimension. With `strided_channel_grouping` channel c is in group
    c mod groups; weights trained with consecutive groups do not carry over. Either way groups are summed where their
    channels lie and nothing is rearranged; of blocks of channels, strided groups have sums on more tiles.
    Errors: `InputError` for channels that are not a multiple of the groups.
    """

    def __init__(
        self,
        dtype: Any = FLOAT,
        groups: int = 2,
        channels_axis: int = -1,
        center: bool = True,
        scale: bool = True,
        epsilon: float = 1e-3,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        strided_channel_grouping: bool = True,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        whole("groups", groups, most=MOST_COUNT)
        check(channels_axis=channels_axis, strided_channel_grouping=strided_channel_grouping)
        super().__init__(
            dtype, center, scale, epsilon, beta_initializer, gamma_initializer, trainable=trainable, name=name
        )
        self.groups, self.channels_axis = groups, channels_axis
        self.strided_channel_grouping = strided_channel_grouping

    def build(self, input_shape: Any) -> None:
        """Make an offset and a factor for each channel."""
        axis = _axis_of("channels_axis", self.channels_axis, len(input_shape))
        if axis not in (1, len(input_shape) - 1):
            raise InputError(
                f"channels_axis is {self.channels_axis} for inputs of {things_text(len(input_shape), 'dimension')}",
                expected="1 or the last",
            )
        channels = input_shape[axis]
        if channels is None:
            raise InputError(f"inputs have shape {tuple(input_shape)}", expected="channels whose number is known")
        groups = self._groups(channels)
        if groups > channels or channels % groups:
            raise InputError(f"groups is {groups} for {channels} channels", expected="a divisor of the channels")
        self._make((channels,))

    def _groups(self, channels: int) -> int:
        return self.groups

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The normalised inputs; the same in training and in inference."""
        axis = self.channels_axis % len(inputs.shape)
        channels = inputs.shape[axis]
        groups = self._groups(channels)
        parts = [channels // groups, groups] if self.strided_channel_grouping else [groups, channels // groups]
        shape = [*inputs.shape[:axis], *parts, *inputs.shape[axis + 1 :]]
        kept = axis + 1 if self.strided_channel_grouping else axis  # the dimension that counts groups
        axes = tuple(each for each in range(1, len(shape)) if each != kept)
        wide = ops.reshape(ops.cast(inputs, "float32"), [-1, *shape[1:]])
        normalized = ops.reshape(self._normalized(wide, axes), [-1, *inputs.shape[1:]])
        beside = [channels if each == axis else 1 for each in range(len(inputs.shape))]
        return self._scaled(normalized, beside, str(inputs.dtype))

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        return {
            **super().get_config(),
            "groups": self.groups,
            "channels_axis": self.channels_axis,
            "strided_channel_grouping": self.strided_channel_grouping,
        }


@keras.saving.register_keras_serializable(package="ipu")
class InstanceNormalization(GroupNormalization):
    """Norms over the places of each channel, each sample apart: a group for every channel."""

    def __init__(
        self,
        dtype: Any = FLOAT,
        channels_axis: int = -1,
        center: bool = True,
        scale: bool = True,
        epsilon: float = 1e-3,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(
            dtype=dtype,
            groups=1,
            channels_axis=channels_axis,
            center=center,
            scale=scale,
            epsilon=epsilon,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            trainable=trainable,
            name=name,
        )

    def _groups(self, channels: int) -> int:
        return channels

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        config = super().get_config()
        return {name: value for name, value in config.items() if name not in ("groups", "strided_channel_grouping")}


@keras.saving.register_keras_serializable(package="ipu")
class LayerNormalization(_Norm):
    """Norms over one axis or several, with an offset and a factor for each element of those.

    Errors: `InputError` for an axis that the inputs do not have, or have twice.
    """

    def __init__(
        self,
        dtype: Any = FLOAT,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        listed = list(axis) if isinstance(axis, list | tuple) else [axis]
        if not listed or not all(isinstance(each, int) and not isinstance(each, bool) for each in listed):
            raise InputError(f"axis is {short(axis)}", expected="the number of a dimension, or a list of them")
        super().__init__(
            dtype, center, scale, epsilon, beta_initializer, gamma_initializer, trainable=trainable, name=name, **kwargs
        )
        self.axis = axis if isinstance(axis, int) else listed

    def _axes(self, rank: int) -> tuple[int, ...]:
        listed = [self.axis] if isinstance(self.axis, int) else self.axis
        found = tuple(_axis_of("axis", each, rank) for each in listed)
        if len(set(found)) < len(found):
            raise InputError(f"axis is {short(self.axis)}", expected="each dimension once")
        return found

    def build(self, input_shape: Any) -> None:
        """Make an offset and a factor for each element of the axes."""
        sizes = tuple(input_shape[axis] for axis in self._axes(len(input_shape)))
        if None in sizes:
            raise InputError(f"inputs have shape {tuple(input_shape)}", expected="sizes of the axes that are known")
        self._make(sizes)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The normalised inputs; the same in training and in inference."""
        axes = self._axes(len(inputs.shape))
        beside = [size if place in axes else 1 for place, size in enumerate(inputs.shape)]
        order = sorted(range(len(axes)), key=lambda each: axes[each])
        normalized = self._normalized(ops.cast(inputs, "float32"), axes)
        return self._scaled(normalized, beside, str(inputs.dtype), order)

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        return {**super().get_config(), "axis": self.axis}


__all__ = ["GroupNormalization", "InstanceNormalization", "LayerNormalization"]
