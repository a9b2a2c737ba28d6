"""The loop of a diagnosis: choose what promises most, compile it, learn from it, until nothing promises more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
SPARED = 3  # compiles of a search that are kept for what lies beside the best
SHARED = 4  # compiles in a row that share a lever, and none of which fits: the next is made without it
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
        known = {each.parts: each for each in self._moved}
        for place, parts in enumerate(candidates):
            if parts in known:
                open_[place] = False
                self._learn(beliefs, place, known[parts])
        search = Search(beliefs=beliefs, open=open_, last=self.budget.used + compiles)
        self._explore(search, search.last - compiles // 2)
        self._bisect(search)
        self._descend(search)
        self._explore(search, search.last - (SPARED if compiles > 4 * SPARED else 0))
        self._descend(search)
        self._explore(search, search.last)
        self.left_out = int(open_.sum())

    @property
    def _moved(self) -> list[Outcome]:
        """What came of levers that are candidates: of all but stages."""
        return [each for each in self.outcomes if all(part.lever in LEVERS for part in each.parts)]

    def _explore(self, search: Search, last: int) -> None:
        """Compile what promises most, until nothing does, or so many compiles are used."""
        while search.open.any() and min(self.budget.left, last - self.budget.used) > 0:
            self._close_alike(search)
            most = min(self.budget.left, last - self.budget.used)
            places = self._promising(search.beliefs, search.open, self.alone(search), most)
            if not places:
                return
            self._measure(search, places)

    def alone(self, search: Search) -> np.ndarray[Any, Any]:
        """Which candidates to choose from: all; once some compiles did not fit, the levers alone that free bytes.

        What several levers did at once says little of each; what each does alone says well what two of them will do.
        """
        every = np.ones(len(search.open), dtype=bool)
        if math.isfinite(self.best) or len(self._moved) < LEARNED:
            return every
        places = search.unknown_alone({each.parts for each in self._moved})
        means = search.beliefs.expected().bytes_mean
        wanted = [place for place in places if search.open[place] and means[place] < -WORTH]
        if not wanted:
            return every
        every[:] = False
        every[wanted] = True
        return every

    def _bisect(self, search: Search) -> None:
        """Of each change that fits alone and is dear: one halfway to the next milder that does not fit, and so on.

        What a step costs is believed to grow evenly; the last steps of squeezing a plan can cost more than all others.
        """
        for way in search.ways:
            while self.best > 1 + WORTH and min(self.budget.left, search.last - self.budget.used) > 0:
                fits = {each.parts: each.profile is not None and each.profile.fits for each in self._moved}
                place = search.halfway(way, fits)
                if place is None or not search.open[place]:
                    break
                self._measure(search, [place])

    def _descend(self, search: Search) -> None:
        """From the best so far to better ones beside it: with a change less, or one that goes a step less or more."""
        while (best := min(self._moved, key=self._rank, default=None)) is not None and best.profile is not None:
            fits = {each.parts: each.profile is not None and each.profile.fits for each in self._moved}
            beside = [place for place in search.beside(best.parts, fits) if search.open[place]]
            most = min(self.width, self.budget.left, search.last - self.budget.used)
            likely = self._fits(search.beliefs.expected())
            places = [place for place in beside if likely[place] > HOPELESS or not best.profile.fits][: max(0, most)]
            if not places:
                return
            self._measure(search, places)

    def _measure(self, search: Search, places: Sequence[int]) -> None:
        search.open[list(places)] = False
        outcomes = self._outcomes([search.beliefs.candidates[place] for place in places])
        for place, outcome in zip(places, outcomes, strict=True):
            self._learn(search.beliefs, place, outcome)

    def _close_alike(self, search: Search) -> None:
        """Leave out what would be a program that was measured, as far as changes that did nothing can tell."""
        idle = idle_changes([(each.parts, self._made(each)) for each in self._moved if each.profile is not None])
        known = {without_idle(each.parts, idle) for each in self._moved}
        for place, parts in enumerate(search.beliefs.candidates):
            if search.open[place] and without_idle(parts, idle) != parts and without_idle(parts, idle) in known:
                search.open[place] = False

    @staticmethod
    def _made(outcome: Outcome) -> tuple[int, int]:
        assert outcome.profile is not None
        return outcome.profile.max_tile_bytes, outcome.profile.total_cycles

    def _learn(self, beliefs: Beliefs, place: int, outcome: Outcome) -> None:
        if outcome.profile is not None:
            beliefs.learn(place, self._bytes(outcome.profile) / self._bytes(self.base), self._cost(outcome))

    def _rank(self, outcome: Outcome) -> tuple[bool, bool, float, int]:
        """What compiles, what fits, and the least of cost; or of bytes, where nothing fits. Of equals the simplest."""
        if outcome.profile is None:
            return True, True, 0.0, 0
        fits = outcome.profile.fits
        amount = self._cost(outcome) if fits else self._bytes(outcome.profile)
        return False, not fits, amount, len(outcome.parts)

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

    def _promising(
        self, beliefs: Beliefs, open_: np.ndarray[Any, Any], among: np.ndarray[Any, Any], most: int
    ) -> list[int]:
        """The next places to compile, at most as many as there are workers; none where none is worth it."""
        expected = beliefs.expected()
        if self._hopeless(expected, open_):
            return []
        count = np.array([len(parts) for parts in beliefs.candidates])
        score = self._score(expected) - EACH_MORE * (count - 1)
        open_ = open_ & among
        score[~(open_ & self.without_shared(beliefs, open_))] = -math.inf
        order = np.argsort(-score, kind="stable")[: min(self.width, most)]
        least = WORTH if math.isfinite(self.best) else -math.inf
        return [int(place) for place in order if score[place] > least and open_[place]]

    def without_shared(self, beliefs: Beliefs, open_: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Which candidates lack what the last compiles have in common, where none of these fits; all, where none does.

        What is believed of the other levers was learned beside those, and may be their doing.
        """
        every = np.ones(len(beliefs.candidates), dtype=bool)
        last = [{part.lever for part in each.parts} for each in self._moved[-SHARED:]]
        if math.isfinite(self.best) or len(last) < SHARED or not (shared := set.intersection(*last)):
            return every
        found = np.array([shared.isdisjoint(part.lever for part in parts) for parts in beliefs.candidates], dtype=bool)
        return found if (found & open_).any() else every

    def _hopeless(self, expected: Expected, open_: np.ndarray[Any, Any]) -> bool:
        fits = self._fits(expected)[open_]
        learned = len(self.outcomes) >= LEARNED
        return learned and not math.isfinite(self.best) and bool(fits.max(initial=0.0) < HOPELESS)

    def _fits(self, expected: Expected) -> np.ndarray[Any, Any]:
        """How likely each candidate fits."""
        return _below(self._room, expected.bytes_mean, expected.bytes_deviation)

    @property
    def _room(self) -> float:
        """The logarithm of a tile's bytes over those of the program as it is."""
        return math.log(self.limit / self._bytes(self.base))

    def _score(self, expected: Expected) -> np.ndarray[Any, Any]:
        """What each candidate promises: before anything fits, to fit at little cost; then, to cost less and fit."""
        fits = self._fits(expected)
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


@dataclass(slots=True, kw_only=True)
class Search:
    """One search among candidates: which are open, and the count of compiles at which it ends."""

    beliefs: Beliefs
    open: np.ndarray[Any, Any]
    last: int
    _places: dict[Parts, int] = field(init=False)
    _ladders: dict[tuple[str, str], list[Change]] = field(init=False)

    def __post_init__(self) -> None:
        self._places = {parts: place for place, parts in enumerate(self.beliefs.candidates)}
        every = dict.fromkeys(part for parts in self.beliefs.candidates for part in parts)
        self._ladders = {}
        for part in sorted(every, key=lambda each: each.steps):
            self._ladders.setdefault((part.lever, part.to), []).append(part)

    @property
    def ways(self) -> list[tuple[str, str]]:
        """The ways in which levers go several steps."""
        return [way for way, ladder in self._ladders.items() if len(ladder) > 1]

    def unknown_alone(self, measured: Collection[Parts]) -> list[int]:
        """The furthest change of each way alone, where no change of that way was measured alone."""
        found = [ladder for ladder in self._ladders.values() if not any((part,) in measured for part in ladder)]
        return [self._places[(ladder[-1],)] for ladder in found if (ladder[-1],) in self._places]

    def halfway(self, way: tuple[str, str], fits: Mapping[Parts, bool]) -> int | None:
        """The candidate halfway from the mildest change of a way that fits alone to the next that does not."""
        ladder = self._ladders[way]
        found = next(self._halfway((ladder[0],), 0, fits), None)
        return None if found is None else self._places.get(found)

    def beside(self, parts: Parts, fits: Mapping[Parts, bool]) -> Iterator[int]:
        """Candidates with a change less, then with one a step milder or further, or halfway to what does not fit, then
        with one that goes another way."""
        found = [tuple(part for part in parts if part is not dropped) for dropped in parts]
        for step in (-1, 1):
            for place, part in enumerate(parts):
                ladder = self._ladders.get((part.lever, part.to), [part])
                at = ladder.index(part) + step if part in ladder else -1
                if 0 <= at < len(ladder):
                    found.append((*parts[:place], ladder[at], *parts[place + 1 :]))
        for place, part in enumerate(parts):
            found += self._halfway(parts, place, fits)
            others = [ladder for way, ladder in self._ladders.items() if way[0] == part.lever and way[1] != part.to]
            found += [(*parts[:place], ladder[0], *parts[place + 1 :]) for ladder in others]
        for each in found:
            if each in self._places:
                yield self._places[each]

    def _halfway(self, parts: Parts, place: int, fits: Mapping[Parts, bool]) -> Iterator[Parts]:
        """One change halfway from the mildest that fits to the next milder that does not, the others as they are."""
        ladder = self._ladders.get((parts[place].lever, parts[place].to), [])
        every = [(*parts[:place], part, *parts[place + 1 :]) for part in ladder]
        enough = next((at for at, each in enumerate(every) if fits.get(each)), None)
        if enough is None:
            return
        short = max((at for at, each in enumerate(every[:enough]) if fits.get(each) is False), default=-1)
        if enough - short > 1:
            yield every[(short + enough) // 2]


def idle_changes(measured: Sequence[tuple[Parts, tuple[int, int]]]) -> frozenset[tuple[Parts, Change]]:
    """Changes that made no difference, each with the graph beside which it made none, as `graph_of` tells them:
    with them came the same bytes and cycles as without."""
    idle: set[tuple[Parts, Change]] = set()
    for parts, made in measured:
        for fewer, same in measured:
            if made == same and len(fewer) < len(parts) and all(part in parts for part in fewer):
                idle.update((graph_of(fewer), part) for part in parts if part not in fewer)
    return frozenset(idle)


def graph_of(parts: Parts) -> Parts:
    """The changes that make another graph: of the batch, the precision or the optimizer. The others are options."""
    return tuple(part for part in parts if part.arguments)


def without_idle(parts: Parts, idle: frozenset[tuple[Parts, Change]]) -> Parts:
    """The parts but for those that did nothing beside the graph of the others."""
    return tuple(
        part for part in parts if (graph_of(tuple(each for each in parts if each is not part)), part) not in idle
    )


def _below(bound: float, mean: np.ndarray[Any, Any], deviation: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How likely a normal number is below a bound."""
    steps = (bound - mean) / np.maximum(deviation, 1e-9)
    found: np.ndarray[Any, Any] = 0.5 * (1 + np.vectorize(math.erf)(steps / math.sqrt(2)))
    return found


def _expected_gain(best: float, mean: np.ndarray[Any, Any], deviation: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What part of the best cost is expected to be saved, of costs whose logarithms are normal."""
    ratio = np.exp(mean - best + deviation**2 / 2)
    return np.asarray(_below(best, mean, deviation) - ratio * _below(best, mean + deviation**2, deviation))


__all__ = [
    "EACH_MORE",
    "WORTH",
    "Budget",
    "Compile",
    "Measure",
    "Outcome",
    "Progress",
    "Search",
    "Trial",
    "cost_of",
    "idle_changes",
    "without_idle",
]
