"""The JavaScript and the styles of the widgets, as they stand in their files: nothing is joined, cut or made smaller.

anywidget gives every widget one text of JavaScript, and a text cannot import a file. So all modules travel once, as
the state of one widget (library.py), whose script makes real modules of them in the page; a view carries a stub of
a few lines that asks for the module of its name. A module may import any other by relative path; imports stand at the
top of a module.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from workbench.errors import InputError

FOLDER = Path(__file__).parents[1]
# What brings the others is not brought itself.
_CARRIERS = ("kit/library.js", "kit/stub.js")


def text(path: str) -> str:
    """A file of the widgets by its path in their folder: `"kit/kernel.js"`."""
    return (FOLDER / path).read_text(encoding="utf-8")


@cache
def sources() -> Mapping[str, str]:
    """Every module by its path, as it stands in its file."""
    paths = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))
    return {path: text(path) for path in paths if path not in _CARRIERS}


@cache
def packed() -> bytes:
    """All the sources by path, as gzip of JSON."""
    return gzip.compress(json.dumps(dict(sources())).encode("utf-8"), compresslevel=6, mtime=0)


@cache
def digest() -> str:
    """The hash of all the sources: pages tell libraries of two versions apart by it."""
    made = hashlib.sha256(json.dumps([text(_CARRIERS[0]), sources()], sort_keys=True).encode("utf-8"))
    return made.hexdigest()[:16]


def stub(path: str) -> str:
    """The JavaScript of one widget, which draws with the module at `path` of the page's library."""
    if path not in sources():
        raise InputError(
            f"there is no script {path!r} for this view",
            expected="a .js of the same name beside the file of the view, which exports {render}",
            todo=f"write {FOLDER / path}",
        )
    return text("kit/stub.js").replace('"DIGEST"', json.dumps(digest())).replace('"PATH"', json.dumps(path))


def script() -> str:
    """A module script for a stored page: `load(path)` gives a module, as in a notebook."""
    # A page ends its script at the first "</", wherever it stands.
    brought = json.dumps(sources()).replace("</", "<\\/")
    return f"{text('kit/library.js')}\nconst load = loader({brought});"


def style(*paths: str) -> str:
    """The shared style followed by those of widgets, by their paths without ending; not all have one."""
    files = [FOLDER / f"{path}.css" for path in ("kit/kernel", *paths)]
    return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
