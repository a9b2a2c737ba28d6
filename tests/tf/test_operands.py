"""Numbers of Python beside tensors: none is cut to a whole one, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure, run
from workbench import tf

WHOLE = np.array([1, 2, 3], np.int32)


@pytest.mark.parametrize(
    "computation",
    [
        lambda x: x * 0.5,
        lambda x: 0.5 * x,
        lambda x: x * 2.0,  # a whole one too
        lambda x: x * [0.5, 0.5, 0.5],
        lambda x: x / 0.5,
        lambda x: x < 0.5,
        lambda x: tf.equal(x, 0.5),
        lambda x: tf.maximum(x, 0.5),
        lambda x: tf.where(x > 1, x, 0.5),
        lambda x: tf.pad(x, [[1, 1]], constant_values=0.5),
        lambda x: tf.concat([x, [0.5]], 0),
        lambda x: tf.Variable(1) + 0.5,
    ],
)
def test_a_real_number_beside_whole_ones_is_refused(computation: Callable[[Any], Any]) -> None:
    configure()
    told = r"tf\.\w+\(.*(0\.5|2\.0).* cannot be converted to int32, the type beside it; cast that with tf\.cast"
    with pytest.raises(TypeError, match=told) as raised:
        run(computation, WHOLE)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.convert_to_tensor(0.5, dtype=tf.int32),
        lambda: tf.constant(0.5, dtype=tf.int32),
        lambda: tf.constant([1, 2.0], dtype=tf.int32),
        lambda: tf.Variable(0.5, dtype=tf.int32),
        lambda: tf.Variable(1).assign(0.5),
        lambda: tf.constant_initializer(0.5)([2], tf.int32),
        lambda: tf.one_hot([0], 2, on_value=0.5, dtype=tf.int32),
        lambda: tf.range(0.5, 3.0, dtype=tf.int32),
    ],
)
def test_a_real_number_is_made_no_whole_one(made: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"(0\.5|\[1, 2\.0\]).* cannot be converted to int32"):
        made()


def test_what_the_type_beside_has_is_taken() -> None:
    configure()
    assert run(lambda x: [x * 2, x / 2, tf.add(x, [1, 1, 1])], WHOLE)[0][1].tolist() == [0.5, 1, 1.5]
    assert run(lambda x: tf.cast(x, tf.float32) * 0.5, WHOLE)[0][0].tolist() == [0.5, 1, 1.5]
    assert run(lambda x: x * 2, WHOLE.astype(np.float32))[0][0].tolist() == [2, 4, 6]
    assert tf.one_hot([1], 2, dtype=tf.int32).tolist() == [[0, 1]]
    assert tf.constant([], dtype=tf.int32).shape == (0,)
