"""A name of TensorFlow's that is not here says what stands in for it, or where others are."""

from __future__ import annotations

import re
from typing import Any

import keras
import pytest

from workbench import ipu, tf
from workbench.errors import WorkbenchError

ROOTS: dict[str, Any] = {"ipu": ipu, "keras": keras, "tf": tf}
# Names that programs of the SDK for TensorFlow 1 use, and a word of what to do instead.
ABSENT = {
    "ConfigProto": "ipu.config.IPUConfig",
    "boolean_mask": "tf.where",
    "data.TFRecordDataset": "tf.data.Dataset.from_generator",
    "debugging": "tf.ensure_shape",
    "contrib": "workbench.tf.python",
    "estimator": "ipu.ipu_strategy.IPUStrategy",
    "layers": "keras.layers.Dense",
    "losses": "tf.nn.sparse_softmax_cross_entropy_with_logits",
    "metrics": "keras.metrics",
    "nn.dynamic_rnn": "keras.layers.LSTM",
    "summary": "ipu.ipu_outfeed_queue.IPUOutfeedQueue",
    "train.ExponentialMovingAverage": "tf.get_variable",
    "train.Saver": "tf.Variable.load",
}


def reached(path: str) -> Any:
    found: Any = ROOTS[path.partition(".")[0]]
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(("path", "instead"), ABSENT.items())
def test_a_name_that_is_not_here_says_what_to_do_instead(path: str, instead: str) -> None:
    with pytest.raises(AttributeError) as told:
        reached(f"tf.{path}")
    assert isinstance(told.value, WorkbenchError)
    assert told.value.what == f"module {'.'.join(['workbench.tf', *path.split('.')[:-1]])!r} has no attribute " + repr(
        path.rpartition(".")[2]
    )
    assert instead in told.value.todo
    for named in re.findall(r"\b(?<!\.)(?:ipu|keras|tf)(?:\.\w+)+", told.value.todo):
        reached(named)


@pytest.mark.parametrize(("path", "owner"), [("tf.no_such_name", "tf"), ("tf.nn.no_such_name", "tf.nn")])
def test_another_name_says_where_others_are(path: str, owner: str) -> None:
    with pytest.raises(AttributeError, match=f"'workbench.{owner}' has no attribute 'no_such_name': .* keras.ops"):
        reached(path)
    assert getattr(tf.nn, "no_such_name", None) is None


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("reduce_meen", "tf.reduce_mean"),
        ("relu", "tf.nn.relu"),
        ("AdamOptimizer", "tf.train.AdamOptimizer"),
        ("nn.max_pool3d", "tf.nn.max_pool2d"),
        ("compat.v1.placeholders", "tf.placeholder"),
        ("data.Datasets", "tf.data.Dataset"),
    ],
)
def test_a_name_that_is_like_one_of_ours_is_told_of_it(path: str, near: str) -> None:
    with pytest.raises(AttributeError, match=rf"; the nearest of its own is {re.escape(near)}$"):
        reached(f"tf.{path}")
    reached(near)


def test_a_method_that_is_like_one_of_a_dataset_is_told_of_it() -> None:
    with pytest.raises(AttributeError, match=r"; the nearest of its own is tf\.data\.Dataset\.batch$"):
        tf.data.Dataset.range(4).batches  # noqa: B018


def test_a_method_that_datasets_have_not_says_what_to_do_instead() -> None:
    with pytest.raises(
        AttributeError, match=r"Dataset' has no attribute 'interleave'. .*tf.data.Dataset.from_generator"
    ):
        tf.data.Dataset.range(4).interleave  # noqa: B018
    assert not hasattr(tf.data.Dataset.range(4), "__array__")


def test_collections_of_a_graph_have_names() -> None:
    tf.reset_default_graph()
    with tf.variable_scope("one"):
        weight = tf.get_variable("weight", [2])
    count = tf.get_variable("count", [], trainable=False)
    keys = tf.GraphKeys
    assert tf.get_collection(keys.TRAINABLE_VARIABLES) == [weight]
    assert tf.get_collection(keys.GLOBAL_VARIABLES) == [weight, count]
    assert tf.get_collection(keys.GLOBAL_VARIABLES, scope="one/") == [weight]
    assert tf.get_collection(keys.UPDATE_OPS) == []
    tf.add_to_collection("mine", 3)
    tf.get_collection("mine").append(4)  # a list of one's own
    assert tf.get_collection("mine") == [3]


def test_types_and_optimizers_have_their_other_names() -> None:
    assert tf.dtypes.float16 is tf.float16
    assert tf.dtypes.as_dtype("int32") == tf.int32
    assert tf.optimizers.SGD is keras.optimizers.SGD


def test_programs_find_their_tensorflow_and_the_keras_of_the_ipu_outside_a_scope() -> None:
    assert tf.__version__.split(".")[:2] == ["2", "6"]
    assert tf.keras.ipu.PipelineStage is ipu.keras.PipelineStage
    assert tf.keras.Model is keras.Model
