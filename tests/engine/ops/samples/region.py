"""Samples of the operators of `ops/region.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.lowered import F32, Case, compiled
from tests.engine.ops.sampled import MATRIX, Sample
from workbench.engine.graph import Function, GraphBuilder


def _region() -> Sample:
    """An inline body shares the caller's values, so it is written with them."""

    def run(**where: Any) -> Case:
        builder = GraphBuilder("main")
        source = builder.param(*MATRIX)
        total = builder.node("reduce_sum", (source,), (((12,), F32),), axes=(1,))
        inner = builder.nodes.pop()
        builder.node("region", (source,), (), calls=("inside",), kind="norm")
        region = builder.nodes.pop()
        builder.nodes.append(type(region)("region", (source,), total, region.attrs, region.origin, ("inside",)))
        return compiled(builder, total, bodies=(Function("inside", (source,), total, (inner,)),), **where)

    return run


SAMPLES: dict[str, Sample] = {
    "regions": _region(),
}
