"""Modules of the API are found where the API reference has them, whatever was loaded before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import workbench

OPERATORS = [each.stem for each in (Path(workbench.__file__).parent / "ipu" / "ops").glob("[a-z]*.py")]


def fresh(code: str) -> str:
    """What a process of its own prints: a module that was loaded by one path is found on the others too."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", OPERATORS)
def test_modules_of_operators_are_found_through_ops(name: str) -> None:
    assert fresh(f"from workbench import ipu; print(ipu.ops.{name}.__name__)") == f"workbench.ipu.ops.{name}\n"


def test_ops_lists_its_modules() -> None:
    assert fresh("from workbench.ipu import ops; print('pipelining_ops' in dir(ops))") == "True\n"
