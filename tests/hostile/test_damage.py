"""Damaged files of every format that the package reads: an error of ours or an equal value, no crash and no hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.hostile.damage import DAMAGES, damaged
from tests.hostile.formats import FORMATS
from tests.hostile.known import KNOWN_DAMAGE
from workbench.base.arrays import read_array

FEW = 14  # of each format, in `make test`
MORE = 3  # times as many in `make hostile`
SECONDS = 900
ROOT = Path(wb.__path__[0]).parent
# Formats that are read in one process after another, about as long as the other half.
HALVES = (("cache", "executable", "options", "table"), ("profile", "tensors", "sweep", "config"))


def hold(counts: dict[str, int]) -> None:
    arguments = [str(word) for name, count in counts.items() for word in (name, 0, count)]
    command = [sys.executable, "-m", "tests.hostile.damage", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT)
    assert done.returncode == 0, f"it stopped with {done.returncode} at\n{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    problems = {name: text for each in found.values() for name, text in each["problems"].items()}
    known = {name for name in problems if name.startswith(tuple(KNOWN_DAMAGE))}
    assert not set(problems) - known, "\n".join(f"{name}: {text}" for name, text in problems.items())
    for name, count in counts.items():
        assert sum(found[name]["ends"].values()) == count
        refused = sum(each for end, each in found[name]["ends"].items() if end.endswith("ours"))
        assert refused > 0 or name in ("sweep", "cache", "table"), "nothing was refused"
    if sum(counts.values()) > 1000:
        gone = [each for each in KNOWN_DAMAGE if each.split()[0] in counts and not any(map_of(each, known))]
        assert not gone, f"these are mended, so take them out of known.py: {gone}"


def map_of(beginning: str, names: set[str]) -> list[str]:
    return [name for name in names if name.startswith(beginning)]


def test_a_few_of_every_format() -> None:
    hold(dict.fromkeys(FORMATS, FEW))


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES, ids=" ".join)
def test_three_thousand(half: tuple[str, ...]) -> None:
    times = MORE if os.environ.get("WORKBENCH_HOSTILE") == "all" else 1
    hold({name: FORMATS[name].files * times for name in half})


def test_there_are_three_thousand_of_all_kinds() -> None:
    assert sum(each.files for each in FORMATS.values()) == 3000
    assert sorted(name for half in HALVES for name in half) == sorted(FORMATS)
    whole = json.dumps({"a": [1, 2, {"b": "c"}], "d": None}).encode() * 3
    kinds = Counter(damaged(whole, seed)[0] for seed in range(FORMATS["sweep"].files))
    assert set(kinds) == set(DAMAGES)
    assert sum(damaged(whole, seed)[1] != whole for seed in range(300)) > 280


@pytest.mark.parametrize("header", ["{'shape': (1", "(" * 500, "{'descr': '<i8'\n", "1L)"])
def test_a_header_of_an_array_that_python_cannot_read_is_one_kind_of_error(header: str) -> None:
    text = header.ljust(118) + "\n"
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    with pytest.raises(ValueError, match="header"):
        read_array(raw)
