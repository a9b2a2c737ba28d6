"""A training step that is a tenth too large for its tiles."""

from __future__ import annotations

from typing import Any

import workbench as wb


def too_large() -> Any:
    target = wb.target("ipu2", tiles_per_ipu=4)
    whole = wb.profile("mlp", batch_size=64, mode="training", target=target).max_tile_bytes
    return wb.compile(
        "mlp", batch_size=64, mode="training", target=target.replace(bytes_per_tile=whole * 9 // 640 * 64)
    )
