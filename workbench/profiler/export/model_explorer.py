"""The operators as a graph that Model Explorer reads: a node per operator, in the namespace of its layer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.base.files import whole_file
from workbench.profiler.profile import Profile
from workbench.profiler.registry import export
from workbench.profiler.report import records

_NUMBERS = ("flops", "cycles", "utilisation", "code_bytes", "temporary_bytes")


@export("model_explorer")
def to_model_explorer(profile: Profile, path: str | Path) -> Path:
    """Write the operators as a graph in the JSON of Model Explorer; returns the path.

    A node has its layer's path as its namespace and its numbers (cycles, bytes, FLOPs) as attributes. An edge leads
    from the operator that wrote a variable last to one that reads it, out of an output of the variable's name.
    """
    with whole_file(path, text=True) as file:
        file.write(json.dumps(graphs(profile)))
    return Path(path)


def graphs(profile: Profile) -> dict[str, Any]:
    """The file as JSON data."""
    edges: dict[str, list[tuple[str, str]]] = {}
    for source, reader, variable in flows(profile):
        edges.setdefault(reader, []).append((source, variable))
    nodes = [_node(row, edges.get(row["name"], [])) for row in records(profile.operators)]
    return {"label": profile.name, "graphs": [{"id": profile.name, "nodes": nodes}]}


def flows(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """Operator that wrote, operator that reads, and the variable: each once, in the order of the program's steps.

    What another iteration of a loop wrote comes from behind: a loop goes through the steps once here.
    """
    steps, accesses, variables = (profile.tables[name] for name in ("steps", "accesses", "variables"))
    operators: dict[int, str] = dict(zip(steps["id"].tolist(), steps["operator"].tolist(), strict=True))
    names: dict[int, str] = dict(zip(variables["id"].tolist(), variables["name"].tolist(), strict=True))
    known = set(profile.tables["operators"]["name"].tolist())
    rows = zip(accesses["step"].tolist(), accesses["write"].tolist(), accesses["variable"].tolist(), strict=True)
    writers: dict[int, str] = {}
    seen: set[tuple[str, str, str]] = set()
    for step, write, variable in sorted(rows):  # of one step what it reads first
        operator = operators.get(step, "")
        if operator not in known:
            continue
        source = str(writers.get(variable, operator))
        found = (source, operator, names[variable])
        if write:
            writers[variable] = operator
        elif source != operator and found not in seen:
            seen.add(found)
            yield found


def _node(row: dict[str, Any], edges: list[tuple[str, str]]) -> dict[str, Any]:
    attributes = {"direction": row["direction"], "plan": row["plan"], **{name: row[name] for name in _NUMBERS}}
    return {
        "id": row["name"],
        "label": row["op"],
        "namespace": row["layer"],
        "attrs": [{"key": key, "value": str(value)} for key, value in attributes.items() if value != ""],
        "incomingEdges": [
            {"sourceNodeId": source, "sourceNodeOutputId": variable, "targetNodeInputId": str(place)}
            for place, (source, variable) in enumerate(edges)
        ],
    }
