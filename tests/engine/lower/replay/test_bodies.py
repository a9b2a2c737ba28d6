"""Stage bodies are lowered once: what another schedule takes over is what it would have lowered itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import workbench as wb
from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.lower.replay import bodies as stage_bodies
from workbench.engine.lower.replay.form import Form, Renaming, form_of
from workbench.executable import Executable, compile_request, make_request

LAYERS = 6


def build() -> Any:
    import keras

    dense = [keras.layers.Dense(32, activation="relu", name=f"d{number}") for number in range(LAYERS - 1)]
    return keras.Sequential([keras.Input((32,)), *dense, keras.layers.Dense(10, activation="softmax", name="out")])


@dataclass
class Taken:
    """The bodies that were taken over, by name: from an earlier compile, or from another stage (body, its model)."""

    earlier: list[str] = field(default_factory=list)
    stages: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    found = Taken()
    play = stage_bodies.play

    def noted(tape: Any, lowering: Any, function: Any, *more: Any) -> None:
        if tape.function.name == function.name:
            found.earlier.append(function.name)
        else:
            found.stages.append((function.name, tape.function.name))
        play(tape, lowering, function, *more)

    monkeypatch.setattr(stage_bodies, "play", noted)
    monkeypatch.setenv("WORKBENCH_CACHE", "off")
    return found


def anew(asked: Any) -> Executable:
    """Compiled with every body lowered for itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            stage_bodies.StageBodies, "lower", lambda self, lowering, function: lowering.lower_function(function)
        )
        return compile_request(asked)


def request(schedule: str = "Grouped", **more: Any) -> Any:
    return make_request(
        build, mode="training", batch_size=8, optimizer="adam", stages=["d1", "d3"], pipeline_schedule=schedule,
        gradient_accumulation_steps=12, target=wb.target("ipu2", tiles_per_ipu=8), **more,
    )  # fmt: skip


def described(each: Executable) -> tuple[Any, ...]:
    """What a compile lowered to: operators, program, and of steps and variables what its text leaves out."""
    program, operators = each.program, each.compiled.lowered.operators
    return (
        [(row.id, row.layer, row.plan, row.flops, row.body, dict(row.repeated)) for row in operators],
        str(program).replace(program.name, ""),
        [(step.name, step.operator, step.origin, step.ipu, step.stage) for step in program.steps],
        [(variable.origin, variable.function) for variable in program.variables],
        each.compiled.lowered.unmodelled,
    )


def same(one: Executable, other: Executable) -> bool:
    """Whether two compiles lowered to the same."""
    return described(one) == described(other)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("schedule", ["Interleaved", "Sequential"])
def test_bodies_taken_over_are_those_lowered_anew(taken: Taken, schedule: str, again: bool) -> None:
    """Recomputed, Sequential is another graph, and what it has in common is taken over all the same."""
    first = compile_request(request(recomputation=again))
    assert not taken.earlier
    asked = first.request.replace(options={"pipeline.schedule": schedule})
    later = compile_request(asked, like=first)
    assert taken.earlier
    assert len(set(taken.earlier)) == len(taken.earlier)
    assert same(later, anew(asked))
    assert not same(later, first)


def test_a_recomputed_graph_takes_over_what_it_has_in_common(taken: Taken) -> None:
    first = compile_request(request())
    asked = first.request.replace(options={"allow_recompute": True})
    later = compile_request(asked, like=first)
    assert {"stage2_forward", "stage2_backward"} <= set(taken.earlier)  # the last stage computes nothing again
    assert "stage0_recompute" not in taken.earlier
    assert same(later, anew(asked))


def test_what_a_body_reads_otherwise_is_lowered_anew(taken: Taken) -> None:
    """Another option of the planner makes other bodies, another target too; the latest are kept."""
    first = compile_request(request())
    changed = first.request.replace(options={"matmuls.poplar_options.availableMemoryProportion": 0.05})
    other = compile_request(changed, like=first)
    larger = compile_request(first.request.replace(target=wb.target("ipu2", tiles_per_ipu=16)), like=other)
    assert not taken.earlier
    assert same(other, anew(changed))
    assert same(larger, anew(larger.request))
    taken.stages.clear()
    again = compile_request(larger.request, like=larger)
    assert len(taken.earlier) + len(taken.stages) == 9  # forward, backward and update of three stages
    assert same(again, larger)


def test_what_lies_off_the_chip_is_lowered_anew(taken: Taken) -> None:
    """Loads and stores note where variables are: nothing behind the first of them is taken over."""
    first = compile_request(request(offload=("optimizer_state",)))
    asked = first.request.replace(options={"pipeline.schedule": "Interleaved"})
    later = compile_request(asked, like=first)
    assert same(later, anew(asked))
    assert not [name for name in taken.earlier if name.endswith("update")]
    assert first.program.remote_buffers


def test_operators_keep_how_often_they_run_a_step(taken: Taken) -> None:
    """Step numbers of loops inside an operator move with its steps."""
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"pipeline.schedule": "Interleaved"}), like=first)
    ids = {step.id for step in later.program.steps}
    assert taken.earlier
    assert {step for row in later.compiled.lowered.operators for step in row.repeated} <= ids


def encoders(name: str = "encoders", each: int = 3) -> Any:
    """Four equal stages of so many equal blocks, the last with a head."""
    import keras

    x = given = keras.Input((32,))
    for number in range(4 * each):
        y = keras.layers.Dense(32, activation="relu", name=f"dense_{number}")(x)
        x = keras.layers.LayerNormalization(name=f"norm_{number}")(keras.layers.add([x, y]))
    return keras.Model(given, keras.layers.Dense(10, activation="softmax", name="out")(x), name=name)


def in_four(build: Any, each: int = 3, **more: Any) -> Any:
    return make_request(
        build, mode="training", batch_size=8, optimizer="adam", gradient_accumulation_steps=16,
        stages=[f"norm_{each * stage - 1}" for stage in (1, 2, 3)], target=wb.target("ipu2", tiles_per_ipu=4), **more,
    )  # fmt: skip


def test_a_stage_of_equal_layers_is_lowered_as_the_one_before_it(taken: Taken) -> None:
    """Under its own names, on its own IPU."""
    asked = in_four(encoders)
    found = compile_request(asked)
    assert ("stage2_forward", "stage1_forward") in taken.stages
    assert ("stage1_backward", "stage2_backward") in taken.stages
    assert ("stage2_update", "stage1_update") in taken.stages
    assert same(found, anew(asked))
    assert any(step.origin.layer == "norm_7" and step.ipu == 2 for step in found.program.steps)


def test_names_of_two_meanings_keep_bodies_apart(taken: Taken) -> None:
    """The model is called as a layer of one stage, and so are operators outside any layer."""
    asked = in_four(lambda: encoders("dense_1", each=1), each=1)
    found = compile_request(asked)
    assert ("stage2_forward", "stage1_forward") not in taken.stages
    assert same(found, anew(asked))


def attention_blocks() -> Any:
    """Four equal stages of a block in which Keras numbers a layer through the whole model: `softmax`, `softmax_1` …"""
    import keras

    class Block(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__(name=name)
            self.dense, self.softmax = keras.layers.Dense(32, name="dense"), keras.layers.Softmax()

        def build(self, shape: Any) -> None:
            self.dense.build(shape)

        def call(self, x: Any) -> Any:
            return x + self.softmax(self.dense(x))

    x = given = keras.Input((32,))
    for number in range(4):
        x = Block(f"norm_{number}")(x)
    return keras.Model(given, keras.layers.Dense(10, activation="softmax", name="out")(x))


def test_a_layer_inside_another_may_be_called_otherwise_in_each(taken: Taken) -> None:
    """Unless its name could be that of an operator of the outer one."""
    asked = in_four(attention_blocks, each=1)
    found = compile_request(asked)
    assert ("stage2_forward", "stage1_forward") in taken.stages
    assert same(found, anew(asked))
    ends = {step.origin.layer.removeprefix("norm_2/softmax_") for step in found.program.steps}
    assert any(end.isdigit() for end in ends)


def form(*layers: str, key: tuple[int, ...] = (), labels: tuple[str, ...] = ()) -> Form:
    origins = tuple(Origin(layer=layer) for layer in layers)
    return Form(
        key=key, model="model", functions=(), values=(), number={}, nodes=(), origins=origins, layers=layers,
        sources=(), labels=labels,
    )  # fmt: skip


def test_a_form_is_that_of_another_graph_which_has_the_body_and_all_it_calls() -> None:
    """A graph with another body under one of the names, or of another name, has a form of its own."""
    inner, body = (Function(name, (), (), ()) for name in ("inner", "body"))
    body = replace(body, nodes=(Node("fused", (), (), calls=("inner",)),))
    graph = Graph({"body": body, "inner": inner}, "body", (), ())
    found = form_of(graph, body)
    assert found.functions == (body, inner)
    assert found.is_of(graph)
    assert found.is_of(replace(graph, functions={**graph.functions, "more": inner}))
    assert not found.is_of(replace(graph, name="another"))
    assert not found.is_of(replace(graph, functions={"body": body, "inner": replace(inner)}))
    assert not found.is_of(replace(graph, functions={"inner": inner}))


def test_names_are_those_of_the_innermost_layer() -> None:
    names = Renaming(form("a", "a/b"), form("c", "c/b"), {"shared3_matmul": "shared5_matmul", "one": "two"}, "model")
    assert names.is_clear
    assert names.text("a/matmul/exchange") == "c/matmul/exchange"
    assert names.text("a/b/matmul:forward#2") == "c/b/matmul:forward#2"
    assert names.text("shared3_matmul/argument0") == "shared5_matmul/argument0"
    assert (names.text("one"), names.text("a"), names.text("sync")) == ("two", "a", "sync")
    assert (names.layer("a"), names.layer("")) == ("c", "")
    assert names.origin(Origin(layer="a/b", direction="backward")) == Origin(layer="c/b", direction="backward")


@pytest.mark.parametrize(
    ("label", "clear"),
    [
        ("a/matmul", True),
        ("a/b_1", False),  # an operator of the outer layer, or the inner layer
        ("c/b_2", False),
        ("a/b_1/matmul", True),
    ],
)
def test_the_end_of_a_path_may_differ_where_no_operator_is_called_so(label: str, clear: bool) -> None:
    old, new = form("a", "a/b_1", labels=(label,)), form("c", "c/b_2", labels=(label,))
    names = Renaming(old, new, {}, "model")
    assert names.is_clear is clear
    assert names.text("a/b_1/matmul") == "c/b_2/matmul"
    assert names.text("a/matmul") == "c/matmul"


@pytest.mark.parametrize(
    ("old", "new", "clear"),
    [
        (("a", "a/b"), ("c", "c/b"), True),
        (("a", "a/b_1"), ("c", "c/b_2"), True),
        (("a", "a/b"), ("c", "d/b"), False),  # no longer inside one another
        (("a",), ("model",), False),
        (("shared0_add",), ("b",), False),
        (("model", "a"), ("model", "a"), True),  # nothing is renamed
    ],
)
def test_which_names_are_clear(old: tuple[str, ...], new: tuple[str, ...], clear: bool) -> None:
    assert Renaming(form(*old), form(*new), {"shared0_add": "shared0_add"}, "model").is_clear is clear
