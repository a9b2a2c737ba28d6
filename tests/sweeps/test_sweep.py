"""Sweeps: the same table wherever it is computed, rows for failures, going on after a stop, and what is refused."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.sweeps import interrupted
from workbench.base.files import whole_file
from workbench.errors import InputError, OptionError
from workbench.profiler.profile import with_meta
from workbench.sweeps import run as running
from workbench.sweeps import store
from workbench.sweeps.sweep import MEASURED, Sweep

GRID = {"batch_size": [2, 4], "hidden": [32, 64]}
PROPORTION = "convolutions.poplar_options"


def small() -> Any:
    return wb.target("ipu2", tiles_per_ipu=8)


@functools.cache
def swept() -> Sweep:
    return wb.sweep("mlp", GRID, mode="training", target=small(), progress=lambda text: None)


def told(sweep: Sweep) -> pd.DataFrame:
    return sweep.table.drop(columns="compile_seconds")


def test_a_row_for_each_combination_with_what_a_compile_says() -> None:
    table = swept().table
    pairs = list(zip(table["batch_size"], table["hidden"], strict=True))
    assert pairs == [(2, 32), (2, 64), (4, 32), (4, 64)]
    for row, (batch, hidden) in enumerate(pairs):
        ready = wb.ready("mlp", hidden=hidden)
        alone = wb.profile(ready, batch_size=batch, mode="training", target=small())
        assert table["total_cycles"][row] == alone.total_cycles
        assert table["max_tile_bytes"][row] == alone.max_tile_bytes
        assert swept().profile(row).total_cycles == alone.total_cycles


def test_the_front_is_what_nothing_beats() -> None:
    sweep, table = swept(), swept().table
    front = sweep.pareto()
    for row in table.index:
        beaten = (
            (table["samples_per_second"] >= table["samples_per_second"][row])
            & (table["max_tile_bytes"] <= table["max_tile_bytes"][row])
            & (
                (table["samples_per_second"] > table["samples_per_second"][row])
                | (table["max_tile_bytes"] < table["max_tile_bytes"][row])
            )
        ).any()
        assert (row in front.index) != beaten
    assert sweep.best == table["samples_per_second"].astype(float).idxmax()


def test_options_columns_and_equal_points() -> None:
    proportions = [{"availableMemoryProportion": "0.1"}, {"availableMemoryProportion": "0.6"}]
    sweep = wb.sweep(
        "mlp",
        [{PROPORTION: each} for each in (*proportions, proportions[0])],
        columns={"steps": lambda profile: len(profile.steps), "fragmentation": "fragmentation"},
        batch_size=4,
        target=small(),
        progress=lambda text: None,
    )
    assert len(sweep.table) == 3
    assert (sweep.table["steps"] > 0).all()
    assert "fragmentation" in sweep.table
    first, last = sweep.rows[0], sweep.rows[2]
    assert first.key == last.key
    assert last.compile_seconds == 0


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "points"

    class Stop(Exception):
        pass

    def stopping(text: str) -> None:
        if text.startswith("point 3"):
            raise Stop

    arguments: dict[str, Any] = {"mode": "training", "target": small(), "folder": folder}
    with pytest.raises(Stop):
        wb.sweep("mlp", GRID, progress=stopping, **arguments)
    kept = len(list(folder.glob("*.wbprofile")))
    assert kept >= 2
    again = wb.sweep("mlp", GRID, progress=lambda text: None, **arguments)
    assert (again.table["compile_seconds"] == 0).sum() == kept
    pd.testing.assert_frame_equal(told(again), told(swept()), check_exact=True)
    third = wb.sweep("mlp", GRID, progress=lambda text: None, **arguments)
    assert third.how == "all known before"
    damaged = next(folder.glob("*.wbprofile"))
    damaged.write_bytes(b"no profile")
    mended = wb.sweep("mlp", GRID, progress=lambda text: None, **arguments)
    assert (mended.table["compile_seconds"] > 0).sum() == 1
    pd.testing.assert_frame_equal(told(mended), told(swept()), check_exact=True)


def test_a_full_disk_ends_a_sweep_and_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, written = tmp_path / "points", []

    def full(path: Path, **more: Any) -> Any:
        written.append(path)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole_file(path, **more)

    arguments: dict[str, Any] = {"mode": "training", "target": small(), "folder": folder}
    monkeypatch.setattr(store, "whole_file", full)
    with pytest.raises(InputError, match=r"No space left.*make room and call the sweep again with this folder"):
        wb.sweep("mlp", GRID, progress=lambda text: None, **arguments)
    assert sorted(each.name for each in folder.iterdir()) == sorted(each.name for each in written[:2])
    monkeypatch.undo()
    again = wb.sweep("mlp", GRID, progress=lambda text: None, **arguments)
    assert (again.table["compile_seconds"] == 0).sum() == 2  # none is compiled twice
    pd.testing.assert_frame_equal(told(again), told(swept()), check_exact=True)


def test_what_fails_is_a_row() -> None:
    sweep = wb.sweep(
        "mlp",
        [
            {"batch_size": 2},
            {"batch_size": 2, "stages": ["nosuch"], "gradient_accumulation_steps": 4},
            {"batch_size": 4},
        ],
        mode="training",
        target=small(),
        progress=lambda text: None,
    )
    assert sweep.table["problem"].map(bool).tolist() == [False, True, False]
    assert "nosuch" in sweep.table["problem"][1]
    with pytest.raises(InputError, match="row 1 has no profile"):
        sweep.profile(1)
    assert "1 could not be compiled" in sweep.sentence


def test_where_every_point_fails_the_columns_are_there() -> None:
    grid = {"stages": [["nosuch"], ["neither"]]}
    failed = wb.sweep("mlp", grid, batch_size=2, mode="training", target=small(), columns=["fragmentation"])
    assert list(failed.table) == ["stages", *MEASURED, "fragmentation", "compile_seconds", "problem"]
    assert failed.table["fits"].isna().all()
    assert failed.sentence == "2 points, in this process: 0 fit, 2 could not be compiled"
    one = wb.sweep("mlp", {"batch_size": [2]}, target=small(), progress=lambda text: None)
    assert one.sentence.startswith("1 point, ")
    assert failed.pareto().empty
    assert failed.best is None
    assert "0 fit, 2 could not be compiled" in str(failed)
    assert failed.errors == []
    assert [row["fits"] for row in failed.data["rows"]] == [None, None]
    assert failed.svg().startswith("<svg")
    for kind in ("pareto", "curves", "parallel"):
        assert failed.figure(kind).to_dict()["layout"]


def test_on_an_executor_the_table_is_the_same() -> None:
    with ThreadPoolExecutor(2) as executor:
        found = wb.sweep("mlp", GRID, mode="training", target=small(), executor=executor, progress=lambda text: None)
    assert found.how == "on ThreadPoolExecutor"
    pd.testing.assert_frame_equal(told(found), told(swept()), check_exact=True)


class Breaking(ThreadPoolExecutor):
    """An executor whose worker ends once, as one that is killed."""

    ended = 0

    def submit(self, *args: Any, **more: Any) -> Future[Any]:
        if type(self).ended < 1:
            type(self).ended += 1
            broken: Future[Any] = Future()
            broken.set_exception(BrokenProcessPool("killed"))
            return broken
        return super().submit(*args, **more)


def test_what_a_lost_worker_held_is_done_again() -> None:
    with Breaking(2) as executor:
        found = wb.sweep("mlp", GRID, mode="training", target=small(), executor=executor, progress=lambda text: None)
    assert Breaking.ended == 1
    pd.testing.assert_frame_equal(told(found), told(swept()), check_exact=True)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, "no axis"),
        ([], "no point"),
        ({"batch_size": []}, "is empty"),
        ({"batch_size": 4}, "expected|Expected: a list"),
        ({"nosuch": [1]}, "nothing a sweep can change"),
        ({"batch_size": [0]}, "batch_size is 0"),
        ("batch_size", "grid is"),
        ([3], "point 0"),
    ],
)
def test_a_grid_of_no_use_is_refused_before_anything_compiles(grid: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        wb.sweep("mlp", grid, target=small())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("batch_sizes", "did you mean 'batch_size'?"),  # of a compile
        ("hiden", "did you mean 'hidden'?"),  # of the model's sizes
        ("io_tiles.num_io_tile", "did you mean 'io_tiles.num_io_tiles'?"),  # of the options
        ("xyzzy", "the names of options are those of IPUConfig"),
    ],
)
def test_a_name_that_is_nothing_to_sweep_is_told_once_with_one_like_it(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        wb.sweep("mlp", {name: [1]})
    told = str(caught.value)
    assert told.startswith(f"{name!r} is nothing a sweep can change. Expected: an argument (")
    assert told.removesuffix(".").endswith(f"To mend it: {hint}")
    assert told.count("To mend it") == 1


def test_values_of_no_use_and_foreign_arguments() -> None:
    with pytest.raises(OptionError):
        wb.sweep("mlp", {"io_tiles.num_io_tiles": ["many"]}, target=small())
    with pytest.raises(InputError, match="executor is 3"):
        wb.sweep("mlp", GRID, executor=3, target=small())
    with pytest.raises(InputError, match="no argument 'nosuch'"):
        wb.sweep("mlp", GRID, nosuch=3)
    with pytest.raises(InputError, match="columns"):
        wb.sweep("mlp", GRID, columns="fits")
    graph = wb.tiles.Graph("ipu2", tiles=2)
    program = graph.sequence(graph.compute_set("nothing"))
    with pytest.raises(InputError, match="made by hand"):
        wb.sweep(program, GRID)


def test_names_lie_on_no_point_no_other_name_and_not_on_the_front() -> None:
    grid = {"batch_size": [8, 16, 32, 64], "precision": ["float32", "float16"]}
    sweep = wb.sweep(wb.ready("cnn", image_size=16), grid, mode="training", target=small(), progress=lambda text: None)
    picture = ElementTree.fromstring(sweep.svg())
    of = "{http://www.w3.org/2000/svg}"
    names = [each for each in picture.iter(f"{of}text") if "batch_size=" in (each.text or "")]
    # A letter is 6.6 pixels wide; a line is 12 high.
    boxes = [(float(n.attrib["x"]), float(n.attrib["y"]), 6.6 * len(n.text or "")) for n in names]
    points = [each for each in picture.iter(f"{of}rect") if each.get("rx") == "4"]
    places = [(float(each.attrib["x"]) + 4, float(each.attrib["y"]) + 4) for each in points]
    assert len(places) == 8
    assert len(boxes) >= 6
    front = next(each for each in picture.iter(f"{of}path") if each.get("class") == "o").attrib["d"]
    corners = [tuple(map(float, each.split())) for each in front.removeprefix("M").split("L")]
    assert len(corners) > 2
    for (a, b), (c, d) in pairwise(corners):
        places += [(a + (c - a) * part / 100, b + (d - b) * part / 100) for part in range(100)]
    for x, y, wide in boxes:
        assert not any(x < a < x + wide and y - 11 < b < y + 3 for a, b in places)
    for (x, y, wide), (a, b, other) in combinations(boxes, 2):
        assert abs(y - b) >= 13 or x + wide < a or a + other < x


def test_names_lie_on_no_number_of_the_axes() -> None:
    """Of points near the lower axis, far below the capacity and of about one size, too."""
    grid = {"batch_size": [16, 4, 1024], "hidden": [128, 256]}
    sweep = wb.sweep("mlp", grid, mode="training", progress=lambda text: None)
    of = "{http://www.w3.org/2000/svg}"
    texts = list(ElementTree.fromstring(sweep.svg()).iter(f"{of}text"))
    names = [each for each in texts if "batch_size=" in (each.text or "")]
    beside = [each for each in texts if "batch_size=" not in (each.text or "") and "transform" not in each.attrib]
    assert len(names) >= 3
    for name in names:
        x, y = float(name.attrib["x"]), float(name.attrib["y"])
        for each in beside:
            wide = 6.6 * len(each.text or "")
            end = float(each.attrib["x"]) + {"end": 0, "middle": wide / 2}.get(each.get("text-anchor", ""), wide)
            apart = abs(float(each.attrib["y"]) - y) >= 12
            assert apart or x + 6.6 * len(name.text or "") < end - wide or end < x, (name.text, each.text)


def test_axes_of_numbers_are_numbers_side_by_side() -> None:
    """Numbers of numpy too; what is not is as it came."""
    grid = {"batch_size": np.array([16, 4]), "hidden": [32], "precision": [None, "float32"]}
    sweep = wb.sweep("mlp", grid, mode="training", target=small(), progress=lambda text: None)
    batch, hidden, precision, cost, fullest = sweep.figure("parallel").data[0].dimensions
    assert (batch.label, list(batch["values"]), batch.ticktext) == ("batch_size", [16, 16, 4, 4], None)
    assert (hidden.label, list(hidden["values"]), hidden.ticktext) == ("hidden", [32] * 4, None)
    assert (list(precision["values"]), precision.ticktext) == ([0, 1, 0, 1], ("None", "float32"))
    assert (cost.label, cost.ticktext) == ("microseconds of a sample", None)
    assert fullest.label == "bytes of the fullest tile"
    assert fullest.ticktext[0] == "0 B"
    assert all(text.endswith("iB") for text in fullest.ticktext[1:])
    assert list(fullest["values"]) == [sweep.profile(row).max_tile_bytes for row in range(4)]


def test_curves_go_from_left_to_right_in_one_colour_a_group() -> None:
    grid = {"batch_size": [16, 4, 8], "hidden": [32, 64]}
    sweep = wb.sweep("mlp", grid, mode="training", target=small(), progress=lambda text: None)
    figure = sweep.figure("curves")
    assert figure.layout.legend.title.text == "hidden"
    assert [(line.name, line.showlegend) for line in figure.data] == [
        ("32", True), ("32", False), ("64", True), ("64", False)
    ]  # fmt: skip
    assert [list(line.x) for line in figure.data] == [[4, 8, 16]] * 4
    for place, rows in ((1, [2, 4, 0]), (3, [3, 5, 1])):  # of the grid, by batch size
        assert list(figure.data[place].y) == [sweep.profile(row).max_tile_bytes for row in rows]
    colours = [line.line.color for line in figure.data]
    assert colours[0] == colours[1] != colours[2] == colours[3]


@pytest.mark.parametrize("kind", ["pareto", "curves", "parallel"])
def test_figures_have_a_title_and_bytes_in_powers_of_two(kind: str) -> None:
    figure = swept().figure(kind)
    assert figure.layout.title.text == swept().sentence
    if kind == "parallel":
        axis = figure.data[0].dimensions[-1]
    else:
        axis = figure.layout["yaxis" if kind == "pareto" else "yaxis2"]
    assert axis.ticktext[0] == "0 B"
    # Whole numbers of KiB, each where it says.
    for place, text in list(zip(axis.tickvals, axis.ticktext, strict=True))[1:]:
        assert text == f"{place / 1024:g} KiB"


def test_curves_of_what_points_leave_out_are_drawn_too() -> None:
    points = [{"batch_size": 4, "precision": "float32"}, {"batch_size": 2}]
    figure = wb.sweep("mlp", points, target=small(), progress=lambda text: None).figure("curves")
    assert [(line.name, list(line.x)) for line in figure.data[::2]] == [("float32", [4]), ("None", [2])]


def test_faces() -> None:
    sweep = swept()
    assert "fullest tile" in sweep.svg()
    for kind in ("pareto", "curves", "parallel"):
        assert sweep.figure(kind).data
    with pytest.raises(InputError, match="no figure"):
        sweep.figure("pie")
    assert "text/html" in sweep._repr_mimebundle_()
    assert sweep.sentence in str(sweep)
    assert str(sweep).endswith("\n".join(sweep.errors))
    assert [line.partition(":")[0] for line in sweep.errors] == [
        "Error  memory of a whole model",
        "Error  cycles of a whole program",
    ]
    assert len(sweep.data["rows"]) == 4


def test_points_that_are_as_fast_within_the_typical_error_are_counted() -> None:
    """Of 8 samples in 100, 104, 106 and 100 cycles, and of what does not fit: two are within 5 % of the fastest."""
    sweep = swept()
    first = sweep.rows[0]
    cycles = ((100, True), (104, True), (106, True), (100, True), (100, False))
    rows = tuple(
        replace(first, values={**first.values, "total_cycles": each, "samples_per_second": 8 / each, "fits": fits})
        for each, fits in cycles
    )
    profile = sweep.profile(0)
    known = {"cycles": {"typical": 0.05}}
    with patch.object(Sweep, "told_of", with_meta(profile, typical_errors=known)):
        assert "100 cycles a call (2 others within the typical error of 5.0 %), " in replace(sweep, rows=rows).sentence


def test_search_finds_the_best_of_a_small_space() -> None:
    found = wb.search("mlp", {"hidden": [32, 64], "batch_size": (2, 4)}, trials=6, mode="training", target=small())
    assert len(found.rows) == 6
    assert found.best is not None
    with pytest.raises(InputError, match="objective is"):
        wb.search("mlp", {"hidden": [32]}, objective="speed")
    with pytest.raises(InputError, match="higher end"):
        wb.search("mlp", {"batch_size": (4, 4)})


@pytest.mark.slow
def test_processes_give_the_same_table_and_survive_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(running, "workers", lambda: 2)
    found = wb.sweep("mlp", GRID, mode="training", target=small(), progress=lambda text: None)
    assert found.how == "on 2 processes"
    pd.testing.assert_frame_equal(told(found), told(swept()), check_exact=True)

    killed: list[int] = []

    def killing(text: str) -> None:
        if not killed and text.startswith("point 4 "):
            victim = running.processes(2).submit(os.getpid).result()
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    grid = {"batch_size": [2, 3, 4, 5, 6, 7], "hidden": [32, 64]}
    again = wb.sweep("mlp", grid, mode="training", target=small(), progress=killing)
    assert killed
    monkeypatch.setattr(running, "workers", lambda: 1)
    alone = wb.sweep("mlp", grid, mode="training", target=small(), progress=lambda text: None)
    assert len(again.table) == 12
    pd.testing.assert_frame_equal(told(again), told(alone), check_exact=True)  # no row is lost, none is there twice


@pytest.mark.slow
def test_an_interrupt_of_processes_loses_no_row_and_makes_none_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sweeps.interrupted", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, start_new_session=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["stopped"] == len(found["kept"]) == interrupted.STOPPED_AT
    rows = found["rows"]
    assert sum(row.pop("compile_seconds") == 0 for row in rows) == len(found["kept"])
    assert len(found["files"]) == len(rows) == 8
    assert found["how"] == "on 2 processes"
    alone = interrupted.sweep(None, lambda text: None).data["rows"]
    assert rows == [{name: value for name, value in row.items() if name != "compile_seconds"} for row in alone]


@pytest.mark.slow
def test_a_worker_needs_neither_keras_nor_jax() -> None:
    with ProcessPoolExecutor(1, mp_context=__import__("multiprocessing").get_context("spawn")) as executor:
        found = wb.sweep("mlp", {"batch_size": [2]}, target=small(), executor=executor, progress=lambda text: None)
        assert found.table["fits"].all()
        assert executor.submit(loaded).result() == []


def loaded() -> list[str]:
    import sys

    return [name for name in ("jax", "keras") if name in sys.modules]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_scheduler_with_two_workers_gives_the_same_table() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        found = wb.sweep(
            "mlp", GRID, mode="training", target=small(), executor=client.get_executor(), progress=lambda text: None
        )
    pd.testing.assert_frame_equal(told(found), told(swept()), check_exact=True)


@pytest.mark.parametrize("call", [wb.sweep, wb.search])
def test_an_axis_that_has_no_name_is_refused_as_such(call: Any) -> None:
    with pytest.raises(InputError, match=r"^an axis of the grid is called 1\. Expected: a name\.$"):
        call("mlp", {1: [2]}, batch_size=2)
