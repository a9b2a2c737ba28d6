"""`POPLAR_ENGINE_OPTIONS`, JSON as Poplar reads it, and what of it is an option here."""

# Names: Poplar and PopLibs API reference, engine options.

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from workbench.errors import OptionValueError
from workbench.ipu.config._told import without_effect

VARIABLE = "POPLAR_ENGINE_OPTIONS"
_OFF = ("debug.instrument", "autoReport.outputExecutionProfile")
EXCHANGE_AIM = "opt.internalExchangeOptimisationTarget"
REPORTS = ("autoReport.all", "autoReport.outputGraphProfile", "autoReport.outputExecutionProfile")
REPORT_FOLDER = "autoReport.directory"
_LEVEL = "debug.computeInstrumentationLevel"
_LEVELS = {"device": "DEVICE_PROFILE", "ipu": "IPU_PROFILE", "tile": "TILE_PROFILE", "vertex": "TILE_PROFILE"}
ACTING = (*_OFF, *REPORTS, REPORT_FOLDER, EXCHANGE_AIM, _LEVEL)


def engine_options() -> dict[str, Any]:
    """`POPLAR_ENGINE_OPTIONS` as a dictionary; a key that is no option here is told once.

    Errors: `OptionValueError` for text that is no JSON object.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionValueError(f"{VARIABLE} is not JSON: {error}", expected='{"autoReport.all": "true"}') from None
    if not isinstance(found, dict):
        raise OptionValueError(f"{VARIABLE} is {text}", expected='a JSON object such as {"autoReport.all": "true"}')
    without_effect(VARIABLE, found, ACTING)
    return found


def execution_profile(compilation: Mapping[str, Any]) -> str | None:
    """How much of the trace the engine options ask for, as an `ExecutionProfileType` by name; None when they do not.

    The driver sets the same options for its members (graphcore/tensorflow@0062ad12 tensorflow/compiler/plugin/poplar/
    driver/poplar_executor.cc:1849-1867).
    """
    given: dict[str, Any] = {**compilation, **engine_options()}
    if any(str(given.get(name, "true")).lower() == "false" for name in _OFF):
        return "NO_PROFILE"
    level = str(given.get(_LEVEL, "")).lower()
    if level and level not in _LEVELS:
        raise OptionValueError(f"{_LEVEL} is {given[_LEVEL]!r}", expected=f"one of: {', '.join(_LEVELS)}")
    return _LEVELS[level] if level else None


def exchange_aim(compilation: Mapping[str, Any]) -> str | None:
    """What the engine options ask of exchanges inside an IPU; None when they do not."""
    given: dict[str, Any] = {**compilation, **engine_options()}
    return str(given[EXCHANGE_AIM]) if EXCHANGE_AIM in given else None


__all__ = ["ACTING", "EXCHANGE_AIM", "REPORTS", "REPORT_FOLDER", "engine_options", "exchange_aim", "execution_profile"]
