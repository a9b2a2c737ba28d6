"""What small programs of loops, queues, branches and rounding give: the programs of the published tests, by case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np

from tests.fidelity import stated
from tests.fidelity.family_config import heard
from tests.fidelity.outcome import Case, NotRun, said, source_of
from workbench import ipu, tf
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedQueue

Program = Callable[[], Any]
TILES = 4
repeat = ipu.loops.repeat


@contextmanager
def machine(**options: Any) -> Iterator[None]:
    """A graph of its own on one small IPU; options by name, `__` for the dot."""
    named = {name.replace("__", "."): value for name, value in options.items()}
    config = ipu.config.IPUConfig()
    config.from_dict({**config.to_dict(), "auto_select_ipus": 1, "ipu_model.tiles_per_ipu": TILES, **named})
    config.configure_ipu_system()
    try:
        with tf.Graph().as_default():
            yield
    finally:
        ipu.config.reset_ipu_configuration()


def ran(computation: Callable[..., Any], *values: Any, also: Sequence[IPUOutfeedQueue] = (), **options: Any) -> Any:
    """What a computation gives for arrays, or what queues hold behind it."""
    with machine(**options):
        feeds = [tf.placeholder(np.asarray(value).dtype, np.shape(value)) for value in values]
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(computation, feeds)
        held = [queue.dequeue() for queue in also]
        with tf.Session() as session:
            found = session.run(result, dict(zip(feeds, values, strict=True)))
            return session.run(held) if also else found


def counted(last: int, more: Callable[[Any], Any] = lambda value: value) -> IPUInfeedQueue:
    """A queue of 0, 1 … last - 1, over and over, each as `more` makes an element of it."""
    return IPUInfeedQueue(more(np.full((4, 4), value, np.float32)) for value in cycle(range(last)))


def value_of(found: Any) -> Any:
    """The one number that every element of an array is."""
    (number,) = set(np.asarray(found).ravel().tolist())
    return number


ZEROS, ONES = np.zeros((4, 4), np.float32), np.ones((4, 4), np.float32)


def chained() -> Any:
    """Two loops of five, one behind the other, that take from one queue."""
    queue = counted(2)
    add = lambda v, x: v + x  # noqa: E731
    return value_of(ran(lambda v: repeat(5, add, [repeat(5, add, [v], queue)], queue), ZEROS)[0])


def by_name() -> Any:
    """Elements by name, in another order than the body's arguments."""
    queue = counted(3, lambda x: {"a": x, "b": (x + 10) / 2})
    one, two = ran(lambda: repeat(5, lambda v1, v2, b, a: (v1 + a, v2 + b), [ZEROS, ZEROS], queue))
    return {"v1": value_of(one), "v2": value_of(two)}


def nested() -> Any:
    """A loop in a loop, each with a queue of its own to the host."""
    outer, inner = IPUOutfeedQueue(), IPUOutfeedQueue()

    def turn(v: Any) -> Any:
        given = outer.enqueue(v)
        return repeat(10, lambda v: (v + 1, inner.enqueue(v)), v), given

    return ran(lambda v: repeat(10, turn, v), np.float32(0), also=(outer, inner))


def ranges() -> Any:
    """What `nested` gave, in the words of the case where it is every tenth and every number."""
    outer, inner = nested()
    tenth, every = np.array_equal(outer, np.arange(0, 100, 10)), np.array_equal(inner, np.arange(100))
    return {"outer": "0,10,..,90" if tenth else str(outer), "inner": "0..99" if every else str(inner)}


def limited(last: int = 15, most: int = 10) -> Any:
    """A loop that its maximum ends before its condition does."""
    loop = lambda i, v: ipu.loops.while_loop(  # noqa: E731
        lambda i, v: i < last, lambda i, v: (i + 1, v + i), [i, v], maximum_iterations=most
    )
    return value_of(ran(loop, np.int32(0), np.zeros(500, np.int32))[1])


def branches(arms: Sequence[Callable[..., Any]], values: Mapping[str, float]) -> Any:
    """Either of two branches of named numbers, by a value that is fed."""
    names = list(values)

    def chosen(pred: Any, *given: Any) -> Any:
        known = dict(zip(names, given, strict=True))
        return tf.cond(pred, lambda: arms[0](known), lambda: arms[1](known))

    fed = [np.float32(value) for value in values.values()]
    return {name: float(ran(chosen, np.bool_(name == "true"), *fed)[0]) for name in ("true", "false")}


def products(left: Any, right: Any) -> Program:
    """The product of two arrays, as lists."""
    return lambda: ran(tf.matmul, np.asarray(left, np.float32), np.asarray(right, np.float32))[0].tolist()


def halves(operation: Callable[..., Any], *values: float, **options: Any) -> Any:
    """What an operation gives for halves, one element each."""
    return ran(operation, *(np.asarray([value], np.float16) for value in values), **options)[0]


def stopped() -> Any:
    """What a run stops with for each exception that can be asked for, in the case's words where all name it."""
    asked: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
        "inv": (lambda x: tf.cast(x, tf.int32), (np.nan,)),
        "div0": (lambda x, y: x / y, (1e4, 0.0)),
        "oflo": (lambda x, y: x * y, (1e4, 1e4)),
    }

    def text(name: str) -> str:
        operation, values = asked[name]
        return heard(lambda: halves(operation, *values, **{f"floating_point_behaviour__{name}": True}))

    texts = [text(name) for name in asked]
    return "Tiles in excepted state" if all("excepted state" in text for text in texts) else " | ".join(texts)


def rounded() -> Any:
    """How many of 4096 sums of 1 and a thousandth are in the lower and in the upper half of their range."""

    def counts(esr: str) -> list[int]:
        behaviour = ipu.config.StochasticRoundingBehaviour[esr]
        ones, small = np.ones(4096, np.float16), np.full(4096, 1e-3, np.float16)
        found = ran(lambda x, y: x + y, ones, small, floating_point_behaviour__esr=behaviour)[0]
        return np.histogram(found.astype(np.float32), 2)[0].tolist()

    off, on = counts("OFF"), counts("ON")
    return {
        "off": f"histogram (2 bins) = [{off[0]},{off[1]}]",
        "on": "both bins > 0" if min(on) > 0 else f"histogram (2 bins) = {on}",
    }


PROGRAMS: dict[str, Program] = {
    "SEM-loop-infeed": lambda: value_of(_summed(counted(10), 20)),
    "SEM-infeed-fixed": lambda: value_of(_summed(IPUInfeedQueue([ONES * value for value in range(10)]), 10)),
    "SEM-loop-infeed-tuple": lambda: value_of(
        ran(lambda v: repeat(5, lambda v, a, b: v + a + b, [v], counted(3, lambda x: (x, (x + 10) / 2))), ZEROS)[0]
    ),
    "SEM-loop-infeed-named": by_name,
    "SEM-loop-infeed-2rep": chained,
    "SEM-outfeed-nested": ranges,
    "SEM-while-fib": lambda: _turned(lambda a, b: (a + b, a), [1, 0]),
    "SEM-while-alias2": lambda: _turned(lambda a, b: (a, a + b), [1, 0]),
    "SEM-while-max": limited,
    "SEM-mmvec": products([[1, 2, 3]], [[4], [5], [6]]),
    "SEM-mmouter": products([[1], [2], [3]], [[4, 5, 6]]),
    "SEM-fp-nan-int": lambda: int(halves(lambda x: tf.cast(x, tf.int32), np.nan)[0]),
    "SEM-fp-ovf": lambda: float(str(halves(lambda x, y: x * y, 1e4, 1e4)[0])),
    "SEM-fp-div0": lambda: bool(np.isnan(halves(lambda x, y: x / y, 1e4, 0.0)[0])),
    "SEM-fp-nanoo": lambda: bool(
        np.isnan(halves(lambda x, y: x * y, 1e4, 1e4, floating_point_behaviour__nanoo=True)[0])
    ),
    "SEM-fp-exc": stopped,
    "SEM-fp-sr": rounded,
}


def _summed(queue: IPUInfeedQueue, turns: int, start: Any = ONES) -> Any:
    return ran(lambda v: repeat(turns, lambda v, x: v + x, (v), queue), start)[0]


def _turned(body: Callable[..., Any], first: list[int], turns: int = 4) -> list[int]:
    return [int(each) for each in ran(lambda *values: repeat(turns, body, list(values)), *map(np.int32, first))]


def _stated(case: Case) -> Program | None:
    """The program of a case whose words state all of its numbers: sums of a feed, loops of two, branches of three."""
    text = said(case)
    values = stated.numbers(text)
    if fed := stated.fed_sum(text):
        return lambda: value_of(_added(*fed))
    if (turned := stated.pair_loop(text)) and {"a", "b"} <= set(values):
        return lambda: _turned(turned[1], [int(values["a"]), int(values["b"])], turned[0])
    if found := re.search(r"while i ?< ?(\d+).*maximum_iterations=(\d+)", text):
        return lambda: limited(int(found[1]), int(found[2]))
    if (arms := stated.two_arms(text)) and values:
        return lambda: branches(arms, values)
    return None


def _added(last: int, turns: int, start: float, paired: bool) -> Any:
    """A start, and what a loop adds to it of 0, 1 … last - 1 over and over, alone or with (x + 10) / 2."""
    queue = counted(last, (lambda x: (x, (x + 10) / 2)) if paired else (lambda x: x))
    return ran(lambda v: repeat(turns, lambda v, *more: v + sum(more[1:], more[0]), [v], queue), ONES * start)[0]


def semantics(case: Case) -> Any:
    """What the program of a case gives: as its words state it, by its id, or by the test it is taken from."""
    from tests.fidelity import semantic_functions, semantic_pipelines  # they use what is above

    if isinstance(case.get("config"), Mapping) and {"a", "b"} <= set(case["config"]):
        return semantic_functions.products(case)
    name = str(case["id"])
    program = _stated(case) or {**PROGRAMS, **semantic_functions.BY_ID, **semantic_pipelines.BY_ID}.get(name)
    found = re.search(r"\[(\w+)\]", source_of(case))
    program = program or (semantic_pipelines.BY_TEST.get(found[1]) if found else None)
    return NotRun("its operations are no part of this API") if program is None else program()
