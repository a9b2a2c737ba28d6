"""Lifetimes by variable: the same rows whichever order a table keeps them in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.profiler.handmade import handmade_pipeline
from workbench.profiler.memory.live_bytes import intervals


def test_lifetimes_of_an_ipu_are_found_in_any_order() -> None:
    profile = handmade_pipeline()
    table = profile.tables["intervals"]
    shuffled = np.random.default_rng(3).permutation(len(table["variable"]))
    other = {name: column[shuffled] for name, column in table.items()}
    mixed = replace(profile, tables={**profile.tables, "intervals": other})
    variables = profile.tables["variables"]
    for ipu in range(profile.ipus):
        own = (variables["ipu"] == ipu) & ~variables["always_live"]
        for each in (profile, mixed):
            rows = each.tables["intervals"]
            chosen = own[rows["variable"]]
            expected = [rows[name][chosen].tolist() for name in ("variable", "first", "last")]
            assert [column.tolist() for column in intervals(each, ipu)] == expected
            assert expected[0]
