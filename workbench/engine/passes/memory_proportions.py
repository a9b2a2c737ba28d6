"""Proportions: matmuls and convolutions of a stage are planned with the proportion of memory that its IPU has.

`availableMemoryProportion` is one number, or one for each IPU of a replica, as PopTorch's option is (graphcore/poptorch
docs, `setAvailableMemoryProportion`) and as TensorFlow's stages have options of their own
(graphcore/tensorflow@b2127bba tensorflow/python/ipu/ops/pipelining_ops.py, PipelineStageOptions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node, attrs
from workbench.engine.graph.stages import stage_calls
from workbench.engine.options import Options
from workbench.engine.planner.search import PROPORTION
from workbench.errors import InputError

GROUPS = {"dot_general": "matmuls", "conv_general_dilated": "convolutions"}


def memory_proportions(graph: Graph, options: Options) -> Graph:
    """Give the operators of every stage the number of its IPU, where there is one for each."""
    given = {op: options.several(f"{group}.poplar_options.availableMemoryProportion") for op, group in GROUPS.items()}
    several = {op: value for op, value in given.items() if value}
    if not several:
        return graph
    ipu_of = dict(_ipus(graph, options))
    for op, value in several.items():
        if len(value) != 1 + max(ipu_of.values(), default=0):
            raise InputError(
                f"{GROUPS[op]}.poplar_options.availableMemoryProportion has {len(value)} numbers",
                expected=f"one number, or one for each of {1 + max(ipu_of.values(), default=0)} IPUs of a replica",
            )
    return replace(
        graph,
        functions={
            name: _with(function, {op: value[ipu_of.get(name, 0)] for op, value in several.items()})
            for name, function in graph.functions.items()
        },
    )


def _ipus(graph: Graph, options: Options) -> Iterator[tuple[str, int]]:
    """The functions that a stage calls, directly or not, with the stage's IPU."""
    mapped = options.get("pipeline.device_mapping")
    mapped = mapped if isinstance(mapped, tuple) else (mapped,)
    for call in stage_calls(graph):
        pending = [call.function.name]
        while pending:
            name = pending.pop()
            yield name, int(mapped[call.number]) if mapped else call.number
            pending += [inner for node in graph.functions[name].nodes for inner in node.calls]


def _with(function: Function, numbers: dict[str, float]) -> Function:
    return replace(function, nodes=tuple(_node_with(node, numbers) for node in function.nodes))


def _node_with(node: Node, numbers: dict[str, float]) -> Node:
    if node.op not in numbers:
        return node
    return replace(node, attrs=attrs(**dict(node.attrs), **{PROPORTION: numbers[node.op]}))
