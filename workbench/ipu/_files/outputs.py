"""What a compile leaves on disk when the environment or the configuration asks: reports and executables.

`POPLAR_ENGINE_OPTIONS` is JSON as Poplar reads it; of `compilation_poplar_options` the `autoReport` keys count too.
Names: Poplar and PopLibs API reference, engine options. The file is a profile of ours: `wb.load_profile` reads it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import OptionValueError

LOGGER = logging.getLogger("workbench.ipu")
VARIABLE = "POPLAR_ENGINE_OPTIONS"
_ASKS = ("autoReport.all", "autoReport.outputGraphProfile", "autoReport.outputExecutionProfile")
_OFF = ("debug.instrument", "autoReport.outputExecutionProfile")
EXCHANGE_AIM = "opt.internalExchangeOptimisationTarget"
_LEVEL = "debug.computeInstrumentationLevel"
_LEVELS = {"device": "DEVICE_PROFILE", "ipu": "IPU_PROFILE", "tile": "TILE_PROFILE", "vertex": "TILE_PROFILE"}


def write(executable: Any) -> None:
    """Write the report and the executable that are asked for; nothing when none is."""
    options = executable.request.options
    folder = report_folder(dict(options.get("compilation_poplar_options") or ()))
    name = re.sub(r"[^\w.-]+", "_", executable.profile.name) if folder or options.get(_FOLDER) else ""
    if folder is not None:
        place = _free(folder / name) / "profile.wbprofile"
        place.parent.mkdir(parents=True, exist_ok=True)
        executable.profile.save(place)
        LOGGER.info("profile written to %s", place)
    if options.get(_FOLDER):
        from workbench.ipu._files.executables import save_executable

        save_executable(executable, _free(Path(str(options.get(_FOLDER))) / f"{name}.wbexec"))


_FOLDER = "serialization_output_folder"


def report_folder(compilation: Mapping[str, Any]) -> Path | None:
    """The folder reports go to, or None when none are asked for; text that is no JSON object is an `OptionError`."""
    given: dict[str, Any] = {**compilation, **engine_options()}
    if not any(str(given.get(name, "false")).lower() == "true" for name in _ASKS):
        return None
    return Path(str(given.get("autoReport.directory", ".")))


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


def engine_options() -> dict[str, Any]:
    """`POPLAR_ENGINE_OPTIONS` as a dictionary."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise OptionValueError(f"{VARIABLE} is not JSON: {error}", expected='{"autoReport.all": "true"}') from None
    if not isinstance(found, dict):
        raise OptionValueError(f"{VARIABLE} is {text}", expected='a JSON object such as {"autoReport.all": "true"}')
    return found


def _free(path: Path) -> Path:
    """The path, or with a number behind it where something is there already."""
    number, found = 0, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem}_{number}{path.suffix}")
    return found


__all__ = ["EXCHANGE_AIM", "engine_options", "exchange_aim", "execution_profile", "report_folder", "write"]
