"""A model cut into pipeline stages as found, compiled and measured: the report of `wb.autosplit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from workbench.base.text import shown
from workbench.base.units import bytes_text, cycles_text, percent_text, things_text
from workbench.errors import InputError
from workbench.profiler.fidelity import within_error
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records, text_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One split that was compiled, or why it could not be. `cuts`: the first layer of each stage but the first;
    `arguments`: what was given to `wb.compile` besides; `expected_*`: by stage, from costs measured before."""

    cuts: tuple[int, ...]
    arguments: Mapping[str, Any]
    expected_cycles: tuple[float, ...] = ()
    expected_bytes: tuple[float, ...] = ()
    executable: Any = field(default=None, repr=False)
    problem: str = ""

    @property
    def profile(self) -> Profile | None:
        """What was measured."""
        return None if self.executable is None else self.executable.profile

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Lower is better: what compiles, what fits, then the cycles of a call; else the bytes over."""
        if self.profile is None:
            return True, True, 0.0
        fits = self.profile.fits
        return False, not fits, float(self.profile.total_cycles if fits else self.profile.max_tile_bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Split(Report):
    """The best of the splits that were tried, verified by a compile; `wb.compile(..., stages=split)` takes it.

    `names`: the layers; `attempts`: every split compiled, in order, the first with as many layers on each stage;
    `untried`: where nothing fits and the compiles were used up, what would have been compiled next; `decided`: whether
    memory or time decided where it is cut, "" where nothing fits or neither is known to have.
    """

    name: ClassVar[str] = "split"
    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    names: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    untried: str = ""
    decided: str = ""

    @cached_property
    def best(self) -> Attempt:
        """The fastest that fits; where none does, the one least over."""
        return min(self.attempts, key=lambda attempt: attempt.rank)

    @property
    def executable(self) -> Any:
        """The best split, compiled."""
        return self.best.executable

    @property
    def profile(self) -> Profile:
        """What the compiler says of the best split."""
        profile: Profile = self.best.executable.profile
        return profile

    @property
    def fits(self) -> bool:
        """Whether the best split fits."""
        return self.profile.fits

    @property
    def stages(self) -> list[int]:
        """The stage of each layer, as `wb.compile(stages=...)` takes it."""
        return stages_of(self.best.cuts, len(self.names))

    @property
    def device_mapping(self) -> list[int] | None:
        """The IPU of each stage, where one has two: layers at both ends of the chain share a variable."""
        found: list[int] | None = self.best.arguments.get("device_mapping")
        return found

    @property
    def arguments(self) -> dict[str, Any]:
        """What `wb.compile` is given for it: `stages` as the layers to cut after, what memory asked for, and the IPU of
        each stage where one has two."""
        return {"stages": self._cut_after(self.best), **self.best.arguments}

    def _cut_after(self, attempt: Attempt) -> list[str]:
        return [self.names[cut - 1] for cut in attempt.cuts]

    @property
    def code(self) -> str:
        """The arguments as they are typed."""
        return typed(self.arguments)

    @property
    def used_up(self) -> str:
        """What was left to try when the compiles were used up, and how to allow more; "" where nothing was."""
        made = len(self.attempts)
        if not self.untried:
            return ""
        told = f"all {made} compiles were" if made > 1 else "the one compile was"
        return f"{told} used up before {self.untried} was tried (compiles={2 * made} allows more)"

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per stage: `stage, ipu, layers, first, last, expected_cycles, cycles, expected_bytes, max_tile_bytes,
        fits`. Cycles are those that its IPU is busy in a call, bytes those of its fullest tile; what was expected
        comes from the layer costs of the compiles before, and is missing for a split that nothing was known of."""
        best, profile = self.best, self.profile
        first = (0, *best.cuts)
        end = (*best.cuts, len(self.names))
        measured = pd.DataFrame(
            {
                "stage": range(len(first)),
                "ipu": profile.stages.sort_values("stage")["ipu"].to_numpy(),
                "layers": [b - a for a, b in zip(first, end, strict=True)],
                "first": [self.names[a] for a in first],
                "last": [self.names[b - 1] for b in end],
                "expected_cycles": _wholes(best.expected_cycles, len(first)),
                "cycles": busy_cycles(profile),
                "expected_bytes": _wholes(best.expected_bytes, len(first)),
                "max_tile_bytes": stage_bytes(profile),
            }
        )
        return measured.assign(fits=measured["max_tile_bytes"] <= int(profile.target["bytes_per_tile"]))

    @cached_property
    def tried(self) -> pd.DataFrame:
        """A row per compile: `cut_after, arguments, expected_slowest_cycles, slowest_cycles, total_cycles,
        expected_max_tile_bytes, max_tile_bytes, fits, problem`."""
        return pd.DataFrame([self._tried(attempt) for attempt in self.attempts]).convert_dtypes()

    def _tried(self, attempt: Attempt) -> dict[str, Any]:
        profile = attempt.profile
        return {
            "cut_after": ", ".join(self._cut_after(attempt)),
            "arguments": typed(attempt.arguments),
            "expected_slowest_cycles": _most(attempt.expected_cycles),
            "slowest_cycles": None if profile is None else max(busy_cycles(profile)),
            "total_cycles": None if profile is None else profile.total_cycles,
            "expected_max_tile_bytes": _most(attempt.expected_bytes),
            "max_tile_bytes": None if profile is None else profile.max_tile_bytes,
            "fits": None if profile is None else profile.fits,
            "problem": attempt.problem,
        }

    @property
    def sentence(self) -> str:
        """The split, whether it fits, and what it gains over as many layers on each stage."""
        profile, cut = self.profile, ", ".join(self._cut_after(self.best))
        margin = bytes_text(abs(profile.margin_bytes))
        verdict = f"fits with {margin} to spare" if profile.fits else f"does not fit, {margin} over"
        needs = "".join(f", with {name}={value!r}" for name, value in self.best.arguments.items())
        even = self.attempts[0].profile
        compiled = self.used_up or f"{len(self.attempts)} compiled"
        gain, turns = "", things_text(int(profile.meta["pipeline"]["micro_batches"]), "micro-batch")
        if even is not None and even.fits and profile.fits and even.total_cycles > profile.total_cycles:
            doubt = within_error(self.known_error("cycles"), profile.total_cycles, even.total_cycles)
            gain = (
                f", {percent_text(1 - profile.total_cycles / even.total_cycles)} fewer cycles than in even stages"
                f"{f' ({doubt})' if doubt else ''}"
            )
        return (
            f"{len(self.best.cuts) + 1} stages, cut after {cut}{needs}: {verdict}, "
            f"modelled {cycles_text(profile.total_cycles)} a call of {turns}{gain}; {compiled}"
            + (f"; {self.decided}" if self.decided else "")
        )

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the arguments, and both tables."""
        return {
            "fits": self.fits,
            "stages": self.stages,
            "arguments": {name: list(v) if isinstance(v, tuple) else v for name, v in self.arguments.items()},
            "decided": self.decided,
            "table": records(self.table.astype(object).where(self.table.notna(), None)),
            "tried": records(self.tried.astype(object).where(self.tried.notna(), None)),
        }

    def to_pandas(self) -> pd.DataFrame:
        """The table of stages."""
        return self.table.copy(deep=False)

    def to_text(self) -> str:
        """The sentence, the stages, what was tried, and the arguments to type."""
        tables = [text_table(frame.astype(object).where(frame.notna(), "")) for frame in (self.table, self.tried)]
        return "\n\n".join([shown(self.sentence) + ".", *tables, self.code, "\n".join(self.errors)])


def typed(arguments: Mapping[str, Any]) -> str:
    """Arguments as they are typed."""
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _wholes(values: tuple[float, ...], count: int) -> pd.Series[Any]:
    """Rounded; as many missing values where there are none."""
    rounded: list[int | None] = [round(each) for each in values]
    return pd.Series(rounded or [None] * count, dtype="Int64")


def _most(values: tuple[float, ...]) -> int | None:
    return round(max(values)) if values else None


def stages_of(cuts: tuple[int, ...], layers: int) -> list[int]:
    """A stage per layer."""
    return [sum(cut <= place for cut in cuts) for place in range(layers)]


def busy_cycles(profile: Profile) -> list[int]:
    """Of each stage, what its IPU does in a call: all but waiting for another stage, for the host or its turn."""
    return [profile.total_cycles - int(each) for each in profile.stages.sort_values("stage")["idle_cycles"]]


def stage_bytes(profile: Profile) -> list[int]:
    """Of each stage, the fullest tile of its IPU, gaps included."""
    placed = profile.arrays["total_with_gaps"].max(axis=1)
    return [int(placed[int(ipu)]) for ipu in profile.stages.sort_values("stage")["ipu"]]


def check_stages(names: tuple[str, ...], ipus: int) -> None:
    """An `InputError` where there cannot be so many stages."""
    if ipus < 2:
        raise InputError(f"ipus is {ipus}", expected="at least 2", todo="compile without stages for one IPU")
    if len(names) < ipus:
        raise InputError(
            f"{things_text(len(names), 'layer')} cannot be {ipus} stages",
            expected=f"at most {things_text(len(names), 'IPU')}",
        )
