"""Poplar options of single stages: they win over the configuration's, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.engine.graph import Function, Graph, attrs
from workbench.engine.graph.stages import Turn, body_name, stage_calls
from workbench.engine.planner.search import PROPORTION
from workbench.errors import InputError
from workbench.ipu._pipeline.asked import Asked

GROUPS = {"dot_general": "matmul_options", "conv_general_dilated": "convolution_options"}
_PARTIALS = ("half", "float")


def with_stage_options(graph: Graph, asked: Asked) -> Graph:
    """The graph with the options of each stage's passes on its products."""
    wanted: dict[tuple[int, Turn], Any] = {}
    for number, each in enumerate(asked.forward_options or ()):
        wanted |= {(number, "forward"): each, (number, "recompute"): each}
    for number, each in enumerate(asked.backward_options or ()):
        wanted[number, "backward"] = each
    if asked.update_options is not None:
        wanted |= {(number, "update"): asked.update_options for number in range(len(asked.stages))}
    given = {
        place: {op: _attributes(vars(options)[group], body_name(*place)) for op, group in GROUPS.items()}
        for place, options in wanted.items()
    }
    for place, options in wanted.items():
        _attributes(options.slice_options, body_name(*place), known=())
    calls = {(call.number, call.direction): call.function.name for call in stage_calls(graph)}
    reached = {
        inner: chosen for place, chosen in given.items() if place in calls for inner in _inside(graph, calls[place])
    }
    functions = {name: _with(function, reached.get(name, {})) for name, function in graph.functions.items()}
    return replace(graph, functions=functions)


def _inside(graph: Graph, name: str) -> list[str]:
    """A function and those it calls."""
    found: list[str] = []
    pending = [name]
    while pending:
        found.append(pending.pop())
        pending += [inner for node in graph.functions[found[-1]].nodes for inner in node.calls]
    return found


def _attributes(
    options: Mapping[str, Any], where: str, known: tuple[str, ...] = ("availableMemoryProportion", "partialsType")
) -> dict[str, Any]:
    """What options say of an operator; those that the model of a stage does not have are an `InputError`."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise InputError(
                f"the PipelineStageOptions of {where} set {name!r}",
                expected=f"options of a single stage: {', '.join(known) or 'none of slices'}",
                todo="set it for all stages in IPUConfig",
            )
        if name == "partialsType":
            if value not in _PARTIALS:
                raise InputError(f"partialsType of {where} is {value!r}", expected="'half' or 'float'")
            found["partials_type"] = value
        else:
            found[PROPORTION] = _proportion(value, where)
    return found


def _proportion(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise InputError(f"availableMemoryProportion of {where} is {value!r}", expected="a number from 0 to 1")
    return number


def _with(function: Function, chosen: Mapping[str, Mapping[str, Any]]) -> Function:
    if not any(chosen.values()):
        return function
    nodes = tuple(
        replace(node, attrs=attrs(**{**dict(node.attrs), **chosen[node.op]})) if chosen.get(node.op) else node
        for node in function.nodes
    )
    return replace(function, nodes=nodes)


__all__ = ["with_stage_options"]
