"""Draws of layers that name no seed (Keras' StochasticDepth): from Keras' own generator, as part of the step's state.

Eagerly, Keras draws from one generator of the whole session and steps its state each time. In a trace that state would
become a constant, so Keras refuses. Here it is one more variable of the step: the states of all draws follow from it
before anything is differentiated or looped over, and the last one is its new value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# How Keras steps the state when draws have no order (keras/src/random/seed_generator.py).
FACTOR, MODULUS = 5387, 933199


@dataclass(slots=True)
class Draws:
    """Hands out the states of `seeds` in turn and counts what is asked for; the first once more when they run out."""

    seeds: Sequence[Any]
    asked: int = 0

    def next(self, ordered: bool = True) -> Any:
        """The state of the next draw."""
        self.asked += 1
        return self.seeds[self.asked - 1 if self.asked < len(self.seeds) else 0]


@dataclass(frozen=True, slots=True, eq=False)
class SessionState:
    """The state of the generator Keras draws from at the moment, which `keras.utils.set_random_seed` makes anew."""

    generator: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.generator().state, name)


def states(state: Any, draws: int) -> list[Any]:
    """The state of each draw, and the one after the last."""
    found = [state]
    for _ in range(draws):
        found.append((found[-1] + 1) * FACTOR % MODULUS)
    return found
