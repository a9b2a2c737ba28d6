"""Orderings: the same inequality, with the engine's numbers in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.fidelity import family_halo, pipeline_orders, recurrent_orders
from tests.fidelity.compiling import config, struct
from tests.fidelity.family_memory import PROGRAMS, program_of
from tests.fidelity.measuring import total_bytes
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.engine.target import target

ALL_TILES = 1472


def inequality(case: Case) -> Any:
    """An inequality in the order of what was measured; `relation` says what holds between our numbers."""
    name = case["id"].removeprefix("INEQ-")
    return _ORDERS[name]() if name in _ORDERS else NotRun(f"the two programs of {name!r} are not built here")


def relation(less: float, more: float) -> str:
    """`<`, `=` or `>`."""
    return "<" if less < more else ">" if less > more else "="


def _bytes(name: str) -> int:
    return total_bytes(program_of(name, ALL_TILES, PROGRAMS[name][1]))


def _millions(value: int) -> str:
    return f"{value / 1e6:.1f}M"


def _training() -> str:
    train, infer = _bytes("RESNET-sgd"), _bytes("RESNET-inf")
    sign = relation(train, infer)
    return f"total(train SGD {_millions(train)}) {sign} total(inference {_millions(infer)})"


def _momentum() -> str:
    pairs = [(_bytes(f"RESNET-{loop}mom"), _bytes(f"RESNET-{loop}sgd")) for loop in ("", "loop-")]
    texts = [f"{_millions(more)} {relation(more, less)} {_millions(less)}" for more, less in pairs]
    return f"{texts[0]}; in loop {texts[1]}"


def _halo() -> str:
    names = (
        "implicit",
        "explicitOneTensorGroupedDirs",
        "explicitOneTensor2Wave",
        "explicitManyTensors",
        "explicitOneTensor",
    )
    cycles = [family_halo.total_cycles(name) for name in names]
    text = str(cycles[0])
    for less, more in pairwise(cycles):
        text += f" {relation(less, more)} {more}"
    return text


def _outlined() -> str:
    """A layer called four times, equal bodies outlined or each with its own code."""

    def size(outlined: bool) -> int:
        made = config()
        made.optimizations.enable_graph_outlining = outlined

        def program(x: Any, *weights: Any) -> Any:
            import jax

            for each in weights:
                x = jax.nn.sigmoid(x @ each)
            return x

        machine = target("ipu2", tiles_per_ipu=64)
        return total_bytes(api.compile(program, *[struct(256, 256)] * 5, target=machine, config=made))

    once, each = size(True), size(False)
    return f"outlined {once} {relation(once, each)} inline {each}"


def _half() -> str:
    """A convolution of halves and of floats; floats with little and with much memory for temporaries."""

    def cycles(dtype: str, proportion: float) -> int:
        import jax

        def program(image: Any, filters: Any) -> Any:
            return jax.lax.conv_general_dilated(
                image, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        made = config(convolutions={"availableMemoryProportion": str(proportion)})
        inputs = struct(1, 256, 256, 4, dtype=dtype), struct(3, 3, 4, 4, dtype=dtype)
        profile = api.profile(program, *inputs, target="ipu2", config=made)
        return int(profile.total_cycles)

    half, single, little = cycles("float16", 0.6), cycles("float32", 0.9), cycles("float32", 0.1)
    effect = "no effect" if little == single else f"{single} at 0.9, {little} at 0.1"
    return f"half{relation(half, single)}float; amp {effect}"


def _layer(kind: str) -> str:
    custom, cell = recurrent_orders.layer_against_cell(kind)
    return f"total(custom {_millions(custom)}) {relation(custom, cell)} total(TF {_millions(cell)})"


def _proportion(kind: str) -> str:
    more, less = recurrent_orders.more_against_less(kind)
    return f"total({_millions(more)} at 0.8) {relation(more, less)} total({_millions(less)} at 0.1)"


_ORDERS: dict[str, Callable[[], str]] = {
    "popnn-gru": lambda: _layer("GRU"),
    "popnn-lstm": lambda: _layer("LSTM"),
    "gru-amp": lambda: _proportion("GRU"),
    "lstm-amp": lambda: _proportion("LSTM"),
    "train-gt-infer": _training,
    "momentum-gt-sgd": _momentum,
    "explicit-halo": _halo,
    "outline-code": _outlined,
    "half-float": _half,
    "recompute-ckpt": pipeline_orders.checkpoints,
    "sequential-lt-grouped": pipeline_orders.schedules_by_memory,
    "interleaved-lt-grouped-mem": pipeline_orders.interleaved_against_grouped,
}
