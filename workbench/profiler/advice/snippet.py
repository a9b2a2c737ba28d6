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
    "profile.execution": "execution_profile",
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
# Options that are members of an enumeration of ipu.config, which takes no texts for them.
_MEMBERS = {
    "scheduling.algorithm": "SchedulingAlgorithm",
    "selection_order": "SelectionOrder",
    "optimizations.merge_remote_buffers": "MergeRemoteBuffersBehaviour",
    "device_connection.type": "DeviceConnectionType",
    "floating_point_behaviour.esr": "StochasticRoundingBehaviour",
}
_SELECTED, _COUNTED = "select_ipus", "auto_select_ipus"  # of the first, the second follows; both are refused
_UNSAID = ("synthetic_data", "pipeline.")  # what begins so is no attribute of a configuration


def assignment(name: str, value: Any) -> str:
    """`config.matmuls.poplar_options["partialsType"] = "half"` and the like."""
    if name.startswith(_ENGINE):
        return f"config.compilation_poplar_options[{literal(name)}] = {literal(value)}"
    owner, found, key = name.partition(_KEYS)
    place = f"config.{owner}.poplar_options[{literal(key)}]" if found else f"config.{name}"
    if isinstance(value, tuple):
        value = list(value)
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
    lines, configured = _configured(change.options)
    call = {name: literal(value) for name, value in change.arguments} | _called(dict(change.options))
    return "\n".join([*lines, _call("model", call, with_config=configured)])


def request_code(request: Any, variable: str = "") -> str:
    """What to type for a request, or the like of one, whose source the notebook's `variable` holds.

    Variables it takes for granted: that one (`model` where it is not known), and `target`, `optimizer`, `loss`,
    `stages` and `inputs` where the compile was given them as objects. Options that neither an attribute nor an argument
    sets are named in a comment.
    """
    lines, configured = _configured(request.options.changed)
    arguments = ["*inputs"] if request.inputs else []
    call = _call(source_text(request.source, variable), _given(request), with_config=configured, more=arguments)
    return "\n".join([*lines, call])


def _configured(options: Iterable[tuple[str, Any]]) -> tuple[list[str], bool]:
    """The lines that make a configuration of these options, and whether there is one: others are said in the call."""
    changed = {name: value for name, value in options if name not in _CALLED}
    if _SELECTED in changed:
        changed.pop(_COUNTED, None)
    unsaid = [
        f"# {name} = {literal(changed.pop(name))} is not in these lines: no attribute or argument sets it"
        for name in list(changed)
        if name.startswith(_UNSAID)
    ]
    if not changed:
        return unsaid, False
    made = ["IPUConfig", *sorted({_MEMBERS[name] for name in changed if name in _MEMBERS})]
    head = [f"from workbench.ipu.config import {', '.join(made)}", "", "config = IPUConfig()"]
    return [*head, *unsaid, *(assignment(name, value) for name, value in changed.items())], True


def _call(source: str, arguments: dict[str, str], *, with_config: bool, more: list[str] | None = None) -> str:
    given = [*(more or []), *(["config=config"] if with_config else [])]
    parts = [source, *given, *(f"{name}={value}" for name, value in arguments.items())]
    line = f"executable = wb.compile({', '.join(parts)})"
    return (
        line
        if len(line) <= LONGEST_LINE
        else "\n".join(["executable = wb.compile(", *map("    {},".format, parts), ")"])
    )


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
