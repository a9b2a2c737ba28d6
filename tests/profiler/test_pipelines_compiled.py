"""What compiled pipelines tell of themselves: FIFO turns by micro-batch and layer, collectives in updates, slots."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import workbench as wb
from tests.engine.reconcile import nothing_is_kept_twice
from workbench.executable import Executable
from workbench.widgets.kit.palette import CAUSES
from workbench.widgets.views.pipeline_faces import draw

MICRO_BATCHES = 8


@functools.cache
def compiled(replicas: int = 1, optimizer: str = "Adam", recomputation: bool = False) -> Executable:
    """Two layers on stage 0, two on stage 1."""
    import keras

    def build() -> Any:
        names = ("dense_0", "dense_1", "dense_2")
        layers = [keras.layers.Dense(32, activation="relu", name=name) for name in names]
        return keras.Sequential([keras.Input((32,)), *layers, keras.layers.Dense(4, activation="softmax", name="out")])

    return wb.compile(
        build,
        batch_size=8,
        mode="training",
        optimizer=getattr(keras.optimizers, optimizer)(),
        stages=[0, 0, 1, 1],
        replicas=replicas,
        recomputation=recomputation,
        gradient_accumulation_steps=MICRO_BATCHES,
        target=wb.target("ipu2", tiles_per_ipu=8),
    )


def fifo_blocks() -> Any:
    """The blocks of FIFO turns, in order of time."""
    profile = compiled().profile
    turns = profile.steps[profile.steps["name"].str.startswith("fifo/")]
    blocks = profile.blocks(max_rows=1_000_000)
    return blocks[blocks["step"].isin(turns["id"])]


def test_fifo_turns_belong_to_the_micro_batch_that_enters_or_leaves() -> None:
    """Stage 0 keeps two besides the one being filled, so behind micro-batch 7 two turns let 6 and 7 go."""
    blocks = fifo_blocks()
    starts = blocks[blocks["stage"] == 0].groupby("cycles_from")["micro_batch"].first()
    pops = blocks[(blocks["stage"] == 0) & blocks["step"].isin(pop_steps())]["micro_batch"].tolist()
    assert pops == [*range(MICRO_BATCHES), 6, 7]
    assert (starts >= 0).all()


def pop_steps() -> list[int]:
    steps = compiled().profile.steps
    return [int(step) for step in steps.loc[steps["name"] == "fifo/pop", "id"]]


def test_fifo_turns_belong_to_the_layer_that_made_what_is_in_them() -> None:
    """Of stage 0 that are two layers and what the host sent: none. What arrives at stage 1 was made by `dense_1`."""
    found = {(row.stage, row.layer) for row in fifo_blocks().itertuples()}
    assert found == {(0, ""), (1, "dense_1")}


def test_collectives_are_blocks_of_their_own_with_their_colour() -> None:
    profile = compiled(replicas=2).profile
    executions = profile.pipeline.executions
    kinds = ("stage", "copy", "collective", "other", "idle")
    every = executions.window(0, profile.total_cycles, kinds)
    spent: dict[tuple[int, str], float] = {}
    for ipu, body, cycles in zip(every.ipu.tolist(), every.body.tolist(), every.cycles.tolist(), strict=True):
        for cause, part in executions.bodies[body].mix:
            spent[ipu, cause] = spent.get((ipu, cause), 0.0) + part * cycles
    for row in profile.cycle_breakdown.itertuples():
        assert spent.get((row.ipu, row.cause), 0.0) == pytest.approx(row.cycles)
    alone = executions.window(0, profile.total_cycles, ("collective",))
    expected = profile.cycle_breakdown.query("cause == 'collective'")["cycles"].sum()
    assert int(alone.cycles.sum()) == expected > 0
    view = profile.pipeline.widget()
    painted = {(body["colour"], body["pattern"]) for body in view.data["bodies"] if body["kind"] == "collective"}
    assert painted == {(CAUSES["collective"]["colour"], CAUSES["collective"]["pattern"])}
    assert CAUSES["collective"]["label"] in [key["label"] for key in view.data["keys"]]
    assert CAUSES["collective"]["colour"] in draw(profile.pipeline)


def test_without_replicas_an_update_is_one_block() -> None:
    executions = compiled().profile.pipeline.executions
    updates = [body for body in executions.bodies if body.direction == "update"]
    assert len(updates) == 2
    assert not any(body.kind == "collective" for body in executions.bodies)


@pytest.mark.parametrize("recomputation", [False, True])
def test_slots_that_meet_no_weights_lie_as_the_sums_they_meet(recomputation: bool) -> None:
    """LAMB reads its slots with the gradients alone, norms come between them and the weights."""
    found = compiled(optimizer="Lamb", recomputation=recomputation)
    nothing_is_kept_twice(found.compiled)
    variables = found.profile.variables.set_index("name")
    for slot in ("momentum", "velocity"):
        own = variables.loc[f"optimizer/sequential_dense_0_kernel_{slot}"]
        assert own["tiles"] == variables.loc["sequential/dense_0/kernel/accumulator"]["tiles"]


@pytest.mark.parametrize(("devices", "count"), [((0, 1, 0, 1, 2), 12), ((0, 1, 1, 0), 6)])
def test_interleaved_inference_enters_at_uneven_offsets(devices: tuple[int, ...], count: int) -> None:
    """A round of five columns takes two micro-batches, one behind the other: the gaps are one column and four."""
    import keras
    import numpy as np

    from workbench.engine.pipeline_schedule import offsets

    assert offsets("Interleaved", (0, 1, 0, 1, 2)) == (0, 1)
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(16, activation="relu", name=f"d{number}") for number in range(len(devices))]
    model = keras.Sequential([keras.Input((16,)), *layers])
    found = wb.compile(
        model,
        batch_size=4,
        mode="inference",
        stages=list(range(len(devices))),
        device_mapping=devices,
        pipeline_schedule="Interleaved",
        gradient_accumulation_steps=count,
        target=wb.target("ipu2", tiles_per_ipu=4),
    )
    inputs = np.random.default_rng(0).normal(size=(4 * count, 16)).astype("float32")
    np.testing.assert_allclose(found.run(inputs), model.predict_on_batch(inputs), atol=1e-6)
    spent = found.profile.cycle_breakdown.groupby("ipu")["cycles"].sum()
    assert set(spent) == {found.profile.total_cycles}
