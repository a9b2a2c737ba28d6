"""Why a program does not fit and what mends it: levers applied one by one, compiled again, measured and ranked.

The compiler is a function that is given, so this module sees requests and profiles and nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations
from typing import Any, ClassVar

import pandas as pd

from workbench.base.units import bytes_text, cycles_text, percent_text
from workbench.errors import Cancelled, InputError, WorkbenchError
from workbench.profiler.advice.levers import DEFAULT, LEVERS, Change, Lever, Situation
from workbench.profiler.advice.snippet import code_of
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records, text_table

ATTEMPTS = 4  # compiles of one lever
NEAR = 1.1  # a peak within a tenth of a tile may come down with a milder change
Progress = Callable[[str], None]


# compile(request, progress, like) makes an executable; `like` is one whose trace may be used again.
Compile = Callable[[Any, Progress | None, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One change and what it does. `verified_*`, `fits` and `margin_bytes` are None while it was only estimated.

    `fix`: in words; `cycles_per_sample`: modelled cycles of a call over its samples; `code`: what to type;
    `note`: what else changes; `problem`: why it could not be compiled.
    """

    fix: str
    lever: str
    estimated_bytes: int
    verified_bytes: int | None = None
    verified_cycles: int | None = None
    cycles_per_sample: float | None = None
    fits: bool | None = None
    margin_bytes: int | None = None
    code: str = ""
    note: str = ""
    problem: str = ""
    change: Change = field(repr=False)


COLUMNS = (
    "fix",
    "lever",
    "estimated_bytes",
    "verified_bytes",
    "verified_cycles",
    "cycles_per_sample",
    "fits",
    "margin_bytes",
    "note",
    "code",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis(Report):
    """Fixes of one program, best first: those that fit by cycles per sample, then by the bytes still needed.

    `fixes`: one for each lever (or pair) that helps; `tried`: everything compiled; `skipped`: (lever, why not).
    """

    name: ClassVar[str] = "diagnosis"
    profile: Profile
    fixes: tuple[Fix, ...]
    tried: tuple[Fix, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    estimated: bool = False
    executable: Any = None
    compile: Compile | None = None

    @property
    def sentence(self) -> str:
        """The verdict and the best fix."""
        profile = self.profile
        if self.estimated:
            return f"Estimates only, because a loaded profile cannot be compiled again: {self._estimated_sentence}"
        best = self.fixes[0] if self.fixes else None
        if profile.fits:
            if best is None:
                return "It fits, and no lever makes it faster"
            return f"It fits; {best.fix} makes it {percent_text(1 - self.slowdown(best))} faster per sample"
        if best is None:
            return f"It is {self._over} over, and no lever lowers that"
        if best.fits:
            return (
                f"It is {self._over} over; {best.fix} makes it fit with {bytes_text(best.margin_bytes or 0)} to spare"
            )
        left = bytes_text(-(best.margin_bytes or 0))
        return f"It is {self._over} over; no lever makes it fit, and {best.fix} leaves it {left} over"

    @property
    def _over(self) -> str:
        return bytes_text(max(0, -self.profile.margin_bytes))

    @property
    def _estimated_sentence(self) -> str:
        if self.profile.fits:
            return "it fits"
        if not self.fixes:
            return f"it is {self._over} over, and no lever applies"
        left = bytes_text(self.fixes[0].estimated_bytes)
        return f"it is {self._over} over, and {self.fixes[0].fix} should bring the fullest tile to {left}"

    def slowdown(self, fix: Fix) -> float:
        """Cycles per sample of a fix over those of the program as it is."""
        base = cycles_per_sample(self.profile)
        return (fix.cycles_per_sample or 0.0) / base if base else 1.0

    @property
    def data(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "name": self.profile.name,
            "sentence": self.sentence,
            "fits": self.profile.fits,
            "estimated": self.estimated,
            "max_tile_bytes": self.profile.max_tile_bytes,
            "bytes_per_tile": int(self.profile.target["bytes_per_tile"]),
            "fixes": records(self.to_pandas()),
            "tried": records(_table(self.tried)),
            "skipped": [list(each) for each in self.skipped],
        }

    def to_pandas(self) -> pd.DataFrame:
        """A row per fix, in the order of `fixes`."""
        return _table(self.fixes)

    def to_text(self) -> str:
        """The sentence, a line per fix, what was not tried, and the code of the best fix."""
        rows = [
            {
                "fix": fix.fix,
                "fullest tile": bytes_text(fix.estimated_bytes if fix.verified_bytes is None else fix.verified_bytes),
                "": _verdict(fix),
                "per sample": "" if fix.cycles_per_sample is None else cycles_text(fix.cycles_per_sample),
            }
            for fix in self.fixes
        ]
        notes = [f"{fix.fix}: {fix.note}" for fix in self.fixes if fix.note]
        notes += [f"Not tried: {lever}: {reason}." for lever, reason in self.skipped]
        notes += [f"{fix.fix}: {fix.problem}" for fix in self.tried if fix.problem]
        code = [self.fixes[0].code] if self.fixes else []
        parts = [self.sentence + ".", text_table(pd.DataFrame(rows)), "\n".join(notes), *code]
        return "\n\n".join(part for part in parts if part)

    def apply(self, index: int = 0, progress: Progress | None = None) -> Any:
        """Compile with a fix, counted as in `fixes`. Errors: `InputError` without such a fix or on a loaded profile."""
        if self.compile is None:
            raise InputError("a loaded profile cannot be compiled again", todo="compile the model, then diagnose that")
        if not 0 <= index < len(self.fixes):
            raise InputError(f"there is no fix {index}", expected=f"a number below {len(self.fixes)}")
        return self.compile(self.fixes[index].change.applied(self.executable.request), progress, self.executable)


def _table(fixes: Sequence[Fix]) -> pd.DataFrame:
    return pd.DataFrame([[getattr(fix, name) for name in COLUMNS] for fix in fixes], columns=list(COLUMNS))


def _verdict(fix: Fix) -> str:
    if fix.margin_bytes is None:
        return "estimated"
    if fix.fits:
        return f"fits, {bytes_text(fix.margin_bytes)} to spare"
    return f"{bytes_text(-fix.margin_bytes)} over" if fix.margin_bytes < 0 else "does not fit its region"


def cycles_per_sample(profile: Profile) -> float:
    """Modelled cycles of one call over its samples; of the whole call where samples are not known."""
    return profile.total_cycles / (int(profile.meta.get("samples_per_call") or 0) or 1)


def diagnose(
    executable: Any, compile: Compile, levers: Sequence[str] | None = None, progress: Progress | None = None
) -> Diagnosis:
    """Try levers on an executable (or, as estimates, on a loaded profile) and rank what helps.

    `levers`: names, default `available_memory`, `half_partials` and `micro_batch`; also `half_precision`. `progress`
    hears `"fix: phase"` as each phase of a candidate begins; what it raises stops the diagnosis.
    """
    found = _levers(levers)
    if not isinstance(executable, Profile) and not isinstance(getattr(executable, "profile", None), Profile):
        raise InputError(
            f"diagnose was given {executable!r}",
            expected="what wb.compile returns, or a profile",
            todo="write wb.diagnose(wb.compile(model, batch_size=…)), with the arguments of the compile",
        )
    profile = executable if isinstance(executable, Profile) else executable.profile
    request = None if isinstance(executable, Profile) else executable.request
    situation = Situation(profile=profile, fixed_inputs=bool(getattr(request, "inputs", ())))
    proposals = [(lever, *lever.propose(situation)) for lever in found]
    skipped = tuple((lever.title, reason) for lever, changes, reason in proposals if not changes)
    ladders = [changes for _, changes, _ in proposals if changes]
    if request is None:
        fixes = [_estimate(change, None) for changes in ladders for change in changes]
        fixes = [] if profile.fits else sorted(fixes, key=lambda fix: fix.estimated_bytes)
        return Diagnosis(profile=profile, fixes=tuple(fixes), skipped=skipped, estimated=True)
    trial = _Trial(executable=executable, compile=compile, progress=progress or (lambda text: None))
    fixes = trial.faster(ladders) if profile.fits else trial.smaller(ladders)
    return Diagnosis(
        profile=profile,
        fixes=tuple(fixes),
        tried=tuple(trial.tried),
        skipped=skipped,
        executable=executable,
        compile=compile,
    )


def _levers(names: Any) -> list[Lever]:
    """Levers by name: one, or several."""
    wanted = DEFAULT if names is None else (names,) if isinstance(names, str) else names
    for name in wanted if isinstance(wanted, list | tuple) else (wanted,):
        if not isinstance(name, str) or name not in LEVERS:
            raise InputError(f"unknown lever {name!r} in levers", expected=f"any of: {', '.join(LEVERS)}")
    return [LEVERS.get(name) for name in wanted or DEFAULT]


def _estimate(change: Change, request: Any) -> Fix:
    return Fix(
        fix=change.title,
        lever=change.lever,
        estimated_bytes=change.estimated_bytes,
        code=code_of(change, request),
        note=change.note,
        change=change,
    )


def _rank(fix: Fix) -> tuple[bool, float]:
    return not fix.fits, float((fix.cycles_per_sample if fix.fits else fix.verified_bytes) or 0)


@dataclass(slots=True)
class _Trial:
    """Compiles changes and remembers what it measured."""

    executable: Any
    compile: Compile
    progress: Progress
    tried: list[Fix] = field(default_factory=list)

    def measured(self, change: Change) -> Fix:
        """A change applied, compiled and measured; one that cannot be compiled keeps its problem."""
        request = change.applied(self.executable.request)
        estimate = _estimate(change, self.executable.request)
        try:
            profile = self.compile(
                request, lambda phase: self.progress(f"{change.title}: {phase}"), self.executable
            ).profile
        except Cancelled:
            raise
        except WorkbenchError as error:
            fix = replace(estimate, problem=str(error))
        else:
            fix = replace(
                estimate,
                verified_bytes=profile.max_tile_bytes,
                verified_cycles=profile.total_cycles,
                cycles_per_sample=cycles_per_sample(profile),
                fits=profile.fits,
                margin_bytes=profile.margin_bytes,
            )
        self.tried.append(fix)
        return fix

    def smaller(self, ladders: Sequence[Sequence[Change]]) -> list[Fix]:
        """The mildest fitting change of each lever, else its lowest; levers together where none fits alone.

        The best fitting change is also tried with those that do not fit alone and are faster than what was compiled.
        """
        base = self.executable.profile
        found = [fix for fix in map(self._climb, ladders) if fix is not None]
        kept = [fix for fix in found if fix.fits or (fix.verified_bytes or 0) < base.max_tile_bytes]
        best = min(kept, key=_rank, default=None)
        if best is None or not best.fits:
            return sorted([*kept, *self._together([fix.change for fix in kept])], key=_rank)
        faster = [fix for fix in kept if not fix.fits and (fix.cycles_per_sample or 0) < cycles_per_sample(base)]
        joined = [self.measured(best.change.joined(fix.change, base.max_tile_bytes)) for fix in faster]
        return sorted([*kept, *(fix for fix in joined if fix.fits)], key=_rank)

    def _climb(self, changes: Sequence[Change]) -> Fix | None:
        """Of a few steps of one lever, the fastest that fits, else the lowest."""
        fixes = self._by_size(changes) if changes[0].scale else self._between(changes)
        return min((fix for fix in fixes if not fix.problem), key=_rank, default=None)

    def _between(self, changes: Sequence[Change]) -> Iterator[Fix]:
        """The mildest, the strongest, and those between them when the strongest fits or comes near."""
        mildest = self.measured(changes[0])
        yield mildest
        if mildest.fits or len(changes) == 1:
            return
        strongest = self.measured(changes[-1])
        if strongest.fits or (strongest.verified_bytes or 0) <= NEAR * self._limit:
            for change in changes[1:-1]:
                fix = self.measured(change)
                yield fix
                if fix.fits:
                    return
        yield strongest

    def _by_size(self, changes: Sequence[Change]) -> Iterator[Fix]:
        """From the mildest, past those that the measured sizes rule out, at most `ATTEMPTS`."""
        left, last = list(changes), (1.0, self.executable.profile.max_tile_bytes)
        for _ in range(ATTEMPTS):
            if not left:
                return
            change = left.pop(0)
            fix = self.measured(change)
            yield fix
            if fix.fits:
                return
            if fix.verified_bytes is not None:
                left = self._promising(left, last, (change.scale, fix.verified_bytes))
                last = (change.scale, fix.verified_bytes)

    @property
    def _limit(self) -> int:
        return int(self.executable.profile.target["bytes_per_tile"])

    def _promising(self, left: list[Change], last: tuple[float, int], now: tuple[float, int]) -> list[Change]:
        """Without the changes that a line through two measured sizes says are too large, if it finds any others."""
        step = last[0] - now[0]
        if not now[0] or step <= 0:
            return left
        slope = (last[1] - now[1]) / step
        found = [place for place, change in enumerate(left) if now[1] - slope * (now[0] - change.scale) <= self._limit]
        return left[found[0] :] if found else left

    def _together(self, changes: Sequence[Change]) -> Iterator[Fix]:
        base = self.executable.profile.max_tile_bytes
        for count in range(2, len(changes) + 1):
            fixes = [
                self.measured(reduce(lambda one, other: one.joined(other, base), group))
                for group in combinations(changes, count)
            ]
            yield from (fix for fix in fixes if not fix.problem)
            if any(fix.fits for fix in fixes):
                return

    def faster(self, ladders: Sequence[Sequence[Change]]) -> list[Fix]:
        """The fastest fitting change of each lever that is faster than the program as it is."""
        base = cycles_per_sample(self.executable.profile)
        kept = []
        for changes in ladders:
            fixes = [fix for fix in map(self.measured, changes) if fix.fits]
            best = min(fixes, key=_rank, default=None)
            if best is not None and (best.cycles_per_sample or base) < base:
                kept.append(best)
        return sorted(kept, key=_rank)
