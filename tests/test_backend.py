"""Keras on another backend than JAX: one that is not there is told as such, and an empty choice is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ERROR = (
    "KERAS_BACKEND is 'of_nobody', and Keras cannot be loaded on that: Unable to import backend : of_nobody. Expected: "
    "the backend 'jax'. To mend it: take KERAS_BACKEND out of the environment, or put `import os; "
    "os.environ['KERAS_BACKEND'] = 'jax'` before `import workbench`, and restart the kernel."
)
TWICE = """
import workbench as wb
for each in (1, 2):
    try:
        wb.ready("mlp")
    except (wb.InputError, ImportError) as error:
        print(isinstance(error, ImportError), error)
"""


def printed(source: str, backend: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": backend}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_backend_that_is_not_there_is_named_each_time() -> None:
    assert printed(TWICE, "of_nobody") == [f"True {ERROR}"] * 2


@pytest.mark.parametrize("backend", ["", "jax"])
def test_where_nobody_chose_it_is_jax(backend: str) -> None:
    source = "import workbench, os, keras; print(os.environ['KERAS_BACKEND'], keras.backend.backend())"
    assert printed(source, backend) == ["jax jax"]
