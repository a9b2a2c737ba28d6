"""Every table as a CSV file, whose texts no spreadsheet takes for formulas; `read_csv` reads one again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from workbench.base.files import made_folder, whole_file
from workbench.base.text import cell, of_cell, shown
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.registry import export

TABLES = (
    "tiles",
    "variables",
    "steps",
    "liveness",
    "operators",
    "stages",
    "cycle_breakdown",
    "unmodelled",
)
REPORTS = ("summary", "operations", "roofline", "source", "program_tree", "xray")


def tables_of(profile: Profile) -> Mapping[str, pd.DataFrame]:
    """The public tables by name, then the reports' own."""
    found: dict[str, pd.DataFrame] = {name: getattr(profile, name) for name in TABLES}
    return found | {name: getattr(profile, name).to_pandas() for name in REPORTS}


@export("csv")
def to_csv(profile: Profile, folder: str | Path) -> list[Path]:
    """Write every table as a CSV file into `folder`, which is made if need be; returns the files."""
    place = made_folder(Path(folder))
    written = []
    for name, frame in tables_of(profile).items():
        path = place / f"{name}.csv"
        with whole_file(path, text=True) as file:
            file.write(as_csv(frame))
        written.append(path)
    return written


def as_csv(frame: pd.DataFrame) -> str:
    """A table as the text of a CSV file: what is hidden in a text is escaped, and no text or heading is a formula."""
    safe = _each_text(frame, lambda text: cell(shown(text)))
    return str(safe.rename(columns=lambda name: cell(shown(str(name)))).to_csv(index=False, lineterminator="\n"))


def read_csv(path: str | Path) -> pd.DataFrame:
    """A table from its file, with texts as they were. Errors: `InputError` for a file that is no table of texts."""
    try:
        frame = pd.read_csv(path, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:  # also letters that are none
        raise InputError(f"{str(path)!r} is no table: {error}", expected="a CSV file that to_csv wrote") from None
    return _each_text(frame, of_cell).rename(columns=of_cell)


def _each_text(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The frame with its texts changed; numbers stay, negative ones too."""
    return frame.map(lambda value: change(value) if isinstance(value, str) else value)
