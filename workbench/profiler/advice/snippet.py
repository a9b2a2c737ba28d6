"""The lines a user types to compile what was asked for: the configuration first, then the call."""

from __future__ import annotations

from typing import Any

from workbench.profiler.advice.levers import Change

LONGEST_LINE = 60
_KEYS = ".poplar_options."
_ENGINE = "opt."  # names of Poplar's engine options that are read
_CALL_OPTIONS = {
    "pipeline.schedule": "pipeline_schedule",
    "pipeline.gradient_accumulation_steps": "gradient_accumulation_steps",
}
_ARGUMENTS = ("mode", "batch_size", "optimizer", "loss", "precision", "stages")
_NEW_CONFIG = ["from workbench.ipu.config import IPUConfig", "", "config = IPUConfig()"]


def assignment(name: str, value: Any) -> str:
    """`config.matmuls.poplar_options["partialsType"] = "half"` and the like."""
    if name.startswith(_ENGINE):
        return f'config.compilation_poplar_options["{name}"] = {literal(value)}'
    owner, found, key = name.partition(_KEYS)
    place = f'config.{owner}.poplar_options["{key}"]' if found else f"config.{name}"
    return f"{place} = {literal(value)}"


def literal(value: Any) -> str:
    """A value as Python source; text in double quotes."""
    return f'"{value}"' if isinstance(value, str) and '"' not in value else repr(value)


def source_text(source: Any) -> str:
    """How a source is written in a call: a ready name, `wb.ready(...)`, or the variable `model`."""
    if isinstance(source, str):
        return literal(source)
    size = getattr(source, "size", None)
    if isinstance(size, tuple) and size and isinstance(getattr(source, "name", None), str):
        return f"wb.ready({', '.join([literal(source.name), *(f'{key}={value!r}' for key, value in size)])})"
    return "model"


def code_of(change: Change, request: Any = None) -> str:
    """What to type for a change; without a request, the changed options and arguments alone."""
    if request is not None:
        return request_code(change.applied(request))
    lines = [assignment(name, value) for name, value in change.options]
    if lines:
        lines = [*_NEW_CONFIG, *lines]
    call = {name: literal(value) for name, value in change.arguments}
    return "\n".join([*lines, _call("model", call, with_config=bool(lines))])


def request_code(request: Any) -> str:
    """What to type for a request, or the like of one.

    Variables it takes for granted: `model`, and `target`, `optimizer`, `loss`, `stages` and `inputs` where the compile
    was given them as objects; `config` where it holds what no plain value says.
    """
    changed = [(name, value) for name, value in request.options.changed if name not in _CALL_OPTIONS]
    lines = [assignment(name, value) for name, value in changed if _is_plain(name, value)]
    if lines and len(lines) == len(changed):
        lines = [*_NEW_CONFIG, *lines]
    arguments = ["*inputs"] if request.inputs else []
    call = _call(source_text(request.source), _given(request), with_config=bool(changed), more=arguments)
    return "\n".join([*lines, call])


def _call(source: str, arguments: dict[str, str], *, with_config: bool, more: list[str] | None = None) -> str:
    given = [*(more or []), *(["config=config"] if with_config else [])]
    parts = [source, *given, *(f"{name}={value}" for name, value in arguments.items())]
    line = f"executable = wb.compile({', '.join(parts)})"
    return (
        line
        if len(line) <= LONGEST_LINE
        else "\n".join(["executable = wb.compile(", *map("    {},".format, parts), ")"])
    )


def _is_plain(name: str, value: Any) -> bool:
    """Whether an option is assigned as a plain value; others are members of enumerations, or lists."""
    return _KEYS in name or name.startswith((_ENGINE, "ipu_model.")) or isinstance(value, bool | int | float)


def _given(request: Any) -> dict[str, str]:
    """The arguments a request was made with, as source."""
    call = {}
    for name in _ARGUMENTS:
        value = getattr(request, name)
        if value is not None:
            call[name] = literal(value) if isinstance(value, int | str | list) else name
    for option, value in request.options.changed:
        if option in _CALL_OPTIONS:
            call[_CALL_OPTIONS[option]] = literal(value)
    if request.target.what_if and not any(name == "ipu_model.tiles_per_ipu" for name, _ in request.options.changed):
        call["target"] = "target"
    return call
