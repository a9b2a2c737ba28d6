"""Tables that are filled where they are defined, and first when they are read."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from workbench.base.registry import Registry
from workbench.errors import WorkbenchError

FILLS = "import {home}\n{home}.TABLE.add({name!r}, {name!r})\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[str]:
    """A table in a module of its own, which the modules of `tmp_path` may fill."""
    monkeypatch.syspath_prepend(tmp_path)
    home = f"home_of_{tmp_path.name}"
    (tmp_path / f"{home}.py").write_text("from workbench.base.registry import Registry\nTABLE = Registry('thing')\n")
    folder = tmp_path / f"folder_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("b", "a"):
        (folder / f"{name}.py").write_text(FILLS.format(home=home, name=name))
    (tmp_path / f"one_{tmp_path.name}.py").write_text(FILLS.format(home=home, name="one"))
    found: Registry[str] = __import__(home).TABLE
    return found


def test_a_folder_and_a_module_fill_it_when_it_is_read(table: Registry[str], tmp_path: Path) -> None:
    table.found_in(f"folder_{tmp_path.name}", f"one_{tmp_path.name}")
    assert f"folder_{tmp_path.name}" not in sys.modules
    assert list(table) == ["a", "b", "one"]
    with pytest.raises(WorkbenchError, match="unknown thing 'c'"):
        table.get("c")


def test_the_file_of_a_name_is_read_alone_where_order_says_nothing(table: Registry[str], tmp_path: Path) -> None:
    folder = f"folder_{tmp_path.name}"
    table.found_in(folder, f"one_{tmp_path.name}", in_any_order=True)
    assert table.get("b") == "b"
    assert f"{folder}.b" in sys.modules
    assert f"{folder}.a" not in sys.modules
    assert table.get("one") == "one"  # of another file than its name says, so all are read
    assert set(table) == {"a", "b", "one"}


def test_whether_a_name_is_there_is_told_by_its_file_alone(table: Registry[str], tmp_path: Path) -> None:
    folder = f"folder_{tmp_path.name}"
    table.found_in(folder, f"one_{tmp_path.name}", in_any_order=True)
    assert "b" in table
    assert f"{folder}.b" in sys.modules
    assert f"{folder}.a" not in sys.modules
    assert "one" in table  # of another file than its name says, so all are read
    assert 1 not in table


def test_in_order_all_files_are_read(table: Registry[str], tmp_path: Path) -> None:
    table.found_in(f"folder_{tmp_path.name}")
    assert table.get("b") == "b"
    assert list(table) == ["a", "b"]


@pytest.mark.parametrize("name", ["", "os.path", "../b", "no_such", "b c", "__init__"])
def test_no_name_leads_out_of_the_folders(table: Registry[str], tmp_path: Path, name: str) -> None:
    table.found_in(f"folder_{tmp_path.name}", in_any_order=True)
    with pytest.raises(WorkbenchError, match="unknown thing"):
        table.get(name)


def test_what_could_not_be_read_is_tried_again(table: Registry[str], tmp_path: Path) -> None:
    late = f"late_{tmp_path.name}"
    table.found_in(late, f"one_{tmp_path.name}")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match=late):
            len(table)
    importlib.invalidate_caches()
    (tmp_path / f"{late}.py").write_text(FILLS.format(home=f"home_of_{tmp_path.name}", name="late"))
    assert list(table) == ["late", "one"]


def test_two_owners_of_a_name_are_an_error() -> None:
    table: Registry[object] = Registry("thing")
    table.add("a", 1)
    table.add("a", 1)
    with pytest.raises(WorkbenchError, match="thing 'a' is registered twice: 1 and 2"):
        table.add("a", 2)
