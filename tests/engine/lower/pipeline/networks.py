"""Random networks in stages: with residual connections or without, of dense layers, convolutions or attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
from hypothesis import strategies as st

from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.recompute import Recomputation, mode_for
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.options import Options
from workbench.engine.target import target

KINDS = ("mlp", "residual mlp", "residual convolutions", "transformer", "transformer, norms first")
SCHEDULES = ("Grouped", "Interleaved")
layers = keras.layers


@dataclass(frozen=True, kw_only=True)
class Network:
    """Blocks one behind another; `cuts` are the blocks that end a stage. `skip` adds the first one's result to the last
    one's.
    """

    kind: str
    blocks: int
    cuts: tuple[int, ...]
    width: int
    batch: int
    activation: str
    dropout: bool
    normed: bool
    skip: bool
    precision: str

    @property
    def stages(self) -> int:
        return len(self.cuts) + 1

    def build(self) -> Any:
        """The model; a block's result has its number in its name."""
        keras.utils.set_random_seed(1)
        if self.kind == "residual convolutions":
            inputs, block = keras.Input((8, 8, 8)), self._convolutions
            x = layers.Conv2D(16, 3, padding="same")(inputs)
        elif self.kind in ("mlp", "residual mlp"):
            inputs = x = keras.Input((self.width,))
            block = self._dense
        else:
            inputs = x = keras.Input((12, self.width))
            block = self._attention
        made = [x]
        for number in range(self.blocks):
            made.append(block(made[-1], f"block{number}"))
        x = layers.Add()([made[1], made[-1]]) if self.skip else made[-1]
        if self.kind == "residual convolutions":
            x = layers.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, layers.Dense(8)(x))

    def _dense(self, x: Any, name: str) -> Any:
        y = layers.Dense(2 * self.width, activation=self.activation)(x)
        y = layers.LayerNormalization()(y) if self.normed else y
        y = self._dropped(layers.Dense(self.width)(y))
        return layers.Activation(self.activation, name=name)(y) if self.kind == "mlp" else layers.Add(name=name)([x, y])

    def _convolutions(self, x: Any, name: str) -> Any:
        y = x
        for last in (False, True):
            y = layers.Conv2D(16, 3, padding="same", use_bias=False)(y)
            y = layers.BatchNormalization()(y) if self.normed else layers.GroupNormalization(4)(y)
            y = y if last else layers.Activation(self.activation)(y)
        return layers.Activation(self.activation, name=name)(layers.Add()([x, y]))

    def _attention(self, x: Any, name: str) -> Any:
        first = self.kind.endswith("norms first")
        h = layers.LayerNormalization()(x) if first else x
        x = layers.Add()([x, layers.MultiHeadAttention(2, self.width // 2)(h, h)])
        h = x = x if first else layers.LayerNormalization()(x)
        h = layers.LayerNormalization()(h) if first else h
        y = layers.Dense(self.width)(layers.Dense(2 * self.width, activation=self.activation)(h))
        x = layers.Add(name=name if first else None)([x, self._dropped(y)])
        return x if first else layers.LayerNormalization(name=name)(x)

    def _dropped(self, x: Any) -> Any:
        return layers.Dropout(0.1, seed=3)(x) if self.dropout else x

    def source(self) -> Source:
        """Traced in training, over four micro-batches a stage."""
        more: dict[str, Any] = {} if self.precision == "float32" else {"precision": self.precision}
        return trace_keras(
            self.build(),
            self.batch,
            "training",
            stages=[f"block{number}" for number in self.cuts],
            gradient_accumulation_steps=4 * self.stages,
            optimizer=keras.optimizers.SGD(0.1),
            loss="mean_squared_error",
            **more,
        )


@st.composite
def networks(draw: Any, kinds: tuple[str, ...] = KINDS) -> Network:
    """A network of two to four stages."""
    blocks = draw(st.integers(2, 5))
    count = draw(st.integers(1, min(3, blocks)))
    return Network(
        kind=draw(st.sampled_from(kinds)),
        blocks=blocks,
        cuts=tuple(sorted(draw(st.permutations(range(blocks)))[:count])),
        width=draw(st.sampled_from((32, 48, 64))),
        batch=draw(st.sampled_from((4, 8, 16))),
        activation=draw(st.sampled_from(("relu", "gelu", "tanh", "sigmoid"))),
        dropout=draw(st.booleans()),
        normed=draw(st.booleans()),
        skip=draw(st.booleans()),
        precision=draw(st.sampled_from(("float32", "mixed_float16", "float16"))),
    )


def both(network: Network, schedule: str, mode: str = "Auto") -> tuple[Compiled, Compiled]:
    """Compiled without recomputation, and with it."""
    plain = network.source()
    again = with_recomputation(plain, Recomputation(mode=mode_for(mode, schedule)))
    options = Options().with_values({"pipeline.schedule": schedule})
    machine = target("ipu2", tiles_per_ipu=32)
    first, second = (compile_graph(each.graph, machine, options, ipus=network.stages) for each in (plain, again))
    return first, second
