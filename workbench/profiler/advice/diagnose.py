"""Why a program does not fit and what mends it: changes applied, compiled again, measured and ranked.

The compiler is a function that is given, so this module sees requests and profiles and nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any, ClassVar

import pandas as pd

from workbench.base.text import meant, short
from workbench.base.units import bytes_text, cycles_text, percent_text, things_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.advice.explain import known_error
from workbench.profiler.advice.levers import LAST, LEVELS, LEVERS, Change, Lever, Situation, joined
from workbench.profiler.advice.search.candidates import candidates, refused
from workbench.profiler.advice.search.stages import SplitFinder, wanted, with_stages
from workbench.profiler.advice.search.trial import (
    EACH_MORE,
    WORTH,
    Budget,
    Compile,
    Measure,
    Outcome,
    Progress,
    Trial,
    cost_of,
)
from workbench.profiler.advice.snippet import code_of
from workbench.profiler.advice.tips import hand_made_advice
from workbench.profiler.fidelity import in_doubt, within_error
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, face, records, text_table

COMPILES = 24
SHOWN = 8  # rows of the text; the table has them all
STAGES = "stages"
_STAGES_TITLE = "pipeline stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Changes made at once and what they do. `verified_*`, `fits` and `margin_bytes` are None while only estimated.

    `fix`: in words; `lever`: names joined by +; `cycles_per_sample`: modelled cycles of a call over its samples;
    `cost`: those times the IPUs; `numbers`: what becomes of the numbers, of `LEVELS`, and `effect` in words; `code`:
    what to type; `note`: what else changes; `doubt`: how many published memories were further off than its margin;
    `problem`: why it could not be compiled.
    """

    fix: str
    lever: str
    estimated_bytes: int
    verified_bytes: int | None = None
    verified_cycles: int | None = None
    cycles_per_sample: float | None = None
    ipus: int | None = None
    cost: float | None = None
    numbers: str = "exact"
    effect: str = ""
    fits: bool | None = None
    margin_bytes: int | None = None
    code: str = ""
    note: str = ""
    doubt: str = ""
    problem: str = ""
    change: Change = field(repr=False)

    @property
    def options(self) -> dict[str, Any]:
        """What it sets: options of the configuration by dotted name, and arguments of the compile."""
        return dict(self.change.options) | dict(self.change.arguments)

    @property
    def levers(self) -> frozenset[str]:
        """The levers that are moved."""
        return frozenset(self.lever.split("+"))


COLUMNS = (
    "fix",
    "lever",
    "estimated_bytes",
    "verified_bytes",
    "verified_cycles",
    "cycles_per_sample",
    "ipus",
    "cost",
    "numbers",
    "effect",
    "fits",
    "margin_bytes",
    "doubt",
    "note",
    "options",
    "code",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis(Report):
    """Fixes of one program, best first: those that fit by cycles x IPUs a sample, then by the bytes still needed.

    `fixes`: what helps; `tried`: everything compiled, in order; `skipped`: (lever, why not); `ended`: whether all is
    tried that will be.
    """

    name: ClassVar[str] = "diagnosis"
    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    profile: Profile
    fixes: tuple[Fix, ...]
    tried: tuple[Fix, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    estimated: bool = False
    ended: bool = True
    executable: Any = None
    compile: Compile | None = None

    @property
    def sentence(self) -> str:
        """The verdict and the best fix."""
        profile = self.profile
        if self.estimated:
            return f"Estimates only, because a profile has no model to compile again: {self._estimated_sentence}"
        best = self.fixes[0] if self.fixes else None
        if best is None and not self.ended:
            return f"It {'fits' if profile.fits else f'is {self._over} over'}, and none of these helps"
        if profile.fits:
            if best is None:
                return f"It fits, and {self._none} makes it faster"
            slower, known = self.slowdown(best), self.known_error("cycles")
            doubt = within_error(known, 1.0, slower)
            return (
                f"It fits; {best.fix} makes it {percent_text(1 - slower)} faster per sample, modelled"
                f"{f' and {doubt}' if doubt else ''}"
            )
        if best is None:
            return f"It is {self._over} over, and {self._none} lowers that{self._by_hand}"
        if best.fits:
            return (
                f"It is {self._over} over; {best.fix} makes it fit with {bytes_text(best.margin_bytes or 0)} to spare"
            )
        left = bytes_text(-(best.margin_bytes or 0))
        none = self._none if self.ended else "none of these"
        return f"It is {self._over} over; {none} makes it fit, and {best.fix} leaves it {left} over"

    @property
    def _none(self) -> str:
        """Who does not help: of many combinations a search compiles some alone, and only of these it is known."""
        return f"no change of the {len(self.tried):,} tried" if self.tried else "no lever"

    @property
    def _over(self) -> str:
        return "a modelled " + bytes_text(max(0, -self.profile.margin_bytes))

    @property
    def _by_hand(self) -> str:
        """What the author of a program may do: a mapping is no lever, which would be another program."""
        advice = hand_made_advice(self.profile)
        return f": {advice}" if advice else ""

    @property
    def _estimated_sentence(self) -> str:
        if self.profile.fits:
            return "it fits"
        if not self.fixes:
            return f"it is {self._over} over, and no lever applies{self._by_hand}"
        left = bytes_text(self.fixes[0].estimated_bytes)
        return f"it is {self._over} over, and {self.fixes[0].fix} should bring the fullest tile to {left}"

    def slowdown(self, fix: Fix) -> float:
        """Cycles x IPUs a sample of a fix over those of the program as it is."""
        base = cost_of(self.profile)
        return (fix.cost or 0.0) / base if base else 1.0

    def pareto(self) -> pd.DataFrame:
        """The fixes that fit and that no other that fits beats in cost and in bytes at once; the cheapest first."""
        kept: list[Fix] = []
        for fix in self.fixes:
            least = min((each.verified_bytes or 0 for each in kept), default=None)
            if fix.fits and (least is None or (fix.verified_bytes or 0) < least):
                kept.append(fix)
        return _table(kept)

    def figure(self, kind: str = "bars") -> Any:
        """A plotly figure: `"bars"`, bytes of each fix, or `"scatter"`, bytes against cost, capacity and front."""
        return face(self.name).figure(self, kind)

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
                "cycles x IPUs a sample": "" if fix.cost is None else cycles_text(fix.cost),
                "numbers": fix.numbers,
            }
            for fix in self.fixes
        ]
        notes = [f"{fix.fix}: {says(fix)}" for fix in self.fixes[:1]]
        notes += [f"The verdict of the first is {fix.doubt}." for fix in self.fixes[:1] if fix.doubt]
        notes += [f"Not tried: {lever}: {reason}." for lever, reason in self.skipped]
        notes += [f"{fix.fix}: {fix.problem}" for fix in self.tried if fix.problem]
        code = [self.fixes[0].code] if self.fixes else []
        table, errors = text_table(pd.DataFrame(rows), SHOWN), "\n".join(self.errors)
        parts = [self.sentence + ".", table, "\n".join(notes), *code, errors]
        return "\n\n".join(part for part in parts if part)

    def apply(self, index: int = 0, progress: Progress | None = None) -> Any:
        """Compile with a fix, counted as in `fixes`. Errors: `InputError` without such a fix or of a profile alone."""
        if self.compile is None:
            raise InputError(
                "a profile has no model to compile again",
                todo="write wb.diagnose(wb.compile(model, …)), with the arguments of the profile",
            )
        if not 0 <= index < len(self.fixes):
            raise InputError(f"there is no fix {index}", expected=f"a number below {len(self.fixes)}")
        return self.compile(self.fixes[index].change.applied(self.executable.request), progress, self.executable)


def _table(fixes: Sequence[Fix]) -> pd.DataFrame:
    return pd.DataFrame([[getattr(fix, name) for name in COLUMNS] for fix in fixes], columns=list(COLUMNS))


def says(fix: Fix) -> str:
    """What a fix does to the numbers, and what else it changes."""
    return " ".join(part for part in (fix.effect, fix.note) if part)


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
    executable: Any,
    compile: Compile,
    *,
    keep_numbers: str = "any",
    ipus: int | None = None,
    levers: Sequence[str] | None = None,
    compiles: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
    heard: Callable[[Fix], None] | None = None,
    so_far: Callable[[Diagnosis], None] | None = None,
    split: SplitFinder | None = None,
    measure: Measure | None = None,
    width: int = 1,
) -> Diagnosis:
    """Try changes of an executable (or, as estimates, of a profile alone) and rank what helps: see `wb.diagnose`.

    `heard` is given each row as it is measured, `so_far` the diagnosis that all of them make until then. `split` finds
    stages, as `SplitFinder`; without it none are tried. `measure` compiles `width` requests at once.
    """
    found, profile = _levers(levers), _profile_of(executable)
    if keep_numbers not in LEVELS:
        raise InputError(f"keep_numbers is {keep_numbers!r}", expected=f"one of: {', '.join(LEVELS)}")
    budget = Budget(compiles=COMPILES if compiles is None else whole("compiles", compiles), seconds=_seconds(seconds))
    most = 1 if ipus is None else whole("ipus", ipus)
    request = None if isinstance(executable, Profile) else executable.request
    situation = Situation(profile=profile, fixed_inputs=bool(getattr(request, "inputs", ())), request=request)
    ladders, skipped = _ladders(found, situation, keep_numbers)
    if levers is not None:
        _check_allowed(ladders, keep_numbers)
    named = levers is not None and STAGES in ((levers,) if isinstance(levers, str) else levers)
    if request is None:
        if named:
            skipped.append((_STAGES_TITLE, "only what was compiled can be cut"))
        singles = [parts[0] for parts in candidates(ladders, keep_numbers) if len(parts) == 1]
        fixes = [] if profile.fits else sorted((_estimate(each, None) for each in singles), key=_by_estimate)
        return Diagnosis(profile=profile, fixes=tuple(fixes), skipped=tuple(skipped), estimated=True)
    trial = Trial(
        executable=executable,
        compile=compile,
        progress=progress or (lambda text: None),
        heard=lambda outcome: _tell(trial, outcome, heard, so_far),
        budget=budget,
        measure=measure,
        width=width,
    )
    without = _why_no_stages(request, situation, most) if levers is None or named else "it is not named"
    staged = split is not None and not without
    stages = partial(with_stages, trial, split, situation, most, keep_numbers) if split and staged else None
    cut = _search(trial, situation, ladders, keep_numbers, every=levers is None, stages=stages)
    if named and not cut:
        skipped.append((_STAGES_TITLE, without or "something fits well on the program's own IPUs"))
    if trial.left_out:
        skipped.append((things_text(trial.left_out, "combination"), "none promised more, or the compiles were used up"))
    return _diagnosis(trial, skipped, ended=True)


def _diagnosis(trial: Trial, skipped: Sequence[tuple[str, str]], *, ended: bool) -> Diagnosis:
    """What the compiles of a trial show."""
    tried = tuple(_fix(outcome, trial.executable) for outcome in trial.outcomes)
    return Diagnosis(
        profile=trial.base,
        fixes=_helping(tried, trial.base),
        tried=tried,
        skipped=tuple(skipped),
        ended=ended,
        executable=trial.executable,
        compile=trial.compile,
    )


def _tell(
    trial: Trial,
    outcome: Outcome,
    heard: Callable[[Fix], None] | None,
    so_far: Callable[[Diagnosis], None] | None,
) -> None:
    """Hand a row, and all until then, to whoever listens."""
    if heard is not None:
        heard(_fix(outcome, trial.executable))
    if so_far is not None:
        so_far(_diagnosis(trial, (), ended=False))


def _profile_of(executable: Any) -> Profile:
    found = executable if isinstance(executable, Profile) else getattr(executable, "profile", None)
    if not isinstance(found, Profile):
        raise InputError(
            f"executable is {short(executable)}",
            expected="what wb.compile returns, or a profile",
            todo="write wb.diagnose(wb.compile(model, batch_size=…)), with the arguments of the compile",
        )
    return found


def _ladders(
    levers: Sequence[Lever], situation: Situation, keep_numbers: str
) -> tuple[list[Sequence[Change]], list[tuple[str, str]]]:
    """The changes of each lever that has any, and why the others have none or may not be moved."""
    proposals = [(lever, *lever.propose(situation)) for lever in levers]
    ladders: list[Sequence[Change]] = [changes for _, changes, _ in proposals if changes]
    skipped = [(lever.title, reason) for lever, changes, reason in proposals if not changes]
    for name, why in refused(ladders, keep_numbers):
        skipped.append((LEVERS.get(name).title, f"keep_numbers is {keep_numbers!r}; {why.rstrip('.')}"))
    return ladders, skipped


def _check_allowed(ladders: Sequence[Sequence[Change]], keep_numbers: str) -> None:
    """An `InputError` where `keep_numbers` lets none of the levers be moved that were asked for."""
    why = list(refused(ladders, keep_numbers))
    if why and len(why) == len(ladders):
        told = "; ".join(f"{LEVERS.get(name).title}: {text.rstrip('.')}" for name, text in why)
        raise InputError(
            f"keep_numbers is {keep_numbers!r}, and none of the levers that are named keeps them so: {told}",
            todo="name others in levers, or let more happen to the numbers",
        )


def _search(
    trial: Trial,
    situation: Situation,
    ladders: Sequence[Sequence[Change]],
    keep_numbers: str,
    *,
    every: bool,
    stages: Callable[[], None] | None,
) -> bool:
    """Levers on the program's own IPUs, then stages where they are wanted, then the levers with what was learned.
    Whether stages were.

    `every`: no levers were named, so those of the last are left for the last.
    """
    allowed = [changes for changes in ladders if not every or changes[0].lever not in LAST]
    found = candidates(allowed, keep_numbers, situation.takes_parts)
    cut = False
    if stages is not None:
        trial.run(found, trial.budget.compiles // 2)
        cut = wanted(trial)
        if cut:
            stages()
    trial.run(found, trial.budget.left)
    if len(allowed) < len(ladders) and not isfinite(trial.best):
        trial.run(candidates(ladders, keep_numbers, situation.takes_parts), trial.budget.left)
    return cut


def _why_no_stages(request: Any, situation: Situation, most: int) -> str:
    """Why a program is cut into none; empty where it may be."""
    if getattr(request, "stages", None) is not None:
        return "the program has stages"
    if situation.fixed_inputs or situation.layers <= 1:
        return "there are no layers to cut between"
    return "" if most > situation.profile.ipus else f"ipus is {most}, as many as the program is on"


def _levers(names: Any) -> list[Lever]:
    """Levers by name: one, or several; all without."""
    wanted = tuple(LEVERS) if names is None else (names,) if isinstance(names, str) else names
    for name in wanted if isinstance(wanted, list | tuple) else (wanted,):
        if not isinstance(name, str) or (name not in LEVERS and name != STAGES):
            known = (*LEVERS, STAGES)
            raise InputError(
                f"unknown lever {short(name)} in levers",
                expected=f"any of: {', '.join(known)}",
                todo=meant(name, known),
            )
    if not wanted:
        raise InputError("levers is empty", expected=f"any of: {', '.join((*LEVERS, STAGES))}", todo="leave levers out")
    return [LEVERS.get(name) for name in dict.fromkeys(wanted) if name != STAGES]


def _seconds(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise InputError(f"seconds is {seconds!r}", expected="a number above 0")
    return float(seconds)


def _estimate(change: Change, request: Any) -> Fix:
    return Fix(
        fix=change.title,
        lever=change.lever,
        estimated_bytes=change.estimated_bytes,
        numbers=change.numbers,
        code=code_of(change, request),
        effect=change.effect,
        note=change.note,
        change=change,
    )


def _by_estimate(fix: Fix) -> int:
    return fix.estimated_bytes


def _fix(outcome: Outcome, executable: Any) -> Fix:
    """A row of what came of a combination."""
    change, profile = joined(outcome.parts, executable.profile.max_tile_bytes), outcome.profile
    plain = _estimate(change, executable.request)
    if profile is None:
        return replace(plain, problem=outcome.problem)
    return replace(
        plain,
        verified_bytes=profile.max_tile_bytes,
        verified_cycles=profile.total_cycles,
        cycles_per_sample=cycles_per_sample(profile),
        ipus=profile.ipus,
        cost=cost_of(profile),
        fits=profile.fits,
        margin_bytes=profile.margin_bytes,
        doubt=_doubt(profile),
    )


def _doubt(profile: Profile) -> str:
    found = in_doubt(known_error(profile, "memory"), profile.max_tile_bytes, int(profile.target["bytes_per_tile"]))
    return f"in doubt: {found}" if found else ""


def _rank(fix: Fix) -> tuple[bool, float, int]:
    return not fix.fits, float((fix.cost if fix.fits else fix.verified_bytes) or 0), len(fix.levers)


def _helping(tried: Sequence[Fix], profile: Profile) -> tuple[Fix, ...]:
    """What helps, best first: where it fits, what is faster; else what fits; else what comes nearer to it.

    A row is left out where fewer of its levers do the same, or as good as that.
    """
    any_fits = profile.fits or any(fix.fits for fix in tried)
    kept: list[Fix] = []
    for fix in sorted((each for each in tried if not each.problem), key=_rank):
        if bool(fix.fits) != any_fits or not _helps(fix, profile):
            continue
        if not any(_same(each, fix) and each.levers <= fix.levers for each in kept):
            kept.append(fix)
    return tuple(fix for fix in kept if not any(_as_good(other, fix) for other in kept))


def _helps(fix: Fix, profile: Profile) -> bool:
    if profile.fits:
        return (fix.cost or 0) < cost_of(profile)
    return bool(fix.fits) or (fix.verified_bytes or 0) < profile.max_tile_bytes


def _as_good(simpler: Fix, fix: Fix) -> bool:
    """Whether some of a fix's levers alone do what it does, but for what nobody would move another lever for."""
    cost, more = (fix.cost or 0.0) * (1 + EACH_MORE), (fix.verified_bytes or 0) * (1 + WORTH)
    return simpler.levers < fix.levers and (simpler.cost or 0.0) <= cost and (simpler.verified_bytes or 0) <= more


def _same(one: Fix, other: Fix) -> bool:
    return (one.verified_bytes, one.verified_cycles) == (other.verified_bytes, other.verified_cycles)
