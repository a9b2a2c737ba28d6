"""An interrupt at any moment of a compile leaves no thread, nothing kept and nothing half made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.executable import PHASES, cache, compile_request


def small() -> Any:
    import keras

    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(4, "softmax")])


def compiled(progress: Any = None) -> Any:
    arguments: dict[str, Any] = {"batch_size": 4, "mode": "training", "progress": progress}
    return wb.compile(small, target=wb.target("ipu2", tiles_per_ipu=4), **arguments)


def compile_until(delay_seconds: float, traced: Any) -> None:
    """Compile what is traced again and again until a signal interrupts; JAX itself may end with one inside it.

    The signal comes again and again too: one that arrives while an object is destroyed is lost.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, delay_seconds, 0.5)
    try:
        while True:
            cache.clear()
            compile_request(traced.request, like=traced)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def heard() -> list[str]:
    phases: list[str] = []
    cache.clear()
    compiled(phases.append)
    return phases


def test_every_phase_is_heard() -> None:
    assert set(heard()) >= set(PHASES)


def test_an_interrupt_at_any_word_of_progress_leaves_nothing() -> None:
    whole = heard()
    cycles = compiled().profile.total_cycles
    before = set(threading.enumerate())
    cache.clear()
    for moment in range(len(whole)):  # had the last one left something, the next would hear less
        spoken: list[str] = []

        def stop(phase: str, last: int = moment, spoken: list[str] = spoken) -> None:
            spoken.append(phase)
            if len(spoken) > last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            compiled(stop)
        assert spoken == whole[: moment + 1]
        assert set(threading.enumerate()) <= before
    kept: list[str] = []
    assert compiled(kept.append).profile.total_cycles == cycles
    assert kept == whole


def test_a_signal_in_the_midst_of_a_compile_leaves_nothing() -> None:
    traced = compiled()
    cycles = traced.profile.total_cycles
    before = set(threading.enumerate())
    for delay_seconds in (0.001, 0.02, 0.1, 0.3):
        with pytest.raises(KeyboardInterrupt):
            compile_until(delay_seconds, traced)
        assert set(threading.enumerate()) <= before
        # What is kept, if it had come so far, is whole.
        assert compile_request(traced.request, like=traced).profile.total_cycles == cycles


FIRST_CELL = """
import os, signal, threading, time
import workbench as wb
threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    wb.compile("mlp", batch_size=2, mode="training", target=wb.target("ipu2", tiles_per_ipu=4))
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    pass
print(wb.compile("mlp", batch_size=2, mode="training", target=wb.target("ipu2", tiles_per_ipu=4)).profile.fits)
"""


@pytest.mark.usefixtures("as_from_a_terminal")
@pytest.mark.parametrize("seconds", [0.05, 0.4, 0.8, 1.2])
def test_an_interrupt_of_the_first_cell_leaves_libraries_that_work(seconds: float) -> None:
    """It falls into the imports of NumPy, JAX and Keras, which none of them survives half done."""
    source = FIRST_CELL.format(seconds=seconds)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "WORKBENCH_CACHE": "memory"}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
