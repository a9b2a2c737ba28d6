"""Compiles cached by content: the same graph, options, target and engine give the same result without work.

The latest few are kept in memory, the profiles of all on disk (`disk_cache`). `WORKBENCH_CACHE` is `off` (neither),
`memory`, or the folder for the profiles.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled
    from workbench.engine.graph import Graph
    from workbench.engine.options import Options
    from workbench.engine.target import Target

KEPT = 16  # the programs of a notebook and the candidates of a diagnosis: a second Run All compiles nothing
_kept: OrderedDict[str, Compiled] = OrderedDict()


def enabled() -> bool:
    """Whether the environment leaves the cache on."""
    return os.environ.get("WORKBENCH_CACHE", "on").lower() not in ("off", "0", "no")


def on_disk() -> bool:
    """Whether the environment lets profiles be kept for later sessions."""
    return enabled() and os.environ.get("WORKBENCH_CACHE", "on").lower() != "memory"


def holds(key: str) -> bool:
    """Whether memory has the result of this content."""
    return key in _kept


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """A digest of the engine's own source: another engine is another result."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parents[1] / "engine").rglob("*")):
        if path.suffix in (".py", ".json"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def key_of(graph: Graph, options: Options, target: Target, ipus: int) -> str:
    """The content a compile depends on, as one digest."""
    about = (graph.inputs, graph.outputs, graph.batch_size, graph.mode, graph.assumptions, graph.meta)
    parts = (engine_digest(), str(graph), repr(about), repr(options.changed), repr(target), str(ipus))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cached(key: str, compile: Callable[[], Compiled]) -> Compiled:
    """The kept result of this content, else a new one, which is kept; what raises keeps nothing."""
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    result = _kept[key] = compile()
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return result


def clear() -> None:
    """Forget everything kept."""
    _kept.clear()
