"""A file is there whole or not at all."""

from __future__ import annotations

import ast
import errno
import os
import stat
from pathlib import Path

import pytest

import workbench
from workbench.base.files import made_folder, whole_file
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


def _full(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half of the n")
        raise OSError(errno.ENOSPC, "as a system says it of a write")


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path) -> None:
    """What a system says of a write names no file."""
    path = tmp_path / "a.bin"
    with pytest.raises(OSError, match="No space left on device") as caught:
        _full(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert os.listdir(tmp_path) == []


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


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    made = made_folder(tmp_path / "a" / "b", private=True)
    assert made.is_dir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert made_folder(made) == made  # it may be there
    made_folder(tmp_path / "c")
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o777 & ~_umask()


def test_a_folder_where_something_else_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for path in (tmp_path / "file", tmp_path / "file" / "inner"):
        with pytest.raises(InputError, match="file"):
            made_folder(path)
    assert (tmp_path / "file").read_text() == "here"


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


PACKAGE = Path(workbench.__path__[0])
# Ways to write, to make and to replace that are not `whole_file`, `made_folder` and `log_file`.
WAYS = {
    *("write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "replace", "symlink_to", "hardlink_to"),
    *("mkstemp", "NamedTemporaryFile", "savez", "savez_compressed", "tofile", "write_html", "write_image", "dump"),
    *("copy", "copyfile", "copytree", "move"),
}
OF_FILES = {"os", "shutil", "tempfile", "np", "numpy", "json", "Path", "pickle"}
ELSEWHERE = {
    "cli/terminal.py": "os.open(os.devnull, os.O_WRONLY), in place of a pipe that was closed",
}


def _writes(source: str) -> list[str]:
    """Calls in a source that open a file to write, or make, replace or move one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        of = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
        words = [each.value for each in [*node.args, *(word.value for word in node.keywords)] if _is_text(each)]
        to_write = any(set(word) & set("wax+") and len(word) < 4 for word in words)
        if name in ("open", "fdopen") and (of == "os" or to_write):
            found.append(ast.unparse(node))
        if name in ("write_text", "write_bytes", "mkdir", "mkstemp", "NamedTemporaryFile", "write_html"):
            found.append(ast.unparse(node))
        if name in WAYS and of in OF_FILES:
            found.append(ast.unparse(node))
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_files_are_written_in_one_place() -> None:
    """What is whole or not at all is so everywhere, because nothing else writes."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        written = _writes(path.read_text(encoding="utf-8"))
        if written and name != "base/files.py":
            found[name] = "; ".join(written)
    assert set(found) == set(ELSEWHERE), found
    assert all(found[name].split("(")[0] in ELSEWHERE[name] for name in found)


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("open(path, 'w')", True),
        ("path.open(mode='xb')", True),
        ("open(path)", False),
        ("path.open('rb')", False),
        ("Path(name).write_text('')", True),
        ("os.replace(a, b)", True),
        ("text.replace('a', 'b')", False),
        ("np.savez(path, a=1)", True),
        ("json.dump({}, file)", True),
        ("os.open(path, flags)", True),
        ("folder.mkdir()", True),
        ("shutil.copy(a, b)", True),
        ("array.copy()", False),
    ],
)
def test_a_writer_elsewhere_would_be_found(source: str, is_one: bool) -> None:
    assert bool(_writes(source)) == is_one
