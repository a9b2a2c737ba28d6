"""The lines a user types to compile with a change: the configuration first, then the call."""

from __future__ import annotations

from typing import Any

from workbench.profiler.levers import Change

_KEYS = ".poplar_options."
_CALL_OPTIONS = {
    "pipeline.schedule": "pipeline_schedule",
    "pipeline.gradient_accumulation_steps": "gradient_accumulation_steps",
}
_ARGUMENTS = ("mode", "batch_size", "optimizer", "loss", "precision", "stages", "gradient_accumulation_steps")


def assignment(name: str, value: Any) -> str:
    """`config.matmuls.poplar_options["partialsType"] = "half"` and the like."""
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
    if isinstance(size, tuple) and isinstance(getattr(source, "name", None), str):
        return f"wb.ready({', '.join([literal(source.name), *(f'{key}={value!r}' for key, value in size)])})"
    return "model"


def code_of(change: Change, request: Any = None) -> str:
    """What to type for a change. Without a request: the changed options and arguments alone.

    Variables it takes for granted: `model`, and `config`, `target`, `optimizer`, `loss`, `stages` and `inputs` where
    the compile was given them as objects.
    """
    before = [] if request is None else [name for name, _ in request.options.changed if name not in _CALL_OPTIONS]
    lines = [assignment(name, value) for name, value in change.options]
    if lines and not before:
        lines = ["from workbench.ipu.config import IPUConfig", "", "config = IPUConfig()", *lines]
    call = {**_given(request), **{name: literal(value) for name, value in change.arguments}}
    if change.options or before:
        call = {"config": "config", **call}
    source = "model" if request is None else source_text(request.source)
    inputs = ["*inputs"] if getattr(request, "inputs", ()) else []
    arguments = ", ".join([source, *inputs, *(f"{name}={value}" for name, value in call.items())])
    return "\n".join([*lines, f"executable = wb.compile({arguments})"])


def _given(request: Any) -> dict[str, str]:
    """The arguments a request was made with, as source."""
    if request is None:
        return {}
    call = {}
    for name in _ARGUMENTS:
        value = getattr(request, name)
        if value is None or (name == "gradient_accumulation_steps" and value == 1):
            continue
        call[name] = literal(value) if isinstance(value, int | str) else name
    if request.target.what_if:
        call["target"] = "target"
    schedule = dict(request.options.changed).get("pipeline.schedule")
    return {**call, "pipeline_schedule": literal(schedule)} if schedule else call
