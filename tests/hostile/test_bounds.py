"""What is long, large or many is bounded: each in a process of its own, with limits of time and memory around it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb

ROOT = Path(wb.__path__[0]).parent
SECONDS = 120  # a hang, not a slow machine
MOST_GROWN_BYTES = 64 << 20  # of the second hundred compiles


def ran(name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.hostile.bounds", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_loop_of_loops_is_shown_in_windows() -> None:
    assert 0 < ran("loops")["rectangles"] <= 20_000


@pytest.mark.slow
def test_a_bomb_is_refused_within_half_a_gib() -> None:
    assert ran("bomb")["packed_bytes"] < 8 << 20


@pytest.mark.slow
def test_compiles_and_displays_keep_no_memory() -> None:
    assert ran("memory")["grown_bytes"] < MOST_GROWN_BYTES
