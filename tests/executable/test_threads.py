"""Several threads may compile one model at once: all get what one alone gets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from tests.corpus.digest import digests
from workbench.executable import cache

COMPILES, THREADS = 30, 4


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


def model() -> Any:
    import keras

    keras.utils.set_random_seed(1)
    shared = keras.layers.Dense(16, "relu", name="shared")
    first = keras.Input((16,))
    x = keras.layers.BatchNormalization(name="norm")(keras.layers.Dropout(0.3, seed=1, name="drop")(shared(first)))
    made = keras.Model(first, keras.layers.Dense(4, name="last")(shared(x)))
    made.compile("adam", "mse")
    return made


def digest(source: Any) -> dict[str, Any]:
    """All a profile holds, without the seconds of its phases."""
    found = digests(wb.profile(source, batch_size=4, mode="training", target=wb.target("ipu2", tiles_per_ipu=4)))
    return {name: value for name, value in found.items() if name != "passes"}


@pytest.mark.parametrize("kept", ["off", "memory", "disk"])
@pytest.mark.parametrize("kind", ["model", "builder"])
@pytest.mark.usefixtures("hasty")
def test_threads_get_what_one_gets(kind: str, kept: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path) if kept == "disk" else kept)
    cache.clear()
    source = model if kind == "builder" else model()
    expected = digest(source)
    count = COMPILES if (kind, kept) == ("model", "off") else THREADS
    left, found, problems = iter(range(count)), [], []
    taking = threading.Lock()

    def work() -> None:
        while True:
            with taking:
                number = next(left, None)
            if number is None:
                return
            try:
                found.append(digest(source))
            except BaseException as problem:
                problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not problems
    assert len(found) == count
    assert all(each == expected for each in found)


@pytest.mark.usefixtures("hasty")
def test_runs_of_threads_follow_each_other() -> None:
    """Each run advances the model from where the one before left it: none is lost."""
    import numpy as np

    x, y = np.linspace(-1, 1, 32, dtype="float32").reshape(2, 16), np.ones((2, 4), "float32")
    machine = wb.target("ipu2", tiles_per_ipu=4)
    each, alone = model(), model()
    together = wb.compile(each, batch_size=2, mode="training", target=machine)
    in_turn = wb.compile(alone, batch_size=2, mode="training", target=machine)
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                together.run(x, y)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not problems
    for _ in range(5 * THREADS):
        in_turn.run(x, y)
    for one, other in zip(each.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
