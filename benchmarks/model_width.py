"""How long models take: seven applications together, BERT-Base's training step, and a sweep over one option.

Each figure is taken in a fresh process with every cache off. Ends with 1 when a budget is missed.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from harness import Budgets, Figures, main

IMAGE_SIZES = {
    "ResNet50": 224,
    "VGG16": 224,
    "MobileNetV2": 224,
    "EfficientNetB0": 224,
    "DenseNet121": 224,
    "InceptionV3": 299,
    "ConvNeXtTiny": 224,
}
PROPORTIONS = [0.05 * step for step in range(1, 13)]
OPTION = "convolutions.poplar_options.availableMemoryProportion"

BUDGETS: Budgets = (
    (
        "applications_seconds",
        "s",
        20.0,
        "seven applications in inference at batch 8: built without weights, traced, compiled",
    ),
    ("bert_base_seconds", "s", 6.0, "all phases but the trace of BERT-Base's training step"),
    ("sweep_ratio", "", 4.0, "12 compiles of ResNet-50's training step, a proportion each, over the first of them"),
    ("bert_base_trace_seconds", "s", None, "building and tracing it"),
    ("sweep_first_seconds", "s", None, "the first of the 12 compiles, trace included"),
    ("sweep_seconds", "s", None, "all 12"),
    *((f"{name}_seconds", "s", None, "this application alone") for name in IMAGE_SIZES),
)


def measure_applications() -> Figures:
    """Seconds of each application's inference at batch 8, and of all."""
    import keras

    import workbench as wb

    found: Figures = {}
    for name, size in IMAGE_SIZES.items():

        def build(name: str = name, size: int = size) -> Any:
            return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))

        start = time.perf_counter()
        executable = wb.compile(build, batch_size=8, mode="inference")
        found[f"{name}_seconds"] = time.perf_counter() - start
        assert executable.profile.unmodelled.empty
    return {**found, "applications_seconds": sum(found.values())}


def measure_bert() -> Figures:
    """Seconds of BERT-Base's training step with Adam, the trace apart."""
    import keras

    import workbench as wb

    passes = wb.compile("bert-base", batch_size=1, mode="training", optimizer=keras.optimizers.Adam(1e-4)).passes
    traced = passes["phase"] == "trace"
    return {
        "bert_base_seconds": float(passes.loc[~traced, "seconds"].sum()),
        "bert_base_trace_seconds": float(passes.loc[traced, "seconds"].sum()),
    }


def measure_sweep() -> Figures:
    """Seconds of 12 compiles that differ in one option, as `wb.sweep` makes them: traced once."""
    from workbench.executable import compile_request, make_request

    request = make_request("resnet50", batch_size=4, mode="training", optimizer="sgd")
    seconds: list[float] = []
    executable = None
    for proportion in PROPORTIONS:
        start = time.perf_counter()
        executable = compile_request(request.replace(options={OPTION: proportion}), like=executable)
        seconds.append(time.perf_counter() - start)
    return {
        "sweep_first_seconds": seconds[0],
        "sweep_seconds": sum(seconds),
        "sweep_ratio": sum(seconds) / seconds[0],
    }


MEASUREMENTS = {"applications": measure_applications, "bert": measure_bert, "sweep": measure_sweep}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS))
