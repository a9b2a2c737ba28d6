"""Which IPU a shard or a stage is on: the selection orders, and the places stages take by themselves."""

from __future__ import annotations

from typing import Any

from tests.fidelity.outcome import Case, NotRun
from workbench.engine.program.links import topology

POD_IPUS = 16
STAGES = (2, 3, 4, 5)


def selection(_case: Case) -> dict[str, list[int]]:
    """The IPUs of a Pod16 in the order in which they become shards."""
    return {name: list(topology(name, POD_IPUS).order) for name in ("ZIGZAG", "SNAKE", "HOOF")}


def places(case: Case) -> Any:
    """The IPU of each stage when no device mapping is given, by the number of stages."""
    if case["id"] != "MAP-default":
        return NotRun("stages are placed by selection order alone")
    return {str(stages): list(topology("AUTO", stages).order) for stages in STAGES}
