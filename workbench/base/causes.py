"""What the cycles of an IPU go into, and why it waits: the words that engine, profiles and views share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Cause = Literal[
    "compute",
    "exchange",
    "sync",
    "host",
    "inter_ipu",
    "collective",
    "idle_fill",
    "idle_drain",
    "idle_wait_stage",
    "idle_wait_host",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

CAUSE_WORDS: Mapping[str, str] = {
    **{cause: cause for cause in CAUSES},
    "inter_ipu": "between IPUs",
    "idle_fill": "idle: filling",
    "idle_drain": "idle: draining",
    "idle_wait_stage": "idle: waits for a stage",
    "idle_wait_host": "idle: waits for the host",
}
"""Each cause as people read it, in a sentence, a table or a legend."""

Phase = Literal["fill", "steady", "drain"]
"""Of a column of a pipeline: whether it has yet to fill, is full, or runs empty."""
PHASES: tuple[Phase, ...] = get_args(Phase)

IDLE_BY_PHASE: Mapping[Phase, Cause] = {"fill": "idle_fill", "drain": "idle_drain", "steady": "idle_wait_stage"}
"""Why an IPU waits to the end of a column of this phase."""
PHASE_BY_IDLE: Mapping[str, Phase] = {idle: phase for phase, idle in IDLE_BY_PHASE.items()}


def idle_beside(cause: str) -> Cause:
    """Why an IPU waits while others spend cycles on `cause`."""
    return "idle_wait_host" if cause == "host" else "idle_wait_stage"
