"""What changes not yet compiled are expected to leave and to cost, from their estimates and from what was measured.

Both are logarithms of a ratio to the program as it is, where changes at once add up. Their deviations from the
estimates are a Gaussian process: a lever's own grows with the steps it is moved (as a random walk does, so two values
share the steps they both go), and any two levers moved together deviate by a little more. After each compile what is
known is conditioned on it (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 2.23 and
2.24), and how far expectations were off so far says how far those to come may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.profiler.advice.levers import Change

TOGETHER = 0.08  # how far two levers at once may deviate from what each does, as a logarithm of a ratio
LEAST = 0.02  # of what there is: no change is expected to leave less
NOISE = 1e-6  # compiles repeat themselves; what keeps equal rows from a singular matrix

USUAL = 4.0  # compiles as expected, with which those that were made are weighed

Parts = tuple[Change, ...]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Expected:
    """Means and standard deviations of the logarithms, one for each candidate."""

    bytes_mean: Array
    bytes_deviation: Array
    cost_mean: Array
    cost_deviation: Array


@dataclass(slots=True)
class Beliefs:
    """Expectations over all candidates. `doubts`: of each lever, of bytes and of cycles, for a step."""

    base_bytes: int
    doubts: Mapping[str, tuple[float, float]]
    candidates: Sequence[Parts]
    _known: list[int] = field(default_factory=list)
    _found: list[tuple[float, float]] = field(default_factory=list)
    _missed: list[tuple[float, float]] = field(default_factory=list)
    _levers: list[str] = field(init=False)
    _steps: Array = field(init=False)
    _ways: Array = field(init=False)
    _prior: Array = field(init=False)

    def __post_init__(self) -> None:
        self._levers = list(self.doubts)
        shape = (len(self.candidates), len(self._levers))
        self._steps, self._ways = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        ways: dict[tuple[str, str], int] = {}
        for row, parts in enumerate(self.candidates):
            for part in parts:
                column = self._levers.index(part.lever)
                self._steps[row, column] = part.steps
                self._ways[row, column] = ways.setdefault((part.lever, part.to), len(ways) + 1)
        self._prior = np.array([self._estimate(parts) for parts in self.candidates]).reshape(-1, 2)

    def _estimate(self, parts: Parts) -> tuple[float, float]:
        left = sum(math.log(max(LEAST, part.estimated_bytes / self.base_bytes)) for part in parts)
        return left, sum(math.log(part.slower) for part in parts)

    def learn(self, place: int, bytes_ratio: float, cost_ratio: float) -> None:
        """What a candidate left and cost, as ratios to the program as it is."""
        found = math.log(max(bytes_ratio, 1e-9)), math.log(max(cost_ratio, 1e-9))
        missed = []
        for which in (0, 1):
            mean, deviation = self._one(which)
            missed.append(((found[which] - mean[place]) / max(deviation[place], 1e-3)) ** 2)
        self._missed.append((missed[0], missed[1]))
        self._known.append(place)
        self._found.append(found)

    def expected(self) -> Expected:
        """What every candidate is expected to leave and to cost now."""
        (left, left_doubt), (cost, cost_doubt) = self._one(0), self._one(1)
        return Expected(left, left_doubt * self._off(0), cost, cost_doubt * self._off(1))

    def _off(self, which: int) -> float:
        """How far expectations were off, over how far they thought they might be."""
        missed = sum(each[which] for each in self._missed)
        return math.sqrt((USUAL + missed) / (USUAL + len(self._missed)))

    def _one(self, which: int) -> tuple[Array, Array]:
        every = np.arange(len(self.candidates))
        prior = self._prior[:, which]
        doubts = np.array([self.doubts[name][which] for name in self._levers])
        alone = self._variance(doubts)
        if not self._known:
            return prior, np.sqrt(alone)
        known = np.array(self._known)
        among = self._covariance(known, known, doubts) + NOISE * np.eye(len(known))
        across = self._covariance(every, known, doubts)
        gain = np.linalg.solve(among, across.T).T
        deviations = np.array([found[which] for found in self._found]) - prior[known]
        variance = alone - np.einsum("ij,ij->i", gain, across)
        return prior + gain @ deviations, np.sqrt(np.maximum(variance, 0.0))

    def _covariance(self, left: Array, right: Array, doubts: Array) -> Array:
        same = self._ways[left][:, None, :] == self._ways[right][None, :, :]
        shared = np.minimum(self._steps[left][:, None, :], self._steps[right][None, :, :]) * same
        return _sums(shared, doubts)

    def _variance(self, doubts: Array) -> Array:
        return _sums(self._steps, doubts)


def _sums(shared: Array, doubts: Array) -> Array:
    pairs = (shared.sum(axis=-1) ** 2 - (shared**2).sum(axis=-1)) / 2
    sums: Array = (shared * doubts**2).sum(axis=-1) + TOGETHER**2 * pairs
    return sums


__all__ = ["Beliefs", "Expected", "Parts"]
