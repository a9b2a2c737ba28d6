"""The public tables, derived from the raw ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench.profiler import memory
from workbench.profiler.schema import MEMORY_CATEGORIES, SCHEMA

if TYPE_CHECKING:
    from workbench.profiler.profile import AllocatedTiles, Profile

STEP_COLUMNS = tuple(name for name in SCHEMA["steps"] if not name.endswith("_index"))
VARIABLE_COLUMNS = tuple(name for name in SCHEMA["variables"] if not name.endswith("_index"))


def frame(profile: Profile, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A raw table as a DataFrame, some columns of it if asked."""
    table = profile.tables[name]
    return pd.DataFrame({column: table[column] for column in columns or SCHEMA[name]})


def variables(profile: Profile) -> pd.DataFrame:
    """See `Profile.variables`."""
    return frame(profile, "variables", VARIABLE_COLUMNS)


def tiles(profile: Profile) -> pd.DataFrame:
    """See `Profile.tiles`; addresses are worked out for the tiles that have none yet."""
    ipus, count = profile.arrays["always_live"].shape
    pairs = [(ipu, tile) for ipu in range(ipus) for tile in range(count)]
    found = memory.allocated(profile, pairs)
    always = profile.arrays["always_live"].reshape(-1)
    columns = {"ipu": np.repeat(np.arange(ipus), count), "tile": np.tile(np.arange(count), ipus)}
    by_category = _categories(found, columns["ipu"])
    return pd.DataFrame(
        {
            **columns,
            **by_category,
            "always_live_bytes": always,
            "not_always_live_bytes": profile.arrays["live_peak"].reshape(-1),
            "total_bytes": np.sum(list(by_category.values()), axis=0),
            "total_with_gaps_bytes": found.total_with_gaps,
        }
    )


def _categories(found: AllocatedTiles, ipus: memory.IntArray) -> dict[str, memory.IntArray]:
    """Bytes by category for every asked tile; tiles that share their rows are counted once."""
    key = ipus << 32 | found.allocated_as
    distinct, which = np.unique(key, return_inverse=True)
    rows_key = found.table["ipu"] << 32 | found.table["tile"]
    order = np.argsort(rows_key, kind="stable")
    begin = np.atleast_1d(np.searchsorted(rows_key[order], distinct, side="left"))
    end = np.atleast_1d(np.searchsorted(rows_key[order], distinct, side="right"))
    sums = np.zeros((len(distinct), len(MEMORY_CATEGORIES)), dtype=np.int64)
    for place in range(len(distinct)):
        chosen = order[begin[place] : end[place]]
        rows = {name: found.table[name][chosen] for name in ("address", "bytes", "category")}
        sums[place] = list(memory.bytes_by_category(rows).values())
    return {name: sums[which, place] for place, name in enumerate(MEMORY_CATEGORIES)}
