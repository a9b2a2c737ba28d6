"""How to use a whole system: stages x replicas x micro-batch x schedule, and what memory asks for, each compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from workbench.base.text import shown
from workbench.base.units import bytes_text, rate_text, things_text
from workbench.engine.frontends.describe.checks import flattened
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.fidelity import others_within
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records, text_table
from workbench.splits.find import Compile, Progress, chain_to_cut, searched
from workbench.splits.split import Split

SCHEDULES = ("Grouped", "Interleaved")
EACH = 4  # compiles of one number of stages and one micro-batch
LAST = 2  # compiles kept for the other schedule
WORSE = 2  # numbers of stages in a row that end the search


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One way to use a system: so many stages on each of so many replicas, with a split that was compiled."""

    stages: int
    replicas: int
    batch_size: int
    accumulation: int
    schedule: str
    split: Split | None = None
    problem: str = ""
    compiled: int = 0

    @property
    def profile(self) -> Profile | None:
        """What was measured of its best split."""
        return None if self.split is None else self.split.profile

    @property
    def samples_per_second(self) -> float:
        """Of all replicas; 0 where it does not fit."""
        return self.profile.samples_per_second if self.profile is not None and self.profile.fits else 0.0

    @property
    def arguments(self) -> dict[str, Any]:
        """What `wb.compile` is given for it."""
        found: dict[str, Any] = {"batch_size": self.batch_size}
        if self.stages > 1 and self.split is not None:
            found |= {**self.split.arguments, "pipeline_schedule": self.schedule}
        elif self.split is not None:
            found |= dict(self.split.best.arguments)
        found["gradient_accumulation_steps"] = self.accumulation
        return found | ({"replicas": self.replicas} if self.replicas > 1 else {})


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Report):
    """Ways to use a system, all of them compiled. `apply()` gives the best as an executable."""

    name: ClassVar[str] = "plan"
    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    system: str
    ipus: int
    uses: tuple[Use, ...]
    untried: tuple[str, ...] = ()
    request: Any = field(default=None, repr=False)

    @cached_property
    def best(self) -> Use:
        """The most samples a second of those that fit; where none does, the least over."""
        return min(self.uses, key=lambda use: (-use.samples_per_second, _over(use)))

    @property
    def told_of(self) -> Profile | None:
        """The profile of the best."""
        return self.best.profile

    @property
    def fits(self) -> bool:
        """Whether anything fits."""
        return self.best.samples_per_second > 0

    @property
    def code(self) -> str:
        """The arguments of the best as they are typed."""
        return ", ".join(f"{name}={value!r}" for name, value in self.best.arguments.items())

    def apply(self) -> Any:
        """The best, compiled. Errors: `InputError` where nothing compiled."""
        if self.best.split is None:
            raise InputError(f"nothing compiled: {self.best.problem}")
        return self.best.split.executable

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per use, the best first: `stages, replicas, ipus, batch_size, gradient_accumulation_steps, schedule,
        arguments, fits, samples_per_second, max_tile_bytes, compiled, problem`. Samples a second are modelled."""
        rows = [_row(use) for use in sorted(self.uses, key=lambda use: (-use.samples_per_second, _over(use)))]
        return pd.DataFrame(rows).convert_dtypes()

    def to_pandas(self) -> pd.DataFrame:
        """The table."""
        return self.table.copy(deep=False)

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data."""
        table = self.table.astype(object)
        return {
            "system": self.system,
            "fits": self.fits,
            "arguments": {name: list(v) if isinstance(v, tuple) else v for name, v in self.best.arguments.items()},
            "table": records(table.where(table.notna(), None)),
            "untried": list(self.untried),
        }

    @property
    def sentence(self) -> str:
        """The best use of the system."""
        best = self.best
        if not self.fits or best.profile is None:
            near = (
                "" if best.profile is None else f"; nearest, a modelled {bytes_text(_over(best))} over: {_words(best)}"
            )
            return f"Nothing that was tried fits {self.system}{near}"
        others = [use.samples_per_second for use in self.uses if use is not best and use.samples_per_second]
        near = others_within(self.known_error("cycles"), best.samples_per_second, others)
        speed = f"{rate_text(best.samples_per_second)}, modelled{near}"
        return f"{_words(best)}: {speed}, {bytes_text(best.profile.margin_bytes)} to spare on {self.system}"

    def to_text(self) -> str:
        """The sentence, the table, what was not tried, the arguments to type, and typical errors."""
        table = self.table.astype(object)
        left = "\n".join(f"Not tried: {each}." for each in self.untried)
        parts = [
            shown(self.sentence) + ".",
            text_table(table.where(table.notna(), "")),
            left,
            self.code,
            "\n".join(self.errors),
        ]
        return "\n\n".join(each for each in parts if each)


def _words(use: Use) -> str:
    stages = things_text(use.stages, "stage") + (f", {use.schedule}" if use.stages > 1 else "")
    each = f"{things_text(use.replicas, 'replica')} of {stages}" if use.replicas > 1 else stages
    return f"{each}, micro-batches of {use.batch_size:,}, {use.accumulation:,} of them a weight update"


def _over(use: Use) -> int:
    return 2**62 if use.profile is None else max(0, -use.profile.margin_bytes)


def _row(use: Use) -> dict[str, Any]:
    profile = use.profile
    split = {} if use.split is None else use.split.best.arguments
    return {
        "stages": use.stages,
        "replicas": use.replicas,
        "ipus": use.stages * use.replicas,
        "batch_size": use.batch_size,
        "gradient_accumulation_steps": use.accumulation,
        "schedule": use.schedule if use.stages > 1 else "",
        "arguments": ", ".join(f"{name}={value!r}" for name, value in split.items()),
        "fits": None if profile is None else profile.fits,
        "samples_per_second": None if profile is None else profile.samples_per_second,
        "max_tile_bytes": None if profile is None else profile.max_tile_bytes,
        "compiled": use.compiled,
        "problem": use.problem,
    }


def plan(
    request: Any,
    compile: Compile,
    *,
    ipus: int,
    system: str,
    global_batch: int,
    compiles: int,
    progress: Progress | None = None,
) -> Plan:
    """The uses of a system of so many IPUs: see `wb.plan`."""
    chain = chain_to_cut(request, "wb.plan")
    if request.inputs and request.batch_size is None:  # an example says the batch: there are no others to try
        first = flattened("inputs", request.inputs[0])[0]
        request = request.replace(batch_size=first.shape[0] if getattr(first, "shape", ()) else None)
    search = _Search(request=request, compile=compile, chain=chain, batch=global_batch, left=compiles, heard=progress)
    worse = 0
    for stages in (1 << place for place in range(ipus.bit_length())):
        if stages > min(ipus, len(chain.names)):
            continue
        if worse == WORSE:
            reason = f"{WORSE} numbers of stages in a row gave nothing faster"
            search.untried.append(f"{things_text(stages, 'stage')}: {reason}")
            break
        best, tried = search.best, len(search.uses)
        search.stages(stages, ipus // stages)
        if len(search.uses) > tried:  # what was not compiled says nothing about more stages
            worse = worse + 1 if 0 < best == search.best else 0
    search.further()
    search.schedules()
    if not search.uses:
        raise InputError(f"there is no use of {system} to try: {'; '.join(search.untried)}")
    return Plan(system=system, ipus=ipus, uses=tuple(search.uses), untried=tuple(search.untried), request=request)


@dataclass(slots=True, kw_only=True)
class _Search:
    request: Any
    compile: Compile
    chain: Any
    batch: int
    left: int
    heard: Progress | None
    uses: list[Use] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The most samples a second so far."""
        return max((use.samples_per_second for use in self.uses), default=0.0)

    def stages(self, stages: int, replicas: int) -> None:
        """One number of stages: micro-batches from the smallest, twice as large while they fit and are faster."""
        sizes = self._sizes(replicas)
        if not sizes:
            copies, samples = things_text(replicas, "replica"), things_text(self.batch, "sample")
            reason = f"{samples} {'is' if self.batch == 1 else 'are'} no multiple of them"
            self.untried.append(f"{things_text(stages, 'stage')} × {copies}: {reason}")
        before = 0.0
        for size in sizes:
            if self.left <= LAST:
                these = f"{things_text(stages, 'stage')} with micro-batches of {size:,}"
                self.untried.append(f"{these}: the compiles are used up")
                return
            use = self._use(stages, replicas, size, SCHEDULES[0])
            if use.samples_per_second <= before:
                return
            before = use.samples_per_second

    def _sizes(self, replicas: int) -> list[int]:
        """Micro-batches that make up the global batch: the one asked for, else powers of two."""
        each, rest = divmod(self.batch, replicas)
        asked = self.request.batch_size
        sizes = [asked] if asked else [1 << place for place in range(max(1, each).bit_length())]
        return [size for size in sizes if not rest and each % size == 0]

    def further(self) -> None:
        """What is best again, or came nearest where nothing fits, with the compiles that are left.

        Only where its own were used up, and more are left than those: a search begins anew, in which what was compiled
        is taken as it is.
        """
        known = [use for use in self.uses if use.profile is not None]
        if not known:
            return
        fits = self.best > 0
        first = max(known, key=lambda use: use.samples_per_second) if fits else min(known, key=_over)
        most = self.left - LAST if fits else self.left
        if EACH <= first.compiled < most:
            self.uses.remove(first)
            made = [] if first.split is None else [each.executable for each in first.split.attempts]
            again = self._use(first.stages, first.replicas, first.batch_size, first.schedule, most, made)
            self.uses[-1] = replace(again, compiled=first.compiled + again.compiled)

    def _use(
        self, stages: int, replicas: int, size: int, schedule: str, most: int = EACH, made: Sequence[Any] = ()
    ) -> Use:
        """One use, with at most so many compiles besides those that were `made`."""
        accumulation = self.batch // replicas // size
        told: dict[str, Any] = {
            "stages": stages,
            "replicas": replicas,
            "batch_size": size,
            "accumulation": accumulation,
            "schedule": schedule,
        }
        options = {"pipeline.schedule": schedule} if stages > 1 else {}
        request = self.request.replace(
            replicas=replicas, batch_size=size, gradient_accumulation_steps=accumulation, options=options
        )
        taken: list[Any] = []

        def compile(asked: Any, progress: Progress | None, like: Any) -> Any:
            known = next((each for each in made if each is not None and each.request == asked), None)
            taken.extend([] if known is None else [known])
            return self.compile(asked, progress, like) if known is None else known

        compiles = max(1, min(most, self.left)) + len(made)
        try:
            split = searched(request, compile, self.chain, stages, compiles, self._listener(told))
            use = Use(**told, split=split, compiled=len(split.attempts) - len(taken))
        except WorkbenchError as problem:
            use = Use(**told, problem=str(problem), compiled=1)
        self.left -= use.compiled
        self.uses.append(use)
        return use

    def _listener(self, told: dict[str, Any]) -> Progress | None:
        heard = self.heard
        stages, replicas = things_text(told["stages"], "stage"), things_text(told["replicas"], "replica")
        schedule = f", {told['schedule']}" if told["stages"] > 1 else ""
        title = f"{stages} × {replicas}{schedule}, micro-batches of {told['batch_size']:,}"
        return None if heard is None else lambda phase: heard(f"{title}, {phase}")

    def schedules(self) -> None:
        """The other schedule for the best that was found in stages."""
        best = max(self.uses, key=lambda use: use.samples_per_second, default=None)
        if best is not None and best.stages > 1 and best.samples_per_second and self.left > 0:
            self._use(best.stages, best.replicas, best.batch_size, SCHEDULES[1])


__all__ = ["Plan", "Use", "plan"]
