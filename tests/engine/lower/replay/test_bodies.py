"""Stage bodies are lowered once: what another schedule takes over is what it would have lowered itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.lower import Lowered, lower
from workbench.engine.lower.replay import tape
from workbench.engine.lower.replay.bodies import StageBodies
from workbench.engine.lower.replay.form import Form, Renaming, form_of
from workbench.engine.ops import elementwise
from workbench.engine.ops.free import fill_groups
from workbench.engine.program import leaves
from workbench.executable import Executable, compile_request, make_request

LAYERS = 6


def build() -> Any:
    import keras

    dense = [keras.layers.Dense(32, activation="relu", name=f"d{number}") for number in range(LAYERS - 1)]
    return keras.Sequential([keras.Input((32,)), *dense, keras.layers.Dense(10, activation="softmax", name="out")])


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", "off")


def earlier(each: Executable) -> list[str]:
    """The bodies that were taken over from an earlier compile, by name."""
    return [body.name for body in lowered(each).bodies if body.like == body.name]


def stages(each: Executable) -> list[tuple[str, str]]:
    """The bodies that were taken over from another stage: body, its model."""
    return [(body.name, body.like) for body in lowered(each).bodies if body.like not in ("", body.name)]


def lowered(each: Executable) -> Lowered:
    found = each.compiled.lowered
    assert isinstance(found, Lowered)
    return found


def anew(each: Executable) -> Lowered:
    """What a compile is lowered to with every body lowered for itself."""
    compiled, request = each.compiled, each.request
    found = lower(
        compiled.prepared.graph,
        request.target,
        compiled.options,
        compiled.prepared.in_place,
        ipus=each.program.ipus,
        bodies=StageBodies(kept=0),
    )
    assert not any(body.like for body in found.bodies)
    return found


def request(schedule: str = "Grouped", **more: Any) -> Any:
    return make_request(
        build,
        mode="training",
        batch_size=8,
        optimizer="adam",
        stages=["d1", "d3"],
        pipeline_schedule=schedule,
        gradient_accumulation_steps=12,
        target=wb.target("ipu2", tiles_per_ipu=8),
        **more,
    )


def described(each: Lowered) -> tuple[Any, ...]:
    """What was lowered: operators, program, and of steps and variables what its text leaves out."""
    program = each.program
    return (
        [(row.id, row.layer, row.plan, row.flops, row.body, dict(row.repeated)) for row in each.operators],
        str(program).replace(program.name, ""),
        [(step.name, step.operator, step.origin, step.ipu, step.stage) for step in program.steps],
        [(variable.origin, variable.function) for variable in program.variables],
        each.unmodelled,
    )


def same(one: Lowered, other: Lowered) -> bool:
    """Whether two compiles lowered to the same."""
    return described(one) == described(other)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("schedule", ["Interleaved", "Sequential"])
def test_bodies_taken_over_are_those_lowered_anew(schedule: str, again: bool) -> None:
    """Recomputed, Sequential is another graph, and what it has in common is taken over all the same."""
    first = compile_request(request(recomputation=again))
    assert not earlier(first)
    later = compile_request(first.request.replace(options={"pipeline.schedule": schedule}), like=first)
    assert earlier(later)
    assert same(lowered(later), anew(later))
    assert not same(lowered(later), lowered(first))


@pytest.mark.parametrize("schedule", ["Interleaved", "Sequential"])
def test_what_waits_between_stages_moves_no_body(schedule: str) -> None:
    """FIFOs are numbered behind all else, so the forward bodies of another schedule are the very steps of the first."""
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"pipeline.schedule": schedule}), like=first)
    waiting = [sum("/stash" in variable.name for variable in each.program.variables) for each in (first, later)]
    assert waiting[0] > waiting[1]
    for name in ("stage0_forward", "stage1_forward", "stage2_forward", "stage1_update"):
        one, other = (
            [step for step in leaves(each.program.functions[name]) if step.operator] for each in (first, later)
        )
        assert one
        assert all(step is same for step, same in zip(one, other, strict=True))
    variables = first.program.variables
    assert [variable.id for variable in variables] == list(range(len(variables)))
    assert all("stash" in variable.name for variable in variables[-waiting[0] :])


def test_places_of_a_body_are_kept_for_the_next_lowering_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body is the same objects where it was before; all it ever was would be many programs."""
    names: list[Renaming] = []  # of bodies that are played in a new place

    def counted(*asked: Any) -> Renaming:
        names.append(Renaming(*asked))
        return names[-1]

    monkeypatch.setattr(tape, "Renaming", counted)
    first = compile_request(request())
    compiled = first.compiled
    assert compiled.prepared is not None

    def new_places(*schedules: str) -> int:
        """In how many new places bodies are when the last of some schedules is lowered."""
        for schedule in schedules:
            names.clear()
            assert compiled.prepared is not None
            lower(
                compiled.prepared.graph,
                first.request.target,
                first.request.replace(options={"pipeline.schedule": schedule}).options,
                compiled.prepared.in_place,
                ipus=first.program.ipus,
                bodies=compiled.prepared.bodies,
            )
        return len(names)

    assert new_places("Grouped") > 0  # the first was recorded
    assert new_places("Grouped") == new_places("Sequential", "Grouped") == 0
    assert new_places("Sequential", "Sequential", "Grouped") > 0


def test_a_recomputed_graph_takes_over_what_it_has_in_common() -> None:
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"allow_recompute": True}), like=first)
    assert {"stage2_forward", "stage2_backward"} <= set(earlier(later))  # the last stage computes nothing again
    assert "stage0_recompute" not in earlier(later)
    assert same(lowered(later), anew(later))


def test_what_a_body_reads_otherwise_is_lowered_anew() -> None:
    """Another option of the planner makes other bodies, another target too; the latest are kept."""
    first = compile_request(request())
    changed = first.request.replace(options={"matmuls.poplar_options.partialsType": "half"})
    other = compile_request(changed, like=first)
    larger = compile_request(first.request.replace(target=wb.target("ipu2", tiles_per_ipu=16)), like=other)
    assert not [name for name in earlier(other) if not name.endswith("update")]  # an update multiplies no matrices
    assert not earlier(larger)
    assert same(lowered(other), anew(other))
    assert same(lowered(larger), anew(larger))
    again = compile_request(larger.request, like=larger)
    assert lowered(again) is lowered(larger)


def test_an_option_that_no_body_reads_changes_none() -> None:
    """Which they are is not listed: all bodies are taken over where what they have read is as it was."""
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"compilation_poplar_options": {"a": "b"}}), like=first)
    assert lowered(later) is lowered(first)


def test_a_bound_that_leads_to_the_same_plans_changes_none() -> None:
    """Read is the plan, not the number; bodies of another schedule are taken over too."""
    first = compile_request(request())
    options = {"matmuls.poplar_options.availableMemoryProportion": 0.5}
    later = compile_request(first.request.replace(options=options), like=first)
    assert lowered(later) is lowered(first)
    assert same(lowered(later), anew(later))
    later = compile_request(first.request.replace(options=options | {"pipeline.schedule": "Interleaved"}), like=first)
    assert len(earlier(later)) + len(stages(later)) == 9  # forward, backward and update of three stages
    assert same(lowered(later), anew(later))


def reads_schedule(lowering: Lowering) -> Any:
    return lowering.options.get("pipeline.schedule")


def reads_micro_batches(lowering: Lowering) -> Any:
    return lowering.graph.meta.get("gradient_accumulation_steps")


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (reads_schedule, {"options": {"pipeline.schedule": "Interleaved"}}),
        (reads_micro_batches, {"gradient_accumulation_steps": 24}),
    ],
)
@pytest.mark.parametrize("patched", [False, True])
def test_a_family_that_reads_one_more_thing_has_fresh_bodies(
    monkeypatch: pytest.MonkeyPatch, read: Any, change: dict[str, Any], patched: bool
) -> None:
    """With nothing but the family changed: its bodies were taken over before, and would be wrong now."""
    plain = elementwise.Elementwise.lower

    def reading(self: elementwise.Elementwise, node: Node, lowering: Lowering) -> None:
        lowering.emit.compute(f"read {read(lowering)}", fill_groups(np.ones(8, np.int64), "float32", 6), (), ())
        plain(self, node, lowering)

    if patched:
        monkeypatch.setattr(elementwise.Elementwise, "lower", reading)
    first = compile_request(request())
    later = compile_request(first.request.replace(**change), like=first)
    passes = {body.name for body in lowered(later).bodies if not body.name.endswith("update")}  # which divides by 24
    assert passes & set(earlier(later)) == (set() if patched else passes)
    assert same(lowered(later), anew(later))
    told = {step.name for each in (first, later) for step in each.program.steps if step.name.startswith("read ")}
    assert len(told) == (2 if patched else 0)


def test_what_lies_off_the_chip_is_lowered_anew() -> None:
    """Loads and stores note where variables are: nothing behind the first of them is taken over."""
    first = compile_request(request(offload=("optimizer_state",)))
    later = compile_request(first.request.replace(options={"pipeline.schedule": "Interleaved"}), like=first)
    assert same(lowered(later), anew(later))
    assert not [name for name in earlier(later) if name.endswith("update")]
    assert first.program.remote_buffers


def test_operators_keep_how_often_they_run_a_step() -> None:
    """Step numbers of loops inside an operator move with its steps."""
    first = compile_request(request())
    later = compile_request(first.request.replace(options={"pipeline.schedule": "Interleaved"}), like=first)
    ids = {step.id for step in later.program.steps}
    assert earlier(later)
    assert {step for row in lowered(later).operators for step in row.repeated} <= ids


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
        build,
        mode="training",
        batch_size=8,
        optimizer="adam",
        gradient_accumulation_steps=16,
        stages=[f"norm_{each * stage - 1}" for stage in (1, 2, 3)],
        target=wb.target("ipu2", tiles_per_ipu=4),
        **more,
    )


def test_a_stage_of_equal_layers_is_lowered_as_the_one_before_it() -> None:
    """Under its own names, on its own IPU."""
    found = compile_request(in_four(encoders))
    assert ("stage2_forward", "stage1_forward") in stages(found)
    assert ("stage1_backward", "stage2_backward") in stages(found)
    assert ("stage2_update", "stage1_update") in stages(found)
    assert same(lowered(found), anew(found))
    assert any(step.origin.layer == "norm_7" and step.ipu == 2 for step in found.program.steps)


def test_names_of_two_meanings_keep_bodies_apart() -> None:
    """The model is called as a layer of one stage, and so are operators outside any layer."""
    found = compile_request(in_four(lambda: encoders("dense_1", each=1), each=1))
    assert ("stage2_forward", "stage1_forward") not in stages(found)
    assert same(lowered(found), anew(found))


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


def test_a_layer_inside_another_may_be_called_otherwise_in_each() -> None:
    """Unless its name could be that of an operator of the outer one."""
    found = compile_request(in_four(attention_blocks, each=1))
    assert ("stage2_forward", "stage1_forward") in stages(found)
    assert same(lowered(found), anew(found))
    ends = {step.origin.layer.removeprefix("norm_2/softmax_") for step in found.program.steps}
    assert any(end.isdigit() for end in ends)


def form(*layers: str, key: tuple[int, ...] = (), labels: tuple[str, ...] = ()) -> Form:
    origins = tuple(Origin(layer=layer) for layer in layers)
    return Form(
        key=key,
        model="model",
        functions=(),
        values=(),
        number={},
        nodes=(),
        origins=origins,
        layers=layers,
        sources=(),
        labels=labels,
    )


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
