"""Profiles of earlier sessions, by content: one file each in the user's cache folder, the least used removed first.

`WORKBENCH_CACHE` names another folder (see `cache`). A file that cannot be read is removed and counts as not there.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ProfileFileError
from workbench.profiler.storage import load_profile, save_profile

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

MOST_BYTES = 1 << 30  # of all files together: a thousand profiles of a large model
SUFFIX = ".wbprofile"


def folder() -> Path:
    """Where profiles are kept: the folder `WORKBENCH_CACHE` names, else the user's cache folder."""
    named = os.environ.get("WORKBENCH_CACHE", "on")
    if named.lower() not in ("on", "1", "yes", ""):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("workbench", appauthor=False)


@lru_cache(maxsize=1)
def profiler_digest() -> str:
    """A digest of what makes a profile of a compiled program: another one makes another profile."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parents[1] / "profiler").rglob("*")):
        if path.suffix in (".py", ".json"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _place(key: str) -> Path:
    return folder() / (hashlib.sha256(f"{key}\0{profiler_digest()}".encode()).hexdigest() + SUFFIX)


def find(key: str) -> Profile | None:
    """The profile kept for a key, or None."""
    place = _place(key)
    try:
        found = load_profile(place)
        os.utime(place)
    except ProfileFileError:
        place.unlink(missing_ok=True)
        return None
    except OSError:
        return None
    return found


def keep(key: str, profile: Profile) -> None:
    """Keep a profile; a folder that cannot be written to keeps nothing."""
    place = _place(key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save_profile(profile, place)
        _remove_oldest(place.parent, place)
    except OSError:
        return


def _remove_oldest(where: Path, newest: Path) -> None:
    kept = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in where.glob(f"*{SUFFIX}"))
    total_bytes = sum(size for _, size, _ in kept)
    for _, size, path in kept:
        if total_bytes <= MOST_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total_bytes -= size
