"""Each architecture with the options a user gives it, what is published of it, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tests.models.published import sequences, vision

CROSSENTROPY = "sparse_categorical_crossentropy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`parameters` and `gmacs` (1e9 multiply-adds of a forward pass of one sample) as published; 0 where none is."""

    build: Callable[[], Any]
    batch: int
    parameters: int = 0
    gmacs: float = 0.0
    training: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    fits: bool = True

    def arguments(self) -> dict[str, Any]:
        way: dict[str, Any] = {"mode": "training", "optimizer": "sgd"} if self.training else {"mode": "inference"}
        loss = {"loss": CROSSENTROPY} if self.training else {}
        return {"batch_size": self.batch, "precision": "float16", **way, **loss, **self.more}


def after(name: str, *numbers: int) -> list[str]:
    return [name.format(number) for number in numbers]


PIPELINE = {"recomputation": True, "gradient_accumulation_steps": 32, "stages": after("encoder_{}_add_2", 2, 5, 8)}
UNET = {"recomputation": True, "gradient_accumulation_steps": 24, "stages": ["pool_1", "up_3_grow", "up_1_grow"]}
MOE = {"gradient_accumulation_steps": 4, "stages": after("block_{}_add_2", 2, 5, 8)}
VIT, VIT_384 = (86_567_656, 17.56), (86_859_496, 55.48)  # pytorch/vision: parameters and GFLOPS of its models
RESNEXT, SWIN = (25_028_904, 4.23), (28_288_354, 4.49)  # the same
DDPM = (35_746_307, 6.1)  # 35.7 M, Ho et al. 2020; 6.1 G, Fang et al. 2023, table 1

CASES: dict[str, Published] = {
    "ViT-B/16, inference": Published(build=vision.vit_b16, batch=8, parameters=VIT[0], gmacs=VIT[1]),
    "ViT-B/16, 4 IPUs": Published(
        build=vision.vit_b16, batch=8, parameters=VIT[0], gmacs=VIT[1], training=True, more=PIPELINE
    ),
    "ViT-B/16 at 384, inference": Published(
        build=partial(vision.vit_b16, 384), batch=2, parameters=VIT_384[0], gmacs=VIT_384[1]
    ),
    "ViT-B/16 at 384, 16 IPUs": Published(
        build=partial(vision.vit_b16, 384),
        batch=2,
        parameters=VIT_384[0],
        gmacs=VIT_384[1],
        training=True,
        more={**PIPELINE, "replicas": 4},
    ),
    "U-Net, inference": Published(build=vision.unet, batch=1, parameters=31_030_658),
    # A weight gradient over 568 pixels has a worklist for each position of its kernel, which is as large, with an entry
    # for each row of its 64 images: 529 kB of a tile, 279 kB with half partials, whose program does not fit either
    # (818 kB). PopLibs' vertices have the same lists (poplibs@7eac0f26 lib/poplin/ConvVertices.cpp:174, :829); which
    # plan it takes for the published application, which fits four IPUs, is not known.
    "U-Net, 4 IPUs": Published(build=vision.unet, batch=1, parameters=31_030_658, training=True, more=UNET, fits=False),
    "ResNeXt-50, inference": Published(build=vision.resnext50, batch=16, parameters=RESNEXT[0], gmacs=RESNEXT[1]),
    "ResNeXt-50, training": Published(
        build=vision.resnext50, batch=4, parameters=RESNEXT[0], gmacs=RESNEXT[1], training=True
    ),
    "Swin-T, inference": Published(build=vision.swin_t, batch=4, parameters=SWIN[0], gmacs=SWIN[1]),
    "Swin-T, training": Published(build=vision.swin_t, batch=2, parameters=SWIN[0], gmacs=SWIN[1], training=True),
    "RetinaNet": Published(build=vision.retinanet, batch=1),
    "diffusion U-Net, inference": Published(build=vision.diffusion_unet, batch=8, parameters=DDPM[0], gmacs=DDPM[1]),
    "diffusion U-Net, training": Published(
        build=vision.diffusion_unet,
        batch=4,
        parameters=DDPM[0],
        gmacs=DDPM[1],
        training=True,
        more={"loss": "mse"},
    ),
    "Switch, 4 IPUs": Published(build=sequences.switch_base, batch=1, more=MOE),
}
MAMBA = (sequences.mamba, sequences.mamba_weights(24), jax.ShapeDtypeStruct((1, 256, 768), jnp.float16))
