"""Python's statements on tensors become the program's: the same numbers as Python itself gives, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench import ipu, tf


class Kept:
    """Something with attributes."""


def collatz(n: Any) -> Any:
    steps = 0
    while n > 1:
        if n % 2 == 0:  # noqa: SIM108
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def until_negative(x: Any) -> Any:
    total = 0.0
    for value in x:
        if value < 0.0:
            break
        if value > 100.0:
            continue
        total = total + value
    return total


def first_above_two(x: Any) -> Any:
    for value in x:
        if value > 2.0:
            return value
    return -1.0


def nested(x: Any) -> Any:
    total = 0.0
    for i in x:
        for j in range(3):
            if i > 1.0 and not i > 2.5:
                total = total + i * j
            elif i > 2.5 or i < 0.0:
                total = total - i
    return total


def doubled_beyond(x: Any) -> Any:
    turns = 0
    value = x[0]
    while True:
        value = value * 2.0
        turns += 1
        if value > 100.0:
            break
    return turns


def chosen(x: Any) -> Any:
    return x[0] + 1.0 if x[0] > x[1] else x[1] * 3.0


def weighted(x: Any) -> Any:
    total = 0.0
    for place, value in enumerate(x):
        total = total + float(place) * value
    return total


def pairs(x: Any) -> Any:
    low, high = x[0], x[0]
    for value in x:
        if value < low:
            low = value
        elif value > high:
            high = value
    return high - low


ROWS = np.array([3.0, 1.0, 1000.0, 2.0, -5.0, 7.0], np.float32)


@pytest.mark.parametrize(
    ("written", "given"),
    [
        (collatz, np.int32(27)),
        (collatz, np.int32(1)),
        *((each, ROWS) for each in (until_negative, first_above_two, nested, doubled_beyond, chosen, weighted, pairs)),
        (first_above_two, np.array([1.0, 2.0], np.float32)),
    ],
)
def test_statements_give_what_python_gives(written: Callable[[Any], Any], given: Any) -> None:
    made = tf.function(written)(given)
    np.testing.assert_allclose(made, written(given), rtol=1e-6)


def test_a_loop_is_one_operation_however_often_it_turns() -> None:
    @tf.function
    def total(n: Any) -> Any:
        found = 0
        for i in tf.range(n):
            found += i
        return found

    assert [int(total(np.int32(n))) for n in (0, 1, 10, 1000)] == [0, 0, 45, 499500]
    assert total.experimental_get_tracing_count() == 1
    kinds = [each.type for each in total.get_concrete_function(np.int32(3)).graph.operations]
    assert kinds.count("While") == 1
    counted = tf.function(lambda: total(np.int32(7)))
    assert int(counted()) == 21


@pytest.mark.parametrize(
    ("start", "limit", "delta"), [(0, 7, 1), (2, 11, 3), (10, 0, -4), (5, 5, 1), (7, 2, 1), (1.0, 2.0, 0.25)]
)
def test_ranges_of_tensors_are_those_of_numpy(start: Any, limit: Any, delta: Any) -> None:
    @tf.function
    def summed(start: Any, limit: Any, delta: Any) -> Any:
        count, total = 0, start * 0
        for value in tf.range(start, limit, delta):
            count += 1
            total = total + value
        return count, total

    kind = np.float32 if isinstance(start, float) else np.int32
    numbers = np.arange(start, limit, delta)
    count, total = summed(kind(start), kind(limit), kind(delta))
    assert (int(count), float(total)) == (len(numbers), numbers.sum())


def test_a_range_of_python_is_unrolled_and_a_constant_one_is_not() -> None:
    written = []

    @tf.function
    def turns(x: Any) -> Any:
        for i in range(3):
            written.append(i)
            x = x + 1.0
        for i in tf.range(4):
            written.append("tensor")
            x = x + tf.cast(i, tf.float32)
        return x

    assert float(turns(np.float32(0))) == 3 + 6
    assert written == [0, 1, 2, "tensor"]


def test_without_autograph_python_does_not_branch_on_tensors() -> None:
    with pytest.raises(TypeError, match="Python cannot branch on it"):
        tf.function(collatz, autograph=False)(np.int32(3))


def test_functions_that_a_function_calls_are_converted_too() -> None:
    def flipped(x: Any) -> Any:
        if x > 0.0:
            return x
        return -x

    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return flipped(x) * self.factor if x < 2.0 else x

    by = Scale(3.0)
    assert [float(tf.function(lambda x: by(x))(np.float32(x))) for x in (-3.0, 1.0, 5.0)] == [9.0, 3.0, 5.0]


def test_a_function_of_no_module_is_called_as_it_is() -> None:
    made: dict[str, Any] = {}
    exec("def doubled(x):\n    return x + x", {}, made)
    doubled = made["doubled"]
    doubled.__module__ = None
    assert float(tf.function(lambda x: doubled(x) + 1.0)(np.float32(2.0))) == 5.0


def read_after_one_branch(x: Any) -> Any:
    if x > 0:
        y = x
    return y


def other_shapes(x: Any) -> Any:
    y = tf.zeros([2])
    if x > 0:
        y = tf.zeros([3])
    return y


def other_type_behind_a_turn(x: Any) -> Any:
    total = 0
    while x > 0:
        total = tf.cast(total, tf.float32) + x
        x = x - 1
    return total


def cut_behind_a_turn(x: Any) -> Any:
    total = 0
    for _ in tf.range(4):
        total = total + 0.25
    return total


def cut_in_a_branch(x: Any) -> Any:
    y = tf.cast(x, tf.int32)
    if x > 0:
        y = 0.5
    return y


def none_before(x: Any) -> Any:
    last = None
    while x > 0:
        last = x
        x = x - 1
    return last


def kept_in_a_list(x: Any) -> Any:
    seen = []
    for _ in tf.range(3):
        seen.append(x * 2)
    return tf.stack(seen)


def kept_from_around(x: Any) -> Any:
    seen = []
    for _ in tf.range(3):
        seen.append(x)
    return tf.stack(seen)


def kept_in_a_while(x: Any) -> Any:
    seen = {"all": []}
    while x < 5:
        seen["all"].insert(0, (x, 1))
        x = x + 1
    return x


def kept_in_an_attribute(x: Any) -> Any:
    found = Kept()
    found.seen = []
    for _ in tf.range(3):
        found.seen += [x]
    return x


def kept_by_a_function(x: Any) -> Any:
    seen = []

    def keep() -> None:
        seen.append(x)

    for _ in tf.range(3):
        keep()
    return tf.stack(seen)


def kept_in_a_branch(x: Any) -> Any:
    seen = [x]
    if x > 5:
        seen.append(x)
    return tf.stack(seen)


def taken_in_a_loop(x: Any) -> Any:
    left = [x, x, x]
    for _ in tf.range(3):
        x = x + left.pop()
    return x


def kept_in_a_dict(x: Any) -> Any:
    seen = {}
    for _ in tf.range(3):
        seen.update(last=x * 2)
    return seen["last"] + 1


def begins_as_an_argument(x: Any) -> Any:
    return tf.Variable(x * 2.0) + 1.0


def begins_in_a_loop(x: Any) -> Any:
    for i in tf.range(3):
        x = x + tf.cast(tf.Variable(i), tf.float32)
    return x


def asserted(x: Any) -> Any:
    assert x > 0
    return x


def branched_on_several(x: Any) -> Any:
    if tf.stack([x, x]) > 0:
        x = x + 1
    return x


def left_a_loop_of_python(x: Any) -> Any:
    for i in range(3):
        if x > i:
            break
        x = x + 1
    return x


def looped_over_one(x: Any) -> Any:
    for each in x:
        x = x + each
    return x


def recurs(x: Any) -> Any:
    return recurs(x - 1)


def drawn_by_a_generator(x: Any) -> Any:
    return x + next(each for each in [1.0])


TURN = "a turn of a `for` on tensors"
LINE = r"\(line \d+ of .*\.py"


@pytest.mark.parametrize(
    ("written", "kind", "told"),
    [
        (read_after_one_branch, ValueError, r"y has a value after one branch .* \(line \d+ of .*\.py: if x > 0:"),
        (other_shapes, ValueError, r"y is .*shape=\(3\).* after one branch .* \(line \d+ of"),
        (other_type_behind_a_turn, ValueError, r"total is .*int32.* before a turn of a `while` .*float32.*tf.constant"),
        (cut_behind_a_turn, TypeError, r"0\.25 cannot be converted to int32, .*or give it a first value such as 0\.0"),
        (cut_in_a_branch, ValueError, r"y is .*float32.* after one branch .*int32.*\(line \d+ of"),
        (none_before, ValueError, "last is None before a turn"),
        (kept_in_a_list, ValueError, rf"seen has 0 elements before {TURN} and 1 behind it {LINE}: for _ in tf.range"),
        (kept_from_around, ValueError, rf"seen has 0 elements before {TURN} and 1 behind it {LINE}.* range, whose"),
        (kept_in_a_while, ValueError, r"seen has 0 elements before a turn of a `while` on tensors and 1"),
        (kept_in_an_attribute, ValueError, rf"found\.seen has 0 elements before {TURN} and 1"),
        (kept_by_a_function, ValueError, rf"seen has 0 elements before {TURN} and 1"),
        (kept_in_a_branch, ValueError, rf"seen has 1 element before a branch of an `if` on tensors and 2 .* {LINE}"),
        (taken_in_a_loop, ValueError, rf"left has 3 elements before {TURN} and 2"),
        (kept_in_a_dict, ValueError, "made inside a loop or a branch .* an appended list or an attribute does not"),
        (begins_as_an_argument, ValueError, "initial_value is .* only while .* make the variable outside the function"),
        (begins_in_a_loop, ValueError, "initial_value is .* only while .* make the variable outside the function or"),
        (asserted, ValueError, r"assert of a tensor.*\(line \d+ of"),
        (branched_on_several, ValueError, r"the condition of an `if` is .*shape=\(2\).*tf.reduce_any"),
        (left_a_loop_of_python, ValueError, r"a loop over range\(0, 3\), which is Python's.*loop over tf.range"),
        (looped_over_one, TypeError, "which is one number"),
        (recurs, ValueError, "recurs too deep to be recorded.*write a while loop over tensors"),
        (drawn_by_a_generator, ValueError, "next.. of a generator.*tf.data.Dataset.from_generator"),
    ],
)
def test_what_cannot_be_recorded_is_refused_with_its_line_and_a_cure(
    written: Callable[[Any], Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told) as raised:
        tf.function(written)(np.float32(3))
    assert "To mend it" in str(raised.value) or "Expected" in str(raised.value)


def test_lists_of_a_turn_and_numbers_in_lists_stay_python() -> None:
    turns: list[int] = []

    def pairs_of(x: Any) -> Any:
        for _ in tf.range(3):
            pair = []
            for sign in (1.0, -2.0):
                pair.append(sign * x)
            pair.pop()
            pair.append(x)
            turns.append(len(pair))
            x = tf.reduce_sum(tf.stack(pair))
        return x

    assert float(tf.function(pairs_of)(np.float32(2))) == 16  # doubled in each turn
    assert set(turns) == {2}


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (cut_behind_a_turn, "total = total + 0.25"),
        (begins_as_an_argument, "return tf.Variable(x * 2.0) + 1.0"),
    ],
)
def test_what_is_refused_notes_its_line(written: Callable[[Any], Any], line: str) -> None:
    with pytest.raises(ValueError, match=r"cannot|only") as raised:
        tf.function(written)(np.float32(3))
    assert raised.value.__notes__[-1].endswith(f" of test_statements.py: {line}")


def test_a_variable_begins_as_a_tensor_that_no_argument_makes() -> None:
    held: list[Any] = []

    @tf.function
    def scaled(x: Any) -> Any:
        if not held:
            held.append(tf.Variable(tf.ones([2]) * 3.0))
        return x * held[0]

    assert [scaled(np.float32(by)).tolist() for by in (1, 2)] == [[3, 3], [6, 6]]


def test_what_a_loop_keeps_by_name_is_what_its_last_turn_gave() -> None:
    def kept(x: Any) -> Any:
        found, other, last = {}, Kept(), 0.0
        for _ in tf.range(3):
            found["a"] = x
            other.a = found["a"] + 1.0
            last = x
        return found, other.a, last

    strategy = ipu.ipu_strategy.IPUStrategy()
    for device in (lambda: tf.function(kept)(np.float32(2)), lambda: strategy.run(tf.function(kept), [np.float32(2)])):
        found, one_more, last = device()
        assert (list(found), float(found["a"]), float(one_more), float(last)) == (["a"], 2.0, 3.0, 2.0)


def test_an_error_inside_notes_the_line_of_the_program() -> None:
    def wrong(x: Any) -> Any:
        while x > 0:
            x = tf.matmul(x, x)
        return x

    with pytest.raises(ValueError, match=r"tf\.matmul") as raised:
        tf.function(wrong)(np.float32(3))
    assert any("x = tf.matmul(x, x)" in note for note in raised.value.__notes__)


def test_datasets_are_taken_from_as_the_program_runs() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).batch(2)

    @tf.function
    def whole() -> Any:
        total = tf.zeros([2])
        for each in data:
            total = total + each
        return total

    assert [whole().tolist() for _ in range(3)] == [[6.0, 9.0]] * 3
    elements = iter(data)

    @tf.function
    def one() -> Any:
        return next(elements)

    assert one().tolist() == [0.0, 1.0]
    assert next(elements).tolist() == [2.0, 3.0]  # the host takes on where the program was
    assert one().tolist() == [4.0, 5.0]
    with pytest.raises(RuntimeError, match="ended after 3 elements"):
        one()
    with pytest.raises(StopIteration):
        next(elements)


def test_loops_over_data_that_nobody_counted_are_refused() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).repeat()

    def over(data: Any) -> Any:
        total = 0.0
        for each in data:
            total += each
        return total

    with pytest.raises(ValueError, match=r"dataset\.take"):
        tf.function(over)(data)
    with pytest.raises(ValueError, match=r"take next\(iterator\)"):
        tf.function(over)(iter(data))
    assert float(tf.function(over)(data.take(4))) == 0 + 1 + 2 + 3


def test_a_condition_that_changes_something_is_refused() -> None:
    asked = tf.Variable(0)

    def is_small(x: Any) -> Any:
        asked.assign_add(1)
        return x < 3

    def looped(x: Any) -> Any:
        while is_small(x):
            x = x + 1
        return x

    with pytest.raises(ValueError, match="The loop's condition changes a variable, or reaches the host"):
        tf.function(looped)(np.float32(0))
    assert asked.numpy() == 0
