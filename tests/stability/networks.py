"""Networks of equal convolutions, drawn by a seed, and what each costs at every width of a range.

A planner chooses by cycles among what fits a bound, so a channel more can change method, grain or cut. How far that
moves a whole network is measured here: a width's fullest tile and cycles, over the median of the eight widths around.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

SEED = 2026
NETWORKS = 40
WIDTHS = range(40, 73)
AROUND = 4  # neighbours on either side
MEASURES = ("fullest_tile_bytes", "cycles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """`layers` convolutions of equal width over square images, trained in halves on one IPU."""

    layers: int
    kernel: int
    image: int
    batch: int

    def model(self, width: int) -> Any:
        """The Keras model, in halves throughout."""
        import keras

        keras.config.set_dtype_policy("float16")
        images = keras.Input((self.image, self.image, width))
        values = images
        for _ in range(self.layers):
            values = keras.layers.Conv2D(width, self.kernel, padding="same", activation="relu")(values)
        values = keras.layers.GlobalAveragePooling2D()(values)
        return keras.Model(images, keras.layers.Dense(10)(values))


def drawn() -> tuple[Network, ...]:
    """2 to 20 convolutions, 3 x 3 or 5 x 5, images of 48 to 160, batches of 2 to 16."""
    random = np.random.default_rng(SEED)
    return tuple(
        Network(
            layers=int(random.integers(2, 21)),
            kernel=int(random.choice([3, 5])),
            image=int(random.integers(48, 161)),
            batch=int(random.integers(2, 17)),
        )
        for _ in range(NETWORKS)
    )


def profiled(network: Network, width: int, batch_size: int) -> Any:
    """The profile of one training step."""
    import workbench as wb

    return wb.compile(lambda: network.model(width), batch_size=batch_size, mode="training").profile


def measured(network: Network, width: int) -> dict[str, Any]:
    """What one width costs, and the plan of the product that takes most cycles."""
    profile = profiled(network, width, network.batch)
    rows = profile.operators
    dearest = rows.loc[rows["cycles"].idxmax()]
    return {
        "fits": bool(profile.fits),
        "fullest_tile_bytes": int(profile.max_tile_bytes),
        "cycles": int(profile.total_cycles),
        "dearest": f"{dearest['name']}: {dearest['plan'].partition(';')[0]}",
    }


def ratios(rows: dict[int, dict[str, Any]]) -> Iterator[tuple[int, str, float]]:
    """(width, measure, its figure over the median of its neighbours') of each width that has all neighbours."""
    for width in rows:
        near = [width + step for step in range(-AROUND, AROUND + 1) if step]
        if all(other in rows for other in near):
            for measure in MEASURES:
                yield width, measure, rows[width][measure] / median(rows[other][measure] for other in near)
