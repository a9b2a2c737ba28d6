"""The loop of `wb.autosplit`: compile, read what layers cost, search the best cuts, compile those, and so on.

The compiler is a function that is given, as in diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.base.units import some_text, things_text
from workbench.engine.frontends.staging.chain import LayerChain, chain_of
from workbench.errors import Cancelled, InputError, WorkbenchError
from workbench.executable.pipelines import FILLINGS, OFFLOAD, devices_of, offload_options, recomputation_options
from workbench.executable.sources import TRACING, check_layered
from workbench.profiler.advice.levers.situation import accumulators_apart
from workbench.profiler.profile import with_meta
from workbench.splits.costs import StageCosts, costs_of
from workbench.splits.decided import WITHIN, Balanced, decided
from workbench.splits.layout import Layout
from workbench.splits.search import Cuts, along, best_cuts
from workbench.splits.split import Attempt, Split, check_stages, stages_of, typed

Progress = Callable[[str], None]
Compile = Callable[[Any, Progress | None, Any], Any]

# What memory may ask for besides, mildest first: each costs time, and leaves every number as it is. With the results of
# all layers kept no more is made again at a time than what lies in one of them.
RELIEFS: tuple[dict[str, Any], ...] = (
    {"recomputation": True},
    {"recomputation": True, "recomputation_checkpoints": ("*",)},
    {"offload": ("optimizer_state",)},
    {"offload": ("optimizer_state", "activations")},
    {"offload": ("optimizer_state", "activations", "gradient_accumulation_buffers")},
    {"offload": ("optimizer_state", "activations", "gradient_accumulation_buffers", "weights")},
)
COMPILES = 8
FEW = 3  # pairs of layers that a sentence names


def autosplit(
    request: Any, compile: Compile, ipus: int, compiles: int = COMPILES, progress: Progress | None = None
) -> Split:
    """The split of a request's model over `ipus` stages: see `wb.autosplit`."""
    chain = chain_to_cut(request, "wb.autosplit")
    check_stages(chain.names, ipus)
    if request.gradient_accumulation_steps <= 1:
        stages = Layout.of(chain, ipus, mapped=bool(devices_of(request.options))).stages
        request = request.replace(gradient_accumulation_steps=FILLINGS * 2 * stages)
    return searched(request, compile, chain, ipus, compiles, progress)


def chain_to_cut(request: Any, caller: str) -> LayerChain:
    """The layers of a request's model. Errors: `InputError` where there are none, or stages are given already."""
    if request.stages is not None:
        raise InputError(f"stages is given, and {caller} finds them", todo="leave stages out")
    check_layered(request, caller)
    with TRACING:
        return chain_of(request.source)


def searched(
    request: Any,
    compile: Compile,
    chain: LayerChain,
    ipus: int,
    compiles: int,
    progress: Progress | None,
    reliefs: Sequence[dict[str, Any]] = RELIEFS,
) -> Split:
    """The best split of a chain over so many stages; of one stage the program without stages."""
    search = _Search(
        request=request,
        compile=compile,
        chain=chain,
        layout=Layout.of(chain, ipus, mapped=bool(devices_of(request.options))),
        left=compiles,
        progress=progress,
        reliefs=reliefs,
    )
    search.run()
    if all(each.executable is None for each in search.attempts):
        raise _none_compiles(search)
    return _told(Split(names=chain.names, attempts=tuple(search.attempts), untried=search.untried), search)


def _told(split: Split, search: _Search) -> Split:
    """The split that says what decided it, and whose compiled program says so too."""
    best, layout = split.best, search.layout
    profile = best.profile
    if layout.ipus == 1 or profile is None or not split.fits:
        return split
    costs = costs_of(profile, search.chain.names, split.stages, search._crossing(profile))
    text = decided(best, search.attempts, Balanced.of(layout, costs, best.cuts), split.names)
    if text:
        best.executable.profile = with_meta(profile, pipeline={**profile.meta["pipeline"], "decided": text})
    return replace(split, decided=text)


def _none_compiles(search: _Search) -> InputError:
    """What is said where no split compiles; of layers that share variables, over how many IPUs they can be cut."""
    chain, ipus = search.chain, search.layout.ipus
    most = ipus if devices_of(search.request.options) else Layout.most(chain, ipus)
    if most == ipus:
        return InputError(f"no split compiles: {search.attempts[0].problem}")
    pairs = some_text([f"{chain.names[first]!r} and {chain.names[last]!r}" for first, last in chain.shared], FEW)
    return InputError(
        f"no split over {ipus} IPUs compiles: layers that share a variable have to be on one, {pairs}, which leaves "
        "too few places to cut",
        expected=f"at most {things_text(most, 'IPU')}",
        todo=f"split it over {most}" if most > 1 else "compile it without stages for one IPU",
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    """Splits that were compiled, and what layers cost in the last of them."""

    request: Any
    compile: Compile
    chain: LayerChain
    layout: Layout
    left: int
    progress: Progress | None
    reliefs: Sequence[dict[str, Any]] = RELIEFS
    attempts: list[Attempt] = field(default_factory=list)
    untried: str = ""

    @property
    def _fits(self) -> bool:
        return any(one.profile is not None and one.profile.fits for one in self.attempts)

    def run(self) -> None:
        """Without any relief, then with one after another until something fits.

        What is offloaded comes to the recomputation that left least, and only what the program holds.
        """
        self._settle({}, more=self.request.mode != "inference" and bool(self.reliefs))
        first = self.attempts[0].profile
        if first is None or first.meta.get("mode") != "training":
            return
        recomputed: list[Attempt] = []
        for place, each in enumerate(self.reliefs):
            if self._fits:
                return
            best = min(recomputed, key=lambda one: one.rank, default=None)
            relief = self._useful(each if "recomputation" in each or best is None else {**best.arguments, **each})
            if relief is None:
                continue
            if self.left <= 0:
                self.untried = typed(relief)
                return
            before = len(self.attempts)
            self._settle(relief, more=place + 1 < len(self.reliefs))
            if "offload" not in relief:
                recomputed += [one for one in self.attempts[before:] if one.profile is not None]

    def _useful(self, relief: dict[str, Any]) -> dict[str, Any] | None:
        """A relief with what is offloaded left out that there is not; None where it asks for nothing new."""
        held = tuple(name for name in relief.get("offload", ()) if self._holds(OFFLOAD[name][1] or "stash"))
        found = {name: value for name, value in relief.items() if name not in ("offload", "device_mapping")}
        found |= {"offload": held} if held else {}
        asked = self.request.options
        if "recomputation_checkpoints" in found and asked.get("pipeline.recomputation_checkpoints"):
            del found["recomputation_checkpoints"]  # they are given
        known = [options_of(each.arguments) for each in self.attempts]
        mapped = {"pipeline.device_mapping": self.layout.devices} if self.layout.devices else {}
        if not found or any({**mapped, **options_of(found)} == each for each in known):
            return None
        return found if any(asked.get(name) != value for name, value in options_of(found).items()) else None

    def _holds(self, kind: str) -> bool:
        """Whether variables of a kind take enough of the tiles in any split to be worth a compile."""
        for profile in (each.profile for each in self.attempts if each.profile is not None):
            variables, target = accumulators_apart(profile.variables), profile.target
            room = profile.ipus * int(target["tiles_per_ipu"]) * int(target["bytes_per_tile"])
            if variables.loc[variables["kind"] == kind, "bytes"].sum() >= LEAST * room:
                return True
        return False

    def _settle(self, relief: dict[str, Any], more: bool) -> None:
        """Compile the best known cuts and those that follow from what it shows, until they are known already.

        With `more` reliefs to come, no further cuts are compiled where all are far over, or once one that does not fit
        was no better: what is over is of no cut.
        """
        cuts: Cuts | None = self._start()
        expected: StageCosts | None = None
        tried: set[Cuts] = set()
        best, idle = None, 0
        while cuts is not None and self.left > 0 and idle < IDLE:
            tried.add(cuts)
            attempt = self._attempt(cuts, relief, expected)
            if attempt.profile is None or self.layout.ipus == 1:
                return
            best, idle = (attempt, 0) if best is None or attempt.rank < best.rank else (best, idle + 1)
            if more and idle and best.profile is not None and not best.profile.fits:
                return
            stages = stages_of(attempt.cuts, len(self.chain.names))
            expected = costs_of(attempt.profile, self.chain.names, stages, self._crossing(attempt.profile))
            cuts = self._next(expected, tried, int(attempt.profile.target["bytes_per_tile"]), more)
        if cuts is not None and self.left <= 0 and idle < IDLE and not self._fits:
            self.untried = "other cuts"

    def _start(self) -> Cuts:
        """The best cuts so far, at first as many layers on each stage."""
        measured = [each for each in self.attempts if each.profile is not None]
        if measured:
            return self.layout.searched(min(measured, key=lambda each: each.rank).cuts)
        return self.layout.even()

    def _next(self, costs: StageCosts, tried: set[Cuts], capacity: int, more: bool) -> Cuts | None:
        """The best cuts by these costs if they were not tried; else the best beside them that promise as much."""
        cycles, needs = self.layout.tables(costs)
        best = best_cuts(cycles, needs, capacity)
        if more and max(along(needs, best)) > FAR * capacity:
            return None
        if best not in tried:
            return best
        limit = max(along(cycles, best)) * WITHIN
        beside = [
            cuts
            for cuts in self.layout.near(best)
            if cuts not in tried and max(along(cycles, cuts)) <= limit and max(along(needs, cuts)) <= capacity
        ]
        return min(beside, key=lambda cuts: max(along(cycles, cuts)), default=None)

    def _attempt(self, cuts: Cuts, relief: dict[str, Any], expected: StageCosts | None) -> Attempt:
        """Compile these cuts."""
        self.left -= 1
        told: dict[str, Any] = {}
        if expected is not None:
            by_ipu = [self.layout.by_stage(along(tables, cuts)) for tables in self.layout.tables(expected)]
            told = dict(zip(("expected_cycles", "expected_bytes"), by_ipu, strict=True))
        whole, devices = self.layout.whole(cuts), self.layout.devices
        arguments = {**relief, **({"device_mapping": list(devices)} if devices else {})}
        stages = stages_of(whole, len(self.chain.names)) if self.layout.ipus > 1 else None
        request = self.request.replace(stages=stages, options=options_of(arguments))
        executable, problem = None, ""
        try:
            executable = self.compile(request, self._heard(), self._like())
        except Cancelled:
            raise
        except WorkbenchError as error:
            problem = str(error)
        attempt = Attempt(cuts=whole, arguments=arguments, executable=executable, problem=problem, **told)
        self.attempts.append(attempt)
        return attempt

    def _like(self) -> Any:
        return next((each.executable for each in reversed(self.attempts) if each.executable is not None), None)

    def _heard(self) -> Progress | None:
        progress, number = self.progress, len(self.attempts) + 1
        turn = f"split {number} of at most {number + self.left}"
        return None if progress is None else lambda phase: progress(f"{turn}: {phase}")

    def _crossing(self, profile: Any) -> Sequence[int]:
        batch = int(self.request.batch_size or profile.meta.get("batch_size") or 1)
        return [batch * each for each in self.chain.crossing_bytes]


FAR = 1.2  # bytes of a stage are expected to within a fifth
IDLE = 2  # compiles in a row that were no better
LEAST = 0.005  # of all tiles: what holds less is not offloaded


def options_of(relief: Mapping[str, Any]) -> dict[str, Any]:
    """The options that these arguments of a compile write."""
    found: dict[str, Any] = {}
    if "recomputation" in relief:
        found |= recomputation_options(relief["recomputation"])
    if "recomputation_checkpoints" in relief:
        found["pipeline.recomputation_checkpoints"] = tuple(relief["recomputation_checkpoints"])
    if "device_mapping" in relief:
        found["pipeline.device_mapping"] = tuple(relief["device_mapping"])
    return found | (offload_options(relief["offload"]) if "offload" in relief else {})
