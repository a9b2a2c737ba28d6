"""A model whose layers, inputs, file and options have names that are markup, code and hidden letters, compiled."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import keras

import workbench as wb
from workbench.executable import Executable
from workbench.ipu.config import IPUConfig

# Each would leave a mark (`window.ran`) or ask somebody else for something, if it were more than text. Keras has no
# names with a slash, so where a tag has to end it ends without one.
FOREIGN = "evil.invalid"
RUN = "window.ran=(window.ran||0)+1"
NAMES = (
    f"<img src=x onerror={RUN}>",
    f"<script>{RUN}<\\script>",
    f'"\'><svg onload="{RUN}">',
    f"javascript:{RUN}",
    f"[click](javascript:{RUN})",
    f"${{{RUN}}}`{{{{constructor.constructor('{RUN}')()}}}}",
    f"<img src=\\\\{FOREIGN}\\x><iframe srcdoc=&lt;script&gt;{RUN}>",
    "\u202e\u2066turned\x1b[2J\u2028\ud800&amp;<b>",
)
# What may stand where Keras does not look: a file's name, an option's value.
FREE = f"</script></style></textarea><script>{RUN}</script><img src=http://{FOREIGN}/x>"


@functools.cache
def hostile_model() -> Any:
    """A layer for each of the names."""
    layers = [keras.layers.Dense(8, name=name) for name in NAMES]
    return keras.Sequential([keras.Input((8,), name=f"in{NAMES[0]}"), *layers], name=f"model{NAMES[0]}")


ASKED: dict[str, Any] = {"batch_size": 4, "mode": "training", "gradient_accumulation_steps": 8}


def target() -> wb.Target:
    """Few tiles, so that it is small."""
    return wb.target("ipu2", tiles_per_ipu=8)


@functools.cache
def hostile_executable() -> Executable:
    """Two stages; Poplar keys that nobody knows are kept as they are given, and told in the verdict."""
    config = IPUConfig()
    config.compilation_poplar_options = {FREE: FREE}
    stages = [NAMES[len(NAMES) // 2]]
    return wb.compile(hostile_model(), stages=stages, config=config, target=target(), **ASKED)


def hostile_function() -> Executable:
    """A JAX function out of a file whose name is markup, in a scope whose name is."""
    names: dict[str, Any] = {"scope": FREE}
    source = "import jax\ndef f(x):\n    with jax.named_scope(scope):\n        return (x * 2).sum()\n"
    exec(compile(source, f"/tmp/{FREE}.py", "exec"), names)
    names["f"].__name__ = names["f"].__qualname__ = FREE
    return wb.compile(names["f"], jax.ShapeDtypeStruct((8, 8), "float32"), target=target())


def hostile_answers() -> Iterator[tuple[str, Any]]:
    """What a notebook shows of them, by name: every view with a face of its own."""
    executable = hostile_executable()
    yield "profile", executable.profile
    yield "function", hostile_function().profile
    yield "diagnosis", wb.diagnose(executable, compiles=2)
    yield "sweep", wb.sweep(hostile_model(), {"batch_size": [2, 4]}, target=target())
    yield "plan", wb.plan(hostile_model(), global_batch=4, compiles=3, target=target())
    yield "fewest", wb.fewest_ipus(hostile_model(), target=target(), batch_size=4, mode="training")
    yield "split", wb.autosplit(hostile_model(), 2, compiles=1, target=target(), **ASKED)
    yield (
        "schedules",
        wb.compare_schedules(
            hostile_model(), stages=[NAMES[3]], target=target(), **{**ASKED, "gradient_accumulation_steps": 4}
        ),
    )
    yield "comparison", wb.compare(executable.profile, hostile_function().profile)


def texts(value: Any) -> Iterator[str]:
    """All texts in JSON data, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
