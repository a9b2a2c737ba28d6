"""The corpus' programs by name, and the state in which each of them begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import workbench as wb

# Sessions run their programs: XLA would spend most of the time making them fast.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
CACHES_OFF = {"WORKBENCH_CACHE": "off", "TF_POPLAR_FLAGS": "", "POPLAR_ENGINE_OPTIONS": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of the corpus; a slow one takes seconds."""

    name: str
    make: Callable[[], Any]
    slow: bool = False

    def profile(self) -> Any:
        """Its profile, compiled now and in the state of a fresh process: no cache, names and graphs from the start."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, CACHES_OFF))
            stack.callback(_unconfigured)
            _begin()
            return self.make()


PROGRAMS: dict[str, Program] = {}


def program(make: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that returns a profile under its own name."""
    add(make.__name__, make)
    return make


def slow(make: Callable[[], Any]) -> Callable[[], Any]:
    """The same for one that takes seconds."""
    add(make.__name__, make, slow=True)
    return make


def add(name: str, make: Callable[[], Any], *, slow: bool = False) -> None:
    """Register a function that returns a profile."""
    assert name not in PROGRAMS, f"two programs are called {name}"
    PROGRAMS[name] = Program(name=name, make=make, slow=slow)


def _begin() -> None:
    """Layers are named by number, and so are those of the program before."""
    import keras

    keras.utils.clear_session()
    _unconfigured()


def _unconfigured() -> None:
    """System, configuration and default graph are one for all."""
    from workbench import ipu, tf

    ipu.devices.use("pod16")
    ipu.config.reset_ipu_configuration()
    tf.reset_default_graph()


def ipu2(tiles: int) -> Any:
    """A whole IPU with fewer tiles."""
    return wb.target("ipu2", tiles_per_ipu=tiles)
