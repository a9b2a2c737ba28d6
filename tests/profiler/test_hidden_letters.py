"""Names that move a cursor, turn a line round, end it or hold half a letter are shown escaped in every text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import keras
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline
from tests.widgets.hostile import texts
from workbench.base.registry import faces
from workbench.base.text import shown
from workbench.errors import InputError
from workbench.executable import Executable
from workbench.profiler.profile import Profile
from workbench.profiler.registry import reports
from workbench.profiler.report import Report
from workbench.profiler.schema import SCHEMA, spoken

HIDDEN = "\x1b[2J\x07\u202eb\u2066\u200f\ud800\u2028\x85\n=1"
BAD = {letter for letter in HIDDEN if shown(letter) != letter}


@pytest.fixture(scope="module")
def executable() -> Executable:
    inputs = keras.Input((8,), name=f"in{HIDDEN}")
    outputs = keras.layers.Dense(4, name=f"dense{HIDDEN}")(inputs)
    return wb.compile(keras.Model(inputs, outputs, name=f"model{HIDDEN}"), batch_size=4, mode="training", loss="mse")


def reports_of(profile: Profile) -> Iterator[Report]:
    """Every report that is there for the asking."""
    yield from (getattr(profile, name) for name in reports)


def held(text: str) -> set[str]:
    """What is hidden in a text of several lines."""
    return (set(text) & BAD) - {"\n"}


def test_text_of_every_stage(executable: Executable) -> None:
    profile = executable.profile
    for stage in (executable, executable.graph, executable.program, profile, profile.target, profile.control):
        assert not held(str(stage) + repr(stage)), type(stage)
    assert "dense\\x1b[2J" in str(executable.graph)
    assert "dense\\x1b[2J" in str(executable.program)
    assert "model\\x1b[2J" in repr(profile)


def test_a_name_adds_no_line(executable: Executable) -> None:
    lines = str(executable.program).splitlines()
    assert all(line.startswith(("program", "  ", "function", "entry")) or line[:1].isupper() for line in lines)


def test_tables_and_what_is_said_of_a_profile(executable: Executable) -> None:
    profile = executable.profile
    for name, kinds in SCHEMA.items():
        for key, kind in kinds.items():
            if kind == "U":
                assert not set("".join(profile.tables[name][key])) & BAD, (name, key)
    assert not any(held(text) for text in texts(profile.meta))
    assert profile.steps["layer"].str.startswith("dense\\x1b[2J").any()


def test_every_report_as_text_html_and_picture(executable: Executable) -> None:
    found = list(reports_of(executable.profile))
    assert len(found) > 10
    for report in found:
        assert not held(str(report)), report.name
        assert not held(repr(report._repr_mimebundle_())), report.name
        if report.name in faces:
            assert not held(report.svg()), report.name


def test_every_export(executable: Executable, tmp_path: Path) -> None:
    profile = executable.profile
    profile.save(tmp_path / "one.wbp")
    files = [profile.to_html(tmp_path / "page.html"), *profile.to_csv(tmp_path), tmp_path / "one.wbp"]
    profile.to_chrome_trace(tmp_path / "trace.json")
    assert all(path.stat().st_size for path in files)
    assert not held((tmp_path / "page.html").read_text(encoding="utf-8"))
    again = wb.load_profile(tmp_path / "one.wbp")
    assert str(again) == str(profile)


def test_a_file_of_somebody_elses_names(tmp_path: Path) -> None:
    """Written by something that escapes nothing: what comes from the file is shown escaped all the same."""
    profile = handmade_pipeline()
    tables = {name: dict(columns) for name, columns in profile.tables.items()}
    names = tables["variables"]["name"].copy()
    names[:] = [HIDDEN + str(number) for number in range(len(names))]
    tables["variables"]["name"] = names
    meta = {**profile.meta, "name": HIDDEN, "warnings": [HIDDEN]}
    Profile(meta=meta, tables=tables, arrays=profile.arrays, placing=profile.placing).save(tmp_path / "foreign.wbp")
    found = wb.load_profile(tmp_path / "foreign.wbp")
    assert found.name == shown(HIDDEN)
    assert found.variables["name"][0] == shown(HIDDEN) + "0"
    assert not held(str(found) + repr(found))


def test_errors_show_what_they_were_given() -> None:
    error = InputError(f"there is no layer {HIDDEN}", expected=HIDDEN, todo=HIDDEN)
    assert not held(str(error))
    assert error.expected == HIDDEN


def test_data_with_texts_keep_their_kind() -> None:
    assert spoken({"a\x1b": [1, 2.5, None, True, "b\u202e", {"c": ("d\n",)}]}) == {
        "a\\x1b": [1, 2.5, None, True, "b\\u202e", {"c": ("d\\n",)}]
    }


def test_markup_is_made_in_one_place() -> None:
    """`html.escape` alone lets through what `markup` does not."""
    root = Path(wb.__path__[0])
    for path in sorted(root.rglob("*.py")):
        if path != root / "base" / "text.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                assert "html" not in names, path
