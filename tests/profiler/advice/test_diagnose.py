"""Diagnosis: which candidates are tried, how they rank, what the code to type does; with made-up and real compiles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.profiler.advice.fake_compiler import (
    AMP,
    NOW_CYCLES,
    PARTIALS,
    FakeCompiler,
    FakeExecutable,
    FakeRequest,
    by_lever,
    over,
    profile_of,
)
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import Cancelled, InputError, WorkbenchError
from workbench.executable import compile_request, make_request
from workbench.profiler.advice.diagnose import Diagnosis, diagnose
from workbench.profiler.advice.levers import LEVELS, LEVERS, Change, Situation, joined
from workbench.profiler.advice.levers.situation import accumulators_apart
from workbench.profiler.advice.search.beliefs import Beliefs
from workbench.profiler.advice.search.candidates import candidates
from workbench.profiler.advice.search.trial import idle_changes, without_idle
from workbench.profiler.fidelity import TypicalError, in_doubt, turnout
from workbench.profiler.profile import Profile

FEW = ["available_memory", "half_partials", "micro_batch"]


def every(levers: list[str], situation: Situation) -> list[tuple[Change, ...]]:
    """All combinations of at most three changes of different levers, by another way than the search's."""
    ladders = [[None, *LEVERS.get(name).propose(situation)[0]] for name in levers]
    found = (tuple(part for part in each if part is not None) for each in itertools.product(*ladders))
    return [parts for parts in found if parts]


def cheapest(levers: list[str], rule: Any) -> int:
    """The least cycles of what fits, of all combinations."""
    costs = []
    for parts in every(levers, Situation(profile=over().profile)):
        asked = {name: value for part in parts for name, value in (*part.options, *part.arguments)}
        used, cycles = rule(asked)
        costs += [cycles] if used <= 10_000 else []
    return min(costs)


def test_the_cheapest_of_all_combinations_is_found_with_a_part_of_the_compiles() -> None:
    compile = FakeCompiler(by_lever)
    found = diagnose(over(), compile, levers=FEW)
    best = found.fixes[0]
    assert best.fits
    assert best.verified_cycles == cheapest(FEW, by_lever)
    assert len(compile.asked) < len(every(FEW, Situation(profile=over().profile))) / 3
    # 16 samples a call on one IPU.
    assert best.cost == best.cycles_per_sample == (best.verified_cycles or 0) / 16
    costs = [fix.cost or 0 for fix in found.fixes]
    assert costs == sorted(costs)
    assert found.sentence.startswith(f"It is a modelled 2.0 KiB over; {best.fix} makes it fit with ")


def test_two_levers_together_when_none_fits_alone() -> None:
    def rule(asked: Mapping[str, Any]) -> tuple[int, int]:
        used, cycles = by_lever(asked)
        return used + 1_800, cycles

    compile = FakeCompiler(rule)
    found = diagnose(over(13_800), compile, levers=FEW)
    # Alone at best: 0.05 leaves 11,050, half partials 12,300, a batch of 2 10,800.
    assert all(fix.fits and len(fix.levers) > 1 for fix in found.fixes)
    assert (found.fixes[0].verified_cycles or 0) <= 1.1 * cheapest(FEW, rule)


def test_what_makes_it_worse_is_no_fix() -> None:
    found = diagnose(over(), FakeCompiler(lambda asked: (12_500, 1)), levers=FEW)
    assert found.fixes == ()
    assert len(found.tried) > 1
    assert found.sentence == f"It is a modelled 2.0 KiB over, and no change of the {len(found.tried)} tried lowers that"


def test_what_comes_nearest_is_told_where_nothing_fits() -> None:
    found = diagnose(over(), FakeCompiler(lambda asked: (11_000 if PARTIALS in asked else 12_000, 1)), levers=FEW)
    assert found.fixes[0].verified_bytes == 11_000
    assert not found.fixes[0].fits
    assert f"over; no change of the {len(found.tried)} tried makes it fit, and " in found.sentence
    assert all("half_partials" in fix.levers for fix in found.fixes)
    levers = [fix.levers for fix in found.fixes]  # what changes nothing beside fewer levers is left out
    assert not any(one < other for one in levers for other in levers)


def test_a_program_that_fits_is_offered_what_is_faster() -> None:
    base = FakeExecutable(request=FakeRequest(), profile=profile_of(9_000, NOW_CYCLES))
    found = diagnose(base, FakeCompiler(lambda asked: (9_500, 9_000 if PARTIALS in asked else 12_500)), levers=FEW)
    assert [fix.lever for fix in found.fixes] == ["half_partials"]
    mend = "half partials for matmuls and convolutions"
    assert found.sentence == f"It fits; {mend} makes it 25.0 % faster per sample, modelled"
    little = diagnose(base, FakeCompiler(lambda asked: (9_500, 11_000 if PARTIALS in asked else 12_500)), levers=FEW)
    assert little.sentence.endswith("% faster per sample, modelled and within the typical error of 15.0 %")
    nothing = diagnose(base, FakeCompiler(lambda asked: (10_001, 1)), levers=FEW)
    assert nothing.sentence == f"It fits, and no change of the {len(nothing.tried)} tried makes it faster"


def test_numbers_are_kept_as_they_must() -> None:
    compile = FakeCompiler(by_lever)
    for place, level in enumerate(LEVELS):
        found = diagnose(over(), compile, keep_numbers=level)
        assert all(LEVELS.index(fix.numbers) <= place for fix in found.tried)
    reassociated = diagnose(over(), compile, keep_numbers="reassociated", levers=FEW)
    assert "keep_numbers is 'reassociated'; Sums in half precision lose accuracy" in reassociated.to_text()
    assert {lever for fix in reassociated.tried for lever in fix.levers} == {"available_memory", "micro_batch"}


def test_a_budget_holds() -> None:
    for most in (1, 3, 7):
        compile = FakeCompiler(lambda asked: by_lever(asked))
        diagnose(over(), compile, compiles=most)
        assert len(compile.asked) <= most
    late = FakeCompiler(by_lever)
    diagnose(over(), late, seconds=1e-9)
    assert late.asked == []


def test_the_front_is_what_nothing_beats() -> None:
    found = diagnose(over(), FakeCompiler(by_lever), levers=FEW)
    fits = [(fix.cost or 0.0, fix.verified_bytes or 0) for fix in found.tried if fix.fits]
    front = {
        one for one in fits if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in fits)
    }
    table = found.pareto()
    assert set(zip(table["cost"], table["verified_bytes"], strict=True)) == front


def test_estimates_by_hand() -> None:
    situation = Situation(profile=profile_of(12_000, 1))
    shares, _ = LEVERS.get("available_memory").propose(situation)
    # Temporaries: 2,000 B of sums and 1,000 B of partials; a plan may take 2,000 B of 10,000 at 0.2, 500 B at 0.05.
    lower = [change.estimated_bytes for change in shares if change.to == "down"]
    assert lower == [12_000, 12_000 - 1_000, 12_000 - 2_000, 12_000 - 2_500]
    (partials,), _ = LEVERS.get("half_partials").propose(situation)
    assert partials.estimated_bytes == 12_000 - 500
    batches, _ = LEVERS.get("micro_batch").propose(situation)
    # 3,200 B of activation and 3,000 B of temporaries go by the batch; 800 B of parameters get an accumulator.
    assert [change.estimated_bytes for change in batches[:3]] == [
        12_000 - 3_100 + 800,
        12_000 - 4_650 + 800,
        12_000 - 5_425 + 800,
    ]
    assert dict(batches[2].arguments) == {"batch_size": 2, "gradient_accumulation_steps": 8}
    (again,), _ = LEVERS.get("recomputation").propose(situation)
    assert (again.estimated_bytes, again.numbers) == (12_000 - 1_600, "exact")  # half of the activation's 3,200 B


def test_accumulation_buffers_are_told_from_optimizer_state_by_name() -> None:
    names = ["w", "w/accumulator", "w/accumulator/loaded", "w/momentum", "accumulators/kernel"]
    kinds = ["parameter", "optimizer", "optimizer", "optimizer", "parameter"]
    found = accumulators_apart(pd.DataFrame({"name": names, "kind": kinds}))
    assert found["kind"].tolist() == ["parameter", "accumulator", "accumulator", "optimizer", "parameter"]


@pytest.mark.parametrize(("schedule", "taken"), [("Grouped", [8, 4]), ("Sequential", [8, 4, 2, 1])])
def test_micro_batches_are_put_together_as_far_as_they_fill_the_rounds_of_a_schedule(
    schedule: str, taken: list[int]
) -> None:
    """Two stages in training make four elements, so rounds of four under Grouped; Sequential has rounds of one."""
    plain = handmade_pipeline()
    meta = {"pipeline": {**plain.meta["pipeline"], "schedule": schedule, "micro_batches": 16}}
    sized = {"batch_size": 1, "samples_per_call": 16, "verdict": {**plain.meta["verdict"], "fits": True}}
    profile = replace(plain, meta={**plain.meta, **meta, **sized})
    changes, _ = LEVERS.get("micro_batch").propose(
        Situation(profile=profile, request=make_request("mlp", pipeline_schedule=schedule))
    )
    assert [dict(each.arguments)["gradient_accumulation_steps"] for each in changes] == taken


def test_any_divisor_of_a_batch_is_a_micro_batch() -> None:
    batches, _ = LEVERS.get("micro_batch").propose(Situation(profile=profile_of(12_000, 1, batch=12, samples=12)))
    assert [dict(each.arguments)["batch_size"] for each in batches] == [6, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("lever", "profile", "reason"),
    [
        ("micro_batch", profile_of(12_000, 1, batch=1), "a batch of 1 cannot be halved"),
        ("half_precision", profile_of(12_000, 1), "in half precision already"),
        ("offload_optimizer_state", profile_of(12_000, 1), "the fullest tile holds 0 B of it"),
        ("sharded_state", profile_of(12_000, 1), "there are no replicas"),
        ("fewer_slots", profile_of(12_000, 1), "the optimizer keeps no state"),
    ],
)
def test_a_lever_without_effect_is_not_tried_and_says_why(lever: str, profile: Profile, reason: str) -> None:
    compile = FakeCompiler(by_lever)
    found = diagnose(FakeExecutable(request=FakeRequest(), profile=profile), compile, levers=[lever])
    assert compile.asked == []
    assert reason in found.to_text()


def test_half_partials_come_with_half_precision_where_there_is_none_yet() -> None:
    situation = Situation(profile=profile_of(12_000, 1, half=False))
    ladders = [LEVERS.get(name).propose(situation)[0] for name in ("half_partials", "half_precision")]
    levers = [{part.lever for part in parts} for parts in candidates(ladders, "any")]
    assert {"half_partials"} not in levers
    assert {"half_partials", "half_precision"} in levers


def test_what_was_measured_is_believed_and_what_shares_its_steps_moves_with_it() -> None:
    ladder = [
        Change(lever="micro_batch", title=str(size), estimated_bytes=size, slower=1.0, steps=steps, to="smaller")
        for steps, size in ((1.0, 800), (2.0, 600), (3.0, 500))
    ]
    beliefs = Beliefs(1_000, {"micro_batch": (0.3, 0.1)}, [(each,) for each in ladder])
    before = beliefs.expected()
    np.testing.assert_allclose(np.exp(before.bytes_mean), [0.8, 0.6, 0.5])
    beliefs.learn(1, 0.3, 2.0)
    after = beliefs.expected()
    assert np.exp(after.bytes_mean[1]) == pytest.approx(0.3, rel=1e-3)
    assert np.exp(after.cost_mean[1]) == pytest.approx(2.0, rel=1e-3)
    # A walk: half of what two steps deviate by belongs to the first of them, and the third begins where they end.
    assert after.bytes_mean[0] == pytest.approx(np.log(0.8) + np.log(0.3 / 0.6) / 2, rel=1e-3)
    assert after.bytes_mean[2] == pytest.approx(np.log(0.5) + np.log(0.3 / 0.6), rel=1e-3)
    assert after.bytes_deviation[1] < 0.01 < after.bytes_deviation[0] < after.bytes_deviation[2]


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_profile_alone_gives_estimates_and_says_so(tmp_path: Path, is_loaded: bool) -> None:
    made = profile_of(12_000, 1)
    alone = wb.load_profile(made.save(tmp_path / "over")) if is_loaded else made
    found = diagnose(alone, FakeCompiler(by_lever))
    assert found.sentence.startswith(
        "Estimates only, because a profile has no model to compile again: it is a modelled 2.0 KiB"
    )
    assert all(fix.verified_bytes is None and fix.fits is None for fix in found.fixes)
    estimates = [fix.estimated_bytes for fix in found.fixes]
    assert estimates == sorted(estimates)
    with pytest.raises(InputError, match="a profile has no model to compile again"):
        found.apply(0)


def test_progress_hears_each_candidate_and_can_stop_it() -> None:
    heard: list[str] = []
    rows: list[Any] = []
    found = diagnose(over(), FakeCompiler(by_lever), levers=["half_partials"], progress=heard.append, heard=rows.append)
    assert heard == ["half partials for matmuls and convolutions: lower"]
    assert tuple(rows) == found.tried

    def stop(text: str) -> None:
        raise Cancelled("lower")

    compile = FakeCompiler(by_lever)
    with pytest.raises(Cancelled):
        diagnose(over(), compile, progress=stop)
    assert len(compile.asked) == 1


def test_a_candidate_that_cannot_be_compiled_keeps_its_problem() -> None:
    def rule(asked: Mapping[str, Any]) -> tuple[int, int]:
        if "batch_size" in asked:
            raise InputError("a fixed batch of 16")
        return by_lever(asked)

    found = diagnose(over(), FakeCompiler(rule), levers=["micro_batch", "available_memory"])
    assert {fix.lever for fix in found.fixes} == {"available_memory"}
    assert "a fixed batch of 16" in found.to_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"levers": ["magic"]}, r"unknown lever 'magic' in levers.*available_memory"),
        ({"levers": []}, "levers is empty"),
        ({"keep_numbers": "some"}, r"keep_numbers is 'some'.*exact, reassociated, any"),
        ({"compiles": 0}, "compiles is 0"),
        ({"seconds": -1}, "seconds is -1"),
        ({"seconds": True}, "seconds is True"),
        ({"ipus": 0}, "ipus is 0"),
        ({"keep_numbers": "exact", "levers": FEW}, r"none of the levers that are named .* lose accuracy"),
    ],
)
def test_what_is_of_no_use_is_refused_before_anything_compiles(more: Any, words: str) -> None:
    compile = FakeCompiler(by_lever)
    with pytest.raises(WorkbenchError, match=words):
        diagnose(over(), compile, **more)
    assert compile.asked == []


def test_faces() -> None:
    found = diagnose(over(), FakeCompiler(by_lever))
    assert found.to_text().startswith(found.sentence)
    assert found.to_pandas()["verified_bytes"].tolist() == [fix.verified_bytes for fix in found.fixes]
    assert found.data["fixes"][0]["lever"] == found.fixes[0].lever
    assert "text/html" in found._repr_mimebundle_()
    points = found.figure("scatter").data
    assert sum(len(each.x) for each in points if each.name in ("fits", "does not fit")) == len(found.tried)
    with pytest.raises(InputError, match="no figure 'pie'"):
        found.figure("pie")


def test_estimates_only_of_a_handmade_profile_without_options() -> None:
    assert diagnose(handmade_profile(fits=False), FakeCompiler(by_lever)).estimated


def test_changes_join() -> None:
    one = Change(lever="a", title="A", options=(("x", 1),), estimated_bytes=90, note="N.", slower=1.5)
    two = Change(lever="b", title="B", arguments=(("batch_size", 2),), estimated_bytes=70, numbers="any")
    both = one.joined(two, 100)
    assert (both.lever, both.title, both.estimated_bytes) == ("a+b", "A, with B", 63)
    assert (dict(both.options), dict(both.arguments), both.note) == ({"x": 1}, {"batch_size": 2}, "N.")
    assert (both.slower, both.numbers) == (1.5, "any")


def test_of_joined_changes_the_strongest_effect_is_said() -> None:
    same = Change(lever="a", title="A", estimated_bytes=1, note="Streams.")
    sums = Change(lever="b", title="B", estimated_bytes=1, numbers="reassociated", effect="Sums in another order.")
    half = Change(lever="c", title="C", estimated_bytes=1, numbers="any", effect="Rounds to half.", note="Streams.")
    assert joined((same, sums), 1).effect == "Sums in another order."
    assert joined((same, sums, half), 1).effect == "Rounds to half."
    assert joined((half, same, sums), 1).note == "Streams."
    assert joined((same, same), 1).effect == "The same operations."


def test_changes_that_made_no_difference_are_known() -> None:
    one, two, three = (Change(lever=each, title=each, estimated_bytes=1) for each in "abc")
    measured = [((one,), (10, 5)), ((one, two), (10, 5)), ((one, three), (10, 4))]
    assert idle_changes(measured) == {((), two)}
    assert idle_changes([*measured, ((one, two, three), (10, 4))]) == {((), two)}
    assert idle_changes([((), (7, 7)), ((one, three), (7, 7))]) == {((), one), ((), three)}


def test_what_did_nothing_to_one_graph_may_do_something_to_another() -> None:
    plans = Change(lever="plans", title="plans", options=(("x", 1),), estimated_bytes=1)
    small, tiny = (
        Change(lever="batch", title=f"{size}", arguments=(("batch_size", size),), estimated_bytes=1) for size in (6, 3)
    )
    idle = idle_changes([((tiny,), (10, 5)), ((tiny, plans), (10, 5))])
    assert idle == {((tiny,), plans)}
    assert without_idle((tiny, plans), idle) == (tiny,)
    assert without_idle((small, plans), idle) == (small, plans)
    assert without_idle((plans,), idle) == (plans,)


@pytest.mark.parametrize(
    ("used", "contrary"),
    [
        # Published over modelled from 0.8 to 1.75 in twenties: a limit of 1000 is 1.05, 1.25, 2 times what these use.
        (952, 14),
        (800, 10),
        (500, 0),
        # And these are over from 0.952, 0.9 and 0.5 on.
        (1050, 4),
        (1111, 3),
        (2000, 0),
    ],
)
def test_a_margin_is_held_against_how_published_memories_turned_out(used: int, contrary: int) -> None:
    ratios = tuple(0.8 + 0.05 * place for place in range(20))
    known = TypicalError(typical=0.1, spread=0.5, numbers=20, ratios=ratios)
    found = turnout(known, used, 1000)
    assert found is not None
    assert (found.fits, found.contrary) == (used <= 1000, contrary)
    said = in_doubt(known, used, 1000)
    assert bool(said) == (contrary > 2)  # more than one in ten
    assert not said or said.endswith(f", as for {20 - contrary} of 20 published models")
    assert in_doubt(None, used, 1000) == ""
    assert turnout(known, 0, 1000) is None


def test_without_ratios_the_spread_of_an_older_profile_says_whether_there_is_doubt() -> None:
    known = TypicalError(typical=0.1, spread=0.5, numbers=30)
    assert turnout(known, 800, 1000) is None
    for used, doubted in ((600, False), (700, True), (1400, True), (1600, False)):
        assert bool(in_doubt(known, used, 1000)) == doubted


# Real compiles


@pytest.fixture(scope="module")
def real() -> Diagnosis:
    """A small network on 16 tiles, half precision, on tiles of seven tenths of what it takes."""
    source = wb.ready("mlp", layers=1, hidden=512, input_size=256)
    many = {"mode": "training", "batch_size": 256, "precision": "float16"}
    whole = wb.profile(source, target=wb.target("ipu2", tiles_per_ipu=16), **many)
    small = wb.target("ipu2", tiles_per_ipu=16).replace(bytes_per_tile=whole.max_tile_bytes * 7 // 10 // 16 * 16)
    found: Diagnosis = wb.diagnose(wb.compile(source, target=small, **many), compiles=8)
    return found


def test_a_real_fix_is_what_a_fresh_compile_gives(real: Diagnosis) -> None:
    assert not real.profile.fits
    assert real.fixes[0].fits
    for place, fix in enumerate(real.fixes[:3]):
        for executable in (real.apply(place), typed(real, fix.code)):
            assert executable.profile.max_tile_bytes == fix.verified_bytes
            assert executable.profile.total_cycles == fix.verified_cycles
            assert executable.profile.margin_bytes == fix.margin_bytes


def typed(found: Diagnosis, code: str) -> Any:
    """What the code to type makes."""
    names: dict[str, Any] = {"wb": wb, "target": found.executable.request.target}
    exec(code, names)
    return names["executable"]


def test_what_code_says_of_stages_memory_and_order_is_what_was_measured() -> None:
    source = wb.ready("mlp", layers=4, hidden=64, input_size=64)
    target = wb.target("ipu2", tiles_per_ipu=8)
    base = wb.compile(source, mode="training", batch_size=16, optimizer="adam", target=target)
    tight = target.replace(bytes_per_tile=base.profile.max_tile_bytes * 8 // 10 // 16 * 16)
    base = wb.compile(source, mode="training", batch_size=16, optimizer="adam", target=tight)
    levers = ["offload_optimizer_state", "recomputation", "scheduler", "outlining", "stages"]
    found = wb.diagnose(base, levers=levers, keep_numbers="exact", ipus=2, compiles=10)
    measured = [fix for fix in found.tried if fix.verified_bytes is not None]
    assert {lever for fix in measured for lever in fix.levers} >= {"offload_optimizer_state", "scheduler", "stages"}
    wanted = {next(fix.code for fix in measured if lever in fix.levers): lever for lever in levers[::2]}
    for code in wanted:
        executable = typed(found, code)
        fix = next(each for each in measured if each.code == code)
        assert (executable.profile.max_tile_bytes, executable.profile.total_cycles) == (
            fix.verified_bytes,
            fix.verified_cycles,
        )


def test_on_an_executor_rows_are_those_of_this_process(real: Diagnosis) -> None:
    with ThreadPoolExecutor(2) as executor:
        found = wb.diagnose(real.executable, compiles=4, executor=executor)
    alone = {fix.fix: (fix.verified_bytes, fix.verified_cycles) for fix in real.tried}
    assert any(fix.fix in alone for fix in found.tried)
    for fix in found.tried:
        assert alone.get(fix.fix, (fix.verified_bytes, fix.verified_cycles)) == (
            fix.verified_bytes,
            fix.verified_cycles,
        )
    with pytest.raises(InputError, match="executor is 3"):
        wb.diagnose(real.executable, executor=3)


def test_the_trace_is_used_again_where_it_is_the_same() -> None:
    base = compile_request(make_request("mlp", mode="training", batch_size=8))
    same = compile_request(base.request.replace(options={AMP: 0.3}), None, base)
    assert same.passes["changed"][0].endswith("traced before")
    other = compile_request(base.request.replace(options={}, batch_size=4), None, base)
    assert not other.passes["changed"][0].endswith("traced before")


def test_together_only_what_the_schedule_takes_is_tried() -> None:
    """Two stages take four micro-batches a round, and with tiles for the host two more: four or eight alone are taken,
    and four beside tiles for the host are not."""

    def build() -> Any:
        layers = [keras.layers.Dense(256, name=f"d{number}") for number in range(2)]
        return keras.Sequential([keras.Input((256,)), *layers])

    whole = wb.compile(
        build,
        batch_size=16,
        mode="training",
        optimizer="sgd",
        target=wb.target("ipu2", tiles_per_ipu=256),
        stages=[0, 1],
        pipeline_schedule="Grouped",
        gradient_accumulation_steps=8,
    )
    found = wb.diagnose(whole, levers=["micro_batch", "io_tiles"])
    assert "micro_batch" in {fix.lever for fix in found.tried}
    assert [fix.problem for fix in found.tried if fix.problem] == []
