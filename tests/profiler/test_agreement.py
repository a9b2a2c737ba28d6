"""No two tables or reports of a profile disagree, over programs of every shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.profiler.agreement import disagreements
from workbench.profiler.profile import Profile


def network(**arguments: Any) -> Profile:
    """Eight dense layers, trained on 8 tiles an IPU; six of them are equal."""
    import keras

    def build() -> Any:
        names = [f"dense_{number}" for number in range(7)]
        layers = [keras.layers.Dense(32, activation="relu", name=name) for name in names]
        return keras.Sequential([keras.Input((32,)), *layers, keras.layers.Dense(4, activation="softmax", name="out")])

    target = wb.target("ipu2", tiles_per_ipu=8)
    return wb.compile(build, batch_size=8, mode="training", optimizer="adam", target=target, **arguments).profile


def by_hand() -> Profile:
    """A vertex and a copy, the copy repeated; the variables belong to no layer that runs."""
    g = wb.tiles.Graph("ipu2", tiles=16)
    x = g.variable("x", (1000,), "float32").map_linearly(tiles=10)
    y = g.variable("y", (1000,), "float32").map_linearly(tiles=10)
    scale = g.compute_set("scale")
    scale.vertex("popops::BinaryOp1D", tile=3, op="MULTIPLY", a=x[:100], b=x[:100], out=y[:100])
    return wb.profile(g.sequence(g.host_copy(x), scale, g.repeat(10, g.sequence(scale, g.copy(y, x)))))


def too_large() -> Profile:
    """Four layers of 1024 units on 8 tiles: placed without regions, far beyond the tile."""
    import keras

    def build() -> Any:
        layers = [keras.layers.Dense(1024, name=f"dense_{number}") for number in range(4)]
        return keras.Sequential([keras.Input((512,)), *layers])

    target = wb.target("ipu2", tiles_per_ipu=8)
    return wb.compile(build, batch_size=8, mode="training", optimizer="adam", target=target).profile


def accumulated() -> Profile:
    """One call of a micro-batch holds its forward and its backward pass."""
    return network(replicas=2, offload=("optimizer_state",), gradient_accumulation_steps=4)


def piped(schedule: str, recomputation: bool, stages: int = 2, **arguments: Any) -> Profile:
    split = [number * stages // 8 for number in range(8)]
    more = {"recomputation": recomputation, "gradient_accumulation_steps": 8, **arguments}
    return network(stages=split, pipeline_schedule=schedule, **more)


def uneven(kind: str) -> Profile:
    """Equal products share a body that a loop, or an arm of a branch, runs for some of them, plain steps for others."""
    from jax import lax

    def scanned(w: Any, xs: Any) -> Any:
        state = lax.scan(lambda state, x: (state @ w, state), xs[0], xs)[0]
        return ((state @ w) @ w) @ w

    def branched(w: Any, xs: Any) -> Any:
        dear, cheap = (lambda v: ((v @ w) @ w) @ w), (lambda v: v @ w)
        return lax.cond(xs[0].sum() > 0, dear, cheap, xs[0] @ w) @ w

    function = {"loop": scanned, "branch": branched}[kind]
    inputs = np.ones((64, 64), np.float32), np.ones((7, 64, 64), np.float32)
    return wb.compile(function, *inputs, target=wb.target("ipu2", tiles_per_ipu=4)).profile


FAST = {
    "loop": lambda: uneven("loop"),
    "branch": lambda: uneven("branch"),
    "by hand": by_hand,
    "accumulated": accumulated,
    "Sequential": lambda: piped("Sequential", True),
}
SLOW = {
    "does not fit": too_large,
    "alone": network,
    "recomputation": lambda: network(recomputation=True, gradient_accumulation_steps=4),
    **{
        f"{schedule} of {stages}, recomputation {again}": lambda s=schedule, n=stages, a=again: piped(s, a, n)
        for schedule in ("Grouped", "Interleaved", "Sequential")
        for stages in (2, 4)
        for again in (False, True)
    },
    "replicas": lambda: piped("Grouped", True, replicas=2),
    "offload": lambda: piped("Grouped", False, offload=("activations", "optimizer_state")),
}


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_all_tables_and_reports_agree(name: str) -> None:
    assert disagreements({**FAST, **SLOW}[name]()) == []


def test_an_operator_in_a_loop_has_its_turns_of_a_shared_body() -> None:
    """Seven turns of ten are the loop's product's, and so are its flops; the three plain products have one each."""
    profile = uneven("loop")
    products = profile.operators[profile.operators["op"] == "matmul"]
    assert products["body"].nunique() == 1
    assert sorted(products["flops"]) == [2 * 64**3] * 3 + [7 * 2 * 64**3]
    inside = profile.steps[profile.steps["parent"] == products["body"].iloc[0]]
    shared = inside.groupby("operator")["total_cycles"].sum()
    assert set(shared.index) == set(products["name"])
    once = int(inside.drop_duplicates("id")["cycles"].sum())
    assert sorted(shared) == [once] * 3 + [7 * once]


def test_operators_of_an_arm_not_taken_take_nothing() -> None:
    profile = uneven("branch")
    products = profile.operators[profile.operators["op"] == "matmul"]
    assert products["body"].nunique() == 1
    assert sorted(products["flops"]) == [0] + [2 * 64**3] * 5
