"""The public tables, derived from the raw ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.categories import MEMORY_CATEGORIES
from workbench.profiler.schema import SCHEMA, Column, Stored

STEP_COLUMNS = tuple(name for name in SCHEMA["steps"] if not name.endswith("_index"))
VARIABLE_COLUMNS = tuple(name for name in SCHEMA["variables"] if not name.endswith("_index"))


def frame(profile: Stored, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A raw table as a DataFrame, some columns of it if asked."""
    table = profile.tables[name]
    return pd.DataFrame({column: table[column] for column in columns or SCHEMA[name]})


def steps(profile: Stored, row: IntArray, told: Mapping[str, Column]) -> pd.DataFrame:
    """See `Profile.steps`: rows of the raw table, with the columns that are `told` otherwise or besides."""
    columns = {name: profile.tables["steps"][name][row] for name in STEP_COLUMNS if name not in told}
    return pd.DataFrame({name: told.get(name, columns.get(name)) for name in dict.fromkeys((*STEP_COLUMNS, *told))})


def source_lines(layer_lines: Mapping[str, str], layer: Column, source: Column) -> Column:
    """The lines of steps: their own, else that at which their layer was made, or the nearest layer around it."""
    found = source.copy()
    known: dict[str, str] = {"": ""}

    def line_of(path: str) -> str:
        if path not in known:
            known[path] = layer_lines.get(path) or line_of(path.rpartition("/")[0])
        return known[path]

    for place in np.flatnonzero(source == "").tolist() if layer_lines else ():
        found[place] = line_of(layer[place])
    return found


def variables(profile: Stored) -> pd.DataFrame:
    """See `Profile.variables`."""
    return frame(profile, "variables", VARIABLE_COLUMNS)


def tiles(profile: Stored, sums: Sequence[IntArray]) -> pd.DataFrame:
    """See `Profile.tiles`; `sums` are those of its addresses, by IPU."""
    ipus, count = profile.arrays["always_live"].shape
    flat = np.stack(sums, axis=1).reshape(len(sums[0]), -1)
    return pd.DataFrame(
        {
            "ipu": np.repeat(np.arange(ipus), count),
            "tile": np.tile(np.arange(count), ipus),
            **dict(zip(MEMORY_CATEGORIES, flat[:-1], strict=True)),
            "always_live_bytes": profile.arrays["always_live"].reshape(-1),
            "not_always_live_bytes": profile.arrays["live_peak"].reshape(-1),
            "total_bytes": flat[:-1].sum(axis=0),
            "total_with_gaps_bytes": flat[-1],
        }
    )
