"""Infeed and outfeed queues: what they take, give and cost, and what happens when the host's side fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure, run
from workbench import ipu, tf
from workbench.errors import InputError
from workbench.ipu._feeds import EndOfFeedError, FeedError
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue

Queue = ipu.ipu_infeed_queue.IPUInfeedQueue


def summed(queue: Any, turns: int = 3) -> Any:
    """The sum of everything in `turns` elements."""

    def body(total: Any, *parts: Any, **named: Any) -> Any:
        for part in (*parts, *named.values()):
            total = total + tf.reduce_sum(tf.cast(part, tf.float32))
        return total

    return lambda: ipu.loops.repeat(turns, body, [0.0], queue)


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return np.full((2, 2), index, np.float32), np.full((2,), index, np.int32)


class Tensor:
    """Has the look of a torch tensor."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def numpy(self) -> Any:
        return self.values


class Loader:
    """Has the look of a torch DataLoader: iterable, gives lists of tensors."""

    def __iter__(self) -> Iterator[Any]:
        return ([Tensor(np.full((2,), number, np.float32)), Tensor(np.int64(number))] for number in range(3))


class Dataset:
    """Has the look of a tf dataset."""

    def as_numpy_iterator(self) -> Iterator[Any]:
        return ({"x": np.full((2,), number, np.float32)} for number in range(3))


@pytest.fixture(autouse=True)
def configured() -> None:
    configure()


@pytest.mark.parametrize(
    ("dataset", "elements", "expected"),
    [
        ([np.full((2,), number, np.float32) for number in range(3)], 1, 6.0),
        ((np.float64(number) for number in range(3)), 1, 3.0),
        ([(np.float32(1), np.full((3,), 2, np.int32))] * 3, 2, 21.0),
        ([{"a": np.float32(1), "b": np.float32(2)}] * 3, 2, 9.0),
        (Batches(), 2, 18.0),  # (4 + 2) x (0 + 1 + 2)
        (Loader(), 2, 9.0),
        (Dataset(), 1, 6.0),
        (tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).batch(2, drop_remainder=True), 1, 15.0),
    ],
)
def test_any_dataset_feeds_a_loop(dataset: Any, elements: int, expected: float) -> None:
    queue = Queue(dataset)
    assert queue.number_of_tuple_elements == elements
    assert not queue.dequeued
    result, session = run(summed(queue))
    assert result == [expected]
    assert queue.dequeued
    assert set(session.profile.steps.query("kind == 'StreamCopy' and times == 3")["name"]) >= {"main/feed/from_host"}


def test_elements_are_read_ahead_as_far_as_the_depth() -> None:
    read: list[int] = []

    def generator() -> Iterator[Any]:
        for number in range(100):
            read.append(number)
            yield np.float32(number)

    queue = Queue(generator(), prefetch_depth=5)
    assert read == [0]  # the first, for its shape
    result, _ = run(summed(queue))
    assert result == [3.0]
    until = time.monotonic() + 5
    while len(read) < 3 + 5 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.05)  # enough for one too many
    assert len(read) == 3 + 5


def test_a_second_run_goes_on_where_the_first_ended() -> None:
    queue = Queue([np.float32(number) for number in range(6)])
    result = compiled(summed(queue))
    with tf.Session() as session:
        assert [session.run(result)[0] for _ in range(2)] == [3.0, 12.0]


def test_a_dataset_that_runs_dry_says_so_and_leaves_everything_as_it_was() -> None:
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    queue = Queue([np.float32(1)] * 5)

    def body(total: Any, part: Any) -> Any:
        return total + part, count.assign_add(1.0).op

    result = compiled(lambda: ipu.loops.repeat(3, body, [0.0], queue))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result) == [3.0]
        with pytest.raises(EndOfFeedError, match="ended after 5 elements"):
            session.run(result)
        assert session.run(count) == 3
        assert run(lambda x: x + 1, np.float32(1))[0] == [2.0]


def test_an_element_of_another_shape_is_refused() -> None:
    queue = Queue([np.zeros(4, np.float32), np.zeros(3, np.float32)])
    with pytest.raises(FeedError, match=r"element 1 of the infeed queue has float32\[3\].*float32\[4\]"):
        run(summed(queue))


def test_a_dataset_that_raises_is_heard_as_it_raised() -> None:
    def generator() -> Iterator[Any]:
        yield np.float32(1)
        raise KeyError("no such record")

    with pytest.raises(KeyError, match="no such record"):
        run(summed(Queue(generator())))
    assert run(lambda x: x + 1, np.float32(1))[0] == [2.0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"dataset": []}, "is empty"),
        ({"dataset": 3}, "a dataset is 3"),
        ({"dataset": [np.array(["a"])]}, "holds <U1"),
        ({"prefetch_depth": 0}, "must be greater than zero, but it is 0"),
        ({"prefetch_depth": 256}, "must be less than 256, but it is 256"),
        ({"prefetch_depth": 1.5}, "prefetch_depth is 1.5"),
        ({"device_ordinal": "1"}, "device_ordinal is '1'"),
        ({"device_ordinal": -1}, "device_ordinal is -1"),
    ],
)
def test_infeeds_refuse(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Queue(**{"dataset": [np.zeros(2, np.float32)], **arguments})


def test_shapes_that_are_not_defined_are_refused_before_anything_is_read() -> None:
    class Ragged(Dataset):
        @property
        def element_spec(self) -> Any:
            return {"x": tf.placeholder(tf.float32, [None, 2])}

    with pytest.raises(ValueError, match=r"not fully defined.*drop_remainder=True"):
        Queue(Ragged())


def test_an_initializer_is_asked_for_once_and_a_deleted_queue_gives_nothing() -> None:
    queue = Queue([np.float32(1)] * 9)
    result = compiled(summed(queue))
    with tf.Session() as session:
        session.run(queue.initializer)
        with pytest.raises(ValueError, match="asked for once"):
            _ = queue.initializer
        assert session.run(result) == [3.0]
        session.run(queue.deleter)
        with pytest.raises(FeedError, match="was deleted"):
            session.run(result)
    with pytest.raises(ValueError, match="obsolete"):
        queue.get_next()


def counting(queue: IPUOutfeedQueue, turns: int = 4) -> Any:
    def body(value: Any) -> Any:
        value = value + 1
        return value, queue.enqueue(value)

    return lambda: ipu.loops.repeat(turns, body, [tf.zeros([2])])


@pytest.mark.parametrize(
    ("mode", "replicas", "expected"),
    [
        (IPUOutfeedMode.ALL, 1, [[1, 1], [2, 2], [3, 3], [4, 4]]),
        (IPUOutfeedMode.ALL, 2, [[[n, n], [n, n]] for n in (1, 2, 3, 4)]),
        (IPUOutfeedMode.LAST, 1, [4, 4]),
        (IPUOutfeedMode.LAST, 2, [[4, 4], [4, 4]]),
    ],
)
def test_modes_and_the_dimension_of_replicas(mode: IPUOutfeedMode, replicas: int, expected: Any) -> None:
    configure(replicas)
    queue = IPUOutfeedQueue(mode)
    _, session = run(counting(queue))
    assert session.run(queue.dequeue()).tolist() == expected


def test_replicas_take_elements_in_turn() -> None:
    configure(2)
    feed, out = Queue([np.float32(number) for number in range(8)]), IPUOutfeedQueue()

    def body(total: Any, part: Any) -> Any:
        total = total + part
        return total, out.enqueue(total)

    result, session = run(lambda: ipu.loops.repeat(3, body, [0.0], feed))
    assert session.run(out.dequeue()).tolist() == [[0, 1], [2, 4], [6, 9]]
    assert result == [6.0]  # of the first
    assert session.profile.config  # the profile is that of both
    assert session.executable.request.replicas == 2


def test_a_dequeue_takes_what_is_new() -> None:
    queue = IPUOutfeedQueue()
    result = compiled(counting(queue))
    outfed = queue.dequeue(wait_for_completion=True)
    with tf.Session() as session:
        assert session.run(outfed).shape == (0, 2)
        session.run(result)
        session.run(result)
        assert session.run(outfed).shape == (8, 2)
        assert session.run(outfed).shape == (0, 2)


def test_last_without_an_element() -> None:
    queue = IPUOutfeedQueue(IPUOutfeedMode.LAST)
    compiled(counting(queue))
    with pytest.raises(FeedError, match="no last element"):
        tf.Session().run(queue.dequeue())


def test_outside_graphs_a_queue_gives_arrays_one_after_another() -> None:
    queue = IPUOutfeedQueue()
    run(counting(queue))
    with tf.Graph().as_default():
        assert [each.tolist() for each in queue] == [[1, 1], [2, 2], [3, 3], [4, 4]]
        assert queue.dequeue().shape == (0, 2)


def test_outfeeds_cost_copies() -> None:
    _, session = run(counting(IPUOutfeedQueue(), turns=7))
    copies = session.profile.steps.query("kind == 'StreamCopy' and times == 7")
    assert copies["bytes_sent"].tolist() == [8]  # two floats


def test_synthetic_data_copy_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_synthetic_data --synthetic_data_initializer=2")
    feed, every, last = Queue([np.float32(1)] * 3), IPUOutfeedQueue(), IPUOutfeedQueue(IPUOutfeedMode.LAST)

    def body(total: Any, part: Any) -> Any:
        return total + part, every.enqueue((total, part)), last.enqueue(total)

    result, session = run(lambda: ipu.loops.repeat(3, body, [0.0], feed))
    assert result == [6.0]  # made up: 2 each
    assert session.profile.steps.query("kind == 'StreamCopy' and times == 3").empty
    assert [each.shape for each in session.run(every.dequeue())] == [(0,), (0,)]
    with pytest.raises(FeedError, match="synthetic"):
        session.run(last.dequeue())
    assert ipu.utils.use_synthetic_data_for(ipu.utils.SyntheticDataCategory.Outfeed)


def test_some_categories_may_be_synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_categories=infeed,seed")
    category = ipu.utils.SyntheticDataCategory
    assert [ipu.utils.use_synthetic_data_for(each) for each in (category.Infeed, category.Outfeed)] == [True, False]
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_categories=infed")
    with pytest.raises(ValueError, match="infed"):
        ipu.utils.use_synthetic_data_for(category.Infeed)
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_initializer=1")
    with pytest.raises(ValueError, match="no data are synthetic"):
        ipu.utils.use_synthetic_data_for(category.Infeed)
    with pytest.raises(ValueError, match="synthetic_data_category is"):
        ipu.utils.use_synthetic_data_for("Infeed")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"outfeed_mode": "all"}, "of type str"),
        ({"device_ordinal": 0.5}, "device_ordinal is 0.5"),
        ({"device_ordinal": -1}, "device_ordinal is -1"),
        ({"buffer_depth": 0}, "buffer_depth is 0"),
    ],
)
def test_outfeeds_refuse(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        IPUOutfeedQueue(**arguments)


def test_outfeeds_are_enqueued_to_once_with_tensors_and_before_they_are_dequeued() -> None:
    queue = IPUOutfeedQueue()
    with pytest.raises(ValueError, match="nothing is enqueued"):
        queue.dequeue()
    for wrong in ("text", {1: tf.constant(1.0)}, [], (tf.constant(1.0), "text")):
        with pytest.raises(ValueError, match="enqueued"):
            queue.enqueue(wrong)
    queue.enqueue(tf.constant(1.0))
    assert queue.enqueued
    with pytest.raises(ValueError, match="enqueued to once"):
        queue.enqueue(tf.constant(1.0))
    with pytest.raises(RuntimeError, match="eager mode"):
        iter(queue)
    with pytest.raises(RuntimeError, match="mode ALL"):
        iter(IPUOutfeedQueue(IPUOutfeedMode.LAST))


def test_a_queue_of_a_specification_shares_all_but_its_ends() -> None:
    queue = Queue([np.float32(number) for number in range(6)])
    with pytest.raises(RuntimeError, match="before its initializer"):
        _ = queue._type_spec
    assert queue.initializer is not None
    lent = Queue._from_type_spec(queue._type_spec)
    assert run(summed(lent))[0] == [3.0]
    assert queue.dequeued
    assert run(summed(queue))[0] == [12.0]
    for end in ("initializer", "deleter"):
        with pytest.raises(RuntimeError, match="specification"):
            getattr(lent, end)
    spec = ipu.ipu_infeed_queue.IPUIterator(infeed_spec=queue._type_spec, element_spec=queue.structure).infeed_spec
    assert spec.prefetch_depth == queue.prefetch_depth


def on_device(number: int, queue: Any, outfeed: IPUOutfeedQueue) -> Any:
    """The doubled elements of a queue, given to another, in a program on a device."""

    def body(element: Any) -> Any:
        return outfeed.enqueue(element * 2)

    with ipu.scopes.ipu_scope(f"/device:IPU:{number}"):
        return ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(2, body, [], queue), [])


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("said", [True, False])
def test_queues_are_of_the_device_they_are_used_on(number: int, said: bool) -> None:
    configure(auto_select_ipus=[1, 1])
    ordinal = number if said else None
    outfeed = IPUOutfeedQueue(device_ordinal=ordinal)
    result = on_device(number, Queue([np.float32(3), np.float32(4)], device_ordinal=ordinal), outfeed)
    values = outfeed.dequeue()
    with tf.Session() as session:
        session.run(result)
        assert session.run(values).tolist() == [6, 8]


@pytest.mark.parametrize(("ordinals", "kind"), [((1, 0), "infeed"), ((0, 1), "outfeed")])
def test_queues_of_another_device_are_refused(ordinals: tuple[int, int], kind: str) -> None:
    configure(auto_select_ipus=[1, 1])
    queue = Queue([np.float32(3)] * 2, device_ordinal=ordinals[0])
    with pytest.raises(InputError, match=f"{kind} queue of /device:IPU:1 is used in a program on /device:IPU:0"):
        on_device(0, queue, IPUOutfeedQueue(device_ordinal=ordinals[1]))


def test_pipelines_refuse_queues_of_another_device() -> None:
    configure(auto_select_ipus=[2, 2])
    queue = Queue([np.float32(3)] * 2, device_ordinal=1)
    with (
        ipu.scopes.ipu_scope("/device:IPU:0"),
        pytest.raises(InputError, match="infeed queue of /device:IPU:1 is used in a program on /device:IPU:0"),
    ):
        ipu.pipelining_ops.pipeline([lambda x: x, lambda x: x], 2, infeed_queue=queue, outfeed_queue=IPUOutfeedQueue())


@pytest.mark.parametrize("made", [lambda: Queue([np.float32(1)], device_ordinal=2), lambda: IPUOutfeedQueue(None, 2)])
def test_queues_of_a_device_that_is_not_configured_are_refused(made: Any) -> None:
    ipu.config.reset_ipu_configuration()
    made()  # what will be configured nobody knows yet
    configure(auto_select_ipus=[1, 1])
    with pytest.raises(InputError, match=r"device_ordinal is 2, and /device:IPU:2 is not configured.*below 2"):
        made()


def test_datasets_of_a_function_are_fed_to_its_device() -> None:
    configure(auto_select_ipus=[1, 1])
    strategy = ipu.ipu_strategy.IPUStrategy("/device:IPU:1")

    @tf.function
    def total(elements: Any) -> Any:
        found = 0.0
        for _ in tf.range(3):
            found += next(elements)
        return found

    with strategy.scope():
        elements = iter(tf.data.Dataset.from_tensor_slices(np.arange(1, 4, dtype=np.float32)))
        assert strategy.run(total, [elements]).numpy() == 6


SIX = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32))


@pytest.mark.parametrize(
    "dataset",
    [
        SIX.batch(4),
        SIX.batch(3),  # no batch of it is smaller, which its shape does not say
        SIX.batch(4).map(lambda x: x + 1).repeat().shuffle(2).take(1).skip(0).prefetch(1).cache(),
        SIX.repeat().batch(3),
        SIX.batch(3).batch(2, drop_remainder=True),
        SIX.filter(lambda x: x > 1).batch(2),
        tf.data.Dataset.zip((SIX, SIX.batch(2))),
        tf.data.Dataset.from_generator(lambda: iter([np.zeros(2)]), "float32", (None,)),
    ],
)
def test_batches_of_no_fixed_size_are_refused_before_anything_is_read(dataset: Any) -> None:
    with pytest.raises(InputError, match=r"not fully defined.*drop_remainder=True") as told:
        Queue(dataset)
    assert isinstance(told.value, ValueError)


@pytest.mark.parametrize(
    ("dataset", "shape"),
    [
        (SIX, ()),
        (SIX.batch(4, drop_remainder=True), (4,)),
        (SIX.batch(3, True).map(lambda x: x + 1).repeat(2).shuffle(2).take(1), (3,)),
        (SIX.batch(4).unbatch(), ()),
        (tf.data.Dataset.from_generator(lambda: iter([np.zeros(2)]), "float32", (2,)), (2,)),
    ],
)
def test_batches_of_a_fixed_size_are_taken(dataset: Any, shape: tuple[int, ...]) -> None:
    assert Queue(dataset).structure.shape == shape


def test_a_tuple_of_one_dictionary_is_given_by_name() -> None:
    feed = Queue(tf.data.Dataset.from_tensor_slices(({"a": np.ones(2, "f4"), "b": np.full(2, 2.0, "f4")},)))
    result, _ = run(lambda: ipu.loops.repeat(2, lambda total, b, a: total + a * 10.0 + b, [0.0], feed))
    assert result == [24.0]


def test_a_queue_that_ended_begins_its_dataset_again() -> None:
    feed = Queue(tf.data.Dataset.range(5).map(lambda x: tf.cast(x, tf.float32)))
    begin, end = feed.initializer, feed.deleter
    result = compiled(lambda: ipu.loops.repeat(5, lambda total, x: total + x, [0.0], feed))
    with tf.Session() as session:
        for _ in range(2):
            session.run(begin)
            assert session.run(result) == [10.0]
            session.run(end)
