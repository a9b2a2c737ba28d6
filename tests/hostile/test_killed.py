"""`kill -9` while a file is written: what lies there is the file of before or the file of after, whole."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KILLS = 25  # of each writer; the eight of them make 200


@pytest.mark.slow
def test_killed_200_times_no_writer_leaves_half_a_file() -> None:
    command = [sys.executable, "-m", "tests.hostile.killed", str(KILLS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(each["kills"] for each in found.values()) >= 200
    assert {name: each["halves"] for name, each in found.items() if each["halves"]} == {}
    assert sum(each["at_work"] for each in found.values()) >= 50, found  # a quarter met a half written file
