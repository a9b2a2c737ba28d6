"""Proportions of memory of each IPU: every product of a stage is planned with its IPU's."""

from __future__ import annotations

from typing import Any

import keras
import pytest

from tests.engine.passes.staged_models import BATCH, model
from tests.engine.small_graphs import functions_before_and_after
from workbench.engine.compile import compile_graph
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.passes.memory_proportions import memory_proportions
from workbench.engine.planner.beside import second
from workbench.engine.planner.search import PROPORTION, plan
from workbench.engine.target import target
from workbench.errors import InputError

MATMULS = "matmuls.poplar_options.availableMemoryProportion"


def graph() -> Graph:
    """Three stages of a dense layer each."""
    return trace_keras(
        model(False),
        BATCH,
        "training",
        stages=["a", "b"],
        gradient_accumulation_steps=6,
        optimizer=keras.optimizers.SGD(0.1),
    ).graph


def chosen(made: Graph) -> dict[str, set[float]]:
    return {
        name: {node.attr(PROPORTION) for node in made.functions[name].nodes if node.op == "dot_general"}
        for name in (f"stage{stage}_forward" for stage in range(3))
    }


@pytest.mark.parametrize(("mapping", "numbers"), [((), (0.1, 0.2, 0.3)), ((2, 0, 1), (0.3, 0.1, 0.2))])
def test_a_stage_has_the_number_of_its_ipu(mapping: tuple[int, ...], numbers: tuple[float, ...]) -> None:
    options = Options().with_values({MATMULS: [0.1, 0.2, 0.3], "pipeline.device_mapping": mapping})
    found = chosen(memory_proportions(graph(), options))
    assert found == {f"stage{stage}_forward": {number} for stage, number in enumerate(numbers)}


def test_products_are_planned_within_the_number_of_their_ipu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[float] = set()
    monkeypatch.setattr(second, "plan", lambda *given: seen.add(given[2].proportion) or plan(*given))
    options = Options().with_values({MATMULS: ["0.05", "0.1", "0.2"]})
    compile_graph(graph(), target("ipu2", tiles_per_ipu=8), options, ipus=3)
    assert seen == {0.05, 0.1, 0.2}


def test_one_number_changes_nothing_and_a_wrong_count_is_an_error() -> None:
    made = graph()
    assert memory_proportions(made, Options().with_values({MATMULS: 0.1})) is made
    with pytest.raises(InputError) as error:
        memory_proportions(made, Options().with_values({MATMULS: [0.1, 0.2]}))
    assert str(error.value) == (
        "matmuls.poplar_options.availableMemoryProportion has 2 numbers. "
        "Expected: one number, or one for each of 3 IPUs of a replica."
    )


def test_text(golden: Any) -> None:
    """Of three stages the last is on the IPU of the first."""
    given = Options().with_values({MATMULS: [0.2, 0.4], "pipeline.device_mapping": (0, 1, 0)})
    before = graph()
    after = memory_proportions(before, given)
    text = functions_before_and_after(before, after, "stage0_forward", "stage1_forward")
    golden("passes/memory_proportions.txt", text)
