"""The loop of a diagnosis: choose what promises most, compile it, learn from it, until nothing promises more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.errors import Cancelled, WorkbenchError
from workbench.profiler.advice.levers import LEVERS, Change, joined
from workbench.profiler.advice.search.beliefs import Beliefs, Expected, Parts
from workbench.profiler.profile import Profile

HOPELESS = 0.03  # where nothing is likelier to fit than this, after LEARNED compiles, no more are made
LEARNED = 3
TRACES = 3  # executables that are kept, for their traces
WORTH = 0.02  # of the cost of the best: what promises less, by how likely it is, is not compiled
EACH_MORE = 0.005  # a change more has to promise so much more
SPARED = 2  # compiles of a search that are kept to leave out what is of little worth
LIKELY = 0.5  # a first fix is looked for among what fits as likely as not

Progress = Callable[[str], None]
# compile(request, progress, like) makes an executable; `like` is one whose trace may be used again.
Compile = Callable[[Any, Progress | None, Any], Any]
# measure(requests, like) gives, as they come, the place of a request and its profile or problem.
Measure = Callable[[Sequence[Any], Any], Iterator[tuple[int, "Profile | WorkbenchError"]]]


def cost_of(profile: Profile) -> float:
    """Modelled cycles of a call x its IPUs over its samples; of the whole call where samples are not known."""
    samples = int(profile.meta.get("samples_per_call") or 0) or 1
    return profile.total_cycles * profile.ipus * int(profile.meta.get("replicas") or 1) / samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one combination of changes."""

    parts: Parts
    profile: Profile | None
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Compiles and seconds that are left."""

    compiles: int
    seconds: float | None = None
    used: int = 0
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int:
        """Compiles that may still be made."""
        late = self.seconds is not None and time.monotonic() - self._start >= self.seconds
        return 0 if late else self.compiles - self.used


@dataclass(slots=True, kw_only=True)
class Trial:
    """Compiles changes of one executable; `outcomes` in the order in which they came."""

    executable: Any
    compile: Compile
    progress: Progress
    budget: Budget
    heard: Callable[[Outcome], None] = lambda outcome: None
    measure: Measure | None = None
    width: int = 1
    outcomes: list[Outcome] = field(default_factory=list)
    left_out: int = 0
    _alike: dict[Any, Any] = field(default_factory=dict)

    @property
    def base(self) -> Profile:
        """The program as it is."""
        found: Profile = self.executable.profile
        return found

    @property
    def limit(self) -> int:
        """Bytes of a tile."""
        return int(self.base.target["bytes_per_tile"])

    def run(self, candidates: Sequence[Parts], compiles: int) -> None:
        """Compile at most so many of the candidates, the most promising first; those that were compiled are known."""
        doubts = {name: LEVERS.get(name).doubt for parts in candidates for name in (part.lever for part in parts)}
        beliefs = Beliefs(max(1, self.base.max_tile_bytes), doubts, candidates)
        open_ = np.ones(len(candidates), dtype=bool)
        known = {each.parts: each for each in self.outcomes if all(part.lever in LEVERS for part in each.parts)}
        for place, parts in enumerate(candidates):
            if parts in known:
                open_[place] = False
                self._learn(beliefs, place, known[parts])
        last = self.budget.used + compiles - (SPARED if compiles > 4 * SPARED else 0)
        while open_.any() and min(self.budget.left, last - self.budget.used) > 0:
            places = self._promising(beliefs, open_, min(self.budget.left, last - self.budget.used))
            if not places:
                break
            open_[places] = False
            for place, outcome in zip(places, self._outcomes([candidates[each] for each in places]), strict=True):
                self._learn(beliefs, place, outcome)
        while (simpler := self._simpler(beliefs, open_)) is not None and self.budget.left > 0:
            open_[simpler] = False
            self._learn(beliefs, simpler, self._outcomes([candidates[simpler]])[0])
        self.left_out = int(open_.sum())

    def _simpler(self, beliefs: Beliefs, open_: np.ndarray[Any, Any]) -> int | None:
        """The best so far without a change of little worth, as it is expected; None where each has its worth."""
        best = min(self.outcomes, key=self._rank, default=None)
        if best is None or best.profile is None or best.parts not in beliefs.candidates:
            return None
        expected, cost, fits = beliefs.expected(), math.log(self._cost(best)), best.profile.fits
        left = self._room if fits else math.log(self._bytes(best.profile) / self._bytes(self.base)) + EACH_MORE
        for dropped in best.parts:
            rest = tuple(part for part in best.parts if part is not dropped)
            place = beliefs.candidates.index(rest) if rest in beliefs.candidates else None
            if place is None or not open_[place]:
                continue
            if expected.bytes_mean[place] < left and (not fits or expected.cost_mean[place] < cost + WORTH):
                return place
        return None

    def _learn(self, beliefs: Beliefs, place: int, outcome: Outcome) -> None:
        if outcome.profile is not None:
            beliefs.learn(place, self._bytes(outcome.profile) / self._bytes(self.base), self._cost(outcome))

    def _rank(self, outcome: Outcome) -> tuple[bool, bool, float]:
        """What compiles, what fits, and the least of cost; or of bytes, where nothing fits."""
        if outcome.profile is None:
            return True, True, 0.0
        fits = outcome.profile.fits
        return False, not fits, self._cost(outcome) if fits else self._bytes(outcome.profile)

    def _cost(self, outcome: Outcome) -> float:
        return cost_of(outcome.profile or self.base) / max(1e-9, cost_of(self.base))

    def _bytes(self, profile: Profile) -> float:
        """Bytes of the fullest tile; at least a tile's where a region is full before the tile is."""
        return float(profile.max_tile_bytes if profile.fits else max(profile.max_tile_bytes, self.limit + 1))

    @property
    def best(self) -> float:
        """The least cost, over that of the program as it is, of what fits; infinite where nothing does."""
        fitting = [self._cost(each) for each in self.outcomes if each.profile is not None and each.profile.fits]
        return min([*fitting, *([1.0] if self.base.fits else [])], default=math.inf)

    def _promising(self, beliefs: Beliefs, open_: np.ndarray[Any, Any], most: int) -> list[int]:
        """The next places to compile, at most as many as there are workers; none where none is worth it."""
        expected = beliefs.expected()
        if self._hopeless(expected, open_):
            return []
        count = np.array([len(parts) for parts in beliefs.candidates])
        score = self._score(expected) - EACH_MORE * (count - 1)
        score[~open_] = -math.inf
        order = np.argsort(-score, kind="stable")[: min(self.width, most)]
        least = WORTH if math.isfinite(self.best) else -math.inf
        return [int(place) for place in order if score[place] > least and open_[place]]

    def _hopeless(self, expected: Expected, open_: np.ndarray[Any, Any]) -> bool:
        fits = _below(self._room, expected.bytes_mean, expected.bytes_deviation)[open_]
        learned = len(self.outcomes) >= LEARNED
        return learned and not math.isfinite(self.best) and bool(fits.max(initial=0.0) < HOPELESS)

    @property
    def _room(self) -> float:
        """The logarithm of a tile's bytes over those of the program as it is."""
        return math.log(self.limit / self._bytes(self.base))

    def _score(self, expected: Expected) -> np.ndarray[Any, Any]:
        """What each candidate promises: before anything fits, to fit at little cost; then, to cost less and fit."""
        fits = _below(self._room, expected.bytes_mean, expected.bytes_deviation)
        if not math.isfinite(self.best):
            cheap = np.exp(-expected.cost_mean)
            likely = np.where(fits >= LIKELY, 1.0 + fits * cheap / cheap.max(), fits)
            return np.asarray(likely)
        return np.asarray(fits * _expected_gain(math.log(self.best), expected.cost_mean, expected.cost_deviation))

    def _outcomes(self, several: Sequence[Parts]) -> list[Outcome]:
        """Compile these, at once where that can be."""
        self.budget.used += len(several)
        changes = [joined(parts, self.base.max_tile_bytes) for parts in several]
        found: list[Outcome | None] = [None] * len(several)
        for place, result in self._results(changes):
            problem = isinstance(result, WorkbenchError)
            profile = result if isinstance(result, Profile) else None
            outcome = Outcome(parts=several[place], profile=profile, problem=str(result) if problem else "")
            found[place] = outcome
            self.outcomes.append(outcome)
            self.heard(outcome)
        return [each for each in found if each is not None]

    def _results(self, changes: Sequence[Change]) -> Iterator[tuple[int, Profile | WorkbenchError]]:
        requests = []
        for place, change in enumerate(changes):
            try:
                requests.append((place, change.applied(self.executable.request)))
            except WorkbenchError as error:
                yield place, error
        if self.measure is not None:
            for number, result in self.measure([request for _, request in requests], self.executable):
                self.progress(f"{changes[requests[number][0]].title}: compiled")
                yield requests[number][0], result
            return
        for place, request in requests:
            yield place, self._compiled(request, changes[place])

    def _compiled(self, request: Any, change: Change) -> Profile | WorkbenchError:
        """Compile one, from the trace of the last with equal arguments."""
        arguments = frozenset(change.arguments)
        like = self._alike.get(arguments, self.executable)
        try:
            executable = self.compile(request, lambda phase: self.progress(f"{change.title}: {phase}"), like)
        except Cancelled:
            raise
        except WorkbenchError as error:
            return error
        self._alike[arguments] = executable
        while len(self._alike) > TRACES:
            del self._alike[next(iter(self._alike))]
        profile: Profile = executable.profile
        return profile


def _below(bound: float, mean: np.ndarray[Any, Any], deviation: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How likely a normal number is below a bound."""
    steps = (bound - mean) / np.maximum(deviation, 1e-9)
    found: np.ndarray[Any, Any] = 0.5 * (1 + np.vectorize(math.erf)(steps / math.sqrt(2)))
    return found


def _expected_gain(best: float, mean: np.ndarray[Any, Any], deviation: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What part of the best cost is expected to be saved, of costs whose logarithms are normal."""
    ratio = np.exp(mean - best + deviation**2 / 2)
    return np.asarray(_below(best, mean, deviation) - ratio * _below(best, mean + deviation**2, deviation))


__all__ = ["EACH_MORE", "WORTH", "Budget", "Compile", "Measure", "Outcome", "Progress", "Trial", "cost_of"]
