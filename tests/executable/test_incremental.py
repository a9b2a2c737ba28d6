"""Compiles one after another that take over what they can are those of a fresh start, in every table."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.corpus.digest import columns
from workbench.engine import remembered
from workbench.executable import Executable, cache, compile_request, make_request

OPTIONS: dict[str, tuple[Any, ...]] = {
    "convolutions.poplar_options.availableMemoryProportion": (0.6, 0.3, 0.02, 0.004, 0.0),
    "matmuls.poplar_options.availableMemoryProportion": (0.6, 0.01, 0.002),
    "convolutions.poplar_options.partialsType": ("float", "half"),
    "matmuls.clear_pass_type": (False, True),
    "ipu_model.compile_ipu_code": (False, True),
    "optimizations.enable_graph_outlining": (True, False),
    "optimizations.merge_infeed_io_copies": (True, False),
    "optimizations.maximum_cross_replica_sum_buffer_size": (0, 1000),
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "batch_size": (4, 6),
    "optimizer": ("sgd", "adam"),
}
SCHEDULES: dict[str, tuple[Any, ...]] = {
    "pipeline.schedule": ("Grouped", "Interleaved", "Sequential"),
    "allow_recompute": (False, True),
    "matmuls.poplar_options.availableMemoryProportion": (0.6, 0.01, 0.002),
    "matmuls.poplar_options.partialsType": ("float", "half"),
}


def changes(pool: dict[str, tuple[Any, ...]]) -> st.SearchStrategy[tuple[str, Any]]:
    """One of the options or arguments with a value."""
    return st.sampled_from(sorted(pool)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(pool[name])))


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", "off")


def network() -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 4)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(24, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def blocks() -> Any:
    import keras

    x = given_to = keras.Input((16,))
    for number in range(6):
        x = keras.layers.LayerNormalization(name=f"n{number}")(keras.layers.Dense(16, activation="relu")(x))
    return keras.Model(given_to, keras.layers.Dense(4, activation="softmax")(x))


def alike() -> Any:
    """Equal layers behind each other, of which runs are tried as bodies in every compile."""
    import keras

    layers = keras.layers
    x = given_to = keras.Input((8, 8, 4))
    for _ in range(4):
        x = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
    return keras.Model(given_to, layers.Dense(10, activation="softmax")(layers.Flatten()(x)))


def check_in_turn(start: Any, steps: list[tuple[str, Any]]) -> None:
    """Each step changes one thing of the request before it."""
    asked, made = start, [compile_request(start)]  # all held: what one of them has serves each later one
    for name, value in steps:
        asked = asked.replace(**({name: value} if name in ARGUMENTS else {"options": {name: value}}))
        made.append(compile_request(asked, like=made[-1]))
        assert_alike(made[-1], compile_request(asked))


def assert_alike(one: Executable, other: Executable) -> None:
    """Every column of every table, and what is said of the whole but how it came about."""
    mine, theirs = columns(one.profile), columns(other.profile)
    assert mine.keys() == theirs.keys()
    for name, table in theirs.items():
        if name == "passes":
            continue
        assert mine[name].keys() == table.keys()
        for column, values in table.items():
            assert np.array_equal(np.asarray(mine[name][column]), np.asarray(values)), f"{name}.{column}"
    said = [{key: value for key, value in each.profile.meta.items() if key != "passes"} for each in (one, other)]
    assert said[0] == said[1]


def request_of(build: Any, **more: Any) -> Any:
    return make_request(build(), mode="training", batch_size=4, target=wb.target("ipu2", tiles_per_ipu=12), **more)


IN_TURN = st.lists(changes(OPTIONS | ARGUMENTS), min_size=1, max_size=4)
SCHEDULED = st.lists(changes(SCHEDULES), min_size=1, max_size=4)


@settings(max_examples=6)
@given(IN_TURN)
def test_options_and_arguments_in_turn(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(network, optimizer="sgd"), steps)


@settings(max_examples=3)
@given(IN_TURN)
def test_options_and_arguments_in_turn_of_equal_layers(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(alike, optimizer="adam"), steps)


@settings(max_examples=3)
@given(SCHEDULED)
def test_schedules_in_turn(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(blocks, stages=["n1", "n3"], gradient_accumulation_steps=12), steps)


@pytest.mark.slow
@settings(max_examples=15)
@given(IN_TURN)
def test_many_options_and_arguments_in_turn(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(network, optimizer="sgd"), steps)


@pytest.mark.slow
@settings(max_examples=10)
@given(IN_TURN)
def test_many_options_and_arguments_in_turn_of_equal_layers(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(alike, optimizer="adam"), steps)


@pytest.mark.slow
@settings(max_examples=6)
@given(SCHEDULED)
def test_many_schedules_in_turn(steps: list[tuple[str, Any]]) -> None:
    check_in_turn(request_of(blocks, stages=["n1", "n3"], gradient_accumulation_steps=12), steps)


def test_a_bound_that_changes_no_plan_says_its_own_in_the_same_tables() -> None:
    cache.clear()  # which may hold a compile of the other bound, of its own
    first = compile_request(request_of(network))
    assert first.profile.fits
    bound = {"convolutions.poplar_options.availableMemoryProportion": 0.5}
    later = compile_request(first.request.replace(options=bound), like=first)
    assert later.profile.tables is first.profile.tables
    assert later.profile.meta["config_changed"] == bound
    assert first.profile.meta["config_changed"] == {}
    assert set(later.passes["changed"].str.endswith(("as before", "traced before"))) == {True}


def test_plans_are_told_to_be_the_same_though_the_planner_forgot_them() -> None:
    cache.clear()
    first = compile_request(request_of(network))
    assert first.profile.fits
    for kept in remembered.EVERY:  # as between compiles of a session that has compiled much
        kept.forget()
    later = compile_request(
        first.request.replace(options={"convolutions.poplar_options.availableMemoryProportion": 0.5}), like=first
    )
    assert later.profile.tables is first.profile.tables


def test_what_an_earlier_compile_had_is_taken_from_it_whichever_the_next_is_made_like() -> None:
    """Back to a schedule of before, and on to one that recomputation leaves as it is; what is said of it differs."""
    start = request_of(blocks, stages=["n1", "n3"], gradient_accumulation_steps=12)
    first = compile_request(start.replace(options={"pipeline.schedule": "Sequential"}))
    assert first.profile.fits
    other = compile_request(start.replace(options={"allow_recompute": True}), like=first)
    again = compile_request(first.request, like=other)
    assert again.profile.tables is first.profile.tables
    asked = first.request.replace(options={"allow_recompute": True})
    last = compile_request(asked, like=compile_request(other.request, like=other))
    assert last.profile.tables is first.profile.tables
    assert len(last.profile.meta["assumptions"]) == len(first.profile.meta["assumptions"]) + 1
    assert any(said.startswith("recomputation: nothing is computed again") for said in last.profile.meta["assumptions"])
    assert str(last.graph) == str(compile_request(asked).graph)
    assert_alike(last, compile_request(asked))


def test_kin_are_found_while_somebody_holds_them() -> None:
    first = compile_request(request_of(network, optimizer="sgd"))
    second = compile_request(first.request.replace(options={"matmuls.clear_pass_type": True}), like=first)
    assert list(second.kin) == [second, first]
    assert first.kin is second.kin
    del second
    gc.collect()
    assert list(first.kin) == [first]
    alone = compile_request(first.request)
    assert list(alone.kin) == [alone]
