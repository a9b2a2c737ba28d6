"""What a compile leaves on disk when the environment or the configuration asks: reports and executables.

The `autoReport` keys of `POPLAR_ENGINE_OPTIONS` and of `compilation_poplar_options` ask for a report (Poplar and
PopLibs API reference, engine options). The file is a profile of ours: `wb.load_profile` reads it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.base.files import made_folder
from workbench.base.text import short
from workbench.errors import OptionValueError
from workbench.ipu.config._engine_options import REPORT_FOLDER, REPORTS, engine_options

LOGGER = logging.getLogger("workbench.ipu")


def write(executable: Any) -> None:
    """Write the report and the executable that are asked for; nothing when none is."""
    options = executable.request.options
    folder = report_folder(dict(options.get("compilation_poplar_options") or ()))
    name = file_name(executable.profile.name) if folder or options.get(_FOLDER) else ""
    if folder is not None:
        place = _free(folder / name) / "profile.wbprofile"
        made_folder(place.parent)
        executable.profile.save(place)
        LOGGER.info("profile written to %s", place)
    if options.get(_FOLDER):
        from workbench.ipu._files.executables import save_executable

        save_executable(executable, _free(Path(str(options.get(_FOLDER))) / f"{name}.wbexec"))


def file_name(name: str) -> str:
    """A name of a model as that of a file inside a folder, whatever the model is called."""
    return re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:MOST_LETTERS] or "model"


MOST_LETTERS = 60  # of at most four bytes; a file's name may have 255, and what is added to it needs some
_FOLDER = "serialization_output_folder"


def report_folder(compilation: Mapping[str, Any]) -> Path | None:
    """The folder reports go to, or None when none are asked for; text that is no JSON object is an `OptionError`."""
    given: dict[str, Any] = {**compilation, **engine_options()}
    asked = [_is_true(name, given.get(name, "false")) for name in REPORTS]
    if not any(asked):
        return None
    return Path(str(given.get(REPORT_FOLDER, ".")))


def _is_true(name: str, value: Any) -> bool:
    """What a switch of Poplar's says, in text as Poplar takes it."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise OptionValueError(f"{name} is {short(value)}", expected="'true' or 'false'")
    return text == "true"


def _free(path: Path) -> Path:
    """The path, or with a number behind it where something is there already."""
    number, found = 0, path
    while os.path.lexists(found):  # False of a name that no file can have, which is refused where it is written
        number += 1
        found = path.with_name(f"{path.stem}_{number}{path.suffix}")
    return found


__all__ = ["report_folder", "write"]
