"""Results of compiles by content: the same graph, options, target and engine give the same result without work.

The latest few are kept in memory; the profiles of all, for later sessions, on disk: a file each, the least used removed
first. `WORKBENCH_CACHE` is `off` (neither), `memory`, or the folder for the profiles, else the user's cache folder. A
file that cannot be read is removed and counts as not there; a folder that cannot be written to keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ProfileFileError
from workbench.profiler.storage import load_profile, save_profile

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled
    from workbench.engine.graph import Graph
    from workbench.engine.options import Options
    from workbench.engine.target import Target
    from workbench.profiler.profile import Profile

KEPT = 16  # the programs of a notebook and the candidates of a diagnosis: a second Run All compiles nothing
MOST_BYTES = 1 << 30  # of all files together: a thousand profiles of a large model
SUFFIX = ".wbprofile"
_kept: OrderedDict[str, Compiled] = OrderedDict()


def _asked() -> str:
    return os.environ.get("WORKBENCH_CACHE", "on")


def enabled() -> bool:
    """Whether the environment leaves the cache on."""
    return _asked().lower() not in ("off", "0", "no")


def on_disk() -> bool:
    """Whether the environment lets profiles be kept for later sessions."""
    return enabled() and _asked().lower() != "memory"


@lru_cache(maxsize=2)
def _digest_of(*rooms: str) -> str:
    """A digest of the source of rooms: another engine is another result, another profiler another profile."""
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((Path(__file__).parents[1] / room).rglob("*")):
            if path.suffix in (".py", ".json"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def key_of(graph: Graph, options: Options, target: Target, ipus: int) -> str:
    """The content a compile depends on, as one digest."""
    about = (graph.inputs, graph.outputs, graph.batch_size, graph.mode, graph.assumptions, graph.meta)
    parts = (_digest_of("base", "engine"), str(graph), repr(about), repr(options.changed), repr(target), str(ipus))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cached(key: str, compile: Callable[[], Compiled]) -> Compiled:
    """The result of this content in memory, else a new one, which is kept; what raises keeps nothing."""
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    result = _kept[key] = compile()
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return result


def clear() -> None:
    """Forget everything in memory."""
    _kept.clear()


def earlier_profile(key: str) -> Profile | None:
    """The profile an earlier session kept of this content; None where memory has the whole result."""
    if key in _kept or not on_disk():
        return None
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


def keep_profile(key: str, profile: Profile) -> None:
    """Keep a profile for later sessions, where the environment lets it; the key "" keeps nothing."""
    if not key or not on_disk():
        return
    place = _place(key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save_profile(profile, place)
        _remove_oldest(place.parent, place)
    except OSError:
        return


def folder() -> Path:
    """Where profiles are kept: the folder `WORKBENCH_CACHE` names, else the user's cache folder."""
    if _asked().lower() not in ("on", "1", "yes", ""):
        return Path(_asked()).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("workbench", appauthor=False)


def _place(key: str) -> Path:
    return folder() / (hashlib.sha256(f"{key}\0{_digest_of('profiler')}".encode()).hexdigest() + SUFFIX)


def _remove_oldest(where: Path, newest: Path) -> None:
    kept = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in where.glob(f"*{SUFFIX}"))
    total_bytes = sum(size for _, size, _ in kept)
    for _, size, path in kept:
        if total_bytes <= MOST_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total_bytes -= size
