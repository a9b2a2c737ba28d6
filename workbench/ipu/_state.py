"""What a process has at a time: the described system and the configurations in force, as a driver keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.ipu.config import IPUConfig


@dataclass(slots=True)
class State:
    """`system` names the described system; `configured` holds the configuration in force, if there is one.

    `seeds` holds what devices were seeded with; `identical_replicas`: every replica of them alike.
    """

    system: str = "pod16"
    configured: list[IPUConfig] = field(default_factory=list)
    seeds: dict[int, int] = field(default_factory=dict)
    identical_replicas: bool = False


STATE = State()
