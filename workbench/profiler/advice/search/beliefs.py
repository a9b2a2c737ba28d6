"""What changes not yet compiled are expected to leave and to cost, from their estimates and from what was measured.

Both are logarithms of a ratio to the program as it is, where changes at once add up. Their deviations from the
estimates are a Gaussian process: a lever's own grows with the steps it is moved (as a random walk does, so two values
share the steps they both go), and any two levers moved together deviate by a little more. After each compile what is
known is conditioned on it (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 2.23 and
2.24). How far a lever may deviate is learned too: a scale for each, the likeliest by what was measured (there, equation
5.8), so one that did nothing is soon left alone, and one that did much, whichever way, is tried the other way as well.
How far each compile is from what the others make expected of it (equation 5.12) says how far those to come may be.
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
SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # of a lever's doubt
SPREAD = 1.0  # how far scales are from 1 before anything was measured, as a standard deviation of their logarithm

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
    _levers: list[str] = field(init=False)
    _steps: Array = field(init=False)
    _ways: Array = field(init=False)
    _prior: Array = field(init=False)
    _scales: tuple[Array, Array] = field(init=False)

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
        self._scales = np.ones(len(self._levers)), np.ones(len(self._levers))

    def _estimate(self, parts: Parts) -> tuple[float, float]:
        left = sum(math.log(max(LEAST, part.estimated_bytes / self.base_bytes)) for part in parts)
        return left, sum(math.log(part.slower) for part in parts)

    def learn(self, place: int, bytes_ratio: float, cost_ratio: float) -> None:
        """What a candidate left and cost, as ratios to the program as it is."""
        found = math.log(max(bytes_ratio, 1e-9)), math.log(max(cost_ratio, 1e-9))
        self._known.append(place)
        self._found.append(found)
        for which in (0, 1):
            self._learn_scales(which)

    def expected(self) -> Expected:
        """What every candidate is expected to leave and to cost now."""
        (left, left_doubt), (cost, cost_doubt) = self._one(0), self._one(1)
        return Expected(left, left_doubt * self._off(0), cost, cost_doubt * self._off(1))

    def _off(self, which: int) -> float:
        """How far each compile is from what the others make expected of it, over how far that thinks it may be."""
        if not self._known:
            return 1.0
        inverse = np.linalg.inv(self._among(which))
        missed = (inverse @ self._deviations(which)) ** 2 / np.diag(inverse)
        return math.sqrt((USUAL + float(missed.sum())) / (USUAL + len(missed)))

    def _doubts(self, which: int) -> Array:
        return np.array([self.doubts[name][which] for name in self._levers])

    def _deviations(self, which: int) -> Array:
        """What was measured, less what was estimated."""
        return np.array([found[which] for found in self._found]) - self._prior[self._known, which]

    def _one(self, which: int) -> tuple[Array, Array]:
        every = np.arange(len(self.candidates))
        prior = self._prior[:, which]
        doubts, scales = self._doubts(which), self._scales[which]
        alone = _sums(self._steps, doubts, scales)
        if not self._known:
            return prior, np.sqrt(alone)
        known, among = np.array(self._known), self._among(which)
        across = _sums(self._shared(every, known), doubts, scales)
        gain = np.linalg.solve(among, across.T).T
        variance = alone - np.einsum("ij,ij->i", gain, across)
        return prior + gain @ self._deviations(which), np.sqrt(np.maximum(variance, 0.0))

    def _among(self, which: int) -> Array:
        """Covariances of what was measured."""
        known = np.array(self._known)
        shared = self._shared(known, known)
        return _sums(shared, self._doubts(which), self._scales[which]) + NOISE * np.eye(len(known))

    def _shared(self, left: Array, right: Array) -> Array:
        """Steps that two candidates both go, by lever."""
        same = self._ways[left][:, None, :] == self._ways[right][None, :, :]
        found: Array = np.minimum(self._steps[left][:, None, :], self._steps[right][None, :, :]) * same
        return found

    def _learn_scales(self, which: int) -> None:
        """The likeliest scale of each lever that was moved, the others as they are."""
        known = np.array(self._known)
        shared, off, doubts = self._shared(known, known), self._deviations(which), self._doubts(which)
        scales = self._scales[which]
        for column in np.flatnonzero(self._steps[known].any(axis=0)):
            likely = []
            for scale in SCALES:
                scales[column] = scale
                among = _sums(shared, doubts, scales) + NOISE * np.eye(len(known))
                likely.append(_likelihood(among, off) - (math.log(scale) / SPREAD) ** 2 / 2)
            scales[column] = SCALES[int(np.argmax(likely))]


def _likelihood(covariance: Array, values: Array) -> float:
    """The logarithm of a Gaussian's density, but for a constant."""
    root = np.linalg.cholesky(covariance)
    return float(-(np.linalg.solve(root, values) ** 2).sum() / 2 - np.log(np.diag(root)).sum())


def _sums(shared: Array, doubts: Array, scales: Array) -> Array:
    """Covariances from steps that are shared: of levers alone, and of any two together."""
    scaled = shared * scales
    pairs = (scaled.sum(axis=-1) ** 2 - (scaled**2).sum(axis=-1)) / 2
    sums: Array = (shared * (scales * doubts) ** 2).sum(axis=-1) + TOGETHER**2 * pairs
    return sums


__all__ = ["Beliefs", "Expected", "Parts"]
