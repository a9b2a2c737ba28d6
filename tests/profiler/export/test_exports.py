"""Exports: the numbers in the files are those of the tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.base.text import shown
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.export.chrome_trace import to_chrome_trace
from workbench.profiler.export.csv import as_csv, read_csv, tables_of
from workbench.profiler.profile import Profile
from workbench.profiler.schema import column

each_profile = pytest.mark.parametrize("profile", [handmade_profile(), handmade_pipeline()], ids=["one", "pipeline"])


@each_profile
def test_every_table_is_a_file(profile: Profile, tmp_path: Path) -> None:
    files = profile.to_csv(tmp_path / "new" / "folder")
    frames = tables_of(profile)
    assert [path.stem for path in files] == list(frames)
    for path in files:
        frame = frames[path.stem]
        read = pd.read_csv(path) if len(frame) else pd.DataFrame(columns=frame.columns)
        assert list(read.columns) == list(frame.columns)
        assert len(read) == len(frame)
        numbers = [name for name in frame.columns if frame[name].dtype.kind == "i"]
        assert (read[numbers].to_numpy() == frame[numbers].to_numpy()).all()


def test_texts_of_a_file_are_no_formulas_and_come_back(tmp_path: Path) -> None:
    names = ["=1+1", "+a", "-a", "@a", "'=a", "plain", "a\x1b[2J", "\ud800"]
    profile = handmade_profile()
    variables = dict(profile.tables["variables"])
    wanted = (names * len(variables["name"]))[: len(variables["name"])]
    variables["name"] = column(wanted, "U")
    named = dataclasses.replace(profile, tables={**profile.tables, "variables": variables})
    path = next(each for each in named.to_csv(tmp_path) if each.stem == "variables")
    raw = pd.read_csv(path)["name"].tolist()
    assert not [text for text in raw if text.startswith(("=", "+", "-", "@"))]
    assert read_csv(path)["name"].tolist() == [shown(name) for name in wanted]
    numbers = read_csv(path)["first_step"].tolist()
    assert numbers == named.variables["first_step"].tolist()  # -1 among them


def test_headings_are_no_formulas_and_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=cmd": ["@a", "b"], "plain": [-1, 2]})
    (tmp_path / "one.csv").write_text(as_csv(frame), encoding="utf-8")
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == "'=cmd,plain\n'@a,-1\nb,2\n"
    pd.testing.assert_frame_equal(read_csv(tmp_path / "one.csv"), frame, check_dtype=False)


@each_profile
def test_chrome_trace_has_our_cycles(profile: Profile, tmp_path: Path) -> None:
    (path,) = profile.to_chrome_trace(tmp_path / "trace.json")
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    blocks = profile.blocks()
    assert [(event["ts"], event["dur"]) for event in events] == [
        (row.cycles_from, row.cycles_to - row.cycles_from) for row in blocks.itertuples()
    ]
    for ipu in range(profile.ipus):
        own = profile.cycle_breakdown.query("ipu == @ipu").set_index("cause")["cycles"]
        for cause in ("compute", "exchange", "host", "inter_ipu"):
            spent = sum(event["dur"] for event in events if (event["pid"], event["cat"]) == (ipu, cause))
            assert spent == own.get(cause, 0)


def test_a_long_trace_is_split(tmp_path: Path) -> None:
    profile = handmade_profile()
    files = to_chrome_trace(profile, tmp_path / "trace.json", events_per_file=10)
    # Four steps once and nine steps three times: 31 blocks.
    assert [path.name for path in files] == ["trace.json", "trace.2.json", "trace.3.json", "trace.4.json"]
    sizes = [sum(event["ph"] == "X" for event in json.loads(path.read_text())["traceEvents"]) for path in files]
    assert sizes == [10, 10, 10, 1]


def test_a_full_file_is_not_followed_by_an_empty_one(tmp_path: Path) -> None:
    assert len(to_chrome_trace(handmade_profile(), tmp_path / "trace.json", events_per_file=31)) == 1


def test_a_trace_of_a_window_has_what_touches_it(tmp_path: Path) -> None:
    profile = handmade_profile()
    rows = profile.blocks(cycles_from=30, cycles_to=700)
    (path,) = to_chrome_trace(profile, tmp_path / "trace.json", cycles_from=30, cycles_to=700)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["ts"] for event in events] == rows["cycles_from"].tolist()
    assert 0 < len(events) < len(profile.blocks())


def test_a_trace_of_too_many_files_is_refused_with_a_window_that_fits(tmp_path: Path) -> None:
    profile, path = handmade_profile(), tmp_path / "trace.json"
    with pytest.raises(InputError, match=r"31 blocks fill 31 files\. Expected: at most 20 files of 1 blocks") as caught:
        to_chrome_trace(profile, path, events_per_file=1)
    assert not list(tmp_path.iterdir())
    end = int(caught.value.todo.partition("cycles_to=")[2].split()[0])
    assert len(to_chrome_trace(profile, path, events_per_file=1, cycles_to=end)) <= 20
    with pytest.raises(InputError, match=r"blocks fill 2[12] files"):  # two steps may begin there
        to_chrome_trace(profile, path, events_per_file=1, cycles_to=end + 1)


@pytest.mark.parametrize(
    "window",
    [
        {"cycles_from": -1},
        {"cycles_from": "0"},
        {"cycles_from": 9, "cycles_to": 8},
        {"events_per_file": 0},
    ],
)
def test_a_window_that_is_none_is_refused(window: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(name for name in reversed(window))):
        to_chrome_trace(handmade_profile(), tmp_path / "trace.json", **window)
    assert not list(tmp_path.iterdir())


# Model Explorer


@each_profile
def test_a_graph_has_every_operator_and_leads_from_writers_to_readers(profile: Profile, tmp_path: Path) -> None:
    path = profile.to("model_explorer", tmp_path / "graph.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    (graph,) = found["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    operators = profile.operators.set_index("name")
    assert list(nodes) == list(operators.index)
    steps, variables = profile.tables["steps"], profile.tables["variables"]
    operator_of = dict(zip(steps["id"].tolist(), steps["operator"].tolist(), strict=True))
    name_of = dict(zip(variables["id"].tolist(), variables["name"].tolist(), strict=True))
    accesses = profile.tables["accesses"]
    does = {
        (operator_of[step], bool(write), name_of[variable])
        for step, variable, write in zip(accesses["step"], accesses["variable"], accesses["write"], strict=True)
    }
    for name, node in nodes.items():
        attributes = {each["key"]: each["value"] for each in node["attrs"]}
        assert node["namespace"] == operators.loc[name, "layer"]
        assert attributes["cycles"] == str(operators.loc[name, "cycles"])
        for edge in node["incomingEdges"]:
            source, variable = edge["sourceNodeId"], edge["sourceNodeOutputId"]
            assert source in nodes
            assert (source, True, variable) in does
            assert (name, False, variable) in does


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda profile: profile.to_html(),
            "to_html: missing a required argument: 'path'.",
        ),
        (lambda profile: profile.to("csv", "a", "b"), "Expected: arguments of to_csv(folder)."),
        (
            lambda profile: profile.save(),
            "path'. Expected: arguments of save(path).",
        ),
        (lambda profile: profile.live_variables(stp=0), "live_variables: missing a required argument: 'step'. "),
        (lambda profile: profile.to("htm", "a"), "To mend it: did you mean 'html'?"),
        (lambda profile: profile.memory.widget(ipu=0), "Expected: arguments of the view of memory(selection=None)."),
    ],
)
def test_a_call_is_told_as_a_user_types_it(call: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(WorkbenchError) as caught:
        call(handmade_profile())
    assert told in str(caught.value)
