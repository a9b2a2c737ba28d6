"""A file is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.base.files import whole_file
from workbench.errors import InputError


def _stopped(path: Path) -> None:
    with whole_file(path, text=True) as file:
        file.write("half of the n")
        raise KeyboardInterrupt


def test_what_stops_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        _stopped(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_new_file_takes_the_place_of_the_old_and_is_as_open_as_others(tmp_path: Path) -> None:
    path, other = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(b"old")
    other.write_bytes(b"")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode == other.stat().st_mode


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there is no folder '.*/no/such' to write 'a\.html' to\."):
        whole_file(tmp_path / "no" / "such" / "a.html").__enter__()
    with pytest.raises(InputError, match=r"is a folder\. Expected: the path of a file\."):
        whole_file(tmp_path).__enter__()
