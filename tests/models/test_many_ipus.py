"""Replicas and offload as a notebook asks for them: what a profile then says, and what is refused."""

from __future__ import annotations

from typing import Any

import keras
import pytest

import workbench as wb
from workbench import ipu
from workbench.errors import InputError


def model() -> Any:
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(32, activation="relu", name=f"dense_{i}") for i in range(3)]
    made = keras.Sequential([keras.Input((32,)), *layers, keras.layers.Dense(4, activation="softmax", name="out")])
    made.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy")
    return made


def profile(**arguments: Any) -> Any:
    return wb.profile(model(), batch_size=8, target=wb.target("ipu2", tiles_per_ipu=8), **arguments)


@pytest.mark.parametrize("more", [{}, {"stages": [0, 0, 1, 1], "gradient_accumulation_steps": 4}])
def test_samples_of_all_replicas_count(more: dict[str, Any]) -> None:
    for replicas in (1, 2, 4):
        found = profile(replicas=replicas, **more)
        samples = 8 * replicas * more.get("gradient_accumulation_steps", 1)
        assert found.samples_per_second == pytest.approx(samples / found.seconds)
        assert found.meta["replicas"] == replicas
        spent = found.cycle_breakdown.groupby("ipu").cycles.sum()
        assert set(spent) == {found.total_cycles}
        collective = found.cycle_breakdown.query("cause == 'collective'").cycles.sum()
        assert (collective > 0) == (replicas > 1)


def test_bytes_of_collectives_are_sent_as_they_are_received() -> None:
    steps = profile(replicas=4).steps.query("cause == 'collective'")
    assert (steps.bytes_sent == steps.bytes_received).all()
    gradients = 4 * (32 * 32 * 3 + 32 * 3 + 32 * 4 + 4)
    assert steps.bytes_sent.sum() == pytest.approx(2 * gradients * 3 / 4, rel=0.05)  # a tile's share is rounded up


def test_sums_that_may_wait_take_fewer_steps_and_more_memory() -> None:
    found = []
    for limit in (0, 10**6):
        config = ipu.config.IPUConfig()
        config.optimizations.maximum_cross_replica_sum_buffer_size = limit
        result = profile(replicas=2, config=config)
        buffers = result.variables[result.variables.name.str.endswith("psum/buffer")].bytes.sum()
        found.append((result.steps.query("cause == 'collective'").times.sum(), int(buffers)))
    assert found[0] == (2 * 8, 0)  # four kernels, four biases
    assert found[1][0] == 2
    assert found[1][1] > 0


def test_offload_is_told_by_the_summary() -> None:
    found = profile(offload=("optimizer_state",))
    assert "Streaming memory" in dict(found.summary.lines)
    names = [buffer["name"] for buffer in found.meta["remote_buffers"]]
    assert len(names) == 2 * 7  # two slots of four kernels and of three biases; that of four words is too small
    assert sum("dense_0_kernel" in name for name in names) == 2
    assert "Streaming memory" not in dict(profile().summary.lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"replicas": 0}, "replicas is 0"),
        ({"replicas": 2.0}, "replicas is 2.0"),
        ({"replicas": 17}, "1 stage on 17 replicas need 17 IPUs, but the Pod16 has 16"),
        ({"replicas": 9, "stages": [0, 0, 1, 1], "gradient_accumulation_steps": 4}, "need 18 IPUs"),
        ({"offload": ("optimiser",)}, "offload names 'optimiser'"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        profile(**arguments)


@pytest.mark.parametrize(("selected", "words"), [(3, "a multiple of 2 IPUs"), (8, "replicas=4")])
def test_ipus_that_the_configuration_selects_must_be_those_that_are_used(selected: int, words: str) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = selected
    with pytest.raises(InputError, match=f"selects {selected} IPUs, but 2 stages on 2 replicas need 4.*{words}"):
        profile(replicas=2, stages=[0, 0, 1, 1], gradient_accumulation_steps=4, config=config)


def test_a_larger_system_has_room() -> None:
    before = ipu.devices.current().name
    try:
        ipu.devices.use("pod64")
        assert profile(replicas=17).meta["replicas"] == 17
    finally:
        ipu.devices.use(before)


def test_copies_between_stages_cost_what_the_selection_order_makes_them_cost() -> None:
    """Stages 1 and 2 are a rung and a climb apart by number, and neighbours along a snake or a hoof."""
    cycles = {}
    for order in ipu.config.SelectionOrder:
        config = ipu.config.IPUConfig()
        config.selection_order = order
        found = profile(stages=[0, 1, 2, 3], gradient_accumulation_steps=8, config=config)
        links = found.steps[found.steps.kind == "GlobalExchange"]
        cycles[order.name] = {(row.ipu, row.to_ipu): row.cycles for row in links.itertuples() if row.ipu < row.to_ipu}
    one, other = cycles["ZIGZAG"], cycles["SNAKE"]
    assert one[0, 1] == other[0, 1]  # a pair in both
    assert one[1, 2] > other[1, 2]
    assert other == cycles["AUTO"]
    assert cycles["HOOF"][1, 2] < one[1, 2]
