"""Pipeline schedules side by side: time, bubble and memory per IPU of one model, with and without recomputation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from workbench.base.collection import paused_collection
from workbench.base.text import short
from workbench.base.units import bytes_text, cycles_text, percent_text
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.advice.compare import Comparison
from workbench.profiler.fidelity import within_error
from workbench.profiler.profile import Profile
from workbench.profiler.report import face, records, text_table

SCHEDULES = ("Grouped", "Interleaved", "Sequential")
Compile = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One schedule with or without recomputation; `problem` says why it has no executable."""

    schedule: str
    recomputation: bool
    executable: Any = None
    problem: str = ""

    @property
    def title(self) -> str:
        """The trial in words."""
        return f"{self.schedule}, recomputed" if self.recomputation else self.schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class ScheduleComparison(Comparison):
    """A row per schedule and choice of recomputation. `profiles` are those of the trials that compiled, in order."""

    name: ClassVar[str] = "schedules"
    trials: tuple[Trial, ...]

    @cached_property
    def table_of_schedules(self) -> pd.DataFrame:
        """`schedule, recomputation, fits, total_cycles, seconds, samples_per_second, bubble` (idle share of IPUs x
        pipeline)`, max_tile_bytes`, then `ipu_0_tile_bytes …` (of the tiles that can decide the verdict the fullest of
        each IPU, gaps included) and `ipu_0_bytes …` (what its tiles hold always and at their peaks, together),
        `stash_bytes`, `problem`. No further tile is allocated for it."""
        found = iter(self.profiles)
        rows = [
            {"schedule": trial.schedule, "recomputation": trial.recomputation}
            | (_numbers(next(found)) if trial.executable is not None else {})
            | {"problem": trial.problem}
            for trial in self.trials
        ]
        frame = pd.DataFrame(rows)
        return frame[[*(name for name in frame.columns if name != "problem"), "problem"]]

    def to_pandas(self) -> pd.DataFrame:
        """The table of schedules."""
        return self.table_of_schedules.copy(deep=False)

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: a mapping per trial."""
        frame = self.table_of_schedules
        return {"schedules": records(frame.astype(object).where(frame.notna(), None))}

    @cached_property
    def best(self) -> Profile:
        """The fastest that fits, else the one with the least memory."""
        fitting = [profile for profile in self.profiles if profile.fits]
        if fitting:
            return min(fitting, key=lambda profile: profile.total_cycles)
        return min(self.profiles, key=lambda profile: profile.max_tile_bytes)

    @cached_property
    def sentence(self) -> str:
        """The fastest that fits, and what each of the others costs against it."""
        best = self.best
        named = {id(p): t.title for p, t in zip(self.profiles, self._compiled, strict=True)}
        parts = [
            f"{trial.title}: {_against(best, profile, again=trial.recomputation)}"
            for profile, trial in zip(self.profiles, self._compiled, strict=True)
            if profile is not best
        ]
        first = (
            f"{named[id(best)]} is {'the fastest that fits' if best.fits else 'the smallest; none fits'}"
            f"{self._as_good}: {cycles_text(best.total_cycles)} (modelled), "
            f"{percent_text(best.pipeline.bubbles()['fraction'])} idle, worst tile {bytes_text(best.max_tile_bytes)}"
        )
        return "; ".join([first, *parts])

    @property
    def _as_good(self) -> str:
        """In brackets, which others are as good to within what such numbers usually are off."""
        best = self.best
        kind, name = ("cycles", "total_cycles") if best.fits else ("memory", "max_tile_bytes")
        known, own = self.known_error(kind), int(getattr(best, name))
        near = [
            trial.title
            for profile, trial in zip(self.profiles, self._compiled, strict=True)
            if profile.fits == best.fits
            and profile is not best
            and within_error(known, own, int(getattr(profile, name)))
        ]
        return f" ({' and '.join(near)} within the typical error)" if near else ""

    @property
    def _compiled(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.executable is not None]

    def to_text(self) -> str:
        """The sentence and the table."""
        text = f"{self.sentence}\n\n{text_table(self.table_of_schedules)}".rstrip()
        return "\n".join([text, *self.errors])

    def figure(self) -> Any:
        """A plotly figure: bars of cycles by what the IPUs do, and of the fullest tile of each IPU."""
        return face(self.name).figure(self)


def _against(best: Profile, profile: Profile, *, again: bool) -> str:
    if again and any("nothing is computed again" in each for each in profile.assumptions):
        return "nothing is computed again, so all is as without"
    return (
        f"{profile.total_cycles / best.total_cycles:.2f} × the time, "
        f"{percent_text(profile.pipeline.bubbles()['fraction'])} idle, "
        f"worst tile {bytes_text(profile.max_tile_bytes)}{'' if profile.fits else ', does not fit'}"
    )


def stash_bytes(profile: Profile) -> int:
    """Bytes of all stashes; a stage's are those of its IPU, which count once where stages share it."""
    return int(profile.stages.drop_duplicates("ipu")["stash_bytes"].sum())


def _numbers(profile: Profile) -> dict[str, Any]:
    placed = profile.arrays["total_with_gaps"]
    fullest, needed = placed.max(axis=1), profile.arrays["always_live"] + profile.arrays["live_peak"]
    return {
        "fits": profile.fits,
        "total_cycles": profile.total_cycles,
        "seconds": profile.seconds,
        "samples_per_second": profile.samples_per_second,
        "bubble": profile.pipeline.bubbles()["fraction"],
        "max_tile_bytes": profile.max_tile_bytes,
        **{f"ipu_{ipu}_tile_bytes": int(value) for ipu, value in enumerate(fullest)},
        **{f"ipu_{ipu}_bytes": int(value) for ipu, value in enumerate(needed.sum(axis=1))},
        "stash_bytes": stash_bytes(profile),
    }


@paused_collection()
def compare_schedules(
    request: Any, compile: Compile, schedules: Sequence[Any] = SCHEDULES, recomputation: Sequence[bool] = (False, True)
) -> ScheduleComparison:
    """Compile a request under each schedule, with and without recomputation; the model is traced once.

    `compile(request, None, like)` makes an executable, taking from `like` what both have in common. Errors:
    `InputError` when nothing is to be compared, and what the first problem says when nothing compiles.
    """
    for each in schedules:
        name = getattr(each, "name", each)
        if not isinstance(name, str) or name not in SCHEDULES:
            raise InputError(f"schedules names {short(each)}", expected=f"some of: {', '.join(SCHEDULES)}")
    wanted = [
        (str(getattr(schedule, "name", schedule)), bool(again)) for again in recomputation for schedule in schedules
    ]
    if not wanted:
        raise InputError("there is no schedule to compare", expected=f"some of: {', '.join(SCHEDULES)}")
    trials: list[Trial] = []
    for schedule, again in wanted:
        trials.append(_tried(request, compile, schedule, again, _like(trials, again)))
    if all(trial.executable is None for trial in trials):
        raise InputError(f"no schedule compiles: {trials[0].problem}")
    profiles = tuple(trial.executable.profile for trial in trials if trial.executable is not None)
    return ScheduleComparison(profiles=profiles, trials=tuple(trials))


def _like(trials: Sequence[Trial], again: bool) -> Any:
    """The executable a further trial has most in common with: the last one that recomputes alike, else the first."""
    alike = [trial.executable for trial in reversed(trials) if trial.recomputation == again]
    every = (*alike, *(trial.executable for trial in trials))
    return next((executable for executable in every if executable is not None), None)


def _tried(request: Any, compile: Compile, schedule: str, again: bool, like: Any) -> Trial:
    try:
        changed = request.replace(options={"pipeline.schedule": schedule, "allow_recompute": again})
        return Trial(schedule=schedule, recomputation=again, executable=compile(changed, None, like))
    except WorkbenchError as problem:
        return Trial(schedule=schedule, recomputation=again, problem=str(problem))
