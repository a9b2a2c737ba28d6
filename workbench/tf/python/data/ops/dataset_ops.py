"""`tensorflow.python.data.ops.dataset_ops`."""

from workbench.tf.data import Dataset, Options

DatasetV2 = Dataset

__all__ = ["Dataset", "DatasetV2", "Options"]
