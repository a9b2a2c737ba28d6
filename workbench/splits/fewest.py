"""On how few IPUs a model fits, and why it does not on fewer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from workbench.base.text import shown
from workbench.base.units import bytes_text
from workbench.errors import InputError
from workbench.profiler.fidelity import in_doubt
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records, text_table
from workbench.splits.find import COMPILES, Compile, Progress, autosplit, chain_to_cut
from workbench.splits.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of IPUs: the split found, or why none was sought (`impossible`) or compiled (`problem`).

    `uncut`: why the layers cannot be cut into so many stages or more, in the row that ends the search.
    """

    ipus: int
    split: Split | None = None
    single: Any = field(default=None, repr=False)
    impossible: str = ""
    problem: str = ""
    uncut: str = ""

    @property
    def executable(self) -> Any:
        """The program on so many IPUs; None where there is none."""
        return self.split.executable if self.split is not None else self.single

    @property
    def used_up(self) -> str:
        """How the compiles were used up before all was tried; "" where they were not."""
        return "" if self.split is None else self.split.used_up

    @property
    def fits(self) -> bool:
        """Whether the model fits on so many."""
        return self.executable is not None and bool(self.executable.profile.fits)


@dataclass(frozen=True, kw_only=True, eq=False)
class FewestIpus(Report):
    """A row for each number of IPUs up to the first on which the model fits, the most there are, or one that stands for
    all that are more than there are layers."""

    name: ClassVar[str] = "fewest_ipus"
    kinds: ClassVar[tuple[str, ...]] = ("memory",)
    numbers: tuple[Number, ...]

    @property
    def ipus(self) -> int | None:
        """The fewest on which it fits; None where it fits on none of those tried."""
        return next((each.ipus for each in self.numbers if each.fits), None)

    @property
    def executable(self) -> Any:
        """The program on the fewest IPUs, else on the most that were tried."""
        found = [each for each in self.numbers if each.executable is not None]
        return next((each.executable for each in found if each.fits), found[-1].executable if found else None)

    @property
    def split(self) -> Split | None:
        """Its stages; None on one IPU."""
        return next((each.split for each in self.numbers if each.fits), None)

    @property
    def told_of(self) -> Profile | None:
        """The profile of `executable`."""
        found: Profile | None = None if self.executable is None else self.executable.profile
        return found

    @cached_property
    def table(self) -> pd.DataFrame:
        """`ipus, fits, max_tile_bytes, margin_bytes, stages, why`; bytes are missing where nothing was compiled."""
        return pd.DataFrame([_row(each) for each in self.numbers]).convert_dtypes()

    def to_pandas(self) -> pd.DataFrame:
        """The table."""
        return self.table.copy(deep=False)

    @property
    def data(self) -> dict[str, Any]:
        """JSON data."""
        return {"ipus": self.ipus, "table": records(self.table.astype(object).where(self.table.notna(), None))}

    @property
    def sentence(self) -> str:
        """The fewest, and why not fewer; where there are none, what is nearest."""
        tried = [each for each in self.numbers if not each.uncut]
        if self.ipus is None:
            uncut = "".join(f"; {each.uncut}" for each in self.numbers if each.uncut)
            return f"It fits on none of {_up_to(tried[-1].ipus)}; {_nearest(tried)}{uncut}"
        before = f"; not on {tried[-2].ipus}: {_why(tried[-2])}" if len(tried) > 1 else ""
        return f"It fits on {_ipus(self.ipus)} (modelled){before}"

    def to_text(self) -> str:
        """The sentence, the table, which verdicts are in doubt, what to type, and typical errors."""
        table = self.table.astype(object)
        code = [self.split.code] if self.split is not None else []
        doubts = ["\n".join(self._doubts)] if self._doubts else []
        parts = [shown(self.sentence) + ".", text_table(table.where(table.notna(), "")), *doubts, *code]
        return "\n\n".join([*parts, "\n".join(self.errors)])

    @property
    def _doubts(self) -> list[str]:
        """Why each verdict that is in doubt is."""
        compiled = [(each.ipus, each.executable.profile) for each in self.numbers if each.executable is not None]
        known = self.known_error("memory")
        told = [
            (ipus, in_doubt(known, profile.max_tile_bytes, int(profile.target["bytes_per_tile"])))
            for ipus, profile in compiled
        ]
        return [f"The verdict on {_ipus(ipus)} is in doubt: {doubt}." for ipus, doubt in told if doubt]


def _ipus(count: int) -> str:
    return f"{count} {'IPU' if count == 1 else 'IPUs'}"


def _up_to(count: int) -> str:
    return f"1 to {count} IPUs" if count > 1 else "1 IPU"


def _nearest(tried: list[Number]) -> str:
    """Of what was compiled the least over, of equals that on the most IPUs; where else compiles were used up; and why
    the last was not compiled."""
    compiled = [each for each in reversed(tried) if each.executable is not None]
    nearest = max(compiled, key=lambda each: int(each.executable.profile.margin_bytes))
    short = [each for each in compiled if each.used_up]
    more = f"; on {short[0].ipus} {short[0].used_up}" if short and not nearest.used_up else ""
    last = f"; not on {tried[-1].ipus}: {_why(tried[-1])}" if tried[-1].executable is None else ""
    return f"nearest on {nearest.ipus}: {_why(nearest)}{more}{last}"


def fewest_ipus(
    request: Any, compile: Compile, most: int, compiles: int = COMPILES, progress: Progress | None = None
) -> FewestIpus:
    """Try one IPU, then more, up to `most`: see `wb.fewest_ipus`."""
    layers = len(chain_to_cut(request, "wb.fewest_ipus").names)
    numbers = [_single(request, compile, progress)]
    least = _state_bytes(numbers[0].single.profile) if numbers[0].single is not None else 0
    while not numbers[-1].fits and len(numbers) < min(most, layers):
        numbers.append(_tried(request, compile, len(numbers) + 1, least, compiles, progress))
    if not numbers[-1].fits and layers < most:
        uncut = f"{layers} {'layer' if layers == 1 else 'layers'} cannot be {layers + 1} or more stages"
        numbers.append(Number(ipus=layers + 1, uncut=uncut))
    return FewestIpus(numbers=tuple(numbers))


def _single(request: Any, compile: Callable[..., Any], progress: Progress | None) -> Number:
    heard = None if progress is None else (lambda phase: progress(f"1 IPU: {phase}"))
    return Number(ipus=1, single=compile(request, heard, None))


def _tried(
    request: Any, compile: Compile, ipus: int, state_bytes: int, compiles: int, progress: Progress | None
) -> Number:
    memory = ipus * request.target.tiles_per_ipu * request.target.bytes_per_tile
    if state_bytes > memory:
        state = f"weights and optimizer state alone are {bytes_text(state_bytes)}"
        return Number(ipus=ipus, impossible=f"{state}, and {ipus} IPUs hold {bytes_text(memory)}")
    heard = None if progress is None else (lambda phase: progress(f"{ipus} IPUs: {phase}"))
    try:
        return Number(ipus=ipus, split=autosplit(request, compile, ipus, compiles, heard))
    except InputError as error:
        return Number(ipus=ipus, problem=str(error).rstrip("."))


def _state_bytes(profile: Profile) -> int:
    """Bytes of variables that live from the first step to the last and that no split makes fewer."""
    variables = profile.variables
    return int(variables.loc[variables["kind"].isin(["parameter", "optimizer", "state"]), "bytes"].sum())


def _row(number: Number) -> dict[str, Any]:
    profile = None if number.executable is None else number.executable.profile
    return {
        "ipus": number.ipus,
        "fits": number.fits,
        "max_tile_bytes": None if profile is None else profile.max_tile_bytes,
        "margin_bytes": None if profile is None else profile.margin_bytes,
        "stages": "" if number.split is None else str(number.split.stages),
        "why": "" if number.fits else _why(number),
    }


def _why(number: Number) -> str:
    """Why a model does not fit on so many IPUs."""
    if number.executable is None:
        return number.impossible or number.problem or number.uncut
    profile = number.executable.profile
    over = f"the fullest tile is a modelled {bytes_text(abs(profile.margin_bytes))} over"
    if number.split is None:
        return over
    return f"{over} on IPU {profile.peak.ipu}" + (f"; {number.used_up}" if number.used_up else "")


__all__ = ["FewestIpus", "Number", "fewest_ipus"]
