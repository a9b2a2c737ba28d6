"""The formats that the package reads: a whole file of each, how it is read, and what an equal value is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from tests.hostile import things
from workbench.profiler.storage import load_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`whole()` are the bytes of a good file; `read(path)` gives what can be compared with what the good one gives.

    `checked`: a sum stands over all its bytes, so that what is read of a damaged one is equal. Of the others, bytes
    that were changed may read as another value of the format.
    """

    suffix: str
    whole: Callable[[], bytes]
    read: Callable[[Path], Any]
    checked: bool = True
    files: int = 400  # damaged ones of 3,000


def written(suffix: str, write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"whole{suffix}"
        write(path)
        return path.read_bytes()


def told(profile: Any) -> str:
    """All that a profile says; where it is another one than it was, all reports have to be able to say it."""
    profile.blocks(max_rows=50)
    return "\n".join([str(profile), *(str(getattr(profile, name)) for name in ("memory", "trace", "pipeline"))])


def executable_told(path: Path) -> Any:
    found = wb.ipu.utils.load_executable(path)
    return [told(found.profile), np.asarray(found.run(things.square())[0]).tolist()]


def save_executable(path: Path) -> None:
    """Through the one public way: the option of a compile."""
    config = wb.ipu.config.IPUConfig()
    config.serialization_output_folder = str(path.parent)
    wb.compile(things.multiplied, things.square(), target=things.machine(), config=config)
    made = next(each for each in path.parent.rglob("*") if each.is_file())
    made.replace(path)


def tensors_told(path: Path) -> Any:
    """What a model's weights are after they were imported; they were zeros before."""
    model, before = things.model(), things.model().get_weights()
    model.set_weights([np.zeros_like(each) for each in before])
    try:
        wb.ipu.utils.import_data_in_live_model(model, [str(path)])
        return [np.asarray(each).tolist() for each in model.get_weights()]
    finally:
        model.set_weights(before)


def save_tensors(path: Path) -> None:
    wb.ipu.utils.export_variables_from_live_model(things.model(), path)


def options_told(path: Path) -> Any:
    config = wb.ipu.config.IPUConfig()
    config.from_json(path.read_text(encoding="utf-8", errors="replace"))
    return str(config)


def config_told(path: Path) -> Any:
    """As the command line reads a `--config`."""
    from workbench.cli.given import assign_options, read_options

    config = wb.ipu.config.IPUConfig()
    assign_options(config, read_options(path))
    return str(config)


TOML = b"""
auto_select_ipus = 2
"matmuls.clear_pass_type" = true

[ipu_model]
compile_ipu_code = true
tiles_per_ipu = 4

[convolutions.poplar_options]
availableMemoryProportion = "0.4"
"""


def kept_told(path: Path) -> Any:
    """As a sweep finds the profiles it kept: nothing, or what was kept."""
    from workbench.sweeps.store import Store

    found = Store(path.parent).get(path.stem)
    return None if found is None else told(found)


def cached_told(path: Path) -> Any:
    """As a later session finds an entry of the cache: a miss compiles anew, so that the profile is the same."""
    from workbench.executable import cache

    before = os.environ.get("WORKBENCH_CACHE")
    os.environ["WORKBENCH_CACHE"] = str(path.parent)
    try:
        if path.name != entry()[0]:
            path.rename(path.with_name(entry()[0]))
        cache.clear()
        return told(wb.profile(things.multiplied, things.square(), target=things.machine()))
    finally:
        os.environ["WORKBENCH_CACHE"] = before or "off"


@cache
def entry() -> tuple[str, bytes]:
    """The name and the bytes of what the cache keeps of a small program."""
    from workbench.executable import cache

    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("WORKBENCH_CACHE")
        os.environ["WORKBENCH_CACHE"] = folder
        cache.clear()
        str(wb.profile(things.multiplied, things.square(), target=things.machine()))
        cache.written()
        os.environ["WORKBENCH_CACHE"] = before or "off"
        (made,) = (each for each in Path(folder).rglob("*") if each.is_file())
        return made.name, made.read_bytes()


def table_told(path: Path) -> Any:
    from workbench.profiler.export.csv import read_csv

    return read_csv(path).to_dict()


def save_table(path: Path) -> None:
    things.profile().to_csv(path.parent)
    (path.parent / "steps.csv").replace(path)


FORMATS: Mapping[str, Format] = {
    "profile": Format(
        suffix=".wbprofile",
        whole=lambda: written("", lambda path: things.profile().save(path)),
        read=lambda path: told(load_profile(path)),
    ),
    "executable": Format(suffix=".wbexec", whole=lambda: written(".wbexec", save_executable), read=executable_told),
    "tensors": Format(suffix=".bin", whole=lambda: written(".bin", save_tensors), read=tensors_told),
    "options": Format(
        suffix=".json",
        whole=lambda: wb.ipu.config.IPUConfig().to_json().encode(),
        read=options_told,
        checked=False,
        files=500,
    ),
    "config": Format(suffix=".toml", whole=lambda: TOML, read=config_told, checked=False, files=500),
    "sweep": Format(
        suffix=".wbprofile",
        whole=lambda: written("", lambda path: things.profile().save(path)),
        read=kept_told,
        files=300,
    ),
    "cache": Format(suffix=".wbprofile", whole=lambda: entry()[1], read=cached_told, files=150),
    "table": Format(
        suffix=".csv", whole=lambda: written(".csv", save_table), read=table_told, checked=False, files=350
    ),
}
