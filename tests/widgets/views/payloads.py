"""What a view sends, read back."""

from __future__ import annotations

from typing import Any

import numpy as np

_TYPES = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "i2": np.int16, "u1": np.uint8}


def columns(data: dict[str, Any], buffer: bytes) -> dict[str, Any]:
    return {
        part["name"]: np.frombuffer(buffer, _TYPES[part["type"]], part["length"], part["offset"])
        for part in data["layout"]
    }
