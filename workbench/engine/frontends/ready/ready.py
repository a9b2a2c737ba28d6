"""Ready models by name and size, built without weights when they are traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.base.text import meant
from workbench.engine.frontends.ready import models
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyModel:
    """A model that is built when it is traced, without weights.

    `size` holds the chosen sizes and `loss` the name of the loss it is trained with when none is given, and the
    sentence that says so.
    """

    name: str
    size: tuple[tuple[str, int], ...]
    builder: Callable[[], Any]
    loss: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.size)})"


_APPLICATION = {"image_size": 224, "classes": 1000}
_BERT = {"sequence_length": 128, "classes": 2, "vocabulary": 30522}  # google-research/bert README: word pieces
_LLAMA = {"layers": 1, "hidden": 2048, "heads": 32}  # Zhang et al., "TinyLlama", 2024, table 2

_READY: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "mlp": (models.mlp, {"layers": 2, "hidden": 128, "input_size": 64, "classes": 10}),
    "cnn": (models.cnn, {"layers": 2, "hidden": 32, "image_size": 32, "channels": 3, "classes": 10}),
    "resnet50": (functools.partial(models.application, "ResNet50"), _APPLICATION),
    "mobilenetv2": (functools.partial(models.application, "MobileNetV2"), _APPLICATION),
    "efficientnetb0": (functools.partial(models.application, "EfficientNetB0"), _APPLICATION),
    "lstm": (models.lstm, {"layers": 2, "hidden": 256, "sequence_length": 64, "input_size": 64, "classes": 10}),
    # BERT-Base and BERT-Large: google-research/bert README.
    "bert-base": (functools.partial(models.bert, "bert_base"), {"layers": 12, "hidden": 768, "heads": 12, **_BERT}),
    "bert-large": (functools.partial(models.bert, "bert_large"), {"layers": 24, "hidden": 1024, "heads": 16, **_BERT}),
    # The smallest of GPT-2: openai/gpt-2 src/model.py default_hparams, its context of 1024 as a size to choose.
    "gpt2": (
        models.gpt2,
        {"layers": 12, "hidden": 768, "heads": 12, "sequence_length": 1024, "vocabulary": 50257},
    ),
    "llama-block": (models.llama_block, {**_LLAMA, "sequence_length": 128, "classes": 10}),
    "llama-decode": (models.llama_decode, {**_LLAMA, "cache_length": 128, "batch": 1, "classes": 10}),
    # ViT-B/16: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 1.
    "vit-b16": (
        models.vit,
        {"layers": 12, "hidden": 768, "heads": 12, "image_size": 224, "patch_size": 16, "classes": 1000},
    ),
    "transformer-encoder": (
        models.transformer_encoder,
        {"layers": 6, "hidden": 512, "heads": 8, "sequence_length": 128, "classes": 10},
    ),
}

READY_NAMES: tuple[str, ...] = tuple(_READY)
_LOSS = (
    "sparse_categorical_crossentropy",
    "loss: sparse categorical cross-entropy, the ready model's own, because none was given",
)


def ready(name: str, **size: int) -> ReadyModel:
    """A ready model, in the given sizes (`layers`, `hidden`, `heads`, `sequence_length`, `image_size`, `classes`…).

    Errors: `InputError` for an unknown name or size, or one that is no positive whole number.
    """
    if name not in _READY:
        raise InputError(
            f"there is no ready model {name!r}", expected=f"one of: {', '.join(READY_NAMES)}", todo=meant(name, _READY)
        )
    build, defaults = _READY[name]
    for key, value in size.items():
        if key not in defaults:
            raise InputError(
                f"{name} has no size {key!r}", expected=f"any of: {', '.join(defaults)}", todo=meant(key, defaults)
            )
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name}: {key} is {value!r}", expected="a whole number of at least 1")
    chosen = {**defaults, **{key: int(value) for key, value in size.items()}}
    if "heads" in chosen and chosen["hidden"] % chosen["heads"]:
        raise InputError(
            f"{name}: hidden={chosen['hidden']} does not divide by heads={chosen['heads']}",
            expected="hidden a multiple of heads",
        )
    return ReadyModel(name=name, size=tuple(chosen.items()), builder=functools.partial(build, **chosen), loss=_LOSS)
