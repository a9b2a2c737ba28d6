"""Tips advise what applies to the program, and name a region of memory that is full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.profiler.handmade import handmade_profile
from workbench.profiler.advice.regions import full_region
from workbench.profiler.advice.tips import cycle_tips, hand_made_advice, memory_tips
from workbench.profiler.profile import Profile

CATEGORIES = ("temporary", "optimizer", "stash", "activation", "internal_exchange_code", "vertex_code")


def told(meta: Mapping[str, Any], config: Mapping[str, Any], operators: tuple[str, ...], dtype: str) -> Profile:
    """The profile of a model of two layers, as if it were of another mode, batch, configuration and operators."""
    profile = handmade_profile()
    table = profile.tables["operators"]
    count = len(table["op"])
    names = [operators[place % len(operators)] for place in range(count)] if operators else []
    kept = {name: values[: len(names)] for name, values in table.items()}
    kept["op"] = type(table["op"])(shape=(len(names),), dtype=table["op"].dtype)
    kept["op"][:] = names
    variables = dict(profile.tables["variables"])
    variables["dtype"] = variables["dtype"].copy()
    variables["dtype"][:] = dtype
    merged = {**profile.meta, **meta, "config": {**profile.meta["config"], **config}}
    tables = {**profile.tables, "operators": kept, "variables": variables}
    return Profile(meta=merged, tables=tables, arrays=profile.arrays)


@given(
    mode=st.sampled_from(["training", "inference", "function"]),
    batch=st.integers(1, 4),
    recompute=st.booleans(),
    proportion=st.sampled_from([0.6, 0.05]),
    operators=st.sampled_from([(), ("add",), ("dot_general", "add")]),
    dtype=st.sampled_from(["float32", "float16"]),
)
def test_tips_advise_only_what_applies(
    mode: str, batch: int, recompute: bool, proportion: float, operators: tuple[str, ...], dtype: str
) -> None:
    shares = {f"{group}.poplar_options.availableMemoryProportion": proportion for group in ("matmuls", "convolutions")}
    profile = told({"mode": mode, "batch_size": batch}, {"allow_recompute": recompute, **shares}, operators, dtype)
    memory = " ".join(memory_tips(profile, dict.fromkeys(CATEGORIES, 16_384)))
    assert all(what in memory for what in ("temporaries", "optimizer state", "activations", "vertex code"))
    assert ("availableMemoryProportion" in memory) == ("dot_general" in operators and proportion > 0.05)
    assert ("recomputation" in memory) == (mode == "training" and not recompute)
    assert ("optimizer, or offloading" in memory) == (mode == "training")
    assert ("micro-batch" in memory) == (mode == "training" and batch > 1)
    assert ("batch" in memory) == (mode != "function" and batch > 1)
    assert ("fewer distinct exchanges" in memory) == (not operators)
    cycles = " ".join(cycle_tips(profile))
    assert "exchange takes" in cycles
    assert ("half precision" in cycles) == (bool(operators) and mode != "function" and dtype == "float32")
    assert ("vertices lie where their data are" in cycles) == (not operators)


@pytest.mark.parametrize(("interleaved", "full"), [(True, True), (False, False)])
def test_a_full_region_is_named(interleaved: bool, full: bool) -> None:
    """Two arrays that fit a tile together, but not its upper region, where alone interleaved data may lie."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    first, second = (
        g.variable(name, (size,), interleaved=interleaved).map_linearly(tiles=1)
        for name, size in (("first", 70_000), ("second", 50_000))
    )
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, writes=[first, second])
    profile = wb.profile(g.sequence(step))
    assert profile.fits == (not full)
    found = full_region(profile)
    if not full:
        assert found is None
        return
    assert found is not None
    assert (found.name, found.size_bytes, found.missing_bytes) == ("interleaved", 425_984, 200_000)
    said = "its interleaved memory (416.0 KiB) is full: 195.3 KiB that must lie there have no place, though "
    assert said in profile.summary.verdict
    assert profile.insights.tips[0].startswith(f"on tile 0 {said}")
    problem = wb.OutOfMemoryError(tile=0, step=1, bytes_used=2, bytes_available=1, region=str(found))
    assert said in str(problem)


def test_no_region_is_blamed_where_all_are_full() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    wide = g.variable("wide", (90_000,), interleaved=True).map_linearly(tiles=1)
    rest = g.variable("rest", (90_000,)).map_linearly(tiles=1)
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, writes=[wide, rest])
    profile = wb.profile(g.sequence(step))
    assert not profile.fits
    assert full_region(profile) is None


@pytest.mark.parametrize("tiles", [1, 4])
def test_a_program_made_by_hand_is_told_which_variables_make_room(tiles: int) -> None:
    """Three of 480, 320 and 160 kB on a tile: its memory is named variable by variable, by the error and diagnose."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    parts = [
        g.variable(name, (size * tiles,)).map_linearly(tiles=tiles, grain=size)
        for name, size in (("low", 40_000), ("high", 120_000), ("mid", 80_000))
    ]
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, reads=[part[:100] for part in parts], writes=[])
    executable = wb.compile(g.sequence(*map(g.host_copy, parts), step))
    with pytest.raises(wb.OutOfMemoryError) as caught:
        executable.run()
    lie = f"there, on {tiles} of 4 tiles)"
    named = f"high (468.8 KiB {lie}, mid (312.5 KiB {lie}, low (156.2 KiB {lie}"
    advice = "map the largest variables of tile 0 over more tiles" if tiles < 4 else "declare smaller variables"
    for said in (str(caught.value), wb.diagnose(executable).sentence, wb.diagnose(executable.profile).sentence):
        assert f"{advice}, or write in place or a part after the other; the largest on tile 0" in said
        assert named in said
    assert "wb.diagnose" not in str(caught.value)


def test_what_a_model_is_told_is_left_to_diagnose() -> None:
    profile = told({"mode": "training", "batch_size": 2}, {}, ("add",), "float32")
    assert hand_made_advice(profile) == ""
