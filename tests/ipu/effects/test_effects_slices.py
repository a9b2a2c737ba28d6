"""Options of slices change the profile of look-ups and updates in the direction their documentation says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.ipu.config import IPUConfig

INDICES = np.zeros(1024, "int32")


def profile(source: Any, *arrays: Any, **keys: str) -> Any:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    config.slices.poplar_options = keys
    return wb.profile(source, *arrays, config=config)


def lookup(table: Any, indices: Any) -> Any:
    return table[indices]


def update(table: Any, indices: Any, rows: Any) -> Any:
    return table.at[indices].add(rows)


def looked_up(**keys: str) -> Any:
    return profile(lookup, np.zeros((256, 16), "float16"), INDICES, **keys)


def updated(**keys: str) -> Any:
    return profile(update, np.zeros((256, 16), "float16"), INDICES, np.zeros((1024, 16), "float16"), **keys)


def bytes_of(found: Any, name: str) -> int:
    """Bytes over all tiles of the one variable whose name ends so."""
    (row,) = [each for each in found.variables.itertuples() if each.name.endswith(name)]
    return int(row.bytes)


def test_slices_available_memory_proportion_trades_cycles_for_memory() -> None:
    """With room for copies of the table, groups of tiles share the indices; without, one copy answers all."""
    for run in (looked_up, updated):
        roomy, tight = run(), run(availableMemoryProportion="0.001")
        assert tight.peak.bytes < roomy.peak.bytes
        assert tight.total_cycles > roomy.total_cycles


def test_slices_indices_distribution_of_one_point_makes_one_worker_do_all() -> None:
    spread, same = updated(indicesDistribution="uniform"), updated(indicesDistribution="onePoint")
    assert same.total_cycles > spread.total_cycles


def test_slices_indices_are_sorted_spares_updates_the_scan_of_all_indices() -> None:
    any_order, rising = updated(), updated(indicesAreSorted="true")
    assert rising.total_cycles < any_order.total_cycles


def test_slices_partial_type_float_doubles_the_tables_of_additions() -> None:
    """The tables of zeros that the cuts of the indices add into hold four bytes an element rather than two."""
    own, wide = updated(), updated(partialType="float")
    assert bytes_of(own, "/tables") > 0
    assert own.total_cycles < wide.total_cycles
    elements = {kind: bytes_of(found, "/tables") / size for kind, found, size in (("own", own, 2), ("wide", wide, 4))}
    assert elements["own"] % (256 * 16) == elements["wide"] % (256 * 16) == 0


def test_slices_partial_type_narrower_than_the_table_is_an_error() -> None:
    with pytest.raises(wb.InputError, match="partialType is 'half' and a table holds float32"):
        profile(lookup, np.zeros((256, 16), "float32"), INDICES, partialType="half")
