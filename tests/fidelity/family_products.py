"""A vision transformer on a C600: cycles of the compute set of each product, exchange code of the whole tower.

Source: osmarks/ipu-stack@ce7c7e94 docs: SigLIP so400m, 729 positions of 1152, 16 heads of 72, hidden layer of 4304; its
rate is that of half partials.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.fidelity.compiling import config, struct
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.engine.program import OnTileExecute
from workbench.executable import Executable

POSITIONS, WIDTH, HEADS, HIDDEN, BLOCKS = 729, 1152, 16, 4304, 27
EPSILON = 1e-6
HEAD = WIDTH // HEADS
Shape = tuple[int, ...]
PRODUCTS: Mapping[str, tuple[Shape, Shape]] = {
    "QKVprojection": ((POSITIONS, WIDTH), (WIDTH, 3 * WIDTH)),
    "QK": ((HEADS, POSITIONS, HEAD), (HEADS, HEAD, POSITIONS)),
    "score": ((HEADS, POSITIONS, HEAD), (HEADS, HEAD, POSITIONS)),
    "PV": ((HEADS, POSITIONS, POSITIONS), (HEADS, POSITIONS, HEAD)),
    "outprojection": ((POSITIONS, WIDTH), (WIDTH, WIDTH)),
    "MLPup": ((POSITIONS, WIDTH), (WIDTH, HIDDEN)),
    "MLPdown": ((POSITIONS, HIDDEN), (HIDDEN, WIDTH)),
    "MLP1": ((POSITIONS, WIDTH), (WIDTH, HIDDEN)),
    "MLP2": ((POSITIONS, HIDDEN), (HIDDEN, WIDTH)),
}


def vision(case: Case) -> Any:
    """Cycles by type of the operands."""
    family, _, name = case["id"].partition("-")
    if name == "xcode":
        code = _tower().profile.tiles["internal_exchange_code"]
        return {"avg": [None, round(float(code.mean()))], "max": [None, int(code.max())]}
    if name not in PRODUCTS:
        return NotRun("of which tensors its exchange, copies and casts are is not published")
    if family == "FP8":
        return {"fp8": _cycles(*PRODUCTS[name], "float8_e4m3fn")}
    return {"fp16": _cycles(*PRODUCTS[name], "float16")}


@cache
def _tower() -> Executable:
    """All blocks: attention and feed-forward, each behind a layer normalisation and added."""
    return api.compile(_blocks, batch_size=1, config=config(matmuls={"partialsType": "half"}), target="ipu21")


def _blocks() -> Any:
    import keras

    layers = keras.layers
    x = inputs = keras.Input((POSITIONS, WIDTH), dtype="float16", name="positions")
    for number in range(BLOCKS):
        attention = layers.MultiHeadAttention(HEADS, HEAD, name=f"attention_{number}", dtype="float16")
        normed = layers.LayerNormalization(epsilon=EPSILON, name=f"attention_norm_{number}", dtype="float16")(x)
        x = layers.Add(name=f"attended_{number}", dtype="float16")([x, attention(normed, normed)])
        normed = layers.LayerNormalization(epsilon=EPSILON, name=f"norm_{number}", dtype="float16")(x)
        wide = layers.Dense(HIDDEN, activation="gelu", name=f"up_{number}", dtype="float16")(normed)
        down = layers.Dense(WIDTH, name=f"down_{number}", dtype="float16")(wide)
        x = layers.Add(name=f"out_{number}", dtype="float16")([x, down])
    return keras.Model(inputs, x, name="tower")


@cache
def _cycles(left: Shape, right: Shape, dtype: str) -> int:
    from jax import numpy as jnp

    compiled = api.compile(
        lambda a, b: jnp.matmul(a, b, preferred_element_type="float16"),
        struct(*left, dtype=dtype),
        struct(*right, dtype=dtype),
        config=config(matmuls={"partialsType": "half"}),
        target="ipu21",
    ).compiled
    steps = [step for step in compiled.program.steps if isinstance(step, OnTileExecute) and "/compute" in step.name]
    return sum(compiled.trace.steps[step.id].cycles * compiled.trace.executions[step.id] for step in steps)
