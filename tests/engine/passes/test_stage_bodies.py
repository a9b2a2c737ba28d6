"""Stage bodies are lowered once: what another schedule takes over is what it would have lowered itself."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.engine.passes import stage_bodies
from workbench.executable import Executable, compile_request, make_request

LAYERS = 6


def build() -> Any:
    import keras

    dense = [keras.layers.Dense(32, activation="relu", name=f"d{number}") for number in range(LAYERS - 1)]
    return keras.Sequential([keras.Input((32,)), *dense, keras.layers.Dense(10, activation="softmax", name="out")])


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bodies that were taken over, by name."""
    found: list[str] = []
    play = stage_bodies._play

    def noted(tape: Any, lowering: Any, function: Any) -> None:
        found.append(function.name)
        play(tape, lowering, function)

    monkeypatch.setattr(stage_bodies, "_play", noted)
    monkeypatch.setenv("WORKBENCH_CACHE", "off")
    return found


def request(schedule: str = "Grouped", **more: Any) -> Any:
    return make_request(
        build, mode="training", batch_size=8, optimizer="adam", stages=["d1", "d3"], pipeline_schedule=schedule,
        gradient_accumulation_steps=12, target=wb.target("ipu2", tiles_per_ipu=8), **more,
    )  # fmt: skip


def same(one: Executable, other: Executable) -> bool:
    """Whether two compiles lowered to the same program, operators and plans."""
    rows = [
        [(row.id, row.plan, row.flops, row.body, dict(row.repeated)) for row in each.compiled.lowered.operators]
        for each in (one, other)
    ]
    texts = [str(each.program).replace(each.program.name, "") for each in (one, other)]
    return texts[0] == texts[1] and rows[0] == rows[1]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("schedule", ["Interleaved", "Sequential"])
def test_bodies_taken_over_are_those_lowered_anew(replayed: list[str], schedule: str, again: bool) -> None:
    first = compile_request(request(recomputation=again))
    assert not replayed
    asked = first.request.replace(options={"pipeline.schedule": schedule})
    later = compile_request(asked, like=first)
    taken = list(replayed)
    assert same(later, compile_request(asked))
    assert not same(later, first)
    if (schedule, again) != ("Sequential", True):  # it recomputes in another way: another graph
        assert taken
        assert len(set(taken)) == len(taken)
    assert replayed == taken


def test_what_a_body_reads_otherwise_is_lowered_anew(replayed: list[str]) -> None:
    """Another option of the planner makes other bodies, another target too; the latest are kept."""
    first = compile_request(request())
    changed = first.request.replace(options={"matmuls.poplar_options.availableMemoryProportion": 0.05})
    other = compile_request(changed, like=first)
    larger = compile_request(first.request.replace(target=wb.target("ipu2", tiles_per_ipu=16)), like=other)
    assert not replayed
    assert same(other, compile_request(changed))
    assert same(larger, compile_request(larger.request))
    again = compile_request(larger.request, like=larger)
    assert len(replayed) == 9  # forward, backward and update of three stages
    assert same(again, larger)


def test_what_lies_off_the_chip_is_lowered_anew(replayed: list[str]) -> None:
    """Loads and stores note where variables are: nothing of such a program is taken over."""
    first = compile_request(request(offload=("optimizer_state",)))
    asked = first.request.replace(options={"pipeline.schedule": "Interleaved"})
    later = compile_request(asked, like=first)
    assert same(later, compile_request(asked))
    assert first.program.remote_buffers


def test_operators_keep_how_often_they_run_a_step(replayed: list[str]) -> None:
    """Step numbers of loops inside an operator move with its steps."""
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"pipeline.schedule": "Interleaved"}), like=first)
    ids = {step.id for step in later.program.steps}
    assert replayed
    assert {step for row in later.compiled.lowered.operators for step in row.repeated} <= ids
