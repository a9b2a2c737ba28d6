"""`ExecutionProfileType` chooses how much of the trace a profile keeps, in memory and in its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.engine.sharding import ipu_shard
from workbench.ipu.config import ExecutionProfileType, IPUConfig

ROWS = np.zeros((64, 64), np.float32)


def on_two_ipus(rows: Any) -> Any:
    with ipu_shard(0):
        half = rows + 1.0
    with ipu_shard(1):
        return half * 2.0


def profile(**more: Any) -> Any:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 4
    config.auto_select_ipus = 2
    config.compilation_poplar_options = more.pop("engine", {})
    return wb.profile(on_two_ipus, ROWS, config=config, **more)


def tile_cycles(found: Any) -> int:
    return int(sum(found.vector(row).sum() for row in found.tables["steps"]["cycles_index"].tolist()))


@pytest.mark.parametrize("level", list(ExecutionProfileType))
def test_each_level_keeps_what_it_says(level: ExecutionProfileType, tmp_path: Path) -> None:
    """The copy between the IPUs occupies both: two rows by IPU, one of the device."""
    whole, found = profile(), profile(execution_profile=level)
    found = wb.load_profile(found.save(tmp_path / "kept.wbprofile"))
    assert found.total_cycles == whole.total_cycles
    assert found.peak == whole.peak
    rows = {
        ExecutionProfileType.NO_PROFILE: 0,
        ExecutionProfileType.DEVICE_PROFILE: len(whole.blocks().drop_duplicates(["step", "cycles_from"])),
    }
    assert len(found.blocks()) == rows.get(level, len(whole.blocks()))
    places = {ExecutionProfileType.NO_PROFILE: set(), ExecutionProfileType.DEVICE_PROFILE: {-1}}
    assert set(found.blocks()["ipu"]) == places.get(level, {0, 1})
    assert (tile_cycles(found) > 0) is (level is ExecutionProfileType.TILE_PROFILE)
    assert len(whole.blocks()) > rows[ExecutionProfileType.DEVICE_PROFILE] > 0
    assert str(found)
    assert found.to_html(tmp_path / "kept.html").stat().st_size


@pytest.mark.parametrize(
    ("engine", "level"),
    [
        ({"debug.computeInstrumentationLevel": "device"}, "DEVICE_PROFILE"),
        ({"debug.computeInstrumentationLevel": "ipu"}, "IPU_PROFILE"),
        ({"debug.computeInstrumentationLevel": "tile"}, "TILE_PROFILE"),
        ({"debug.instrument": "false"}, "NO_PROFILE"),
        ({"autoReport.outputExecutionProfile": "false"}, "NO_PROFILE"),
        ({}, "TILE_PROFILE"),
    ],
)
def test_engine_options_choose_the_level(engine: dict[str, str], level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile(engine=engine).config["profile.execution"] == level
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(engine))
    assert profile().config["profile.execution"] == level


@pytest.mark.parametrize("more", [{"execution_profile": "ALL"}, {"engine": {"debug.computeInstrumentationLevel": "x"}}])
def test_a_level_that_is_none_is_an_error(more: dict[str, Any]) -> None:
    with pytest.raises(wb.OptionError, match="Expected: one of: "):
        profile(**more)
