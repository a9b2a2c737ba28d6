"""`tensorflow.python.ipu.ops`: operations of the IPU's own, module for module. Modules are loaded when first used.

Tests: tests/ipu/test_api.py, tests/ipu/pipelining.
"""

from __future__ import annotations

from typing import Any

from workbench.ipu import _names


def __getattr__(name: str) -> Any:
    return _names.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_names.modules(__name__)})
