"""Small real data that ships with the package, so that nothing is fetched at run time.

Imports nothing but the errors. Tests: tests/datasets.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

_GREY_LEVELS = 16  # a pixel counts the dark points of a 4x4 block of the scanned 32x32 bitmap


def digits() -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """1,797 handwritten digits: images float32 [1797, 8, 8] in 0..1 (1 is ink), labels int32 [1797] in 0..9.

    The test part of the "Optical Recognition of Handwritten Digits" data of E. Alpaydin and C. Kaynak (UCI Machine
    Learning Repository, doi:10.24432/C50P49, CC BY 4.0), in the order in which scikit-learn 1.x distributes it.
    """
    with (files(__name__) / "digits.npz").open("rb") as file, np.load(file) as held:
        return (held["images"] / np.float32(_GREY_LEVELS)).astype(np.float32), held["labels"].astype(np.int32)
