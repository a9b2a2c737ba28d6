"""ResNet-50's training step: our compile against XLA's of the same step, and the way from a cold start to a verdict.

Each figure is the median of fresh processes with every cache off. Ends with 1 when a budget is missed.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness import GIB, MB, Budgets, Figures, main

BATCH_SIZE = 4
IMAGE_SIZE, CLASSES = 224, 1000

BUDGETS: Budgets = (
    ("ours_over_xla", "", 1.0, "all our phases but the trace, over XLA's lower and compile"),
    ("compile_peak_bytes", "GiB", 2 * GIB, "peak memory of the process that does both"),
    ("verdict_seconds", "s", 8.0, "a fresh process to the verdict of wb.profile"),
    ("verdict_peak_bytes", "MB", 700 * MB, "peak memory of that process"),
    ("ours_seconds", "s", None, "all our phases but the trace"),
    ("trace_seconds", "s", None, "building and tracing the model"),
    ("xla_seconds", "s", None, "XLA's lower and compile of the same step, on this machine's CPU"),
)


def peak_bytes() -> int:
    """Most memory this process has had at once (Linux counts it in KiB, macOS in bytes), and who plans beside it."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit + beside_bytes()


def beside_bytes() -> int:
    """Most memory that the planner's second interpreter has had; libraries that both map are counted once."""
    from workbench.engine.planner.beside.second import SECOND

    if SECOND.pid is None or not Path(f"/proc/{SECOND.pid}").exists():
        return 0
    found = Counter[str]()
    for name in ("status", "smaps_rollup"):
        for each in Path(f"/proc/{SECOND.pid}/{name}").read_text().splitlines():
            word, _, size = each.partition(":")
            if size.endswith(" kB"):
                found[word] += int(size.split()[0]) * 1024
    return found["VmHWM"] - found["Shared_Clean"] - found["Shared_Dirty"]


def compile_with_ours() -> Figures:
    """Seconds of our phases, the trace apart."""
    import keras

    import workbench as wb

    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    passes = wb.compile("resnet50", batch_size=BATCH_SIZE, mode="training", optimizer=optimizer).passes
    traced = passes["phase"] == "trace"
    return {
        "ours_seconds": float(passes.loc[~traced, "seconds"].sum()),
        "trace_seconds": float(passes.loc[traced, "seconds"].sum()),
    }


def traced_step(image_size: int, classes: int) -> Any:
    """The same training step as JAX sees it, traced and not yet lowered; no weight is allocated."""
    import jax
    import keras

    optimizer, image_shape = keras.optimizers.SGD(0.01, momentum=0.9), (image_size, image_size, 3)
    loss = keras.losses.SparseCategoricalCrossentropy()

    # Tracing happens inside the scope too, or the initialisers would be part of the step.
    with keras.StatelessScope(initialize_variables=False):
        model = keras.applications.ResNet50(weights=None, input_shape=image_shape, classes=classes)
        optimizer.build(model.trainable_variables)

        def loss_of(trainable: Any, fixed: Any, images: Any, labels: Any) -> Any:
            predicted, fixed = model.stateless_call(trainable, fixed, images, training=True)
            return loss(labels, predicted), fixed

        def step(trainable: Any, fixed: Any, slots: Any, images: Any, labels: Any) -> Any:
            gradient_of = jax.value_and_grad(loss_of, has_aux=True)
            (value, fixed), gradients = gradient_of(trainable, fixed, images, labels)
            trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
            return value, trainable, fixed, slots

        def shapes(variables: Any) -> list[Any]:
            return [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in variables]

        return jax.jit(step, donate_argnums=(0, 1, 2)).trace(
            shapes(model.trainable_variables),
            shapes(model.non_trainable_variables),
            shapes(optimizer.variables),
            jax.ShapeDtypeStruct((BATCH_SIZE, *image_shape), "float32"),
            jax.ShapeDtypeStruct((BATCH_SIZE,), "int32"),
        )


def compile_with_xla(image_size: int = IMAGE_SIZE, classes: int = CLASSES) -> Figures:
    """Seconds of XLA's lower and compile, the trace apart."""
    traced = traced_step(image_size, classes)
    start = time.perf_counter()
    traced.lower().compile()
    return {"xla_seconds": time.perf_counter() - start}


def measure_compile() -> Figures:
    """Both compiles, one after the other, in this process."""
    figures = {**compile_with_ours(), **compile_with_xla()}
    figures["ours_over_xla"] = figures["ours_seconds"] / figures["xla_seconds"]
    return {**figures, "compile_peak_bytes": peak_bytes()}


def measure_verdict() -> Figures:
    """From the import to the printed verdict, in this process."""
    start = time.perf_counter()
    import workbench as wb

    profile = wb.profile("resnet50", batch_size=BATCH_SIZE, mode="training")
    print(profile.summary, file=sys.stderr)
    return {"verdict_seconds": time.perf_counter() - start, "verdict_peak_bytes": peak_bytes()}


MEASUREMENTS = {"compile": measure_compile, "verdict": measure_verdict, "xla": compile_with_xla}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS, usual=("compile", "verdict"), processes=3))
