"""What stands in for names of TensorFlow that programs for the IPU use and this small namespace has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from workbench.errors import WorkbenchError

_ON_KERAS = "train a Keras model in the scope of an ipu.ipu_strategy.IPUStrategy"
_RECURRENT = "use keras.layers.LSTM, keras.layers.GRU or keras.layers.RNN"
_KEPT = (
    "keep the values of session.run(tf.global_variables()) with numpy.savez, and give them back with tf.Variable.load; "
    "of a Keras model, use keras.Model.save_weights"
)
_SHOWN = "enqueue to an ipu.ipu_outfeed_queue.IPUOutfeedQueue and draw what is dequeued, or fit with keras.callbacks"
_FILES = "read files with Python's own functions, and feed what they hold by tf.data.Dataset.from_generator"
_GENERATED = "make the elements in a Python function, and give it to tf.data.Dataset.from_generator"
_ONE_PASS = "use iter(dataset), or give the dataset to an ipu.ipu_infeed_queue.IPUInfeedQueue"

# By the name behind `tf.`: what to do in its place.
INSTEAD: Mapping[str, str] = {
    "ConfigProto": "leave it out: ipu.config.IPUConfig has the options of devices, and tf.Session takes none",
    "RunMetadata": "look at tf.Session's profile",
    "RunOptions": "leave it out, and look at tf.Session's profile",
    "Summary": _SHOWN,
    "TensorArray": "keep a tensor of the whole size as a value of the loop, or stack a list with tf.stack",
    "boolean_mask": "use tf.where(mask, tensor, 0) and count with the mask: how many elements there are would "
    "depend on values, and XLA compiles for fixed shapes",
    "contrib": "import ipu from workbench.tf.python, which is where TensorFlow 1 had it in contrib",
    "data.Dataset.element_spec": "look at one element: next(iter(dataset))",
    "data.Dataset.flat_map": _GENERATED,
    "data.Dataset.interleave": _GENERATED,
    "data.Dataset.make_initializable_iterator": _ONE_PASS,
    "data.Dataset.make_one_shot_iterator": _ONE_PASS,
    "data.Dataset.padded_batch": "pad in Dataset.map, as with numpy.pad, before tf.data.Dataset.batch: programs have "
    "fixed shapes",
    "data.Dataset.reduce": "add up in a loop of Python over the dataset",
    "data.Dataset.take_while": _GENERATED,
    "data.Dataset.window": _GENERATED,
    "data.FixedLengthRecordDataset": _FILES,
    "data.TFRecordDataset": _FILES,
    "data.TextLineDataset": _FILES,
    "debugging": "check shapes with tf.ensure_shape, and values of what a session or a function returns, as with "
    "numpy.testing: a program on the chip stops for none",
    "estimator": _ON_KERAS,
    "gfile": _FILES,
    "image": "use keras.ops.image, or layers such as keras.layers.RandomFlip",
    "io": _FILES,
    "layers": "call a layer of keras.layers on the tensor, such as keras.layers.Dense(10)(x)",
    "losses": "take tf.reduce_mean of tf.nn.sparse_softmax_cross_entropy_with_logits or another of tf.nn, or a loss of "
    "keras.losses",
    "map_fn": "use ipu.loops.repeat, or keras.ops.vectorized_map",
    "metrics": "use keras.metrics; for accuracy take tf.reduce_mean of tf.cast(tf.equal(...), tf.float32)",
    "nn.batch_normalization": "use keras.layers.BatchNormalization",
    "nn.dynamic_rnn": _RECURRENT,
    "nn.fused_batch_norm": "use keras.layers.BatchNormalization",
    "nn.rnn_cell": _RECURRENT,
    "python_io": _FILES,
    "summary": _SHOWN,
    "train.Checkpoint": _KEPT,
    "train.ExponentialMovingAverage": "assign to a variable of its own, made with tf.get_variable(trainable=False)",
    "train.NewCheckpointReader": _KEPT,
    "train.Saver": _KEPT,
    "train.exponential_decay": "compute the rate with tf.pow of tf.train.get_or_create_global_step(), or feed it",
    "train.latest_checkpoint": _KEPT,
    "train.load_checkpoint": _KEPT,
}
_NEAR = 0.75  # how alike, of 1, a name has to be to be told for another one
SMALL = "it has the tf. names that programs for the IPU use; keras.ops and jax.numpy have the others"


class AbsentNameError(WorkbenchError, AttributeError):
    """A name of TensorFlow's or of the SDK's that is not here, asked for as an attribute."""


def absent(module: str, name: str, known: Iterable[str] = ()) -> AttributeError:
    """What to raise for a name behind `tf.`, asked of a module of this package; `known`: those there are, behind `tf.`
    too, of several that end alike the last counts."""
    last, instead = name.rpartition(".")[2], INSTEAD.get(name, "")
    if not instead:
        paths = {each.rpartition(".")[2]: each for each in known}
        near = [paths[each] for each in difflib.get_close_matches(last, list(paths), n=1, cutoff=_NEAR)]
        return AttributeError(
            f"module {module!r} has no attribute {last!r}: {SMALL}"
            + (f"; the nearest of its own is tf.{near[0]}" if near else "")
        )
    return AbsentNameError(f"module {module!r} has no attribute {last!r}", todo=instead)


class Names(SimpleNamespace):
    """A namespace of `tf.`, such as `tf.nn`: a name it has not is told as one of `tf` is."""

    __slots__ = ("_called",)  # beside its names

    def __init__(self, called: str, names: Mapping[str, Any]) -> None:
        super().__init__(**names)
        self._called = called

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"namespace has no attribute {name!r}")
        own = [f"{self._called}.{each}" for each in vars(self)]
        raise absent(f"workbench.tf.{self._called}", f"{self._called}.{name}", own)


__all__ = ["INSTEAD", "AbsentNameError", "Names", "absent"]
