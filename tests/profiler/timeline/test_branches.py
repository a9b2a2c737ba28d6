"""The program as one looks into it: sums are the profile's, calls are unfolded, layers folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.large import large_profile
from workbench.profiler.profile import Profile
from workbench.profiler.timeline.branches import Branch, Branches

MAKERS: dict[str, Callable[[], Profile]] = {
    "loop": handmade_profile,
    "pipeline": handmade_pipeline,
    "large": lambda: large_profile(ipus=2, tiles=4, steps=300, micro_batches=5),
}
each_profile = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def walked(found: Branches) -> Iterator[tuple[Branch, tuple[Branch, ...]]]:
    todo = [found.root]
    while todo:
        branch = todo.pop()
        below = found.below(branch)
        yield branch, below
        todo += below


@each_profile
def test_executions_and_cycles_are_those_of_the_steps(make: Callable[[], Profile]) -> None:
    profile = make()
    runs: Counter[int] = Counter()
    cycles: Counter[int] = Counter()
    for branch, _ in walked(profile.program_tree.branches):
        if branch.step >= 0:
            runs[branch.step] += branch.runs
            cycles[branch.step] += branch.total_cycles
    steps = profile.steps.groupby("id")[["times", "total_cycles"]].sum()
    assert dict(runs) == steps["times"].to_dict()
    assert dict(cycles) == steps["total_cycles"].to_dict()
    assert profile.program_tree.branches.root.total_cycles == profile.total_cycles


@each_profile
def test_what_is_below_adds_up(make: Callable[[], Profile]) -> None:
    for branch, below in walked(make().program_tree.branches):
        assert branch.is_leaf == (not below)
        if not below:
            continue
        lengths = [each.cycles for each in below]
        if branch.kind == "overlap":
            assert max(lengths) == branch.cycles
            assert {each.start for each in below} == {branch.start}
        else:
            assert sum(lengths) * branch.times == branch.cycles
            ends = [each.start + each.cycles for each in below]
            assert [each.start for each in below] == [branch.start, *ends[:-1]]
        assert {each.runs for each in below} == {branch.runs * branch.times}


@each_profile
def test_causes_are_those_of_the_breakdown(make: Callable[[], Profile]) -> None:
    profile = make()
    found = profile.program_tree.branches
    whole = profile.cycle_breakdown.groupby("cause")["cycles"].sum()
    assert dict(found.spent(found.root)) == whole[whole > 0].to_dict()
    for branch, below in walked(found):
        if branch.step < 0 and below:
            assert sum(found.spent(branch).values()) % max(1, branch.cycles) == 0


def test_a_call_shows_what_it_runs() -> None:
    tree = handmade_profile().program_tree
    repeat = next(each for each, _ in walked(tree.branches) if each.kind == "repeat")
    (call,) = tree.branches.below(repeat)
    assert (call.kind, call.function, call.cycles, call.runs, call.total_cycles) == (
        *("call", "micro_batch"),
        *(3_360, 3, 10_080),
    )
    # Three steps of dense_1, two of dense_2, loss, then backward: neighbours of a layer are one branch.
    names = [(each.kind, each.name) for each in tree.branches.below(call)]
    assert names == [
        *(("layer", "dense_1"), ("layer", "dense_2"), ("compute", "loss/softmax")),
        *(("compute", "dense_2/grad"), ("layer", "dense_1")),
    ]
    assert tree.calls.to_dict("records") == [
        {"function": "micro_batch", "runs": 3, "cycles": 3_360, "total_cycles": 10_080, "share": 10_080 / 11_880}
    ]


def test_calls_of_a_pipeline_are_counted_whether_or_not_they_were_looked_into() -> None:
    expected = {"fwd0": 4, "fwd1": 4, "bwd1": 4, "bwd0": 4, "copy_activations": 4, "copy_gradients": 4}
    fresh, looked = handmade_pipeline(), handmade_pipeline()
    assert sum(1 for _ in walked(looked.program_tree.branches)) > 60
    for profile in (fresh, looked):
        assert dict(profile.program_tree.branches.calls) == expected
    batches = [each.micro_batch for each, _ in walked(looked.program_tree.branches) if each.function == "fwd1"]
    assert sorted(batches) == [0, 1, 2, 3]


def test_an_arm_that_is_not_taken_runs_never() -> None:
    profile = handmade_profile()
    short, long = ["step", 1], ["sequence", "", [["step", 4], ["call", "f", "f", 0, None, "", None]]]
    trace = {"entry": ["if", "either", [short, long]], "functions": {"f": ["step", 3]}}
    chosen = replace(profile, meta={**profile.meta, "trace": trace, "total_cycles": 650})
    found = chosen.program_tree.branches
    assert [(each.name, each.runs) for each in found.below(found.root)] == [("sync", 0), ("", 1)]
    assert dict(found.calls) == {"f": 1}


def test_folds_go_down_the_path_of_a_layer() -> None:
    found = large_profile(ipus=1, tiles=2, steps=300, micro_batches=5).program_tree.branches
    kinds: dict[str, set[str]] = {}
    for branch, below in walked(found):
        if branch.kind in ("direction", "layer"):
            kinds.setdefault(branch.kind, set()).add(branch.name)
            assert len(below) > 1
    assert kinds["direction"] == {"forward", "backward", "update"}
    assert {"stage0/block00", "stage0/block00/conv0"} <= kinds["layer"]
