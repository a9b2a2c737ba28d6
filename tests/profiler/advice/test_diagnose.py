"""Diagnosis: which candidates are tried, how they rank, what the code to type does; with made-up and real compiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from tests.profiler.handmade import handmade_profile
from workbench.errors import Cancelled, InputError, WorkbenchError
from workbench.executable import compile_request, make_request
from workbench.profiler.advice.diagnose import Diagnosis, diagnose
from workbench.profiler.advice.levers import LEVERS, Change, Situation
from workbench.profiler.profile import Profile


def test_the_mildest_fitting_change_of_each_lever_ranks_first_by_cycles_per_sample() -> None:
    compile = FakeCompiler(by_lever)
    found = diagnose(over(), compile)
    # 0.4 leaves 11,000 B; 0.05 fits, so those between are tried: 0.2 fits with 0 B to spare. Batches: 8 leaves 11,000.
    assert [asked.get(AMP) for asked in compile.asked if AMP in asked] == [0.4, 0.05, 0.2, 0.2]
    assert [asked["batch_size"] for asked in compile.asked if "batch_size" in asked] == [8, 4]
    # Half partials alone are 500 B over but faster, so they are tried with the best: 8,500 B and 14,000 cycles.
    names = ["available_memory+half_partials", "available_memory", "micro_batch", "half_partials"]
    assert [fix.lever for fix in found.fixes] == names
    both, first, second, third = found.fixes
    assert (both.verified_bytes, both.verified_cycles, both.fits) == (8_500, 14_000, True)
    assert (first.verified_bytes, first.margin_bytes, first.verified_cycles) == (10_000, 0, 16_000)
    assert first.cycles_per_sample == 16_000 / 16
    assert (second.verified_bytes, second.verified_cycles) == (10_000, 12_000 + 3 * 1_600)
    assert (third.fits, third.margin_bytes) == (False, -500)
    assert found.sentence == (
        "It is 2.0 KiB over; availableMemoryProportion 0.2 for matmuls and convolutions, with half partials for "
        "matmuls and convolutions makes it fit with 1.5 KiB to spare"
    )


def test_batches_that_a_line_says_are_too_large_are_left_out() -> None:
    # 2,000 B stay, 1,875 B go with each of 16 samples: 8 need 17,000 B, 4 need 9,500 B.
    compile = FakeCompiler(lambda asked: (2_000 + 1_875 * asked["batch_size"], 1))
    found = diagnose(over(32_000), compile, levers=["micro_batch"])
    assert [asked["batch_size"] for asked in compile.asked] == [8, 4]
    far = FakeCompiler(lambda asked: (2_000 + 60_000 * asked["batch_size"] // 16, 1))
    diagnose(over(62_000), far, levers=["micro_batch"])
    # 8 need 32,000 B; the line gives 4 17,000 B and 2 9,500 B: 4 is left out.
    assert [asked["batch_size"] for asked in far.asked] == [8, 2]
    assert found.fixes[0].verified_bytes == 9_500


def test_two_levers_together_when_none_fits_alone() -> None:
    compile = FakeCompiler(lambda asked: (by_lever(asked)[0] + 1_800, by_lever(asked)[1]))
    found = diagnose(over(13_800), compile)
    # Alone at best: 0.05 leaves 11,050, half partials 12,300, a batch of 2 10,800. Pairs save 2,750, 1,500 and 3,000:
    # 9,550, 8,050 and 9,300 bytes.
    fitting = [(fix.lever, fix.verified_bytes) for fix in found.fixes if fix.fits]
    assert sorted(fitting) == [
        ("available_memory+half_partials", 9_550),
        ("available_memory+micro_batch", 8_050),
        ("half_partials+micro_batch", 9_300),
    ]
    assert found.fixes[0].lever == "available_memory+half_partials"
    assert not any(AMP in asked and PARTIALS in asked and "batch_size" in asked for asked in compile.asked)


def test_what_makes_it_worse_is_no_fix() -> None:
    found = diagnose(over(), FakeCompiler(lambda asked: (12_500, 1)))
    assert found.fixes == ()
    assert found.sentence == "It is 2.0 KiB over, and no lever lowers that"
    # 0.05 is a quarter over, so nothing between 0.4 and 0.05 is tried.
    assert len(found.tried) == 2 + 1 + 4


def test_a_program_that_fits_is_offered_what_is_faster() -> None:
    base = FakeExecutable(request=FakeRequest(), profile=profile_of(9_000, NOW_CYCLES))
    found = diagnose(base, FakeCompiler(lambda asked: (9_500, 9_000 if PARTIALS in asked else 12_500)))
    assert [fix.lever for fix in found.fixes] == ["half_partials"]
    assert found.sentence == "It fits; half partials for matmuls and convolutions makes it 25.0 % faster per sample"
    nothing = diagnose(base, FakeCompiler(lambda asked: (10_001, 1)))
    assert nothing.sentence == "It fits, and no lever makes it faster"


def test_estimates_by_hand() -> None:
    situation = Situation(profile=profile_of(12_000, 1))
    shares, _ = LEVERS.get("available_memory").propose(situation)
    # Temporaries: 2,000 B of sums and 1,000 B of partials; a plan may take 2,000 B of 10,000 at 0.2, 500 B at 0.05.
    assert [change.estimated_bytes for change in shares] == [12_000, 12_000 - 1_000, 12_000 - 2_000, 12_000 - 2_500]
    (partials,), _ = LEVERS.get("half_partials").propose(situation)
    assert partials.estimated_bytes == 12_000 - 500
    batches, _ = LEVERS.get("micro_batch").propose(situation)
    # 3,200 B of activation and 3,000 B of temporaries go by the batch; 200 parameters of 4 B get an accumulator.
    assert [change.estimated_bytes for change in batches[:3]] == [
        12_000 - 3_100 + 800,
        12_000 - 4_650 + 800,
        12_000 - 5_425 + 800,
    ]
    assert dict(batches[2].arguments) == {"batch_size": 2, "gradient_accumulation_steps": 8}


@pytest.mark.parametrize(
    ("lever", "profile", "reason"),
    [
        ("half_partials", profile_of(12_000, 1, half=False), "half partials need half inputs"),
        ("micro_batch", profile_of(12_000, 1, batch=5), "a batch of 5 cannot be halved"),
        ("half_precision", profile_of(12_000, 1), "in half precision already"),
    ],
)
def test_a_lever_without_effect_is_not_tried_and_says_why(lever: str, profile: Profile, reason: str) -> None:
    compile = FakeCompiler(by_lever)
    found = diagnose(FakeExecutable(request=FakeRequest(), profile=profile), compile, levers=[lever])
    assert compile.asked == []
    assert reason in found.to_text()


def test_a_loaded_profile_gives_estimates_and_says_so(tmp_path: Path) -> None:
    loaded = wb.load_profile(profile_of(12_000, 1).save(tmp_path / "over"))
    found = diagnose(loaded, FakeCompiler(by_lever))
    assert found.sentence.startswith("Estimates only, because a loaded profile cannot be compiled again: it is 2.0 KiB")
    assert all(fix.verified_bytes is None and fix.fits is None for fix in found.fixes)
    estimates = [fix.estimated_bytes for fix in found.fixes]
    assert estimates == sorted(estimates)
    with pytest.raises(InputError, match="a loaded profile cannot be compiled again"):
        found.apply(0)


def test_progress_hears_each_candidate_and_can_stop_it() -> None:
    heard: list[str] = []
    diagnose(over(), FakeCompiler(by_lever), levers=["half_partials"], progress=heard.append)
    assert heard == ["half partials for matmuls and convolutions: lower"]

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
    assert [fix.lever for fix in found.fixes] == ["available_memory"]
    assert "a fixed batch of 16" in found.to_text()


def test_unknown_levers_are_named() -> None:
    with pytest.raises(WorkbenchError, match=r"unknown lever 'magic' in levers.*available_memory"):
        diagnose(over(), FakeCompiler(by_lever), levers=["magic"])


def test_faces() -> None:
    found = diagnose(over(), FakeCompiler(by_lever))
    assert found.to_text().startswith(found.sentence)
    assert found.to_pandas()["verified_bytes"].tolist() == [fix.verified_bytes for fix in found.fixes]
    assert found.data["fixes"][1]["lever"] == "available_memory"
    assert "text/html" in found._repr_mimebundle_()


def test_estimates_only_of_a_handmade_profile_without_options() -> None:
    assert diagnose(handmade_profile(fits=False), FakeCompiler(by_lever)).estimated


def test_changes_join() -> None:
    one = Change(lever="a", title="A", options=(("x", 1),), estimated_bytes=90, note="N.")
    two = Change(lever="b", title="B", arguments=(("batch_size", 2),), estimated_bytes=70)
    both = one.joined(two, 100)
    assert (both.lever, both.title, both.estimated_bytes) == ("a+b", "A, with B", 60)
    assert (dict(both.options), dict(both.arguments), both.note) == ({"x": 1}, {"batch_size": 2}, "N.")


# Real compiles


@pytest.fixture(scope="module")
def real() -> Diagnosis:
    """A small network on 16 tiles, half precision, on tiles of seven tenths of what it takes."""
    source = wb.ready("mlp", layers=1, hidden=512, input_size=256)
    many = {"mode": "training", "batch_size": 256, "precision": "float16"}
    whole = wb.profile(source, target=wb.target("ipu2", tiles_per_ipu=16), **many)
    small = wb.target("ipu2", tiles_per_ipu=16).replace(bytes_per_tile=whole.max_tile_bytes * 7 // 10 // 16 * 16)
    found: Diagnosis = wb.diagnose(wb.compile(source, target=small, **many))
    return found


def test_a_real_fix_is_what_a_fresh_compile_gives(real: Diagnosis) -> None:
    assert not real.profile.fits
    assert real.fixes[0].fits
    fix = real.fixes[0]
    for executable in (real.apply(0), typed(real, fix.code)):
        assert executable.profile.max_tile_bytes == fix.verified_bytes
        assert executable.profile.total_cycles == fix.verified_cycles
        assert executable.profile.margin_bytes == fix.margin_bytes


def typed(found: Diagnosis, code: str) -> Any:
    """What the code to type makes."""
    names: dict[str, Any] = {"wb": wb, "target": found.executable.request.target}
    exec(code, names)
    return names["executable"]


def test_the_trace_is_used_again_where_it_is_the_same() -> None:
    base = compile_request(make_request("mlp", mode="training", batch_size=8))
    same = compile_request(base.request.replace(options={AMP: 0.3}), None, base)
    assert same.passes["changed"][0].endswith("traced before")
    other = compile_request(base.request.replace(options={}, batch_size=4), None, base)
    assert not other.passes["changed"][0].endswith("traced before")
