"""The lines a user types to compile what was asked for: the configuration first, then the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.base.text import literal
from workbench.profiler.advice.levers import Change

LONGEST_LINE = 60
_KEYS = ".poplar_options."
_ENGINE = "opt."  # names of Poplar's engine options that are read
_CALL_OPTIONS = {
    "pipeline.schedule": "pipeline_schedule",
    "pipeline.gradient_accumulation_steps": "gradient_accumulation_steps",
}
_ARGUMENTS = ("mode", "batch_size", "optimizer", "loss", "precision", "stages", "replicas")
_ABSENT = {"replicas": 1}  # what an argument is that nobody gave, where that is not None
# Options that a configuration has no attribute for: names of the argument `offload`.
_OFFLOADED = {
    "pipeline.offload_weights": "weights",
    "pipeline.offload_activations": "activations",
    "pipeline.offload_weight_update_variables": "optimizer_state",
    "pipeline.offload_gradient_accumulation_buffers": "gradient_accumulation_buffers",
    "pipeline.optimizer_state_sharding": "optimizer_state_to_replicas",
    "pipeline.replicated_optimizer_state_sharding": "optimizer_state_to_replicas",
}
_RECOMPUTED, _MODE, _CHECKPOINTS = (
    "allow_recompute",
    "pipeline.recomputation_mode",
    "pipeline.recomputation_checkpoints",
)
_CALLED = (*_CALL_OPTIONS, *_OFFLOADED, _RECOMPUTED, _MODE, _CHECKPOINTS, "pipeline.device_mapping")
_MEMBERS = {"scheduling.algorithm": "SchedulingAlgorithm"}  # options that are members of an enumeration of ipu.config


def assignment(name: str, value: Any) -> str:
    """`config.matmuls.poplar_options["partialsType"] = "half"` and the like."""
    if name.startswith(_ENGINE):
        return f"config.compilation_poplar_options[{literal(name)}] = {literal(value)}"
    owner, found, key = name.partition(_KEYS)
    place = f"config.{owner}.poplar_options[{literal(key)}]" if found else f"config.{name}"
    written = f"{_MEMBERS[name]}.{value}" if name in _MEMBERS else literal(value)
    return f"{place} = {written}"


def source_text(source: Any, variable: str = "") -> str:
    """How a source is written in a call: a ready name, `wb.ready(...)`, or the variable that holds it.

    Where nobody knows that one, it is named `model`.
    """
    if isinstance(source, str):
        return literal(source)
    size = getattr(source, "size", None)
    if isinstance(size, tuple) and size and isinstance(getattr(source, "name", None), str):
        return f"wb.ready({', '.join([literal(source.name), *(f'{key}={value!r}' for key, value in size)])})"
    return variable or "model"


def code_of(change: Change, request: Any = None) -> str:
    """What to type for a change; without a request, the changed options and arguments alone."""
    if request is not None:
        return request_code(change.applied(request))
    lines = [assignment(name, value) for name, value in change.options if name not in _CALLED]
    if lines:
        lines = [*_new_config(name for name, _ in change.options), *lines]
    call = {name: literal(value) for name, value in change.arguments} | _called(dict(change.options))
    return "\n".join([*lines, _call("model", call, with_config=bool(lines))])


def request_code(request: Any, variable: str = "") -> str:
    """What to type for a request, or the like of one, whose source the notebook's `variable` holds.

    Variables it takes for granted: that one (`model` where it is not known), and `target`, `optimizer`, `loss`,
    `stages` and `inputs` where the compile was given them as objects; `config` where it holds what no plain value says.
    """
    changed = [(name, value) for name, value in request.options.changed if name not in _CALLED]
    lines = [assignment(name, value) for name, value in changed if _is_plain(name, value)]
    if lines and len(lines) == len(changed):
        lines = [*_new_config(name for name, _ in changed), *lines]
    arguments = ["*inputs"] if request.inputs else []
    call = _call(source_text(request.source, variable), _given(request), with_config=bool(changed), more=arguments)
    return "\n".join([*lines, call])


def _new_config(names: Iterable[str]) -> list[str]:
    """The lines that make a configuration; with the enumerations that these options take."""
    members = sorted({_MEMBERS[name] for name in names if name in _MEMBERS})
    return [f"from workbench.ipu.config import {', '.join(['IPUConfig', *members])}", "", "config = IPUConfig()"]


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
    known = _KEYS in name or name in _MEMBERS or name.startswith((_ENGINE, "ipu_model."))
    return known or isinstance(value, bool | int | float)


def _given(request: Any) -> dict[str, str]:
    """The arguments a request was made with, as source."""
    call = {}
    for name in _ARGUMENTS:
        value = getattr(request, name)
        if value is not None and value != _ABSENT.get(name):
            call[name] = literal(value) if isinstance(value, int | str | list) else name
    call |= _called(dict(request.options.changed))
    if request.target_text:
        call["target"] = request.target_text
    return call


def _called(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that are arguments of a call, as source."""
    call = {argument: literal(options[option]) for option, argument in _CALL_OPTIONS.items() if option in options}
    if options.get(_RECOMPUTED):
        call["recomputation"] = literal(options.get(_MODE, True))
    if options.get(_CHECKPOINTS):
        call["recomputation_checkpoints"] = literal(tuple(_several(options[_CHECKPOINTS])))
    if options.get("pipeline.device_mapping"):
        call["device_mapping"] = literal(list(_several(options["pipeline.device_mapping"])))
    offloaded = dict.fromkeys(name for option, name in _OFFLOADED.items() if options.get(option))
    if offloaded:
        call["offload"] = literal(tuple(offloaded))
    return call


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
