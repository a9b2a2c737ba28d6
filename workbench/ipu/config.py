"""`tensorflow.python.ipu.config`: the configuration of the IPU system."""

from __future__ import annotations

import os

from workbench.engine.options import Options

_configured: list[Options] = []


def current_options() -> Options:
    """The frozen options of the configuration configured last; defaults when none was."""
    return _configured[-1] if _configured else Options()


def use_emulation() -> bool:
    """Whether `TF_POPLAR_FLAGS` asks for the IPU model, which runs programs that do not fit."""
    return "--use_ipu_model" in os.environ.get("TF_POPLAR_FLAGS", "").split()
