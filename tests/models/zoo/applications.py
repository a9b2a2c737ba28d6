"""The applications of Keras: whole at small images, and of the same blocks, fewer and narrower."""

from __future__ import annotations

from typing import Any

import keras
from keras.src.applications import convnext, densenet, efficientnet, mobilenet_v3, resnet

from tests.models.zoo.case import Case

apps = keras.applications
layers = keras.layers
SCC = "sparse_categorical_crossentropy"
GROUP_SIZE = 16
NORM_GROUPS = 8


def _grouped(layer: Any) -> Any:
    """Group norms for batch norms, convolutions in groups of 16 channels for depthwise ones."""
    if isinstance(layer, layers.BatchNormalization):
        return layers.GroupNormalization(NORM_GROUPS, name=layer.name)
    if isinstance(layer, layers.DepthwiseConv2D):
        channels = layer.input.shape[-1]
        return layers.Conv2D(
            channels,
            layer.kernel_size,
            layer.strides,
            layer.padding,
            groups=channels // GROUP_SIZE,
            use_bias=layer.use_bias,
            name=layer.name,
        )
    return layer.__class__.from_config(layer.get_config())


def grouped(model: Any) -> Any:
    """EfficientNet as it is made for the IPU (Masters et al., "Making EfficientNet more efficient", 2021)."""

    def call(layer: Any, *tensors: Any, **_: Any) -> Any:
        return layer(*tensors)  # without the mask that only a batch norm takes

    return keras.models.clone_model(model, clone_function=_grouped, call_function=call)


def _stack(x: Any) -> Any:
    x = resnet.stack_residual_blocks_v1(x, 4, 1, stride1=1, name="conv2")
    return resnet.stack_residual_blocks_v1(x, 8, 2, name="conv3")


def _small_efficientnet() -> Any:
    return efficientnet.EfficientNet(
        0.5, 0.3, 32, weights=None, input_shape=(32, 32, 3), classes=4, name="efficientnet", depth_divisor=16
    )


def _vgg() -> Any:
    """VGG's blocks of two and three convolutions."""
    blocks: list[Any] = [keras.Input((16, 16, 3))]
    for block, count in enumerate((2, 3)):
        blocks += [
            layers.Conv2D(4 << block, 3, padding="same", activation="relu", name=f"block{block}_conv{number}")
            for number in range(count)
        ]
        blocks.append(layers.MaxPooling2D(2, name=f"block{block}_pool"))
    return keras.Sequential([*blocks, layers.Flatten(), layers.Dense(8, "relu"), layers.Dense(4, "softmax")])


def _inception() -> Any:
    """A block of Inception: towers of unequal convolutions beside a pooling, joined."""

    def conv(x: Any, filters: int, *size: int) -> Any:
        x = layers.Conv2D(filters, size, padding="same", use_bias=False)(x)
        return layers.ReLU()(layers.BatchNormalization(scale=False)(x))

    images = keras.Input((12, 12, 3))
    x = layers.MaxPooling2D(3, 2)(conv(images, 4, 3, 3))
    towers = [
        conv(x, 4, 1, 1),
        conv(conv(conv(x, 2, 1, 1), 3, 1, 7), 4, 7, 1),
        conv(layers.AveragePooling2D(3, 1, padding="same")(x), 4, 1, 1),
    ]
    x = layers.GlobalAveragePooling2D()(layers.Concatenate()(towers))
    return keras.Model(images, layers.Dense(4, "softmax")(x))


def _case(build: Any, **options: Any) -> Case:
    return Case(build=build, loss=SCC, **options)


SMALL: dict[str, Case] = {
    "resnet50": _case(
        lambda: resnet.ResNet(_stack, False, True, weights=None, input_shape=(32, 32, 3), classes=4, weights_name=None)
    ),
    "vgg16": _case(_vgg),
    "mobilenetv2": _case(
        lambda: keras.Model(*_upto(apps.MobileNetV2(weights=None, alpha=0.35, input_shape=(32, 32, 3)), "block_2_add"))
    ),
    "mobilenetv3": _case(
        lambda: mobilenet_v3.MobileNetV3(
            lambda x, kernel, activation, se: _mobile(x, kernel, activation, se),
            16,
            input_shape=(32, 32, 3),
            alpha=1.0,
            model_type="small",
            weights=None,
            classes=4,
            include_top=True,
        )
    ),
    "efficientnetb0": _case(_small_efficientnet),
    "efficientnetb0 in groups": _case(lambda: grouped(_small_efficientnet())),
    "densenet121": _case(lambda: densenet.DenseNet([1, 2, 1, 1], weights=None, input_shape=(32, 32, 3), classes=4)),
    "inceptionv3": _case(_inception),
    "convnexttiny": _case(
        lambda: convnext.ConvNeXt([1, 1, 2, 1], [8, 16, 24, 32], weights=None, input_shape=(32, 32, 3), classes=4)
    ),
}


def _mobile(x: Any, kernel: int, activation: Any, se_ratio: Any) -> Any:
    x = mobilenet_v3._inverted_res_block(x, 1, 16, kernel, 2, se_ratio, mobilenet_v3.relu, 0)
    x = mobilenet_v3._inverted_res_block(x, 72.0 / 16, 24, kernel, 1, None, mobilenet_v3.relu, 1)
    return mobilenet_v3._inverted_res_block(x, 4, 24, kernel, 1, se_ratio, activation, 2)


def _upto(model: Any, name: str) -> tuple[Any, Any]:
    """The inputs of an application, and a classifier behind one of its layers."""
    x = layers.GlobalAveragePooling2D()(model.get_layer(name).output)
    return model.input, layers.Dense(4, "softmax", name="predictions")(x)


def _whole(name: str, size: int, **options: Any) -> Case:
    build = lambda: getattr(apps, name)(weights=None, input_shape=(size, size, 3), classes=10, **options)  # noqa: E731
    return _case(build)


TABLES = ("SMALL", "WHOLE")

WHOLE: dict[str, Case] = {
    "ResNet50": _whole("ResNet50", 32),
    "VGG16": _whole("VGG16", 32),
    "MobileNetV2": _whole("MobileNetV2", 32, alpha=0.35),
    "MobileNetV3Large": _whole("MobileNetV3Large", 32, alpha=0.75),
    "EfficientNetB0": _whole("EfficientNetB0", 32),
    "EfficientNetB0 in groups": _case(
        lambda: grouped(apps.EfficientNetB0(weights=None, input_shape=(32, 32, 3), classes=10))
    ),
    "DenseNet121": _whole("DenseNet121", 32),
    "InceptionV3": _whole("InceptionV3", 75),
    "ConvNeXtTiny": _whole("ConvNeXtTiny", 32),
}
