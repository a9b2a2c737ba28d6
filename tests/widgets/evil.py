"""A profile whose names are markup: names are text everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.profiler.handmade import handmade_pipeline
from workbench.profiler.profile import Profile

EVIL = "<script>alert(1)</script>\"'&"


def evil_profile() -> Profile:
    """A profile in which every name is markup."""
    profile = handmade_pipeline()
    tables = {name: dict(columns) for name, columns in profile.tables.items()}
    for table, column in (("steps", "name"), ("steps", "layer"), ("variables", "name"), ("variables", "layer")):
        tables[table][column] = np.array([EVIL + str(k) for k in range(len(tables[table][column]))], dtype=object)
    tables["steps"]["source"] = np.array(
        [f"{EVIL}.py:{k + 1}" for k in range(len(tables["steps"]["id"]))], dtype=object
    )
    text = [f"{EVIL}(line_{k})" for k in range(4)]  # what is beyond them has no text
    sources = {f"{EVIL}.py": {"name": f"Cell {EVIL}", "stretches": [[1, text]]}}
    meta = {
        **profile.meta,
        "sources": sources,
        "name": EVIL,
        "assumptions": [EVIL],
        "warnings": [EVIL],
        "config_changed": {EVIL: EVIL},
    }
    return replace(profile, meta=meta, tables=tables)
