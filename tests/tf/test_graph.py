"""Graphs, sessions and variables: what is recorded, in which order it runs, and what a session keeps."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import jax
import keras
import numpy as np
import pytest

from workbench import tf
from workbench.errors import InputError

X = np.array([[1, 2], [3, 4]], np.float32)


def value(tensor: Any, **feeds: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", (X, 1.0), X + 1),
        ("matmul", (X, X), X @ X),
        ("reduce_sum", (X, 1), X.sum(1)),
        ("reduce_mean", (X,), X.mean()),
        ("transpose", (X,), X.T),
        ("reshape", (X, [4]), X.reshape(4)),
        ("concat", ([X, X], 0), np.concatenate([X, X])),
        ("expand_dims", (X, 0), X[None]),
        ("one_hot", (np.array([1, 0]), 2), np.array([[0, 1], [1, 0]])),
        ("cast", (X, "int32"), X.astype("int32")),
        ("slice", (X, [0, 1], [-1, 1]), X[:, 1:]),
        ("gather", (X, np.array([1])), X[[1]]),
        ("maximum", (X, 2.0), np.maximum(X, 2)),
        ("where", (X > 2, X, 0.0), np.where(X > 2, X, 0)),
        ("argmax", (X, 1), X.argmax(1)),
    ],
)
def test_operations_give_the_same_recorded_and_at_once(name: str, arguments: Any, expected: Any) -> None:
    operation = getattr(tf, name)
    first, *rest = arguments
    assert np.allclose(np.asarray(operation(first, *rest)), expected)
    fed = jax.tree_util.tree_map(lambda each: tf.placeholder(each.dtype, each.shape), first)
    recorded = operation(fed, *rest)
    feeds = dict(zip(jax.tree_util.tree_leaves(fed), jax.tree_util.tree_leaves(first), strict=True))
    assert recorded.shape == np.shape(expected)
    assert np.allclose(tf.Session().run(recorded, feeds), expected)


def test_operators_of_tensors() -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    made = [x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 / x, x / 2, -x, x**2, abs(x), x @ x, x[0], x[:, 1], x > 2]
    expected = [X + 1, 1 + X, X - 1, 1 - X, X * 2, 2 / X, X / 2, -X, X**2, abs(X), X @ X, X[0], X[:, 1], X > 2]
    for ours, theirs in zip(tf.Session().run(made, {x: X}), expected, strict=True):
        assert np.allclose(ours, theirs)


def test_types_must_agree_and_python_cannot_branch_on_a_tensor() -> None:
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [2])
    with pytest.raises(TypeError, match="types float32 and int32"):
        _ = x + n
    with pytest.raises(TypeError, match=r"use tf\.cond"):
        bool(x)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = tf.no_such_name
    assert (x == x) is True
    assert {x: 1}[x] == 1


def test_fetches_keep_their_structure() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    fetched = tf.Session().run({"pair": (x + 1, [x]), "none": tf.no_op(), "number": 3}, {x: 2})
    assert fetched == {"pair": (3.0, [2.0]), "none": None, "number": 3}
    assert tf.Session().run("x:0", {"x:0": 4}) == 4
    with pytest.raises(TypeError, match="a fetch is"):
        tf.Session().run(object())


def test_a_session_belongs_to_a_graph_and_is_closed() -> None:
    other = tf.Graph()
    with other.as_default():
        inside = tf.placeholder(tf.float32, []) + 1
    with pytest.raises(ValueError, match="not an element of this graph"):
        tf.Session().run(inside)
    session = tf.Session(graph=other)
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(inside)
    with pytest.raises(ValueError, match="no default session"):
        inside.eval()
    other.finalize()
    with pytest.raises(RuntimeError, match="finalized"), other.as_default():
        tf.no_op()


def test_control_dependencies_order_what_nothing_else_orders() -> None:
    log: list[str] = []

    def note(word: str) -> Any:
        def called(values: Any) -> Any:
            log.append(word)
            return values

        return tf.py_function(called, [tf.zeros([])], tf.float32)

    first = note("first")
    with tf.control_dependencies([first]):
        second = note("second")
    log.clear()
    tf.Session().run(second)
    assert log == ["first", "second"]
    assert isinstance(tf.group(first, second), tf.Operation)


def test_variables_keep_their_values_between_runs() -> None:
    count = tf.get_variable("count", [2], initializer=tf.ones_initializer())
    more = count.assign_add([1.0, 2.0])
    with tf.Session() as session:
        with pytest.raises(ValueError, match="has no value yet"):
            session.run(count)
        session.run(tf.global_variables_initializer())
        session.run(more)
        session.run(more)
        assert session.run(count).tolist() == [3, 5]
        session.run(count.initializer)
        assert count.eval().tolist() == [1, 1]
    assert tf.Session().run(count * 2).tolist() == [2, 2]


def test_variables_are_found_by_name_in_scopes_that_reuse() -> None:
    with tf.variable_scope("layer"):
        weight = tf.get_variable("weight", [2])
    with pytest.raises(ValueError, match="layer/weight already exists"), tf.variable_scope("layer"):
        tf.get_variable("weight", [2])
    for reuse in (True, tf.AUTO_REUSE):
        with tf.variable_scope("layer", reuse=reuse):
            assert tf.get_variable("weight", [2]) is weight
    with pytest.raises(ValueError, match="has shape"), tf.variable_scope("layer", reuse=True):
        tf.get_variable("weight", [3])
    with pytest.raises(ValueError, match="does not exist"), tf.variable_scope("other", reuse=True):
        tf.get_variable("weight", [2])
    assert weight.name == "layer/weight:0"
    assert [each.name for each in tf.trainable_variables()] == ["layer/weight:0"]


def test_outside_graphs_variables_change_at_once() -> None:
    count = tf.Variable([1.0, 2.0])
    count.assign_add([1.0, 1.0])
    assert count.numpy().tolist() == [2, 3]
    assert np.asarray(count * 2.0).tolist() == [4, 6]


@pytest.mark.parametrize(("choice", "expected"), [(True, 4.0), (False, 1.0)])
def test_branches_are_taken_when_the_program_runs(choice: bool, expected: float) -> None:
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    chosen, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])

    def then() -> Any:
        with tf.control_dependencies([count.assign_add(5.0)]):
            return x * 2

    result = tf.cond(chosen, then, lambda: x - 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result, {chosen: choice, x: 2}) == expected
        assert session.run(count) == (5 if choice else 0)


def test_random_numbers_follow_the_seed() -> None:
    tf.set_random_seed(3)
    noise = tf.random_uniform([100], 2.0, 3.0)
    with tf.Session() as session:
        first, second = session.run(noise), session.run(noise)
        tf.set_random_seed(3)
        assert np.array_equal(session.run(noise), first)
    assert not np.array_equal(first, second)
    assert 2 <= first.min() < first.max() < 3


def test_keras_layers_are_parts_of_a_graph() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    dense = keras.layers.Dense(2, name="dense")
    y = keras.layers.Dense(1, name="last")(keras.layers.Activation("relu")(dense(x)))
    loss = tf.reduce_mean(tf.square(y - 1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    feeds = {x: np.random.default_rng(0).normal(size=(4, 3))}
    assert [each.name for each in tf.trainable_variables()] == [
        "dense/kernel:0",
        "dense/bias:0",
        "last/kernel:0",
        "last/bias:0",
    ]
    before = np.array(dense.kernel.value)
    with tf.Session() as session:
        losses = [session.run([loss, train], feeds)[0] for _ in range(20)]
    assert losses[-1] < losses[0]
    assert not np.array_equal(dense.kernel.value, before)


def test_products_are_of_matrices() -> None:
    row, matrix = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [4, 2])
    with pytest.raises(ValueError, match=r"tf.matmul was given shape \(4,\). Expected: two dimensions or more"):
        tf.matmul(row, matrix)


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        (np.arange(6, dtype=np.float32).reshape(2, 3), None, "float32"),
        (np.arange(3), None, "int32"),
        (np.ones(3), None, "float32"),
        (np.ones(3), "half", "float16"),
        (np.float32(3), None, "float32"),
        ([1.0, 2.0], None, "float32"),
        ([1, 2], None, "int32"),
        ([1, 2], tf.float16, "float16"),
        (5.0, None, "float32"),
        (np.zeros((2, 0), np.float32), None, "float32"),
    ],
)
def test_a_variable_begins_as_the_array_it_is_given(given: Any, dtype: Any, expected: str) -> None:
    variable = tf.get_variable("v", initializer=given, dtype=dtype)
    assert (variable.dtype, tuple(variable.shape)) == (expected, np.shape(given))
    np.testing.assert_array_equal(value(variable + 0), np.asarray(given, expected))


def test_a_variable_begins_as_a_tensor() -> None:
    variable = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(value(variable * 2), [2, 4])
    assert tf.get_variable("w", [2], initializer=np.ones(2)).shape == (2,)
    with pytest.raises(ValueError, match=r"^Variable x has shape \(3,\), but its initializer has shape \(2,\):"):
        tf.get_variable("x", [3], initializer=np.ones(2))


@pytest.mark.parametrize(("word", "name"), [("half", "float16"), ("float", "float32"), ("bool", "bool")])
def test_a_type_has_tensorflows_words(word: str, name: str) -> None:
    x = tf.placeholder(word, [2])
    assert x.dtype == name
    assert tf.get_variable("v", [2], word, tf.zeros_initializer()).dtype == name
    with tf.Session() as session:
        found = session.run(tf.cast(x, word), {x: [1, 0]})
    assert found.dtype == name
    assert found.tolist() == [1, 0]


UNSHAPED: dict[str, Any] = {
    "product": lambda a: a * 2.0 + 1.0,
    "sum": lambda a: tf.reduce_sum(a * a),
    "rows": lambda a: tf.reduce_mean(a, -1),
    "gradient": lambda a: tf.gradients(tf.reduce_sum(a * a * a), a)[0],
    "stack": lambda a: tf.stack([a, a + 1.0]),
    "cast": lambda a: tf.cast(a > 0.0, tf.int32),
}


@pytest.mark.parametrize("device", ["cpu", "/device:IPU:0"])
@pytest.mark.parametrize("name", sorted(UNSHAPED))
def test_a_placeholder_without_a_shape_is_of_each_that_is_fed(name: str, device: str) -> None:
    a = tf.placeholder(tf.float32)
    partly = tf.placeholder(tf.float32, [None, 3])
    with tf.device(device):
        results = [UNSHAPED[name](each) for each in (a, partly)]
    values = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((4, 3), np.float32), np.arange(5, dtype=np.float32)]
    with tf.Session() as session:
        for value in values:
            expected = CALCULATED[name](value)
            np.testing.assert_allclose(session.run(results[0], {a: value}), expected)
            if value.ndim == 2:
                np.testing.assert_allclose(session.run(results[1], {partly: value}), expected)
    with pytest.raises(ValueError, match=r"^Cannot feed value of shape \(2, 4\) for .*, which has \(None, 3\)"):
        session_of(partly, np.ones((2, 4)))


CALCULATED: dict[str, Any] = {
    "product": lambda a: a * 2 + 1,
    "sum": lambda a: (a * a).sum(),
    "rows": lambda a: a.mean(-1),
    "gradient": lambda a: 3 * a * a,
    "stack": lambda a: np.stack([a, a + 1]),
    "cast": lambda a: (a > 0).astype(np.int32),
}


def session_of(tensor: Any, fed: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor, {tensor: fed})


def test_what_is_known_of_a_shape_is_kept() -> None:
    a, partly = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None, 3])
    assert repr(a) == '<tf.Tensor "Placeholder:0" shape=<unknown> dtype=float32>'
    assert a.get_shape().rank is None
    assert tf.reduce_sum(a).get_shape().as_list() == []
    assert tf.reduce_sum(partly, 0).get_shape().as_list() == [3]
    assert (partly * 2.0 + tf.zeros([10, 3])).get_shape().as_list() == [10, 3]
    assert tf.matmul(partly, tf.zeros([3, 5])).get_shape().as_list() == [None, 5]
    with pytest.raises(ValueError, match="unknown rank"):
        a.get_shape().as_list()
    with pytest.raises(TypeError, match="no known first dimension"):
        iter(a)
    wrong = tf.placeholder(tf.float32, [4, None])
    with pytest.raises(TypeError, match="dot_general"):
        tf.matmul(partly, wrong)


def test_a_variable_begins_as_what_a_function_of_nothing_gives() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    variable = tf.get_variable("v", initializer=lambda: tf.constant(array))
    assert (variable.dtype, tuple(variable.shape)) == ("float32", (2, 3))
    np.testing.assert_array_equal(value(variable * 2), array * 2)
    assert tf.get_variable("w", initializer=lambda: np.arange(3), dtype="half").dtype == "float16"


@pytest.mark.parametrize("shape", [None, [None, None], [None, 3]])
def test_a_placeholder_of_no_shape_meets_constants(shape: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tf.placeholder(tf.float32, shape)
    for made in (tf.matmul(x, tf.constant(array.T)), tf.matmul(x, array.T)):
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(made, {x: array.tolist()}), array @ array.T)


TOLD = r"the first value of variable 'big:0' of shape \(17592186044416,\) takes"


def test_a_first_value_that_no_machine_holds_is_refused_before_it_is_made() -> None:
    made = tf.get_variable("big", [2**44]).initializer
    with pytest.raises(InputError, match=TOLD):
        tf.Session().run(made)


def test_a_variable_outside_a_graph_that_no_machine_holds_is_refused() -> None:
    with pytest.raises(InputError, match=TOLD):
        tf.Variable(lambda: jax.numpy.zeros(2**44), name="big", deferred=False)


NO_SHARES: tuple[dict[str, Any], ...] = (
    *({}, {"rate": 1.0}, {"rate": -0.1}, {"rate": 1.5}, {"keep_prob": 0.0}, {"keep_prob": 1.1}, {"rate": "0.5"}),
    *({"rate": 0.5, "keep_prob": 0.5}, {"rate": True}, {"rate": float("nan")}),
)


@pytest.mark.parametrize("given", NO_SHARES)
def test_dropout_takes_a_share_and_nothing_else(given: dict[str, Any]) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"rate|keep_prob"):
        tf.nn.dropout(tf.placeholder(tf.float32, [4, 4]), **given)


@pytest.mark.parametrize("given", [{"rate": 0.25}, {"keep_prob": 0.75}])
def test_dropout_keeps_its_share_and_scales_it(given: dict[str, Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        kept = session.run(tf.nn.dropout(tf.ones([200, 200]), **given))
    assert set(np.unique(kept)) <= {0.0, np.float32(1 / 0.75)}
    assert abs((kept > 0).mean() - 0.75) < 0.02


@pytest.mark.parametrize("dtype", [None, "nosuch", 3, [], "no\udc80such", object()])
def test_what_is_no_type_is_named(dtype: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match=r"dtype is .*which is no type"):
        tf.placeholder(dtype, [2])


@pytest.mark.parametrize("shape", [3, "abc", [-1], [1.5], [True], [2**40], {2}, [[2]]])
def test_what_is_no_shape_is_named(shape: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match=r"shape is .*a list of sizes"):
        tf.placeholder(tf.float32, shape)


def test_a_name_is_a_text() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="the name of a Placeholder is 3"):
        tf.placeholder(tf.float32, [2], name=3)


def test_a_thread_has_a_graph_of_its_own() -> None:
    with tf.Graph().as_default() as graph, tf.device("/device:IPU:0"):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(lambda: (tf.get_default_graph(), tf.placeholder(tf.float32, []).device)).result()
        assert tf.get_default_graph() is graph
        assert tf.placeholder(tf.float32, []).device == "/device:IPU:0"
    assert other[0] is not graph
    assert other[1] == ""


def test_a_constant_index_is_looked_at_and_gathered() -> None:
    table = tf.placeholder(tf.float32, [2, 2])
    with tf.Session() as session:
        assert session.run(tf.gather(table, tf.constant(1)), {table: X}).tolist() == [3, 4]
    with pytest.raises(InputError, match="indices from 2 to 2 are not all inside the 2 there are"):
        tf.gather(table, tf.constant(2))
