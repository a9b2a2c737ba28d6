"""Files that are there whole or not at all, whatever stops the writing."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import stat
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from workbench.errors import InputError

STALE_SECONDS = 3_600
_PRIVATE = 0o600


@contextlib.contextmanager
def whole_file(path: str | Path, *, text: bool = False, private: bool = False) -> Iterator[IO[Any]]:
    """Write to a new file beside `path`, then put it in its place: a write that stops leaves the old file whole.

    A link is written through, and a file that was there keeps its mode; where `private`, it is its owner's alone from
    the first byte on. What earlier writes to the same place left behind when they were killed is removed. InputError
    where `path` cannot be a file, and an OSError that names it where it cannot be written to its end.
    """
    with _told(path):
        target = Path(os.path.realpath(path))
        found = _mode_of(target)
        mode = _PRIVATE if private else found
        _remove_stale(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w" if text else "wb", encoding="utf-8" if text else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)  # a temporary file is its owner's alone
        os.replace(name, target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # as of a disk that is full
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def made_folder(path: str | Path, *, private: bool = False) -> Path:
    """The folder, made with those above it where it is not there; InputError where it cannot be one.

    Where `private`, a folder that is made is its owner's alone.
    """
    with _told(path):
        place = Path(path)
        if os.path.lexists(place) and not place.is_dir():
            raise InputError(f"{str(path)!r} is no folder", expected="a folder, or a path that one can be made at")
        place.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o777)
    return place


def write_archive(
    file: IO[bytes],
    members: Iterable[tuple[str, str | bytes]],
    *,
    level: Callable[[str], int | None] = lambda name: None,
) -> None:
    """Write a zip of members by name, deflated; its bytes depend on them alone, not on when it is written.

    `level(name)` says how hard a member is packed, 1 to 9.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, level(name))


def log_file(path: str | Path) -> int:
    """A descriptor of a new file for what another process says: it grows, so it is never whole, and its owner's alone.

    The caller closes it. InputError where `path` cannot be a file.
    """
    made_folder(Path(path).parent)
    with _told(path):
        _mode_of(Path(path))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), _PRIVATE)
        os.chmod(handle, _PRIVATE)
    return handle


def refuse_no_file(path: str | Path) -> None:
    """An InputError where `whole_file` would raise one, before there is anything to write."""
    with _told(path):
        target = Path(os.path.realpath(path))
        _mode_of(target)
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def _told(path: Any) -> Iterator[None]:
    """What a system says of a path, as an InputError."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"the path of a file is {path!r}", expected="a text or a pathlib.Path")
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r} cannot be written: {why}", todo="give another path") from error


def _mode_of(target: Path) -> int:
    """The mode a file shall have: that of the one that is there, else what new files get."""
    if not target.parent.is_dir():
        raise InputError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} to",
            expected="a folder that exists",
            todo="make the folder first, or give another path",
        )
    if target.is_dir():
        raise InputError(
            f"{str(target)!r} is a folder", expected="the path of a file", todo="add the file's name to the path"
        )
    if not os.path.lexists(target):
        return 0o666 & ~_umask()
    found = target.lstat().st_mode
    if not stat.S_ISREG(found):
        kind = next((word for test, word in _KINDS if test(found)), "no file")
        raise InputError(
            f"{str(target)!r} is {kind}", expected="the path of a file", todo="write to a file, and copy it from there"
        )
    return stat.S_IMODE(found)


_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a link to itself"),
)


def _remove_stale(target: Path) -> None:
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                part.unlink()


def _umask() -> int:
    """What the user takes away from new files; it can only be read by setting it."""
    now = os.umask(0o022)
    os.umask(now)
    return now
