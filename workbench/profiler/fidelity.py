"""How far modelled numbers usually are from published ones: by kind of number, by group of cases, the worst cases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.categories import CATEGORY_WORDS, FOOTPRINT_CATEGORIES
from workbench.base.units import percent_text, plural, things_text

if TYPE_CHECKING:
    import pandas as pd

PATH = Path(__file__).with_name("fidelity.json")
NOT_KNOWN = "typical error not known"
MANY = 10  # numbers, of which nine of ten say something; of fewer the worst is said

# Kinds of numbers that are shown, in words; cycles of vertices have a kind per family besides: "vertex reduce".
KINDS: Mapping[str, str] = {
    "cycles": "cycles of a whole program",
    "product": "cycles of a matrix product",
    "compute": "cycles of a compute step",
    "launch": "cycles to launch a compute set",
    "exchange": "cycles of an exchange",
    "latency": "cycles until an exchange arrives",
    "sync": "cycles of a barrier",
    "host": "cycles of a copy from or to the host",
    "host_wait": "cycles waited for the host",
    "remote": "cycles of a copy from or to streaming memory",
    "links": "cycles of a copy between IPUs",
    "memory": "memory of a whole model",
    "variables": "memory of variables",
    "code": "code of an operator",
    **{category: CATEGORY_WORDS[category] for category in FOOTPRINT_CATEGORIES},
    "gaps": "gaps between addresses",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalError:
    """Of one kind of number, as fractions: the median, and what nine of ten stay within (the worst, of fewer than ten).

    `numbers` counts what it was taken over, `against` says who published those; `ratios` are the published numbers over
    the modelled ones, rising, of a kind that decides a verdict.
    """

    typical: float
    spread: float
    numbers: int = 0
    against: tuple[str, ...] = ()
    ratios: tuple[float, ...] = ()

    @property
    def most(self) -> str:
        """The numbers that stay within the spread, in words."""
        return "nine of ten" if self.numbers >= MANY else "all"

    def __str__(self) -> str:
        within = f"{self.most} within {error_text(self.spread)}; " if self.numbers > 1 else ""
        told = f": {', '.join(self.against)}" if self.against else ""
        counted = f"{things_text(self.numbers, 'number')}{told}"
        return f"typical error {error_text(self.typical)} ({within}{counted})"

    @property
    def short(self) -> str:
        """For places with little room: `typical error 4.6 %; 9 in 10 of 31 published within 12.4 %`."""
        share = "9 in 10" if self.numbers >= MANY else "all"
        within = f"{share} of {self.numbers} published within {error_text(self.spread)}"
        return f"typical error {error_text(self.typical)}; {within}"


def error_text(error: float) -> str:
    """`0.125` → `"12.5 %"`; from one upwards a factor: `2.5` → `"a factor of 3.5"`."""
    return f"a factor of {1 + error:.1f}" if error >= 1 else percent_text(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnout:
    """How published memories of whole models turned out for a verdict with one relative margin: counts, no curve.

    `factor` is the limit over the modelled bytes; `alike` of the `numbers` published memories were on the same side of
    so many times the modelled one.
    """

    fits: bool
    factor: float
    alike: int
    numbers: int

    @property
    def contrary(self) -> int:
        """How many were on the other side."""
        return self.numbers - self.alike

    @property
    def doubtful(self) -> bool:
        """Whether more than one in ten were."""
        return 10 * self.contrary > self.numbers

    def __str__(self) -> str:
        side = "at most" if self.fits else "more than"
        return (
            f"it holds if the real memory is {side} {self.factor:.3g} times the modelled, as for {self.alike} of "
            f"{self.numbers} published models"
        )


def turnout(known: TypicalError | None, used_bytes: int, limit_bytes: int) -> Turnout | None:
    """How published cases with this relative margin turned out; None where no ratio is known, or nothing is used."""
    if known is None or not known.ratios or used_bytes <= 0:
        return None
    factor, fits = limit_bytes / used_bytes, used_bytes <= limit_bytes
    below = sum(ratio <= factor for ratio in known.ratios)
    numbers = len(known.ratios)
    return Turnout(fits=fits, factor=factor, alike=below if fits else numbers - below, numbers=numbers)


def in_doubt(known: TypicalError | None, used_bytes: int, limit_bytes: int) -> str:
    """Why a verdict is in doubt: more than one in ten published cases with its margin turned out the other way.

    Empty where it is not, or nothing is known. Of an older profile, which has no ratios, by the spread in both ways.
    """
    if known is None or used_bytes <= 0:
        return ""
    if (found := turnout(known, used_bytes, limit_bytes)) is not None:
        return str(found) if found.doubtful else ""
    factor = 1 + known.spread
    if not limit_bytes / factor < used_bytes <= limit_bytes * factor:
        return ""
    return (
        f"of {known.numbers} published memories of whole models {known.most} are within {error_text(known.spread)} of "
        "the modelled ones"
    )


def within_error(known: TypicalError | None, one: float, other: float) -> str:
    """`"within the typical error of 4.8 %"` where two modelled numbers differ by no more than such usually are off.

    Of the larger one; empty where they differ by more, are the same, or nothing is known.
    """
    if known is None or one == other or abs(one - other) > known.typical * max(abs(one), abs(other)):
        return ""
    return f"within the typical error of {error_text(known.typical)}"


def others_within(known: TypicalError | None, best: float, others: Iterable[float]) -> str:
    """`" (2 others within the typical error of 4.8 %)"`: of the numbers beside the best; "" where none is."""
    near = 0 if known is None else sum(each == best or bool(within_error(known, best, each)) for each in others)
    if known is None or not near:
        return ""
    return f" ({near:,} {plural(near, 'other')} within the typical error of {error_text(known.typical)})"


def as_much(known: TypicalError | None, values: Sequence[float]) -> list[int]:
    """The places whose value is the largest, or below it by no more than such numbers usually are off."""
    least = max(values) * (1 - min(1.0, known.typical if known is not None else 0.0))
    return [place for place, value in enumerate(values) if value >= least]


def error_of(known: Mapping[str, Any], kind: str) -> TypicalError | None:
    """The typical error of a kind among those a profile holds; None when no published number is of this kind."""
    found = known.get(kind)
    if not found:
        return None
    typical = float(found["typical"])
    return TypicalError(
        typical=typical,
        spread=float(found.get("spread", typical)),
        numbers=int(found.get("numbers", found.get("cases", 0))),
        against=tuple(found.get("against", ())),
        ratios=tuple(float(each) for each in found.get("ratios", ())),
    )


@lru_cache(maxsize=1)
def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def typical_errors() -> dict[str, dict[str, Any]]:
    """Kind of number -> `typical` and `spread` (fractions), `numbers` and `cases` they were taken over, `against` whom,
    `groups` of the table; of memory the `ratios` too. Each is of published numbers of this kind alone; a kind that is
    missing has none.
    """
    return {kind: dict(known) for kind, known in _read()["kinds"].items()}


def errors_table() -> pd.DataFrame:
    """A row per kind of number: in words, its typical error and its spread as text, how many numbers, against whom."""
    import pandas as pd

    known = typical_errors()
    families = [kind for kind in known if kind not in KINDS]
    rows = []
    for kind in (*KINDS, *families):
        found = error_of(known, kind)
        rows.append(
            {
                "kind of number": KINDS.get(kind, kind.replace("vertex ", "cycles of a vertex: ")),
                "typical error": error_text(found.typical) if found else "not known",
                "nine of ten within": error_text(found.spread) if found else "",
                "numbers": found.numbers if found else 0,
                "published as": ", ".join(found.against) if found else "",
            }
        )
    return pd.DataFrame(rows)


def fidelity_table() -> pd.DataFrame:
    """A row per group of published numbers, as `make fidelity` last found them; `also` groups were found later.

    `cases` there are, `run` by the engine, `exact` and `within` the band that their source states; `median_factor` and
    `p90_factor` are exp of the median and of the 90th percentile of |ln(modelled / published)|, NaN without a ratio.
    """
    import pandas as pd

    rows = []
    for group, line in _read()["groups"].items():
        counts = {name: line[name] for name in ("cases", "run", "exact", "within")}
        rows.append(
            {
                "group": group,
                **counts,
                "median_factor": _factor(line["median"]),
                "p90_factor": _factor(line["p90"]),
                "worst": line["worst"],
            }
        )
    return pd.DataFrame(rows)


def worst_cases() -> pd.DataFrame:
    """The cases that are furthest off, worst first: `case`, `group`, `factor` (of modelled over published, or back)."""
    import pandas as pd

    return pd.DataFrame(_read()["worst"])


def _factor(error: float | None) -> float:
    return math.nan if error is None else round(math.exp(error), 3)
