"""Recognise: the equations of one layer call whose Keras class (or named function) is known become one region node.

Recognition is by where equations come from, not by their pattern, which autodiff changes. A region's body is inline:
its parameters and results are the caller's values. What is inside is lowered as what it is; the region gives it its
name and one row among the operators.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph, Node, attrs
from workbench.engine.graph.origin import Origin
from workbench.engine.ops import family_of
from workbench.engine.ops.pointwise import is_free
from workbench.engine.passes.clusters import Closing, Flow, collapse, flow_of

LAYER_REGIONS = {
    "BatchNormalization": "batch_norm",
    "LayerNormalization": "layer_norm",
    "GroupNormalization": "group_norm",
    "RMSNormalization": "rms_norm",
    "UnitNormalization": "unit_norm",
    "Softmax": "softmax",
    "Dropout": "dropout",
}
FUNCTION_REGIONS = {
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "logsumexp": "logsumexp",
    "_softmax": "softmax",
    "batch_normalization": "batch_norm",
}


@dataclass(slots=True)
class _Region:
    kind: str
    members: list[Node] = field(default_factory=list)


def region_kind(origin: Origin) -> str:
    """The kind of region an equation of this origin belongs to; empty when none is known."""
    if origin.direction == "update":
        return ""
    return LAYER_REGIONS.get(origin.layer_class) or FUNCTION_REGIONS.get(origin.region, "")


def recognise(graph: Graph) -> Graph:
    """Collect the regions of every function."""
    functions: dict[str, Function] = {}
    for function in graph.functions.values():
        flow = flow_of(function)
        clusters = [(region.members, _closing(region)) for region in _collect(function, flow)]
        found, bodies = collapse(function, clusters, flow)
        functions[found.name] = found
        functions.update(bodies)
    return replace(graph, functions=functions)


def _closing(region: _Region) -> Closing:
    origin = replace(region.members[-1].origin, region="")
    return Closing("region", attrs(kind=region.kind), origin, region.kind)


def _key(node: Node) -> tuple[str, ...] | None:
    origin = node.origin
    kind = region_kind(origin)
    if not kind or is_free(node) or family_of(node).alone:
        return None
    name = "" if origin.layer_class in LAYER_REGIONS else origin.region
    return (kind, origin.layer, str(origin.call), origin.direction, name)


def _collect(function: Function, flow: Flow) -> list[_Region]:
    """Regions in program order; one is closed when somebody outside reads it before its next member."""
    open_regions: dict[tuple[str, ...], _Region] = {}
    regions: list[_Region] = []
    region_of: dict[Node, _Region] = {}
    for place, node in enumerate(function.nodes):
        key = _key(node)
        if key is None:
            continue
        region = open_regions.get(key)
        if region is None or flow.read_before(region.members, place, region_of, region):
            region = _Region(kind=key[0])
            regions.append(region)
            open_regions[key] = region
        region.members.append(node)
        region_of[node] = region
    return [region for region in regions if len(region.members) > 1]
