from __future__ import annotations

from collections.abc import Iterator

import pytest

from workbench import ipu, tf
from workbench.ipu.config._state import STATE


@pytest.fixture(autouse=True)
def fresh_system(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a Pod16, no configuration, no flags and no seed; the next has too."""
    monkeypatch.delenv("TF_POPLAR_FLAGS", raising=False)
    ipu.devices.use("pod16")
    ipu.config.reset_ipu_configuration()
    yield
    ipu.devices.use("pod16")
    ipu.config.reset_ipu_configuration()
    STATE.reset_seed(0, identical_replicas=False)
    STATE.resets = 0


@pytest.fixture(autouse=True)
def fresh_graph() -> None:
    """Each test has an empty default graph."""
    tf.reset_default_graph()
