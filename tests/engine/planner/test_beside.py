"""Plans searched by a second interpreter are those searched here, and whatever becomes of it, all are there."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.planner.cases import windows
from workbench.engine.compile import compile_graph
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.trace.heard import products_told
from workbench.engine.graph import Graph, Node
from workbench.engine.graph.primitives import Kind, kind
from workbench.engine.options import Options
from workbench.engine.planner import family
from workbench.engine.planner.beside import helper, second
from workbench.engine.planner.beside.second import LEAST, SECOND, Second, processes, start_for
from workbench.engine.planner.beside.wire import DROP, FOUND, MACHINE, PLAN, READY, Lines, Question, line, made, plain
from workbench.engine.planner.family import Ahead, search_ahead
from workbench.engine.planner.methods import load
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.search import Settings, choice_of, finished, plan, search
from workbench.engine.program.tree import dump
from workbench.engine.target import target
from workbench.errors import InputError
from workbench.executable import compile_request, make_request

SMALL = target("ipu2", tiles_per_ipu=16)
MANY = 2 * LEAST


def matmul(rows: int, depth: int = 32, columns: int = 24) -> ConvProblem:
    types = {"in_type": "half", "partials_type": "half", "out_type": "half"}
    sizes = {"batch": (rows,), "in_chans": (depth,), "out_chans": (columns,)}
    return ConvProblem(kind="matmul", direction="forward", **types, **sizes)


def questions(count: int = MANY, first: int = 3, **options: float) -> list[Question]:
    return [(matmul(first + rows), SMALL, Settings(**options)) for rows in range(count)]


@pytest.fixture
def other() -> Iterator[Second]:
    made = Second()
    yield made
    made.end()


def speaking(said: str, then: str = "") -> Second:
    """One that says something else than a helper does."""
    return Second([sys.executable, "-c", f"import sys, time\nprint({said!r}, flush=True)\n{then}"])


def answered(one: Second, asked: list[Question]) -> list[Question]:
    """Those that it has answered, after all that it was asked for has been looked for."""
    return [each for each in asked if one.choice(each) is not None]


def until(is_so: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.01)
    assert is_so()  # type: ignore[operator]


# -- what is said ----------------------------------------------------------------------------------------------


@given(windows(), st.booleans(), st.sampled_from(["ipu1", "ipu2", "bow", "ipu21"]), st.floats(0, 1))
def test_what_is_said_is_what_was_meant(axis: object, small: bool, name: str, proportion: float) -> None:
    machine = replace(target(name), memory=replace(target(name).memory, data_apart=small))
    machine = target(name, tiles_per_ipu=8) if small else machine
    problem = replace(matmul(4), kind="convolution", field=(axis, axis), groups=(2,))
    asked = Settings(proportion=proportion, multi_stage=small, travelling="half")
    for value in (machine, problem, asked):
        assert made(type(value), json.loads(json.dumps(plain(value)))) == value


def test_a_line_comes_in_pieces() -> None:
    text, lines = line(DROP, 3) + line(FOUND, 4, [1, 2], "", 0.5), Lines()
    found = [each for byte in range(len(text)) for each in lines.of(text[byte : byte + 1])]
    assert found == [[DROP, 3], [FOUND, 4, [1, 2], "", 0.5]]


@settings(max_examples=20)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 90), st.sampled_from([0.0, 0.001, 0.05, 0.6]))
def test_a_choice_follows_from_its_order(rows: int, depth: int, columns: int, proportion: float) -> None:
    question = (matmul(rows, depth, columns), SMALL, Settings(proportion=proportion))
    choice, note = search(*question)
    assert choice_of(*question, tuple(json.loads(json.dumps(choice.order)))) == choice
    assert finished(question[0], choice, note) is plan(*question)


# -- who answers -----------------------------------------------------------------------------------------------


def test_a_helper_answers_in_order_what_is_not_dropped() -> None:
    one, (problem, machine, asked) = helper.Helper(), questions(1)[0]
    one.hear(MACHINE, 0, plain(machine))
    for number in (1, 2, 3):
        one.hear(PLAN, number, 0, plain(problem), plain(asked))
    one.hear(DROP, 2)
    one.hear(PLAN, 4, 0, plain(problem)[:4], plain(asked))
    word, number, order, note, seconds = json.loads(one.answer())
    choice, said = search(problem, machine, asked)
    assert (word, number, tuple(order), note) == (FOUND, 1, choice.order, said)
    assert seconds > 0
    assert one.answer() == b""
    assert json.loads(one.answer())[1] == 3
    assert json.loads(one.answer())[:3] == [FOUND, 4, None]  # it could not be searched: who asked will hear why
    assert not one.waiting


def test_a_helper_ends_with_its_questions_and_when_none_come(monkeypatch: pytest.MonkeyPatch) -> None:
    (ours, its), (heard, said) = os.pipe(), os.pipe()
    monkeypatch.setattr(helper, "IDLE_SECONDS", 0.01)
    helper.main(ours, said)
    monkeypatch.setattr(helper, "IDLE_SECONDS", 60.0)
    os.close(its)
    helper.main(ours, said)
    os.close(said)
    with os.fdopen(heard, "rb") as answers:
        assert [json.loads(each) for each in answers] == [[READY, sorted(load())]] * 2
    os.close(ours)


def test_plans_are_those_searched_here(other: Second) -> None:
    asked = questions(proportion=0.6)
    other.start()
    other.ask(asked)
    until(lambda: (other.hear(0.1), not other.waiting)[1])
    assert [other.choice(each) for each in asked] == [search(*each) for each in asked]
    assert other.seconds > 0


def test_what_it_has_not_come_to_is_searched_here_from_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second, "HANGING_SECONDS", 0.3)
    one = speaking(json.dumps([READY, sorted(load())]), "time.sleep(60)")
    searched: list[Question] = []
    monkeypatch.setattr(second, "planned", lambda *question: searched.append(question))
    asked = questions()
    one.start()
    one.ask(asked)
    assert one.choice(asked[0]) is None  # the first waits for who does not answer, so it is given up
    assert searched == asked[:0:-1]
    assert not one.is_alive
    assert answered(one, asked) == []


@pytest.mark.parametrize(
    "said",
    ["nothing", json.dumps([READY, ["none", "of", "ours"]]), json.dumps({"a": 1}), json.dumps([READY]), "5"],
    ids=["text", "other_methods", "object", "short", "number"],
)
def test_who_does_not_speak_as_a_helper_is_not_asked(said: str) -> None:
    one, asked = speaking(said, "time.sleep(60)"), questions()
    one.start()
    one.ask(asked)
    until(lambda: answered(one, asked) == [] and not one.is_alive)


def test_one_that_cannot_be_started_or_dies_at_once_is_not_missed() -> None:
    for command in (["/no/such/interpreter"], [sys.executable, "-c", "1/0"]):
        one, asked = Second(command), questions()
        one.start()
        one.ask(asked)
        assert answered(one, asked) == []
        until(lambda one=one: (one.hear(0.0) and not one.is_alive) or not one.is_alive)


def test_one_that_is_killed_is_not_missed(other: Second) -> None:
    asked = questions()
    other.start()
    other.ask(asked)
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    for each in asked:
        other.choice(each)
    until(lambda: other.hear(0.0) or not other.is_alive)
    assert not other.is_alive
    other.ask(questions(first=900))  # nobody is there
    assert other.choice(asked[0]) is None


def test_few_questions_and_those_answered_before_are_not_asked(other: Second) -> None:
    other.start()
    few, asked = questions(LEAST - 1, first=500), questions(LEAST, first=700)
    other.ask(few)
    assert not other.waiting
    assert answered(other, few) == []
    other.ask(asked)
    answered(other, asked)
    other.ask(asked)
    assert not other.waiting
    assert not other.answers


def test_what_is_not_needed_any_more_is_dropped(other: Second) -> None:
    other.start()
    first, then = questions(second.MOST_SENT + 9, first=1000), questions(LEAST, first=2000)
    other.ask(first)
    other.ask(then)
    assert {*other.waiting, *other.answers} <= set(then)
    answered(other, then)
    assert answered(other, first) == []
    assert not other.waiting
    assert not other.answers


def test_a_forked_process_has_none(other: Second) -> None:
    other.start()
    assert other.pid
    ours = os.getpid()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "getpid", lambda: ours + 1)
        assert other.pid is None
        assert other.choice(questions()[0]) is None
    assert other.pid


# -- when there is one -----------------------------------------------------------------------------------------


def test_how_many_processes_may_take_part_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(SECOND, "start", lambda: started.append(True))
    kernels = [(3, size) for size in range(LEAST)]
    start_for([*kernels[1:], kernels[1], (7,), (8,), ()])
    assert not started
    start_for(kernels)
    assert started
    one = Second()
    monkeypatch.setenv("WORKBENCH_PROCESSES", "1")
    assert processes() == 1
    one.start()
    assert not one.is_alive
    monkeypatch.setenv("WORKBENCH_PROCESSES", "many")
    with pytest.raises(InputError, match="WORKBENCH_PROCESSES is 'many'"):
        one.start()


def test_on_one_processor_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    one = Second()
    one.start()
    assert not one.is_alive


def chained(count: int, first: int) -> tuple[Any, list[Any]]:
    """A function of many products that differ, and its arguments."""
    import jax

    def program(x: object, *weights: object) -> object:
        for each in weights:
            x = jax.numpy.tanh(x @ each)  # type: ignore[operator]
        return x

    sizes = range(first, first + count + 1)
    weights = [jax.ShapeDtypeStruct((one, one + 1), "float32") for one in sizes[:-1]]
    return program, [jax.ShapeDtypeStruct((5, first), "float32"), *weights]


def products(count: int, first: int) -> Graph:
    program, arguments = chained(count, first)
    return trace_function(program, *arguments, name="chain").graph


def test_what_a_trace_tells_is_asked_as_it_comes_and_no_other_than_its_graph_asks(
    monkeypatch: pytest.MonkeyPatch, other: Second
) -> None:
    import jax

    asked: list[list[Question]] = []
    monkeypatch.setattr(Second, "ask", lambda self, wanted: asked.append(list(wanted)))
    monkeypatch.setattr(family, "SECOND", other)
    other.start()
    program, arguments = chained(LEAST, 50)

    def step(*given: Any) -> Any:
        return jax.grad(lambda *each: program(*each).sum(), argnums=tuple(range(1, len(given))))(*given)

    told: list[Node] = []
    ahead = Ahead(SMALL, Options())

    def hear(node: Node) -> None:
        told.append(node)
        ahead.hear(node)

    with products_told(hear):
        graph = trace_function(step, *arguments, name="step").graph
    count = sum(kind(node) is Kind.PRODUCT for node in graph.body.nodes)
    assert len(told) == count == 3 * LEAST - 1  # the first input has no gradient
    assert [len(wanted) for wanted in asked] == [LEAST, 2 * LEAST]
    search_ahead(graph, SMALL, Options())
    early, whole = asked[-2], asked[-1]
    assert early == whole[: len(early)]
    trace_function(program, *arguments, name="chain")
    assert len(told) == count


def test_what_a_cache_has_is_not_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, other: Second) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(family, "SECOND", other)
    program, arguments = chained(LEAST, 70)
    request = make_request(program, inputs=tuple(arguments))
    first = compile_request(request)
    other.start()
    again = compile_request(request)
    assert list(again.passes["phase"]) == ["trace", "cache"]
    assert not other.waiting
    assert not other.answers
    assert again.profile.total_cycles == first.profile.total_cycles


def test_a_compile_is_the_same_with_one_and_without(monkeypatch: pytest.MonkeyPatch, other: Second) -> None:
    graph, machine = products(LEAST + 2, 40), replace(SMALL, tiles_per_ipu=23)
    found: list[object] = []
    choice = Second.choice
    monkeypatch.setattr(Second, "choice", lambda self, asked: found.append(choice(self, asked)) or found[-1])
    monkeypatch.setattr(family, "SECOND", other)
    monkeypatch.setattr(second, "SECOND", other)
    other.start()
    search_ahead(graph, machine, Options())
    until(lambda: (other.hear(0.1), len(other.answers) >= LEAST)[1])
    beside = compile_graph(graph, machine, Options())
    assert sum(each is not None for each in found) >= LEAST
    other.end()
    second.planned.cache_clear()  # type: ignore[attr-defined]
    plan.cache_clear()  # type: ignore[attr-defined]
    alone = compile_graph(graph, machine, Options())
    assert dump(beside.program) == dump(alone.program)
    assert beside.trace.total_cycles == alone.trace.total_cycles
    assert np.array_equal(beside.allocation.bounds, alone.allocation.bounds)


def test_a_session_leaves_no_process_behind() -> None:
    import subprocess

    code = """
        from workbench.engine.planner.beside.second import SECOND
        SECOND.start()
        print(SECOND.pid)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
