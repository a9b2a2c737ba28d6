"""Samples of the operators of `ops/remote.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.lowered import Case, compiled
from tests.engine.ops.sampled import MATRIX, Sample
from workbench.engine.graph import GraphBuilder


def _loaded(last: str = "") -> Sample:
    """A variable of streaming memory is read; its next value goes back there."""

    def run(**where: Any) -> Case:
        builder = GraphBuilder("main")
        held = builder.param(*MATRIX)
        described = {"key": "here", "name": "held", "remote": True, "shards": 1}
        builder.node("remote_load", (held,), (), **described)
        new = builder.node("neg", (held,), (MATRIX,))
        read = builder.node("exp", (held,), (MATRIX,))
        if last:
            builder.node(last, new, (), **described)
        return compiled(builder, read, roles=["optimizer"], **where)

    return run


SAMPLES: dict[str, Sample] = {
    "remote_load": _loaded(),
    "remote_store": _loaded("remote_store"),
}
