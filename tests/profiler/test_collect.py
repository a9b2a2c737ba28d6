"""A profile says what the engine said: over random programs, every number against the engine's own, and reconciled."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder
from tests.engine.unrolled import unrolled
from tests.profiler.measured import compiled
from tests.profiler.report_names import REPORTS
from workbench.base.categories import MEMORY_CATEGORIES
from workbench.engine.program import TileProgram
from workbench.profiler.collect import collect, numbered
from workbench.profiler.memory import live_bytes
from workbench.profiler.profile import Profile, with_meta
from workbench.profiler.schema import SCHEMA
from workbench.profiler.storage import load_profile
from workbench.profiler.validity import validate


def tiny() -> TileProgram:
    """Two variables of 400 B on tile 0; the second lives from step 1 to step 2; stubs run on one worker of six."""
    b = Builder()
    first = b.variable([400], "first", always_live=True, kind="parameter")
    second = b.variable([400, 40], "second")
    return b.program(
        b.sync(),
        b.compute({0: 60, 1: 30}, reads=[first], writes=[second]),
        b.compute({0: 10}, reads=[second]),
    )


def test_a_tiny_program() -> None:
    profile = collect(compiled(tiny()))
    steps = profile.steps
    assert steps["cause"].tolist() == ["sync", "compute", "compute"]
    assert steps["active_tiles"].tolist() == [0, 2, 1]
    assert steps["tile_balance"].tolist() == [1.0, 0.75, 1.0]
    assert profile.vector(profile.column("steps", "cycles_index")[1]).tolist() == [6 * 60, 6 * 30, 0, 0]
    variables = profile.variables
    assert variables["bytes"].tolist() == [400, 440]
    assert variables["tiles"].tolist() == [1, 2]
    assert variables[["first_step", "last_step"]].to_numpy().tolist() == [[0, 2], [1, 2]]
    assert profile.liveness["live_bytes"].tolist() == [0, 440, 440]
    assert profile.memory_categories == MEMORY_CATEGORIES
    assert profile.tiles["parameter"].tolist() == [400, 0, 0, 0]
    assert profile.tiles["activation"].tolist() == [400, 40, 0, 0]


def test_an_empty_program_has_every_report(tmp_path: Path) -> None:
    profile = collect(compiled(Builder().program()))
    assert profile.total_cycles == 0
    assert profile.samples_per_second == 0.0
    assert profile.blocks().empty
    assert profile.trace.window().empty
    for name in REPORTS:
        report = getattr(profile, name)
        assert report.to_text()
        assert json.dumps(report.data)
        report.to_pandas()
    assert str(load_profile(profile.save(tmp_path / "a"))) == str(profile)
    assert len(profile.to_csv(tmp_path)) > 10


def test_vectors_are_kept_once() -> None:
    b = Builder()
    for _ in range(50):
        b.variable([8, 8])
    b.variable([8, 4])
    profile = collect(compiled(b.program(b.sync())))
    assert {tuple(row) for row in profile.arrays["per_tile"][:, :2].tolist()} >= {(0, 0), (8, 8), (8, 4)}
    assert len(np.unique(profile.column("variables", "bytes_index"))) == 2


@given(programs())
def test_time_is_the_engines(program: TileProgram) -> None:
    found = compiled(program)
    profile, trace = collect(found), found.trace
    assert profile.timeline.root.cycles == profile.total_cycles == trace.total_cycles
    for ipu in range(program.ipus):
        own = profile.cycle_breakdown.query("ipu == @ipu")
        assert own["cycles"].sum() == trace.total_cycles
        spent = {cause: cycles for cause, cycles in trace.cycle_breakdown[ipu].items() if cycles}
        assert dict(zip(own["cause"], own["cycles"], strict=True)) == spent
        assert profile.trace.proportions(ipu) == spent


@given(programs())
def test_windows_are_the_engines(program: TileProgram) -> None:
    found = compiled(program)
    profile, trace = collect(found), found.trace
    third = trace.total_cycles // 3
    for ipu in range(program.ipus):
        for window in ((0, trace.total_cycles), (third, 2 * third)):
            expected = [
                (block.step, block.cycles_from, block.cycles_to, block.cause, block.iteration, block.micro_batch)
                for block in unrolled(trace, ipu)
                if block.step >= 0 and block.cycles_from < window[1] and block.cycles_to > window[0]
            ]
            rows = profile.blocks(ipu, *window, max_rows=len(expected))
            columns = ["step", "cycles_from", "cycles_to", "cause", "iteration", "micro_batch"]
            shown = [(*row[:5], None if row[5] < 0 else row[5]) for row in rows[columns].itertuples(index=False)]
            assert shown == expected


@given(programs())
def test_window_totals_sum_to_the_window(program: TileProgram) -> None:
    profile = collect(compiled(program))
    total = profile.total_cycles
    for first, last in ((0, total), (total // 4, total // 2), (total // 2, total // 2 + 1)):
        for ipu in range(program.ipus):
            assert sum(profile.trace.proportions(ipu, first, last).values()) == min(last, total) - first
    halves = [profile.trace.proportions(0, 0, total // 2), profile.trace.proportions(0, total // 2, total)]
    whole = profile.trace.proportions(0)
    assert {cause: sum(half.get(cause, 0) for half in halves) for cause in whole} == whole


@given(programs())
def test_memory_is_the_engines(program: TileProgram) -> None:
    found = compiled(program)
    profile = collect(found)
    for ipu in range(program.ipus):
        live = found.liveness.live_bytes(ipu)
        if not len(live):
            continue
        for position in range(len(live)):
            categories = live_bytes.by_category_at(profile, ipu, position)
            always = profile.arrays["always_live"][ipu]
            assert (np.sum([*categories.values(), 0 * always], axis=0) == always + live[position]).all()


@given(programs())
def test_tiles_are_the_engines(program: TileProgram) -> None:
    found = compiled(program)
    profile = collect(found)
    for row in profile.tiles.to_dict("records"):
        tile = found.allocation.tile(int(row["ipu"]), int(row["tile"]))
        assert {name: row[name] for name in MEMORY_CATEGORIES} == dict(tile.category_bytes)
        assert row["total_bytes"] == tile.total_bytes >= 0
        assert row["total_with_gaps_bytes"] == tile.total_with_gaps_bytes
        assert row["always_live_bytes"] + row["not_always_live_bytes"] <= row["total_bytes"]
    assert profile.tiles["total_with_gaps_bytes"].max() == profile.max_tile_bytes
    assert profile.fits == found.allocation.fits


@given(programs())
def test_xray_sums_to_what_is_live(program: TileProgram) -> None:
    profile = collect(compiled(program))
    for ipu, tile in ((0, 0), (program.ipus - 1, 3)):
        xray = profile.xray.of(ipu, tile)
        live = live_bytes.live_of_tile(profile, ipu, tile) + profile.arrays["always_live"][ipu, tile]
        assert [xray.bytes_at(position) for position in range(xray.positions)] == live.tolist()


@given(programs())
def test_source_and_layers_cover_everything(program: TileProgram) -> None:
    profile = collect(compiled(program))
    assert profile.operations.layers["cycles"].sum() == profile.steps["total_cycles"].sum()
    source = profile.source
    assert source.lines["cycles"].sum() + source.unattributed_cycles == program.ipus * profile.total_cycles
    terms = profile.tables["terms"]
    sums = dict.fromkeys(profile.steps["id"], 0)
    for step, value in zip(terms["step"].tolist(), terms["value"].tolist(), strict=True):
        sums[step] += value
    assert list(sums.values()) == profile.steps["cycles"].tolist()


@given(program=programs())
def test_save_keeps_all(program: TileProgram, tmp_path_factory: pytest.TempPathFactory) -> None:
    profile = collect(compiled(program))
    path = tmp_path_factory.mktemp("saved") / "a.wbprofile"
    loaded = load_profile(profile.save(path))
    assert str(loaded) == str(profile)
    assert loaded.tiles.equals(profile.tiles)
    assert loaded.blocks(max_rows=50).equals(profile.blocks(max_rows=50))
    assert str(loaded.explain(step=0)) == str(profile.explain(step=0))
    assert str(loaded.explain(tile=0)) == str(profile.explain(tile=0))


@given(programs())
def test_tiles_placed_from_the_data_are_the_engines(program: TileProgram) -> None:
    found = compiled(program)
    whole = collect(found)
    none_yet = {**whole.arrays, "total_with_gaps": np.full_like(whole.arrays["total_with_gaps"], -1)}
    profile = replace(whole, arrays=none_yet)
    for ipu in range(program.ipus):
        for tile in range(program.target.tiles_per_ipu):
            rows, with_gaps = profile.addresses.tile(ipu, tile)
            expected = found.allocation.tile(ipu, tile)
            assert with_gaps == expected.total_with_gaps_bytes
            assert sorted(zip(rows["variable"].tolist(), rows["address"].tolist(), strict=True)) == sorted(
                (block.variable, block.address) for block in expected.blocks
            )


@given(programs())
def test_the_timeline_of_an_ipu_is_that_of_the_table(program: TileProgram) -> None:
    """It is read where it lies; in a profile of a file it is found in the table."""
    profile = collect(compiled(program))
    table = dict(profile.tables["timeline"].items())
    assert list(table) == list(SCHEMA["timeline"])
    stored = replace(profile, tables={**profile.tables, "timeline": table})
    for ipu in range(program.ipus):
        found = live_bytes.positions(stored, ipu).tolist()
        assert live_bytes.positions(profile, ipu).tolist() == found == table["step"][table["ipu"] == ipu].tolist()


def test_everything_in_meta_is_json() -> None:
    profile: Profile = collect(compiled(tiny()))
    assert json.loads(json.dumps(profile.meta)) == profile.meta
    validate(profile)


def test_every_category_of_a_tile_explains_itself() -> None:
    found = compiled(tiny())
    profile = collect(found)
    explained = profile.explain(tile=0)
    assert explained.value == found.allocation.tile(0, 0).total_with_gaps_bytes
    assert sum(part.value for part in explained.parts) == explained.value
    for part in explained.parts:
        name = part.subject.replace(" ", "_")
        if name == "vertex_code":
            assert sum(code.value for code in part.parts) == part.value
        elif name in found.footprint.categories:
            terms = found.footprint.cost(name, 0, 0).terms
            assert {**part.inputs} == dict(terms[0].inputs)


def test_the_verdict_needs_neither_all_vectors_nor_all_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ResNet-50's profile they were two fifths of the time and 50 MB at the moment of most memory; the columns that
    name them, and the terms, are another two fifths of what is left."""

    def too_early(*given: object) -> np.ndarray:
        raise AssertionError("made before anything looks into it")

    for name in ("stacked", "numbers_of", "Vectors"):
        monkeypatch.setattr(numbered, name, too_early)
    profile = collect(compiled(tiny()))
    assert profile.fits
    assert profile.total_cycles > 0
    assert profile.timeline.root.cycles == profile.total_cycles
    for name in ("per_tile", "placement_numbers"):
        with pytest.raises(AssertionError, match="before"):
            assert profile.arrays[name].size
    for table, name in (("variables", "name"), ("terms", "value"), ("steps", "moves"), ("codelets", "vertex")):
        with pytest.raises(AssertionError, match="before"):
            assert profile.tables[table][name].size


def test_profiles_of_one_program_share_its_timeline_whoever_asks_first() -> None:
    profile = collect(compiled(tiny()))
    other = with_meta(with_meta(profile, name="other"), assumptions=["one"])
    assert other.name == "other"
    assert profile.timeline is other.timeline
    assert profile.control is other.control
    copied = copy.deepcopy(other)
    assert copied.timeline.root.totals == other.timeline.root.totals


def test_a_copy_holds_the_columns_and_nothing_of_the_engine() -> None:
    profile = collect(compiled(tiny()))
    copied = copy.deepcopy(profile)
    for name, columns in profile.tables.items():
        for key in columns:
            assert copied.tables[name][key].tolist() == columns[key].tolist(), (name, key)
    for name in profile.arrays:
        assert (copied.arrays[name] == profile.arrays[name]).all()
    assert str(copied.summary) == str(profile.summary)
