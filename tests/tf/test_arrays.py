"""Operations of `tf` that programs for TensorFlow 2 use on shapes, places and norms, by numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench import tf
from workbench.errors import OperandError

ROWS = np.array([[1, 2], [3, 4], [5, 6]], "float32")
LINES = [
    (lambda: tf.broadcast_to([1.0, 2.0], [2, 2]), [[1, 2], [1, 2]]),
    (lambda: tf.size(ROWS), 6),
    (lambda: tf.rank(ROWS), 2),
    (lambda: tf.argmin([[3, 1], [2, 5]], 1), [1, 0]),
    (lambda: tf.reverse(ROWS, [0]), [[5, 6], [3, 4], [1, 2]]),
    (lambda: tf.eye(2), [[1, 0], [0, 1]]),
    (lambda: tf.gather_nd(ROWS, [[0, 1], [2, 0]]), [2, 5]),
    (lambda: tf.gather_nd(ROWS, [[2], [0]]), [[5, 6], [1, 2]]),
    # place 0 is added to twice
    (lambda: tf.tensor_scatter_nd_add([1.0, 2.0, 3.0], [[0], [2], [0]], [10.0, 20.0, 30.0]), [41, 2, 23]),
    (lambda: tf.tensor_scatter_nd_update(ROWS, [[1]], [[0.0, 9.0]]), [[1, 2], [0, 9], [5, 6]]),
    (lambda: tf.math.unsorted_segment_sum(ROWS, [1, 0, 1], 3), [[3, 4], [6, 8], [0, 0]]),
    (lambda: tf.math.unsorted_segment_sum(ROWS, [0, -1, 0], 1), [[6, 8]]),
    (lambda: tf.math.unsorted_segment_mean(ROWS, [1, 0, 1], 3), [[3, 4], [3, 4], [0, 0]]),
    (lambda: tf.norm([[3.0, 4.0], [6.0, 8.0]], axis=1), [5, 10]),
    (lambda: tf.nn.l2_normalize([[3.0, 4.0]], 1), [[0.6, 0.8]]),
    (lambda: tf.clip_by_norm([3.0, 4.0], 1.0), [0.6, 0.8]),
    (lambda: tf.clip_by_norm([3.0, 4.0], 10.0), [3, 4]),
    (lambda: tf.global_norm([[3.0], None, [[0.0, 12.0], [4.0, 0.0]]]), 13),
    (lambda: tf.clip_by_global_norm([[3.0, 0.0], [[4.0]]], 1.0)[0][1], [[0.8]]),
    (lambda: tf.clip_by_global_norm([[3.0, 0.0], [[4.0]]], 1.0)[1], 5),
    (lambda: tf.clip_by_global_norm([[3.0, 4.0]], 6.0)[0][0], [3, 4]),
    (lambda: tf.clip_by_global_norm([[3.0, 4.0]], 1.0, use_norm=10.0)[0][0], [0.3, 0.4]),
    (lambda: tf.clip_by_global_norm([[3.0, np.inf]], 1.0)[0][0], [np.nan, np.nan]),
    (lambda: tf.ensure_shape(ROWS, [None, 2]), ROWS.tolist()),
]


@pytest.mark.parametrize(("made", "wanted"), LINES)
def test_it_computes(made: Any, wanted: Any) -> None:
    np.testing.assert_allclose(made(), wanted, rtol=1e-6)


def test_gradients_are_clipped_by_their_global_norm_in_a_function() -> None:
    variable, unused = tf.Variable([3.0, 4.0]), tf.Variable(1.0)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable * variable) / 2.0
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, [variable, unused]), 1.0)
        variable.assign_sub(gradients[0])
        assert gradients[1] is None
        return norm

    assert float(step()) == pytest.approx(5)
    np.testing.assert_allclose(variable.numpy(), [2.4, 3.2], rtol=1e-6)


def test_in_a_function_as_outside() -> None:
    made = tf.function(lambda x: tf.math.unsorted_segment_sum(tf.gather_nd(x, [[0], [2]]), [0, 0], 1))(
        tf.constant(ROWS)
    )
    np.testing.assert_array_equal(made, [[6, 8]])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: tf.broadcast_to(ROWS, [4, 2]), "tf.broadcast_to"),
        (lambda: tf.gather_nd(ROWS, [[3, 0]]), "indices from 3 to 3 are not all inside the 3"),
        (lambda: tf.gather_nd(ROWS, [[0, 0, 0]]), "name no elements"),
        (lambda: tf.tensor_scatter_nd_add(ROWS, [[0]], np.ones((1, 2), "int32")), "types float32 and int32"),
        (lambda: tf.math.unsorted_segment_sum(ROWS, [0, 1], 2), r"the ids have shape \[2\], and the data \[3, 2\]"),
        (lambda: tf.global_norm(3.0), "t_list is 3.0, and has to be a list of tensors"),
        (lambda: tf.norm([1, 2]), "int32 is no floating point"),
        (lambda: tf.ensure_shape(ROWS, [None, 3]), r"has not the shape \[None, 3\]"),
    ],
)
def test_what_is_wrong_is_told(wrong: Any, told: str) -> None:
    with pytest.raises(OperandError, match=told):
        wrong()
