"""Results of compiles by content: the same graph, options, target and engine give the same result without work.

The latest few are kept in memory; the profiles of all, for later sessions, on disk: a file each, the least used removed
first. `WORKBENCH_CACHE` is `off` (neither), `memory`, or the folder for the profiles, else the user's cache folder. A
file that cannot be read, or that is of other content than its name says, is removed and counts as not there; a folder
that cannot be written to keeps nothing.

Source lines are outside the content: what is kept says whose lines it has, and those of the model at hand are laid over
it when it is taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from workbench.base.files import made_folder
from workbench.engine.graph.content import content_of
from workbench.errors import InputError, ProfileFileError
from workbench.profiler.schema import column
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
CALLED_FROM = 10  # in a call of a control tree, where the lines of its callers begin
KEPT_AS = "kept_as"  # in the meta of a file: the key and the positions it was kept with


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a compile depends on: `key`, one digest of it, and beside it `positions`, the model's source lines."""

    key: str
    positions: tuple[str, ...] = ()


_kept: OrderedDict[str, tuple[Content, Compiled]] = OrderedDict()
_changing = threading.Lock()


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


def content(graph: Graph, options: Options, target: Target, ipus: int) -> Content:
    """The content a compile depends on."""
    found = content_of(graph)
    parts = (_digest_of("base", "engine"), found.text, repr(options.changed), repr(target), str(ipus))
    key = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return Content(key=key, positions=found.positions)


def held(content: Content) -> tuple[Content, Compiled] | None:
    """The result in memory of this content, and the content with the positions it was made with."""
    with _changing:
        if content.key in _kept:
            _kept.move_to_end(content.key)
        return _kept.get(content.key)


def cached(content: Content, compile: Callable[[], Compiled]) -> Compiled:
    """The result in memory of this content with these positions, else a new one, which is kept.

    What raises keeps nothing.
    """
    known = held(content)
    if known is not None and known[0] == content:
        return known[1]
    result = compile()
    with _changing:
        _kept[content.key] = (content, result)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return result


def clear() -> None:
    """Forget everything in memory."""
    with _changing:
        _kept.clear()


def laid_over(profile: Profile, old: tuple[str, ...], new: tuple[str, ...]) -> Profile:
    """A profile of equal content with other source lines: `new` in the places of `old`."""
    if old == new:
        return profile
    lines, steps = dict(zip(old, new, strict=True)), profile.tables["steps"]
    source = column([lines.get(line, line) for line in steps["source"].tolist()], "U")
    trace = profile.meta["trace"]
    functions = {name: _moved(body, lines) for name, body in trace["functions"].items()}
    meta = {**profile.meta, "trace": {**trace, "entry": _moved(trace["entry"], lines), "functions": functions}}
    return replace(profile, meta=meta, tables={**profile.tables, "steps": {**steps, "source": source}})


def _moved(node: list[Any], lines: dict[str, str]) -> list[Any]:
    """A node of a control tree with other lines of those for whom shared bodies are called."""
    if node and node[0] == "call":
        return [*node[:CALLED_FROM], *(lines.get(line, line) for line in node[CALLED_FROM:])]
    return [_moved(part, lines) if isinstance(part, list) else part for part in node]


def earlier_profile(content: Content) -> Profile | None:
    """The profile an earlier session kept of this content, with the source lines of now; None where there is none."""
    if not on_disk():
        return None
    place = _place(content)
    try:
        if not place.is_file():  # neither there, nor a pipe that would be waited for
            return None
        found = _believed(load_profile(place), content)
        os.utime(place)
    except ProfileFileError:
        with contextlib.suppress(OSError):
            place.unlink(missing_ok=True)
        return None
    except (OSError, RuntimeError):
        return None
    return found


def _believed(profile: Profile, content: Content) -> Profile:
    """A profile from a file, when the file says that it is of this content; else it is no profile of ours."""
    said = profile.meta.get(KEPT_AS)
    if not isinstance(said, dict) or said.get("key") != content.key:
        raise ProfileFileError("the file is of other content than its name says")
    old = said.get("positions")
    if not _are_lines(old) or len(old) != len(content.positions):
        raise ProfileFileError("the file says other source lines than its content has")
    plain = replace(profile, meta={name: value for name, value in profile.meta.items() if name != KEPT_AS})
    return laid_over(plain, tuple(old), content.positions)


def _are_lines(old: Any) -> TypeGuard[list[str]]:
    """Whether what a file says of its source lines is that: different texts."""
    return isinstance(old, list) and all(isinstance(line, str) for line in old) and len(set(old)) == len(old)


def keep_profile(content: Content | None, profile: Profile) -> None:
    """Keep a profile for later sessions, where the environment lets it; nothing is kept without its content."""
    if content is None or not on_disk():
        return
    said = {"key": content.key, "positions": list(content.positions)}
    try:
        place = _place(content)
        made_folder(place.parent, private=True)
        save_profile(replace(profile, meta={**profile.meta, KEPT_AS: said}), place)
        _remove_oldest(place.parent, place)
    except (OSError, RuntimeError, InputError):
        return


def folder() -> Path:
    """Where profiles are kept: the folder `WORKBENCH_CACHE` names, else the user's cache folder."""
    if _asked().lower() not in ("on", "1", "yes", ""):
        return Path(_asked()).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("workbench", appauthor=False)


def _place(content: Content) -> Path:
    digest = hashlib.sha256(f"{content.key}\0{_digest_of('profiler')}".encode()).hexdigest()
    return folder() / f"{digest}{SUFFIX}"


def _remove_oldest(where: Path, newest: Path) -> None:
    kept = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in where.glob(f"*{SUFFIX}"))
    total_bytes = sum(size for _, size, _ in kept)
    for _, size, path in kept:
        if total_bytes <= MOST_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total_bytes -= size
