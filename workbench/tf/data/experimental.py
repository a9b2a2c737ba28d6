"""`tf.data.experimental`: names that became those of `tf.data`. Tests: tests/tf/test_train.py."""

from __future__ import annotations

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import KindError
from workbench.tf.data import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset


@checked
def cardinality(dataset: Dataset) -> int:
    """Elements of a pass over a dataset; `INFINITE_CARDINALITY`, or `UNKNOWN_CARDINALITY` where only a pass tells."""
    if not isinstance(dataset, Dataset):
        raise KindError(f"dataset is {short(dataset)}", expected="a tf.data.Dataset")
    return dataset.cardinality()


__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "cardinality"]
