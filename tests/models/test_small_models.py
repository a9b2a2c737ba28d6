"""Real models at tiny sizes: nothing unmodelled, everything reconciles, numbers are Keras' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine import reconcile
from tests.engine.passes.owners import Owners
from tests.models import small_models
from workbench.datasets import digits

MODELS: dict[str, Callable[[], Any]] = {
    "mlp": small_models.mlp,
    "cnn": small_models.cnn,
    "encoder": small_models.encoder,
}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.01),
}
CASES = [("mlp", "sgd"), ("mlp", "momentum"), ("mlp", "adam"), ("cnn", "momentum"), ("encoder", "adam")]
TILES = 64


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def trained(request: pytest.FixtureRequest) -> Any:
    name, optimizer = request.param
    return wb.compile(
        MODELS[name],
        batch_size=4,
        mode="training",
        optimizer=OPTIMIZERS[optimizer](),
        loss="sparse_categorical_crossentropy",
        target=wb.target("ipu2", tiles_per_ipu=TILES),
    )


@pytest.fixture(scope="module", params=[*MODELS], ids=str)
def inferred(request: pytest.FixtureRequest) -> Any:
    return wb.compile(
        MODELS[request.param], batch_size=4, mode="inference", target=wb.target("ipu2", tiles_per_ipu=TILES)
    )


@pytest.mark.parametrize("part", reconcile.ALL, ids=lambda part: part.__name__)
def test_a_training_step_reconciles(trained: Any, part: Any) -> None:
    part(trained.compiled)


@pytest.mark.parametrize("part", reconcile.ALL, ids=lambda part: part.__name__)
def test_inference_reconciles(inferred: Any, part: Any) -> None:
    part(inferred.compiled)


HARDER: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "cnn in two stages": (small_models.cnn, {"stages": ["pool"], "gradient_accumulation_steps": 8}),
    "cnn in four stages": (small_models.cnn, {"stages": ["relu_a", "skip", "drop"], "gradient_accumulation_steps": 8}),
    "cnn in sequence": (
        small_models.cnn,
        {"stages": ["pool"], "gradient_accumulation_steps": 3, "pipeline_schedule": "Sequential"},
    ),
    "encoder in two stages": (small_models.encoder, {"stages": ["norm_b0"], "gradient_accumulation_steps": 8}),
    "accumulated cnn": (small_models.cnn, {"gradient_accumulation_steps": 4}),
    "accumulated encoder": (small_models.encoder, {"gradient_accumulation_steps": 4}),
    "mixed cnn": (small_models.cnn, {"precision": "mixed_float16"}),
    "half encoder": (small_models.encoder, {"precision": "float16"}),
}


@pytest.mark.parametrize("name", HARDER)
@pytest.mark.parametrize("optimizer", ["momentum", pytest.param("adam", marks=pytest.mark.slow)])
def test_stages_accumulation_and_precision_reconcile(name: str, optimizer: str) -> None:
    build, arguments = HARDER[name]
    found = wb.compile(
        build,
        batch_size=4,
        mode="training",
        optimizer=OPTIMIZERS[optimizer](),
        target=wb.target("ipu2", tiles_per_ipu=TILES),
        **arguments,
    ).compiled
    reconcile.reconciles(found)
    if found.program.pipeline:
        Owners(found.program).run(found.program.entry)


def test_nothing_is_unmodelled(trained: Any) -> None:
    assert trained.profile.unmodelled.empty


def test_every_weight_is_updated_where_it_is(trained: Any) -> None:
    graph = trained.graph
    updated = [output.name for output in graph.outputs if output.role == "update"]
    changed = {phase.phase: phase.changed for phase in trained.compiled.phases}["in_place"]
    assert changed.endswith(f"{len(updated)} updates")


def test_the_profile_sums_as_the_engine_does(trained: Any) -> None:
    profile, compiled = trained.profile, trained.compiled
    tiles = profile.tiles
    assert (tiles[list(profile.memory_categories)].sum(axis=1) == tiles.total_bytes).all()
    spent = profile.cycle_breakdown.groupby("ipu").cycles.sum()
    assert (spent == profile.total_cycles).all()
    assert profile.total_cycles == compiled.trace.total_cycles
    leaves = profile.steps[profile.steps.kind.isin(["OnTileExecute", "DoExchange", "StreamCopy", "Sync"])]
    assert leaves.total_cycles.sum() == profile.total_cycles
    flops = sum(operator.flops for operator in compiled.lowered.operators)
    assert profile.operators.flops.sum() == flops


def test_matmuls_count_two_flops_a_multiply_add() -> None:
    found = wb.compile(
        small_models.mlp, batch_size=4, mode="inference", target=wb.target("ipu2", tiles_per_ipu=TILES)
    ).profile.operators
    assert found[found.op == "matmul"].flops.sum() == 2 * 4 * (64 * 48 + 48 * 32 + 32 * 10)


def test_the_digits_mlp_learns_and_equals_keras() -> None:
    images, labels = digits()
    x, y = images[:64].reshape(64, 64), labels[:64]
    ours, theirs = small_models.mlp(), small_models.mlp()
    for model in (ours, theirs):
        model.compile(optimizer=OPTIMIZERS["momentum"](), loss="sparse_categorical_crossentropy")
    executable = wb.compile(ours, batch_size=64, target=wb.target("ipu2", tiles_per_ipu=TILES))
    losses = [float(executable.run(x, y)["loss"]) for _ in range(5)]
    expected = [float(theirs.train_on_batch(x, y)) for _ in range(5)]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert losses[-1] < losses[0]
    inference = wb.compile(ours, batch_size=64, mode="inference", target=wb.target("ipu2", tiles_per_ipu=TILES))
    np.testing.assert_allclose(inference.run(x), theirs.predict(x, verbose=0), rtol=1e-4, atol=1e-5)
