"""Images: ViT-B/16, U-Net, ResNeXt-50, Swin-T, RetinaNet, and the U-Net of a diffusion model."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops


class Tokens(layers.Layer):
    """A class token before the patches, and a learned position on each."""

    def build(self, shape: Any) -> None:
        self.token = self.add_weight(shape=(1, 1, shape[-1]), initializer="zeros", name="token")
        self.position = self.add_weight(shape=(1, shape[1] + 1, shape[-1]), name="position")

    def call(self, x: Any) -> Any:
        token = ops.broadcast_to(self.token, (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([token, x], axis=1) + self.position


def vit_b16(side: int = 224) -> Any:
    """Dosovitskiy et al. 2021, table 1: 12 layers of 768 in 12 heads, 86 M parameters; fine-tuned at 384."""
    images = keras.Input((side, side, 3))
    x = layers.Conv2D(768, 16, strides=16, name="patches")(images)
    x = Tokens(name="tokens")(layers.Reshape((-1, 768))(x))
    for i in range(12):
        y = layers.LayerNormalization(epsilon=1e-6, name=f"encoder_{i}_norm_1")(x)
        y = layers.MultiHeadAttention(12, 64, name=f"encoder_{i}_attention")(y, y)
        x = layers.Add(name=f"encoder_{i}_add_1")([x, y])
        y = layers.LayerNormalization(epsilon=1e-6, name=f"encoder_{i}_norm_2")(x)
        y = layers.Dense(3072, "gelu", name=f"encoder_{i}_wide")(y)
        y = layers.Dense(768, name=f"encoder_{i}_narrow")(y)
        x = layers.Add(name=f"encoder_{i}_add_2")([x, y])
    x = layers.LayerNormalization(epsilon=1e-6, name="norm")(x)
    return keras.Model(images, layers.Dense(1000, "softmax", name="head")(x[:, 0]))


def unet(side: int = 572) -> Any:
    """Ronneberger et al. 2015, figure 1: unpadded convolutions, skips cropped to what comes from below, 31 M."""
    images = keras.Input((side, side, 1))

    def twice(x: Any, filters: int, name: str) -> Any:
        for part in "ab":
            x = layers.Conv2D(filters, 3, activation="relu", name=f"{name}_{part}")(x)
        return x

    x, skips = images, []
    for depth, filters in enumerate((64, 128, 256, 512)):
        x = twice(x, filters, f"down_{depth}")
        skips.append(x)
        x = layers.MaxPooling2D(name=f"pool_{depth}")(x)
    x = twice(x, 1024, "bottom")
    for depth, filters in reversed(list(enumerate((64, 128, 256, 512)))):
        x = layers.Conv2DTranspose(filters, 2, strides=2, activation="relu", name=f"up_{depth}_grow")(x)
        skip = skips[depth]
        over = skip.shape[1] - x.shape[1]
        border = (over // 2, over - over // 2)
        skip = layers.Cropping2D((border, border), name=f"up_{depth}_crop")(skip)
        x = twice(layers.Concatenate(name=f"up_{depth}_join")([skip, x]), filters, f"up_{depth}")
    return keras.Model(images, layers.Conv2D(2, 1, activation="softmax", name="classes")(x))


def resnet_stages(x: Any, groups: int, width: int) -> list[Any]:
    """The four stages of a bottleneck network of 50 layers, after its stem."""
    x = layers.Conv2D(64, 7, strides=2, padding="same", use_bias=False, name="stem")(x)
    x = layers.ReLU()(layers.BatchNormalization(name="stem_norm")(x))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    stages = []
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner, outer = width * 2**stage, 256 * 2**stage
        for block in range(blocks):
            name, stride = f"stage_{stage}_{block}", 2 if stage and not block else 1
            y = layers.Conv2D(inner, 1, use_bias=False, name=f"{name}_a")(x)
            y = layers.ReLU()(layers.BatchNormalization(name=f"{name}_a_norm")(y))
            y = layers.Conv2D(
                inner, 3, strides=stride, padding="same", groups=groups, use_bias=False, name=f"{name}_b"
            )(y)
            y = layers.ReLU()(layers.BatchNormalization(name=f"{name}_b_norm")(y))
            y = layers.Conv2D(outer, 1, use_bias=False, name=f"{name}_c")(y)
            y = layers.BatchNormalization(name=f"{name}_c_norm")(y)
            if not block:
                x = layers.Conv2D(outer, 1, strides=stride, use_bias=False, name=f"{name}_skip")(x)
                x = layers.BatchNormalization(name=f"{name}_skip_norm")(x)
            x = layers.ReLU(name=f"{name}_out")(layers.Add(name=f"{name}_add")([x, y]))
        stages.append(x)
    return stages


def resnext50() -> Any:
    """Xie et al. 2017, table 1: ResNeXt-50 (32 x 4d), 25 M parameters."""
    images = keras.Input((224, 224, 3))
    x = layers.GlobalAveragePooling2D()(resnet_stages(images, groups=32, width=128)[-1])
    return keras.Model(images, layers.Dense(1000, "softmax", name="head")(x))


def retinanet(side: int = 512) -> Any:
    """Lin et al. 2017, section 4: ResNet-50, five pyramid levels of 256 channels, two subnets shared by the levels."""
    images = keras.Input((side, side, 3))
    _, c3, c4, c5 = resnet_stages(images, groups=1, width=64)

    def conv(name: str, filters: int = 256, size: int = 3, **more: Any) -> Any:
        return layers.Conv2D(filters, size, padding="same", name=name, **more)

    p5 = conv("lateral_5", size=1)(c5)
    p4 = conv("lateral_4", size=1)(c4) + layers.UpSampling2D()(p5)
    p3 = conv("lateral_3", size=1)(c3) + layers.UpSampling2D()(p4)
    p6 = conv("level_6", strides=2)(c5)
    p7 = conv("level_7", strides=2)(layers.ReLU()(p6))
    levels = [conv("level_3")(p3), conv("level_4")(p4), conv("level_5")(p5), p6, p7]
    found = []
    for task, outputs in (("class", 80), ("box", 4)):
        tower = [conv(f"{task}_{i}", activation="relu") for i in range(4)]
        last = conv(f"{task}_last", 9 * outputs, activation="sigmoid" if task == "class" else None)
        parts = []
        for x in levels:
            for layer in tower:
                x = layer(x)
            parts.append(layers.Reshape((-1, outputs))(last(x)))
        found.append(layers.Concatenate(axis=1, name=task)(parts))
    return keras.Model(images, found)


class WindowAttention(layers.Layer):
    """Attention within windows of 7 x 7, shifted by 3 where asked, with a learned bias by relative position."""

    def __init__(self, heads: int, *, shift: int, **options: Any) -> None:
        super().__init__(**options)
        self.heads, self.shift, self.window = heads, shift, 7

    def build(self, shape: Any) -> None:
        self.side, channels = shape[1], shape[-1]
        self.qkv, self.out = layers.Dense(3 * channels, name="qkv"), layers.Dense(channels, name="out")
        self.qkv.build(shape)
        self.out.build(shape)
        self.bias = self.add_weight(shape=((2 * self.window - 1) ** 2, self.heads), name="bias")
        at = np.stack(np.meshgrid(*[np.arange(self.window)] * 2, indexing="ij")).reshape(2, -1)
        apart = at[:, :, None] - at[:, None, :] + self.window - 1
        self.index = apart[0] * (2 * self.window - 1) + apart[1]
        region = np.zeros((self.side, self.side))
        parts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((a, b) for a in parts for b in parts):
            region[rows, columns] = number
        count = self.side // self.window
        region = region.reshape(count, self.window, count, self.window).transpose(0, 2, 1, 3).reshape(count**2, -1)
        self.mask = np.where(region[:, :, None] == region[:, None, :], 0.0, -100.0) if self.shift else None

    def call(self, x: Any) -> Any:
        size, count, channels = self.window, self.side // self.window, x.shape[-1]
        if self.shift:
            x = ops.roll(x, (-self.shift, -self.shift), axis=(1, 2))
        x = ops.reshape(x, (-1, count, size, count, size, channels))
        x = ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, count**2, size**2, channels))
        qkv = ops.reshape(self.qkv(x), (-1, count**2, size**2, 3, self.heads, channels // self.heads))
        q, k, v = (qkv[:, :, :, i] for i in range(3))
        scores = ops.einsum("bwqhd,bwkhd->bwhqk", q * (channels // self.heads) ** -0.5, k)
        bias = ops.reshape(ops.take(self.bias, self.index.reshape(-1), axis=0), (size**2, size**2, self.heads))
        scores = scores + ops.transpose(bias, (2, 0, 1))
        if self.mask is not None:
            scores = scores + ops.cast(self.mask[:, None], scores.dtype)
        x = ops.einsum("bwhqk,bwkhd->bwqhd", ops.softmax(scores), v)
        x = ops.reshape(x, (-1, count, count, size, size, channels))
        x = ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, self.side, self.side, channels))
        if self.shift:
            x = ops.roll(x, (self.shift, self.shift), axis=(1, 2))
        return self.out(x)


def swin_t() -> Any:
    """Liu et al. 2021, table 7: Swin-T, layers 2, 2, 6, 2 of 96 to 768 channels, windows of 7, 28 M parameters."""
    images = keras.Input((224, 224, 3))
    x = layers.LayerNormalization(name="stem_norm")(layers.Conv2D(96, 4, strides=4, name="stem")(images))
    for stage, (depth, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
        if stage:
            side, channels = x.shape[1] // 2, x.shape[-1]
            x = layers.Reshape((side, 2, side, 2, channels))(x)
            x = layers.Reshape((side, side, 4 * channels))(layers.Permute((1, 3, 4, 2, 5))(x))
            x = layers.LayerNormalization(name=f"merge_{stage}_norm")(x)
            x = layers.Dense(2 * channels, use_bias=False, name=f"merge_{stage}")(x)
        for block in range(depth):
            name, shift = f"stage_{stage}_{block}", 3 if block % 2 and x.shape[1] > 7 else 0
            y = layers.LayerNormalization(name=f"{name}_norm_1")(x)
            x = x + WindowAttention(heads, shift=shift, name=f"{name}_attention")(y)
            y = layers.LayerNormalization(name=f"{name}_norm_2")(x)
            y = layers.Dense(4 * x.shape[-1], "gelu", name=f"{name}_wide")(y)
            x = x + layers.Dense(x.shape[-1], name=f"{name}_narrow")(y)
    x = layers.GlobalAveragePooling1D()(layers.Reshape((-1, 768))(layers.LayerNormalization(name="norm")(x)))
    return keras.Model(images, layers.Dense(1000, "softmax", name="head")(x))


def diffusion_unet() -> Any:
    """Ho et al. 2020, appendix B: images of 32, 128 channels times 1, 2, 2, 2, attention at 16, 36 M parameters."""
    images, time = keras.Input((32, 32, 3)), keras.Input((128,), name="time")
    moment = layers.Dense(512, "silu", name="time_2")(layers.Dense(512, "silu", name="time_1")(time))

    def residual(x: Any, filters: int, name: str) -> Any:
        y = layers.Activation("silu")(layers.GroupNormalization(32, name=f"{name}_norm_1")(x))
        y = layers.Conv2D(filters, 3, padding="same", name=f"{name}_1")(y)
        y = y + layers.Reshape((1, 1, filters))(layers.Dense(filters, name=f"{name}_time")(moment))
        y = layers.Activation("silu")(layers.GroupNormalization(32, name=f"{name}_norm_2")(y))
        y = layers.Conv2D(filters, 3, padding="same", name=f"{name}_2")(layers.Dropout(0.1)(y))
        return y + (x if x.shape[-1] == filters else layers.Conv2D(filters, 1, name=f"{name}_skip")(x))

    def attended(x: Any, name: str) -> Any:
        y = layers.Reshape((-1, x.shape[-1]))(layers.GroupNormalization(32, name=f"{name}_norm")(x))
        y = layers.MultiHeadAttention(1, x.shape[-1], name=name)(y, y)
        return x + layers.Reshape(x.shape[1:])(y)

    x = layers.Conv2D(128, 3, padding="same", name="first")(images)
    held = [x]
    for level, filters in enumerate((128, 256, 256, 256)):
        for block in range(2):
            x = residual(x, filters, f"down_{level}_{block}")
            x = attended(x, f"down_{level}_{block}_attention") if x.shape[1] == 16 else x
            held.append(x)
        if level < 3:
            x = layers.Conv2D(filters, 3, strides=2, padding="same", name=f"down_{level}_half")(x)
            held.append(x)
    x = residual(attended(residual(x, 256, "middle_1"), "middle_attention"), 256, "middle_2")
    for level, filters in reversed(list(enumerate((128, 256, 256, 256)))):
        for block in range(3):
            x = residual(layers.Concatenate()([x, held.pop()]), filters, f"up_{level}_{block}")
            x = attended(x, f"up_{level}_{block}_attention") if x.shape[1] == 16 else x
        if level:
            x = layers.Conv2D(filters, 3, padding="same", name=f"up_{level}_twice")(layers.UpSampling2D()(x))
    x = layers.Activation("silu")(layers.GroupNormalization(32, name="last_norm")(x))
    return keras.Model([images, time], layers.Conv2D(3, 3, padding="same", name="last")(x))
