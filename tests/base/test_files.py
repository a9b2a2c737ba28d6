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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_an_existing_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    with whole_file(path, text=True) as file:
        file.write("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_a_link_is_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "held.txt").write_text("old")
    for name in ("held.txt", "fresh.txt"):  # to a file that is there, and to one that is not yet
        link = tmp_path / f"link to {name}"
        link.symlink_to(folder / name)
        with whole_file(link, text=True) as file:
            file.write("new")
        assert link.is_symlink()
        assert (folder / name).read_text() == "new"
    assert sorted(os.listdir(folder)) == ["fresh.txt", "held.txt"]


def test_what_is_no_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path, word in ((pipe, "a pipe"), (Path("/dev/null"), "a device"), (loop, "a link to itself")):
        before = path.lstat().st_mode
        with pytest.raises(InputError, match=f"is {word}\\. Expected: the path of a file\\."):
            whole_file(path).__enter__()
        assert path.lstat().st_mode == before
    assert sorted(os.listdir(tmp_path)) == ["loop", "pipe"]


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written: File name too long\."):
        whole_file(tmp_path / ("n" * 300)).__enter__()
    with pytest.raises(InputError, match=r"cannot be written: .*null byte"):
        whole_file(f"{tmp_path}/a\0b").__enter__()
    with pytest.raises(InputError, match=r"^the path of a file is 3\."):
        whole_file(3).__enter__()  # type: ignore[arg-type]
