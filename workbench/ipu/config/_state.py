"""What a process has at a time: the described system, and how random numbers begin, as a driver keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(slots=True)
class State:
    """`system` names the described system.

    `seed` is what `reset_ipu_seed` was last called with, `resets` how often; `identical_replicas`: replicas alike.
    """

    system: str = "pod16"
    seed: int = 0
    resets: int = 0
    identical_replicas: bool = False
    _generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def reset_seed(self, seed: int, identical_replicas: bool) -> None:
        """Begin random numbers at a seed."""
        self.seed, self.resets, self.identical_replicas = seed, self.resets + 1, identical_replicas
        self._generator = np.random.default_rng(abs(seed) * 2 + (seed < 0))

    def draw(self) -> np.ndarray[Any, Any]:
        """uint32[2] that a run's stochastic rounding begins with."""
        return self._generator.integers(0, 2**32, 2, dtype=np.uint32)


STATE = State()
