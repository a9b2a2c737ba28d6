"""Orderings between schedules, and between recomputing with and without checkpoints."""

from __future__ import annotations

import functools
from typing import Any

from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.recompute import Recomputation
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.options import Options
from workbench.engine.target import target

LAYERS, WIDTH, SAMPLES = 16, 32, 64


def at_most(less: float, more: float) -> str:
    """`<=` where it holds, else `>`."""
    return "<=" if less <= more else ">"


def below(less: float, more: float) -> str:
    """`<` where it holds, else `>=`."""
    return "<" if less < more else ">="


def _fullest(compiled: Compiled) -> int:
    """Bytes of the tile that needs most: what is always there and the live peak."""
    return int(compiled.allocation.bounds.max())


@functools.cache
def _four(schedule: str) -> Compiled:
    """Four stages of four equal layers each, in training."""
    return _compiled(_deep([f"d{number}" for number in (3, 7, 11)], 16), schedule, 4)


def schedules_by_memory() -> str:
    """A training step of four stages under each schedule."""
    least, middle, most = (_fullest(_four(each)) for each in ("Sequential", "Interleaved", "Grouped"))
    first, second = below(least, middle), at_most(middle, most)
    return f"max(Sequential {least}) {first} max(Interleaved {middle}) {second} max(Grouped {most})"


def interleaved_against_grouped() -> str:
    """Memory and time of the same."""
    grouped, other = _four("Grouped"), _four("Interleaved")
    memory, times = (_fullest(other), _fullest(grouped)), (grouped.trace.total_cycles, other.trace.total_cycles)
    return (
        f"mem(Interleaved {memory[0]}) {below(*memory)} mem(Grouped {memory[1]}); "
        f"time(Grouped {times[0]}) {at_most(*times)} time(Interleaved {times[1]})"
    )


def checkpoints() -> str:
    """The live peak of a deep stage that computes its activations again, with every fourth result kept, and none."""
    kept = tuple(f"d{number}" for number in range(3, LAYERS, 4))
    peaks = [_peak(each) for each in (kept, ())]
    return f"peak(with {peaks[0]}) {below(*peaks)} peak(without {peaks[1]})"


def _peak(kept: tuple[str, ...]) -> int:
    how = Recomputation(mode="RecomputeAndBackpropagateInterleaved", checkpoints=kept)
    compiled = _compiled(with_recomputation(_deep([f"d{LAYERS - 2}"], 4), how), "Grouped", 2)
    return max(int(compiled.liveness.peak_bytes(ipu).max()) for ipu in range(compiled.program.ipus))


def _deep(cuts: list[str], steps: int) -> Source:
    import keras

    layers: list[Any] = [keras.layers.Dense(WIDTH, activation="gelu", name=f"d{n}") for n in range(LAYERS)]
    model = keras.Sequential([keras.Input((WIDTH,)), *layers])
    return trace_keras(
        model,
        SAMPLES,
        "training",
        stages=cuts,
        gradient_accumulation_steps=steps,
        loss="mean_squared_error",
        optimizer=keras.optimizers.SGD(0.1),
    )


def _compiled(source: Source, schedule: str, ipus: int) -> Compiled:
    options = Options().with_values({"pipeline.schedule": schedule})
    return compile_graph(source.graph, target("ipu2", tiles_per_ipu=8), options, ipus=ipus)
