from __future__ import annotations

import numpy as np

from workbench.datasets import digits


def test_the_digits_are_the_published_ones() -> None:
    images, labels = digits()
    assert (images.shape, images.dtype) == ((1797, 8, 8), np.float32)
    assert (labels.shape, labels.dtype) == ((1797,), np.int32)
    assert images.min() == 0.0
    assert images.max() == 1.0
    # Sums over the data as scikit-learn loads it: 561,718 grey levels of sixteen, labels adding up to 8,070.
    assert int((images * 16).astype(np.int64).sum()) == 561_718
    assert int(labels.sum()) == 8_070
    # Classes as counted in the data set's description (178, 182, 177, 183, 181, 182, 181, 179, 174, 180).
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_every_call_gives_arrays_of_its_own() -> None:
    first, _ = digits()
    first[:] = 2.0
    assert digits()[0].max() == 1.0
