"""Results of compiles by content: the same graph, options, target and engine give the same result without work.

The latest few are kept in memory; the profiles of all, for later sessions, on disk: a file each, the least used removed
first. `WORKBENCH_CACHE` is `off` (neither), `memory`, or the folder for the profiles, else the user's cache folder. A
file that cannot be read, or that is of other content than its name says, is removed and counts as not there; a folder
that cannot be written to keeps nothing, of which one warning tells.

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

from workbench.engine.graph.content import content_of
from workbench.errors import ProfileFileError
from workbench.executable.keeping import KEEPER, SUFFIX
from workbench.profiler.schema import column
from workbench.profiler.storage import load_profile

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled
    from workbench.engine.graph import Graph
    from workbench.engine.options import Options
    from workbench.engine.target import Target
    from workbench.profiler.profile import Profile

KEPT = 16  # the programs of a notebook and the candidates of a diagnosis: a second Run All compiles nothing
CALLED_FROM = 10  # in a call of a control tree, where the lines of its callers begin
KEPT_AS = "kept_as"  # in the meta of a file: the key and the positions it was kept with


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a compile depends on: `key`, one digest of it, and beside it `positions`, the model's source lines."""

    key: str
    positions: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Held:
    """A compile of this session, with the profile that was collected of it, if any was, and the file it is kept in."""

    content: Content
    compiled: Compiled
    profile: Profile | None = None
    kept_in: Path | None = None


_kept: OrderedDict[str, Held] = OrderedDict()
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
    text, positions = _content_of(graph)
    parts = (_digest_of("base", "engine"), text, repr(options.changed), repr(target), str(ipus))
    return Content(key=_digest(repr(parts)), positions=positions)


@lru_cache(maxsize=2)  # a slider asks for one graph again and again, a comparison of schedules for two
def _content_of(graph: Graph) -> tuple[str, tuple[str, ...]]:
    """A digest of a graph's text, and its source lines; a graph is what it is, so it is read once."""
    found = content_of(graph)
    return _digest(found.text), found.positions


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def held(content: Content) -> Held | None:
    """The result in memory of this content, with the positions it was made with."""
    with _changing:
        if content.key in _kept:
            _kept.move_to_end(content.key)
        return _kept.get(content.key)


def cached(content: Content, compile: Callable[[], Compiled]) -> Compiled:
    """The result in memory of this content with these positions, else a new one, which is kept.

    What raises keeps nothing.
    """
    known = held(content)
    if known is not None and known.content == content:
        return known.compiled
    result = compile()
    with _changing:
        _kept[content.key] = Held(content, result)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return result


def collected(content: Content | None, compiled: Compiled) -> Profile | None:
    """The profile that was collected of a compile in memory; None where there is none."""
    known = held(content) if content is not None else None
    return known.profile if known is not None and known.compiled.trace is compiled.trace else None


def hold_profile(content: Content | None, compiled: Compiled, profile: Profile) -> None:
    """Hold the profile of a compile as long as that is in memory."""
    known = held(content) if content is not None else None
    if known is not None and known.compiled.trace is compiled.trace:
        known.profile = profile


def clear() -> None:
    """Forget everything in memory, as the end of a session does: what waits to be written is written."""
    written()
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
        KEEPER.write(place)
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
    """Keep a profile for later sessions, where the environment lets it; nothing is kept without its content.

    It is written when nobody works, at the latest at the end of the session (`keeping.py`).
    """
    if content is None or not on_disk():
        return
    known = held(content)
    said = {"key": content.key, "positions": list(content.positions)}
    with contextlib.suppress(RuntimeError):  # a home folder that nobody knows
        place = _place(content)
        if known is not None and known.kept_in == place and KEEPER.has(place):
            return
        KEEPER.keep(place, replace(profile, meta={**profile.meta, KEPT_AS: said}))
        if known is not None:
            known.kept_in = place


def written() -> None:
    """Write the profiles that still wait to be, now."""
    KEEPER.write_all()


def folder() -> Path:
    """Where profiles are kept: the folder `WORKBENCH_CACHE` names, else the user's cache folder."""
    if _asked().lower() not in ("on", "1", "yes", ""):
        return Path(_asked()).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("workbench", appauthor=False)


def _place(content: Content) -> Path:
    digest = hashlib.sha256(f"{content.key}\0{_digest_of('profiler')}".encode()).hexdigest()
    return folder() / f"{digest}{SUFFIX}"
