"""One self-contained HTML file of a profile: the same views as in a notebook, with what they draw inside.

It opens from a file with the network off, follows the reader's light or dark setting, works by keyboard, and without
JavaScript shows the stored pictures. What the views draw is compressed; a view that would make the file too large is
stored as its picture.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.base.files import whole_file
from workbench.base.text import markup
from workbench.profiler.profile import Profile, run_text
from workbench.profiler.registry import export
from workbench.profiler.report import Report, face

MAX_BYTES = 3_000_000
_PICTURE_BYTES = 300_000
_LIGHT = "--wb-page:#f3f5f7"
_DARK = (
    "--wb-page:#0c0e10;--wb-alarm:#f0766d;--wb-fine:#4cb782;--jp-ui-font-color0:#f2f4f6;--jp-ui-font-color2:#aab2bb;--jp-border-color2:#343a41;"
    "--jp-layout-color0:#14171a;--jp-layout-color1:#1c2024;--jp-layout-color2:#272c32"
)
_STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    "body{margin:0 auto;padding:20px 24px 40px;max-width:1560px;background:var(--wb-page);"
    "color:var(--jp-ui-font-color0,#16191d);font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "h1{margin:0 0 2px;font-size:20px;font-weight:650}header p{margin:0 0 16px;color:var(--jp-ui-font-color2,#5b636c)}"
    "h2{margin:0 0 6px;font-size:16px}pre{overflow:auto;padding:10px 12px;border-radius:6px;"
    "border:1px solid var(--jp-border-color2,#dfe3e8);"
    "background:var(--jp-layout-color0,#fff);font:12px/1.5 ui-monospace,monospace}"
    "main>section{margin:0 0 16px}img{max-width:100%;height:auto}td,th{padding:2px 10px;text-align:left}"
)

# Heads of views are of the third level, as they are below the heads of a notebook.
_VIEWS = '<h2 style="position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%)">Views</h2>'


@export("html")
def to_html(profile: Profile, path: str | Path) -> Path:
    """Write one self-contained HTML file, whole or not at all; returns the path."""
    with whole_file(path, text=True) as file:
        file.write(page(profile))
    return Path(path)


def page(profile: Profile, besides: Mapping[str, Report] | None = None, code: str = "") -> str:
    """The text of the file of a profile; with reports `besides` its own after its first, and the code that made it."""
    first, *names = face("html").shown(profile)
    subtitle = f"{run_text(profile.meta)}, target {profile.target['name']}; modelled"
    own = {name: getattr(profile, name) for name in names}
    return page_of({first: getattr(profile, first), **(besides or {}), **own}, profile.name, subtitle, code)


def page_of(reports: Mapping[str, Report], title: str, subtitle: str, code: str = "") -> str:
    """The text of a file that shows reports, each by the face of its name, under one another and linked; then code."""
    packed = _fitting({name: _packed(name, report) for name, report in reports.items()})
    text = _written(reports, packed, title, subtitle, code)
    while packed and len(text.encode("utf-8")) > MAX_BYTES:
        packed = _without_largest(packed)
        text = _written(reports, packed, title, subtitle, code)
    return text


def _written(
    reports: Mapping[str, Report], packed: Mapping[str, Mapping[str, str]], title: str, subtitle: str, code: str
) -> str:
    front = face("html")
    drawn = tuple(packed)
    sections = "".join(_section(name, report, name in packed) for name, report in reports.items())
    state = json.dumps(list(packed.values()))
    script = f'{front.script()}\n(await load("kit/offline.js")).start(load, {state});'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>{_policy(script)}'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f"<title>{markup(title)}</title><style>{_STYLE}{front.style(drawn)}</style></head><body>"
        f"<header><h1>{markup(title)}</h1><p>{markup(subtitle)}</p></header><main>{_VIEWS}{sections}{_code(code)}</main>"
        f'<script type="module">{script}</script>'
        "</body></html>\n"
    )


def _policy(script: str) -> str:
    """A content security policy: our own script, which makes its modules as blobs; styles; pictures in the page."""
    hashed = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    rules = (
        "default-src 'none'",
        f"script-src 'sha256-{hashed}' blob:",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}"/>'


def _code(code: str) -> str:
    if not code:
        return ""
    return f'<section id="code"><h2>Code</h2><pre tabindex="0" aria-label="Code">{markup(code)}</pre></section>'


def _section(name: str, report: Report, drawn: bool) -> str:
    stored = face(name).html(report)
    return f'<section id="view-{name}">{f"<noscript>{stored}</noscript>" if drawn else stored}</section>'


def _packed(name: str, report: Report) -> dict[str, str]:
    """State of a view as base64 of gzip: a JSON part, and the buffer."""
    state: dict[str, Any] = dict(face(name).stored(report))
    buffer = state.pop("buffer")
    return {"view": name, "state": _squeezed(json.dumps(state).encode("utf-8")), "buffer": _squeezed(buffer)}


def _squeezed(raw: bytes) -> str:
    return base64.b64encode(gzip.compress(raw, compresslevel=9, mtime=0)).decode("ascii")


def _fitting(packed: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The views whose states fit together; the largest give way to their pictures."""
    left = dict(packed)
    while left and sum(len(part) for state in left.values() for part in state.values()) > MAX_BYTES - _PICTURE_BYTES:
        left = _without_largest(left)
    return left


def _without_largest(packed: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    largest = max(packed, key=lambda name: sum(map(len, packed[name].values())))
    return {name: state for name, state in packed.items() if name != largest}
