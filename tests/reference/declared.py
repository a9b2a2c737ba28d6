"""The reference out of the declarations: every option, and every public name with its signature and its docstring."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import workbench as wb
from workbench.base.text import literal
from workbench.engine.options import OPTIONS, Option
from workbench.executable.configured import text_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import exports, methods, reports

ROOT = Path(__file__).parents[2]
DATA = ROOT / "workbench" / "widgets" / "app" / "reference" / "reference.json"
PAGE = ROOT / "docs" / "reference.md"
# Where a module that reads an option stands on the trip of a model.
PHASES = {
    "ipu/": "configuration",
    "executable/": "request",
    "engine/frontends/": "tracing",
    "engine/passes/": "graph passes",
    "engine/planner": "planning",
    "engine/ops/": "lowering",
    "engine/lower/": "lowering",
    "engine/compile/": "the whole compile",
}
NEVER = "no value beside the default changes the bytes or cycles of the programs that were tried"


def reference(examples: dict[str, Any]) -> dict[str, Any]:
    """All of it as JSON data, with the examples that were measured."""
    return {
        "options": [option(each, examples) for each in ordered()],
        "api": sorted(api(), key=lambda each: each["name"]),
    }


def ordered() -> list[Option]:
    """The options that can be set, those that act first, by name."""
    found = [each for each in OPTIONS.values() if each.kind != "dictionary"]
    return sorted(found, key=lambda each: (each.effect == "recorded", each.name))


def option(each: Option, examples: dict[str, Any]) -> dict[str, Any]:
    """One option."""
    return {
        "name": each.name,
        "default": text_of(each.default) or "none",
        "takes": takes(each),
        "effect": each.status,
        "phase": ", ".join(phases(each)) or "none",
        "doc": each.doc,
        "reason": each.reason,
        "example": examples.get(each.name),
    }


def takes(each: Option) -> str:
    """The values of an option in words."""
    if each.choices:
        kind = f"one of {', '.join(map(text_of, each.choices))}"
    else:
        kind = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}.get(each.type, "values")
    bounds = each.range_text.replace(" and ", ", ")
    return ", ".join(part for part in (kind, bounds, "or several" if each.many else "") if part)


def phases(each: Option) -> list[str]:
    """Where a compile reads it, in the order of the trip."""
    found = {phase for start, phase in PHASES.items() for read in each.read_by if f"{read}/".startswith(start)}
    return [phase for phase in dict.fromkeys(PHASES.values()) if phase in found]


def api() -> Iterator[dict[str, str]]:
    """The public names of the package, of a profile, and its reports and exports."""
    for name in wb.__all__:
        value = getattr(wb, name)
        yield entry(f"wb.{name}", value)
    for name, value in vars(Profile).items():
        if not name.startswith("_") and (callable(value) or hasattr(value, "__get__")):
            made = getattr(value, "fget", None) or getattr(value, "func", None) or value
            yield entry(f"profile.{name}", made, called=made is value)
    for name, value in reports.items():
        yield entry(f"profile.{name}", value, called=False)
    for table, prefix in ((methods, "profile."), (exports, "profile.to_")):
        for name, value in table.items():
            if not (prefix == "profile." and name.startswith("to_")):
                yield entry(f"{prefix}{name}", value)


def entry(name: str, value: Any, *, called: bool = True) -> dict[str, str]:
    """A name with its signature, where it is called, and what it says of itself."""
    written = name
    if called and callable(value) and not inspect.ismodule(value):
        written += signature(value)
    return {"name": name, "signature": written, "doc": inspect.getdoc(value) or ""}


def signature(value: Callable[..., Any]) -> str:
    """Names and defaults of the parameters, without types: those stand in the docstring and in the editor."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = [each.replace(annotation=each.empty) for each in parameters if each.name not in ("self", "profile")]
    texts = [
        str(each) if each.default is each.empty else f"{each.name}={literal(each.default) if _plain(each) else '...'}"
        for each in shown
    ]
    star = next((place for place, each in enumerate(shown) if each.kind is each.KEYWORD_ONLY), None)
    if star is not None and not any(each.kind is each.VAR_POSITIONAL for each in shown):
        texts.insert(star, "*")
    return f"({', '.join(texts)})"


def _plain(each: inspect.Parameter) -> bool:
    return isinstance(each.default, bool | int | float | str | tuple | None)


def stored() -> dict[str, Any]:
    """The committed reference."""
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def data_text(found: dict[str, Any]) -> str:
    """The reference as it is committed."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def page_text(found: dict[str, Any]) -> str:
    """The page."""
    lines = [
        "# Reference",
        "",
        "Written by `make reference` out of the declarations; the app shows the same behind `?`. Bytes are those of",
        "the fullest tile and cycles those of one call, both modelled, of the program that an example names.",
        "",
        f"## Options ({len(found['options'])})",
        "",
        "Attributes of `IPUConfig` by dotted names; those under `pipeline.` are written by arguments of `wb.compile`.",
        "",
    ]
    for each in found["options"]:
        lines += [f"### `{each['name']}`", "", each["doc"], ""]
        lines += [f"- default: `{each['default']}`; takes {each['takes']}"]
        lines += [f"- effect: {each['effect']}; read in: {each['phase']}"]
        lines += [f"- {each['reason']}"] if each["reason"] else [f"- example: {example_text(each['example'])}"]
        lines += [""]
    lines += [f"## Names ({len(found['api'])})", ""]
    for each in found["api"]:
        lines += [f"### `{each['name']}`", ""]
        lines += [f"`{each['signature']}`", ""] if each["signature"] != each["name"] else []
        lines += [each["doc"], ""]
    return "\n".join(lines)


def example_text(found: dict[str, Any] | None) -> str:
    """An example in a line."""
    if found is None:
        return NEVER
    parts = [
        f"{first:,} to {second:,} {unit}" if first != second else f"the same {unit}"
        for unit, (first, second) in (("bytes", found["bytes"]), ("cycles", found["cycles"]))
    ]
    return f"`{found['value']}` in {found['program']}: {', '.join(parts)}"
