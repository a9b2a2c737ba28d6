"""Exercises with a grader: a challenge is a brief and a list of goals, each judged on a profile for points."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from workbench.base.registry import Registry
from workbench.base.text import markup
from workbench.base.units import bytes_text, count_text, percent_text, things_text
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.report import text_table

Judge: TypeAlias = Callable[[Profile], tuple[bool, str]]

challenges: Registry[Challenge] = Registry("challenge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One thing to reach. `judge` says whether a profile reaches it and, in a clause, what it found there.

    A `required` goal that is missed leaves no points for the others: the exercise was changed, not solved.
    """

    text: str
    points: int
    hint: str
    judge: Judge
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What one goal earned."""

    goal: str
    points: int
    out_of: int
    reached: bool
    found: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Grade:
    """The marks of one attempt; points sum over the goals."""

    challenge: str
    marks: tuple[Mark, ...]

    @property
    def points(self) -> int:
        """Points earned."""
        return sum(mark.points for mark in self.marks)

    @property
    def out_of(self) -> int:
        """Points there are."""
        return sum(mark.out_of for mark in self.marks)

    @property
    def passed(self) -> bool:
        """Whether every goal was reached."""
        return all(mark.reached for mark in self.marks)

    @property
    def sentence(self) -> str:
        """`"fit-the-tile: 4 of 10 points"`, and whether it is solved."""
        text = f"{self.challenge}: {self.points} of {things_text(self.out_of, 'point')}"
        return f"{text}, solved" if self.passed else text

    @property
    def hints(self) -> list[str]:
        """Hints for the goals not reached."""
        return [mark.hint for mark in self.marks if not mark.reached]

    def to_pandas(self) -> pd.DataFrame:
        """A row per goal: goal, points, out_of, reached, found, hint."""
        names = ("goal", "points", "out_of", "reached", "found", "hint")
        return pd.DataFrame([{name: getattr(mark, name) for name in names} for mark in self.marks])

    def __str__(self) -> str:
        shown = self.to_pandas().drop(columns="hint").assign(reached=[_word(mark) for mark in self.marks])
        hints = [f"Hint: {hint}" for hint in self.hints]
        return "\n".join([self.sentence, "", text_table(shown), *([""] if hints else []), *hints])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cell = 'style="text-align:left;padding:2px 14px 2px 0"'
        head = "".join(f"<th {cell}>{name}</th>" for name in ("", "goal", "points", "found"))
        rows = "".join(
            f"<tr><td {cell}>{_word(mark)}</td><td {cell}>{markup(mark.goal)}</td>"
            f"<td {cell}>{mark.points} of {mark.out_of}</td><td {cell}>{markup(mark.found)}</td></tr>"
            for mark in self.marks
        )
        hints = "".join(f"<p><b>Hint</b> {markup(hint)}</p>" for hint in self.hints)
        title = f"<p><b>{markup(self.sentence)}</b></p>"
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{hints}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Challenge:
    """An exercise: `.brief` says what to reach, `.check(profile)` grades an attempt."""

    name: str
    brief: str
    goals: tuple[Goal, ...]

    def check(self, profile: Any) -> Grade:
        """Grade a profile (or an executable, by its profile).

        Errors: `InputError` for anything else.
        """
        attempt = profile if isinstance(profile, Profile) else getattr(profile, "profile", None)
        if not isinstance(attempt, Profile):
            raise InputError(
                f"{profile!r} cannot be graded", expected="a profile", todo="pass what wb.profile(...) returned"
            )
        judged = [(goal, *goal.judge(attempt)) for goal in self.goals]
        valid = all(reached for goal, reached, _ in judged if goal.required)
        return Grade(
            challenge=self.name,
            marks=tuple(
                Mark(
                    goal=goal.text,
                    points=goal.points if reached and valid else 0,
                    out_of=goal.points,
                    reached=reached,
                    found=found,
                    hint=goal.hint,
                )
                for goal, reached, found in judged
            ),
        )

    def __str__(self) -> str:
        return "\n".join(
            [self.brief, "", *(f"- {goal.text}: {things_text(goal.points, 'point')}" for goal in self.goals)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        goals = "".join(f"<li>{markup(goal.text)}: {things_text(goal.points, 'point')}</li>" for goal in self.goals)
        return f"<p>{markup(self.brief)}</p><ul>{goals}</ul>"


def challenge(name: str) -> Challenge:
    """The challenge of a name; an unknown one is an error that lists them."""
    return challenges.get(name)


def _word(mark: Mark) -> str:
    return "reached" if mark.reached else "not yet"


def _elements(profile: Profile, *, name: str = "", kind: str = "") -> int:
    """Elements of all variables of a name or kind."""
    table = profile.tables["variables"]
    chosen = (table["name"] == name) if name else (table["kind"] == kind)
    return sum(prod(ast.literal_eval(str(shape))) for shape in table["shape"][chosen])


def _fits(profile: Profile) -> tuple[bool, str]:
    size, over = int(profile.target["bytes_per_tile"]), -profile.margin_bytes
    used = f"tile {profile.peak.tile} uses {bytes_text(profile.max_tile_bytes)} of {bytes_text(size)}"
    if profile.fits:
        return True, used
    return False, f"{used}, {bytes_text(over)} over" if over > 0 else f"{used}, but a piece fits in no region"


def _real_machine(profile: Profile) -> tuple[bool, str]:
    what_if = list(profile.target.get("what_if", []))
    return not what_if, "a machine that does not exist: " + ", ".join(what_if) if what_if else "a real machine"


# fit-the-tile: a table on too few tiles

TABLE_ELEMENTS = 1_200_000
TABLE_TILES = 16
ENOUGH = 0.95  # of the best possible: the last few elements need not divide evenly


def _table_is_whole(profile: Profile) -> tuple[bool, str]:
    found, tiles = _elements(profile, name="table"), int(profile.target["tiles_per_ipu"])
    text = f"{found:,} numbers on a machine of {things_text(tiles, 'tile')}"
    whole_machine = tiles == TABLE_TILES and not _other_what_if(profile)
    return found >= TABLE_ELEMENTS and whole_machine and bool(_square_cycles(profile).any()), text


def _other_what_if(profile: Profile) -> list[str]:
    return [text for text in profile.target.get("what_if", []) if "tiles" not in str(text)]


def _square_cycles(profile: Profile) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Cycles of the compute set `square` on each tile, all its executions; zeros without one."""
    tiles = np.zeros(int(profile.target["tiles_per_ipu"]), dtype=np.int64)
    steps = profile.tables["steps"]
    for row in np.flatnonzero((steps["kind"] == "OnTileExecute") & (steps["name"] == "square")):
        tiles = tiles + profile.vector(steps["cycles_index"][row]) * int(steps["times"][row])
    return tiles


def _balanced(profile: Profile) -> tuple[bool, str]:
    cycles = _square_cycles(profile)
    working = cycles[cycles > 0]
    balance = float(working.mean() / working.max()) if len(working) else 0.0
    working_text = f"{things_text(len(working), 'tile')} {'works' if len(working) == 1 else 'work'}"
    return balance >= ENOUGH, f"{percent_text(balance)}: {working_text}, the slowest {cycles.max():,} cycles"


def _all_tiles_work(profile: Profile) -> tuple[bool, str]:
    cycles = _square_cycles(profile)
    share = float(cycles.mean() / cycles.max()) if cycles.any() else 0.0
    return share >= ENOUGH, f"the average tile works {percent_text(share)} of the time of the slowest"


challenges.add(
    "fit-the-tile",
    Challenge(
        name="fit-the-tile",
        brief=f"A table of {TABLE_ELEMENTS:,} float32 numbers is squared in place on an IPU cut down to {TABLE_TILES} "
        "tiles. As it is mapped, it does not fit. Change the mapping, and nothing else, so that it fits and no tile "
        "waits for another.",
        goals=(
            Goal(
                text="the whole table is squared, on the same 16 tiles",
                points=1,
                required=True,
                hint="keep the variable 'table', the compute set 'square' and Graph(tiles=16); change the mapping only",
                judge=_table_is_whole,
            ),
            Goal(
                text="it fits",
                points=3,
                hint="a tile has 638,976 bytes for data and code: at 4 bytes a number, and some thousand bytes for "
                "code and stacks, fewer than 157,000 numbers",
                judge=_fits,
            ),
            Goal(
                text="the tiles that work are balanced to 95 %",
                points=3,
                hint="the balance is the mean over the slowest: give every working tile the same number of elements",
                judge=_balanced,
            ),
            Goal(
                text="all tiles work: the average tile is busy 95 % of the time of the slowest",
                points=3,
                hint="a tile without elements has no work: use all 16",
                judge=_all_tiles_work,
            ),
        ),
    ),
)

# fit-resnet: a training step that does not fit at first

RESNET50_PARAMETERS = 25_500_000  # Keras' ResNet50 with 1,000 classes has 25,583,592 trainable ones
RESNET_SAMPLES = 16


def _is_resnet50(profile: Profile) -> tuple[bool, str]:
    parameters = _elements(profile, kind="parameter")
    text = f"{count_text(parameters)} parameters, {profile.meta['mode']}"
    return parameters >= RESNET50_PARAMETERS and profile.meta["mode"] == "training", text


def _samples(profile: Profile) -> tuple[bool, str]:
    samples = int(profile.meta.get("samples_per_call") or 0)
    return samples >= RESNET_SAMPLES, f"{samples} images"


def _one_real_ipu(profile: Profile) -> tuple[bool, str]:
    real, text = _real_machine(profile)
    return real and profile.ipus == 1, f"{profile.ipus} IPU, {text}"


challenges.add(
    "fit-resnet",
    Challenge(
        name="fit-resnet",
        brief=f"Train ResNet-50 with at least {RESNET_SAMPLES} images a weight update on one IPU. "
        f'wb.profile("resnet50", batch_size={RESNET_SAMPLES}, mode="training") does not fit. Find arguments and '
        "options with which it does.",
        goals=(
            Goal(
                text="it is ResNet-50's training step, all of it",
                points=2,
                required=True,
                hint='start from wb.profile("resnet50", mode="training", ...)',
                judge=_is_resnet50,
            ),
            Goal(
                text="one IPU that exists",
                points=2,
                required=True,
                hint="leave the target's tiles and their bytes as they are, and use one IPU",
                judge=_one_real_ipu,
            ),
            Goal(
                text=f"at least {RESNET_SAMPLES} images a weight update",
                points=2,
                hint="a weight update sees batch_size x gradient_accumulation_steps images",
                judge=_samples,
            ),
            Goal(
                text="it fits",
                points=4,
                hint="halve the micro-batch and double gradient_accumulation_steps; lower availableMemoryProportion; "
                "use half partials; wb.diagnose tries these for you",
                judge=_fits,
            ),
        ),
    ),
)

__all__ = ["Challenge", "Goal", "Grade", "Mark", "challenge", "challenges"]
