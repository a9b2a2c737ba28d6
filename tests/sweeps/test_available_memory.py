"""availableMemoryProportion over twelve values: bytes that stay, that come and go, cycles; the fastest that fits."""

from __future__ import annotations

import workbench as wb

PROPORTION = "matmuls.poplar_options"
VALUES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TILE_BYTES = 624 * 1024


def always_live(profile: wb.Profile) -> int:
    return int(profile.arrays["always_live"].max())


def temporary(profile: wb.Profile) -> int:
    """The most that is live beside it on a tile at once."""
    return int(profile.arrays["live_peak"].max())


def test_twelve_values_and_the_fastest_that_fits() -> None:
    sweep = wb.sweep(
        wb.ready("mlp", hidden=1024, input_size=1024),
        {PROPORTION: [{"availableMemoryProportion": str(value)} for value in VALUES]},
        columns={"always_live": always_live, "temporary": temporary},
        batch_size=64,
        mode="training",
        target=wb.target("ipu2", tiles_per_ipu=32),
        progress=lambda text: None,
    )
    table = sweep.table
    assert len(table) == len(VALUES)
    for row in table.index:
        profile = sweep.profile(row)
        assert table["always_live"][row] == always_live(profile)
        assert table["temporary"][row] == temporary(profile)
        assert table["total_cycles"][row] == profile.total_cycles
        assert table["fits"][row] == (profile.max_tile_bytes <= TILE_BYTES)
    assert table["temporary"].nunique() > 1  # the option acts
    assert table["temporary"].iloc[0] < table["temporary"].iloc[-1]
    fitting = table[table["fits"]]
    assert 0 < len(fitting) <= len(VALUES)
    assert sweep.best in fitting.index
    assert table["total_cycles"][sweep.best] == fitting["total_cycles"].min()
