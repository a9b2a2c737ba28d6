"""The report of exchanges: its arrows sum to the tables, its cycles are the engine's, and what is not kept is said."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.reports.exchange import NOT_RECORDED
from workbench.profiler.storage import load_profile, profile_bytes, profile_from


def by_hand() -> Profile:
    """x on tiles 0 to 3, 100 floats each; tile 5 adds up those of 0 and 1, and tile 6 those of 1 and 2."""
    g = wb.tiles.Graph("ipu2", tiles=16)
    x = g.variable("x", (400,), "float32").map_linearly(tiles=4)
    y = g.variable("y", (400,), "float32")
    y.map({5: slice(0, 200), 6: slice(200, 400)})
    add = g.compute_set("add")
    add.vertex("popops::BinaryOp1D", tile=5, op="ADD", a=x[0:200], b=x[0:200], out=y[0:200])
    add.vertex("popops::BinaryOp1D", tile=6, op="ADD", a=x[100:300], b=x[100:300], out=y[200:400])
    return wb.profile(g.sequence(add))


def of_step(report: Any, column: str) -> Any:
    """What the table of steps says of the step of a report."""
    steps = report.profile.steps
    return steps[steps["id"] == report.step][column].iloc[0]


@cache
def network() -> Profile:
    return wb.profile("cnn", batch_size=2, mode="training", target=wb.target("ipu2", tiles_per_ipu=64))


@cache
def with_host_tiles() -> Profile:
    """Two stages, a loop over feeds, and tiles that are the host's."""
    config = wb.ipu.config.IPUConfig()
    config.io_tiles.num_io_tiles = 8
    model = wb.ready("bert-base", layers=2, hidden=64, heads=2, sequence_length=16)
    return wb.profile(model, batch_size=2, mode="training", config=config, target=wb.target("ipu2", tiles_per_ipu=64))


COMPILED = pytest.mark.parametrize("made", [by_hand, network, with_host_tiles])


def sums(report: Any) -> tuple[list[int], list[int]]:
    tiles, found = len(report.vectors["sent"]), report.arrows
    return tuple(  # type: ignore[return-value]
        np.bincount(end, found.bytes, tiles).astype(int).tolist() for end in (found.receiver, found.sender)
    )


def test_who_sends_what_to_whom() -> None:
    report = by_hand().exchange
    assert of_step(report, "name") == "add/ExchangePre"
    table = report.of(tile=5).to_pandas()
    assert table.to_dict("list") == {"way": ["in", "in"], "tile": [0, 1], "bytes": [400, 400]}
    # Tile 1 sends its 400 bytes once, and they arrive at two tiles.
    one = report.of(tile=1)
    assert one.to_pandas().to_dict("list") == {"way": ["out", "out"], "tile": [5, 6], "bytes": [400, 400]}
    assert (one.data["sent_bytes"], one.data["arriving_bytes"], one.data["receivers"]) == (400, 800, 2)
    # 800 bytes at 4 a cycle; two pieces come in, of three events each at both ends: 3 x 2 / 2.
    five = report.of(tile=5)
    assert (five.cost["receiving"], five.cost["sending"], five.cost["control"]) == (200, 0, 3)
    assert (five.cycles, five.decided_by) == (200, "receiving")
    assert five.cycles + five.latency_cycles == int(of_step(five, "cycles"))
    assert "receives 800 B from 2 tiles" in five.sentence


@COMPILED
def test_arrows_sum_to_the_steps_own_tables(made: Any) -> None:
    profile = made()
    report, seen = profile.exchange, 0
    between = report.steps[report.steps["cause"] == "exchange"]
    assert len(between)
    for row in between.itertuples():
        one = report.of(step=int(row.step))
        received, sent = sums(one)
        assert received == one.vectors["received"].tolist()
        assert (
            sum(received)
            == row.bytes_received
            == profile.steps.set_index("id").loc[[row.step], "bytes_received"].iloc[0]
        )
        assert all(arrows >= once for arrows, once in zip(sent, one.vectors["sent"].tolist(), strict=True))
        assert (one.arrows.sender != one.arrows.receiver).all()
        tile = int(np.argmax(one.vectors["received"]))
        parts = one.of(tile=tile)
        assert parts.partners("in")["bytes"].sum() == one.vectors["received"][tile]
        seen += len(one.arrows.bytes)
    assert seen


@COMPILED
def test_cycles_are_those_of_the_formula_on_every_tile(made: Any) -> None:
    report = made().exchange
    for step in report.steps.loc[report.steps["cause"] == "exchange", "step"].tolist():
        one = report.of(step=step)
        assert np.minimum(one.costs["direct"], one.costs["staged"]).tolist() == one.vectors["cycles"].tolist()
        assert one.cycles + one.latency_cycles == int(of_step(one, "cycles"))  # of its busiest tile
        told = one.explained()
        assert (told.value, told.unit, told.inputs["received_bytes"]) == (
            one.cycles,
            "cycles",
            one.data["received_bytes"],
        )
        assert told.source


def test_the_other_end_of_a_host_copy_is_no_tile() -> None:
    report = network().exchange
    host = report.steps.loc[report.steps["cause"] == "host", "step"].tolist()
    assert host
    one = report.of(step=host[0])
    assert one.arrows is None
    assert "the host" in one.untold
    assert one.to_pandas().empty
    assert one.vectors["received"].sum() == of_step(one, "bytes_received")


def test_a_profile_made_by_hand() -> None:
    report = handmade_profile().exchange
    assert not report.untold
    assert sum(sums(report)[0]) == of_step(report, "bytes_received")
    assert report.cost == {}  # its formula is another
    with pytest.raises(InputError, match="not recorded"):
        report.explained()


def test_it_begins_on_the_ipu_of_the_fullest_tile_as_other_views_do() -> None:
    """All exchanges take 4 x 100 cycles: of IPU 0 the first is step 1, of IPU 1 step 3."""
    profile = handmade_pipeline()
    assert (profile.peak.ipu, profile.exchange.step) == (0, 1)
    peak = {**profile.meta["verdict"]["peak"], "ipu": 1}
    other = dataclasses.replace(profile, meta={**profile.meta, "verdict": {**profile.meta["verdict"], "peak": peak}})
    assert (other.exchange.ipu, other.exchange.step) == (1, 3)
    assert other.exchange.ipu == other.liveness_view.ipu == other.tile_map.ipu
    still = {**other.tables["steps"]}
    for name in ("bytes_sent", "bytes_received"):
        still[name] = np.where(still["ipu"] == 1, 0, still[name])
    nothing_there = dataclasses.replace(other, tables={**other.tables, "steps": still})
    assert nothing_there.exchange.step == 1


def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    profile = network()
    again = profile_from(profile_bytes(profile))
    for step in profile.exchange.steps["step"].tolist():
        mine, theirs = (each.exchange.of(step=step) for each in (profile, again))
        assert mine.data == theirs.data
        assert mine.to_pandas().equals(theirs.to_pandas())


def test_a_file_of_a_version_before_says_that_it_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "old.wbprofile"
    network().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["profile.json"]) | {"version": 5}
    for name in ("moves", "placements"):
        del head["rows"][name]
    del head["arrays"]["placement_numbers"]
    later = ("moves/", "placements/", "text/moves", "text/placements", "array/placement_numbers")
    gone = ("steps/fragments_index.npy", "steps/shared_index.npy", "steps/moves.npy")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if not name.startswith(later) and name not in gone:
                archive.writestr(name, json.dumps(head) if name == "profile.json" else content)
    report = load_profile(path).exchange
    assert report.untold == NOT_RECORDED
    assert of_step(report, "cause") == "exchange"
    assert "not recorded" in report.sentence
    assert report.data["received_bytes"] == int(report.vectors["received"][report.tile])
    assert report.cost == {}
    assert report.svg()
    assert report.widget().data["part"]["untold"] == NOT_RECORDED


def test_a_file_with_moves_between_unlike_tensors_is_refused(tmp_path: Path) -> None:
    profile = network()
    table = profile.tables["moves"]
    sizes = [json.loads(head)["size"] for head in profile.tables["placements"]["head"]]
    other = next(place for place, size in enumerate(sizes) if size != sizes[table["held"][0]])
    needed = table["needed"].copy()
    needed[0] = other
    tables = {**profile.tables, "moves": {**table, "needed": needed}}
    broken = Profile(meta=profile.meta, tables=tables, arrays=profile.arrays)
    with pytest.raises(wb.errors.ProfileFileError):
        profile_from(profile_bytes(broken))


def test_what_is_not_there_is_refused() -> None:
    profile = handmade_pipeline()
    report = profile.exchange
    still = next(step for step in profile.steps["id"].tolist() if step not in report.steps["step"].tolist())
    with pytest.raises(InputError, match="moves nothing"):
        report.of(step=still)
    with pytest.raises(InputError, match="no step"):
        report.of(step=999)
    with pytest.raises(InputError, match="tile"):
        report.of(tile=16)
    with pytest.raises(InputError, match="way"):
        report.partners("sideways")


def test_a_program_that_moves_nothing() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    x = g.variable("x", (8,), "float32").map_linearly(tiles=1)
    step = g.compute_set("alone")
    step.vertex("popops::BinaryOp1D", tile=0, op="ADD", a=x, b=x, out=x)
    report = wb.profile(g.sequence(step)).exchange
    assert (report.step, report.data["untold"]) == (-1, "no step of this program moves bytes between tiles")
    assert report.sentence.startswith("Exchange: no step")
    assert report.svg()
    assert report.widget().data["part"]["step"] == -1
