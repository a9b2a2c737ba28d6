"""What options of a model do to its program: launches, sums, masks, groups, recomputation."""

from typing import Any

import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, configure, four_layers, functional


def shares(profile: Any, batches: int) -> tuple[float, float, float]:
    """Cycles of a batch; the part of them in which the host is met or copied to; bytes a batch copies."""
    steps = profile.steps
    met = steps.name.isin(["launch", "finish"]) | (steps.kind == "StreamCopy")
    copied = ((steps.bytes_sent + steps.bytes_received) * steps.times)[steps.kind == "StreamCopy"].sum()
    return profile.total_cycles / batches, steps[met].total_cycles.sum() / profile.total_cycles, copied / batches


def test_more_steps_of_an_execution_share_its_launch_and_copy_the_same(twins: Twins) -> None:
    counts = (1, 2, 6)
    for steps in counts:
        twins.fitted(twins.made(functional, here=True, steps_per_execution=steps), epochs=1)
    profiles = [each.profile for each in twins.strategy.executables]
    for profile in profiles:
        met = profile.steps[profile.steps.name.isin(["launch", "finish"])]
        assert list(met.times) == [1, 1]
        assert list(met.cycles) == [profile.target["global_sync_cycles"]] * 2
    cycles, share, copied = zip(*map(shares, profiles, counts), strict=True)
    assert cycles[0] > cycles[1] > cycles[2]
    assert share[0] > share[1] > share[2]
    # 8 samples of 6 float32 and a label, the loss and the accuracy.
    assert copied == (8 * 6 * 4 + 8 * 4 + 4 + 4,) * 3


@pytest.mark.parametrize("queues", [{}, {"depth": 7}, {"packets": True}], ids=["as they are", "deep", "in packets"])
def test_a_pipeline_runs_all_updates_of_an_execution_in_one_program(twins: Twins, queues: dict[str, Any]) -> None:
    configure(2)
    for steps in (8, 24):
        model = twins.made(four_layers, here=True, steps_per_execution=steps)
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
        if queues:
            asked = {"depth": "prefetch_depth", "packets": "optimise_latency"}
            model.set_infeed_queue_options(**{asked[name]: value for name, value in queues.items()})
            asked["depth"] = "buffer_depth"
            model.set_outfeed_queue_options(**{asked[name]: value for name, value in queues.items()})
        twins.fitted(model, epochs=1, batch_size=2)
    one, three = (each.profile for each in twins.strategy.executables)
    assert three.meta["pipeline"] == {**one.meta["pipeline"], "updates": 3}
    assert (one.meta["samples_per_call"], three.meta["samples_per_call"]) == (16, 48)
    met = 2 * one.target["global_sync_cycles"]
    # An update is one turn of a loop; only what waits for the host may be shared out otherwise.
    assert three.total_cycles - met == pytest.approx(3 * (one.total_cycles - met), rel=0.01)
    assert three.max_tile_bytes == pytest.approx(one.max_tile_bytes, rel=0.1)
    copies = three.steps[three.steps.kind == "StreamCopy"]
    assert set(copies.times) == {24}
    assert copies.name.str.contains("infeed/0").sum() == 1
    packed = three.steps.name.str.contains("packets")
    assert packed.any() == ("packets" in queues)
    held = {step.ahead for step in twins.strategy.executables[1].program.steps if hasattr(step, "ahead")}
    assert held == {queues.get("depth", 3)}
    np.testing.assert_array_less(0, copies.total_cycles)
