"""A small configured IPU for models made in a strategy's scope."""

import pytest

from tests.ipu.strategy.twins import Twins
from workbench.ipu.config import IPUConfig


@pytest.fixture
def twins(fresh_system: None) -> Twins:
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    return Twins()
