"""Two or more profiles side by side: what was added, removed and changed, with every sign kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from workbench.base.categories import CATEGORY_WORDS
from workbench.base.causes import CAUSE_WORDS
from workbench.base.checked import bound
from workbench.base.files import whole_file
from workbench.base.text import short
from workbench.base.units import MINUS, bytes_text, cycles_text, things_text
from workbench.errors import InputError
from workbench.profiler.advice.why import REMAINDER, THROUGH, why
from workbench.profiler.export.html import page_of
from workbench.profiler.fidelity import within_error
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records, text_table

HEADLINES = ("max_tile_bytes", "margin_bytes", "total_cycles", "seconds", "samples_per_second", "fragmentation")
KEYS = {"variables": ("name", "ipu"), "operators": ("name",), "layers": ("layer",)}
AMOUNTS = {"variables": ("bytes",), "operators": ("cycles", "temporary_bytes"), "layers": ("cycles", "variable_bytes")}
TABLES = tuple(KEYS)
NO_LAYER = "no layer"
LARGEST = 3  # parts of a change that are said in a line


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Report):
    """Profiles against the first of them. With two, swapping them flips every sign and swaps added and removed.

    `labels` are what the profiles are called, where they are known by others than their names and places.
    """

    name: ClassVar[str] = "comparison"
    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    profiles: tuple[Profile, ...]
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What sentences and tables call the profiles: their labels, or their names, numbered where two are alike."""
        names = self.labels or tuple(profile.name for profile in self.profiles)
        return names if len(set(names)) == len(names) else self.numbered

    @property
    def numbered(self) -> tuple[str, ...]:
        """What pictures call the profiles: their labels, or their places and names, as `"1: resnet50"`."""
        return self.labels or tuple(f"{place}: {profile.name}" for place, profile in enumerate(self.profiles))

    @cached_property
    def headlines(self) -> pd.DataFrame:
        """`quantity, profile` (its place, from 1)`, name, before, after, change`: a row per headline and profile."""
        first = self.profiles[0]
        rows = [
            (quantity, place, self.names[place], getattr(first, quantity), getattr(other, quantity))
            for quantity in HEADLINES
            for place, other in enumerate(self.profiles[1:], start=1)
        ]
        frame = pd.DataFrame(rows, columns=["quantity", "profile", "name", "before", "after"])
        return frame.assign(change=frame["after"] - frame["before"])

    def table(self, name: str) -> pd.DataFrame:
        """Rows of "variables", "operators" or "layers" that are not the same in all profiles, the largest change first.

        Columns: the key, `status` ("added", "removed" or "changed"), `profile`, and `before, after, change` of each
        amount; what is not there counts as 0.
        """
        if name not in TABLES:
            raise InputError(f"no table {name!r} to compare", expected=f"one of: {', '.join(TABLES)}")
        first = _amounts(self.profiles[0], name)
        parts = [_change(first, _amounts(other, name), name, place) for place, other in enumerate(self.profiles[1:], 1)]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def options(self) -> pd.DataFrame:
        """`option, profile, before, after`: options and arguments that differ; what is not there or not given is None.

        Arguments are those that no option holds, as the loss and the stages, where both profiles say them; the target
        is among them where it differs.
        """
        first = self.profiles[0]
        rows = [
            (option, place, was.get(option), now.get(option))
            for place, other in enumerate(self.profiles[1:], start=1)
            for was, now in [_settings(first, other)]
            for option in sorted({*was, *now})
            if was.get(option) != now.get(option)
        ]
        return pd.DataFrame(rows, columns=["option", "profile", "before", "after"])

    @cached_property
    def added(self) -> pd.DataFrame:
        """Variables of a later profile that the first has not."""
        return _with_status(self.table("variables"), "added")

    @cached_property
    def removed(self) -> pd.DataFrame:
        """Variables of the first profile that a later one has not."""
        return _with_status(self.table("variables"), "removed")

    @cached_property
    def changed(self) -> pd.DataFrame:
        """Variables of both with other bytes."""
        return _with_status(self.table("variables"), "changed")

    @cached_property
    def why(self) -> pd.DataFrame:
        """What the differences of cycles and of the fullest tile's bytes are made of, the largest part first.

        `profile, layer, cause, category, cycles, bytes, origin, through`: a row has a cause and cycles (the mean over
        the IPUs), or a category and bytes on the fullest tile. All cycles of a profile sum to the change of
        `total_cycles`, all bytes to that of `max_tile_bytes`; what no layer, cause or category accounts for is in the
        rows "remainder".
        `origin` is the layer whose change a row comes of: its own, or that of a layer whose results it reads in another
        shape or type; "" where neither changed. Of such a layer `through` is what of it is different: its "plan", the
        "code" that it shares with others, where its "inputs" lie, or the "place" of its other variables; where none is,
        it takes what it took, and its bytes are others only where another tile or step is the fullest, the "peak". An
        operation that is fused with one of the next layer counts as another.
        """
        return why(self.profiles)

    def _because(self, place: int, amount: str, of: str) -> str:
        """The largest parts of a change in words."""
        rows = self.why
        rows = rows[(rows["profile"] == place) & (rows[amount] != 0) & (rows[of] != REMAINDER)]
        named = rows["layer"].where(rows["layer"] != "", NO_LAYER) + ", " + rows[of].map(words_of)
        elsewhere = (rows["origin"] != "") & (rows["origin"] != rows["layer"])
        named = named.mask(elsewhere, named + ", as " + rows["origin"] + " changed")
        named = named.mask(rows["through"] != "", named + ", by " + rows["through"].map(THROUGH))
        told = [f"{_signed(value, amount == 'bytes')} {name}" for name, value in zip(named, rows[amount], strict=True)]
        return "; ".join(told[:LARGEST])

    @property
    def reasons(self) -> str:
        """A line per later profile and quantity that changed: the largest parts of its change."""
        lines = [
            f"{amount.capitalize()} of {self.names[place]}: {told}."
            for place in range(1, len(self.profiles))
            for amount, of in (("cycles", "cause"), ("bytes", "category"))
            if (told := self._because(place, amount, of))
        ]
        return "\n".join(lines)

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: names, headlines, options, the three tables, and why."""
        return {
            "profiles": list(self.names),
            "fits": [profile.fits for profile in self.profiles],
            "headlines": records(self.headlines),
            "options": records(self.options),
            **{name: records(self.table(name)) for name in TABLES},
            "why": records(self.why),
        }

    @property
    def sentence(self) -> str:
        """The change of the peak and of the cycles, per later profile."""
        first = self.profiles[0]
        parts = [
            f"{self.names[place]} against {self.names[0]}, modelled: "
            f"worst tile {_signed(other.max_tile_bytes - first.max_tile_bytes, True)}"
            f"{self._doubt('memory', first.max_tile_bytes, other.max_tile_bytes)}, "
            f"{_signed(other.total_cycles - first.total_cycles, False)}"
            f"{self._doubt('cycles', first.total_cycles, other.total_cycles)}, "
            f"{'fits' if other.fits else 'does not fit'}, {_as_before(first.fits, other.fits)}"
            for place, other in enumerate(self.profiles[1:], start=1)
        ]
        return "; ".join(parts)

    def _doubt(self, kind: str, one: int, other: int) -> str:
        """In brackets, that numbers of a kind differ by no more than such usually are off; "" where by more."""
        found = within_error(self.known_error(kind), one, other)
        return f" ({found})" if found else ""

    def to_pandas(self) -> pd.DataFrame:
        """The headlines."""
        return self.headlines.copy(deep=False)

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained HTML file of the comparison, whole or not at all; returns the path."""
        others = " and ".join(self.names[1:])
        text = page_of({self.name: self}, f"{others} against {self.names[0]}", self.sentence)
        with whole_file(path, text=True) as file:
            file.write(text)
        return Path(path)

    def to_text(self) -> str:
        """The sentence, the reasons, the headlines, and the options and variables that differ."""
        nameless = {"layer": {"": NO_LAYER}}
        tables = [self.headlines, self.options, *(self.table(name).replace(nameless) for name in TABLES)]
        parts = [self.sentence, self.reasons, *(text_table(frame, rows=10) for frame in tables)]
        return "\n\n".join(part for part in (*parts, "\n".join(self.errors)) if part)


def _as_before(first: bool, other: bool) -> str:
    if first == other:
        return "as before"
    return "which it did not before" if other else "which it did before"


@bound
def compare(*profiles: Profile, labels: Sequence[str] | None = None) -> Comparison:
    """Compare two or more profiles with the first. `labels` are what to call them, instead of their models' names."""
    for place, each in enumerate(profiles):
        if not isinstance(each, Profile):
            raise InputError(
                f"argument {place} of compare is of type {type(each).__name__}: {short(each)}",
                expected="a profile",
                todo="give executable.profile, wb.profile(...) or wb.load_profile(path)",
            )
    if len(profiles) < 2:
        raise InputError(f"compare was given {len(profiles) or 'no'} profile", expected="two or more profiles")
    return Comparison(profiles=tuple(profiles), labels=_checked_labels(labels, len(profiles)))


def _checked_labels(labels: Any, count: int) -> tuple[str, ...]:
    """A label for each profile, or none at all."""
    if labels is None:
        return ()
    texts = isinstance(labels, Sequence) and not isinstance(labels, str) and all(isinstance(t, str) for t in labels)
    if not texts or len(labels) != count:
        raise InputError(f"labels is {short(labels)}", expected=f"{count} texts, one for each profile, or None")
    if len(set(labels)) < count or not all(map(str.strip, labels)):
        raise InputError(f"labels is {short(labels)}", expected="a text for each profile that no other one has")
    return tuple(labels)


def words_of(of: str) -> str:
    """A cause or a category as people read it."""
    return CAUSE_WORDS.get(of) or CATEGORY_WORDS.get(of, of)


def _settings(first: Profile, other: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of two profiles, with what both say of the rest that was asked for."""
    was, now = asked_of_both(first, other)
    return {**first.config, **was}, {**other.config, **now}


def asked_of_both(first: Profile, other: Profile) -> tuple[dict[str, str], dict[str, str]]:
    """What no option holds of what was asked for: the arguments, where both profiles say them (files of earlier
    versions do not), and their targets where these differ and no option of the described machine says it."""
    both = (first, other)
    told = all("asked" in each.meta for each in both)
    was, now = (dict(each.meta["asked"]) if told else {} for each in both)
    machines = [{name: v for name, v in each.config.items() if name.startswith("ipu_model.")} for each in both]
    targets = [_target_text(each.target) for each in both]
    if targets[0] != targets[1] and machines[0] == machines[1]:
        was["target"], now["target"] = targets
    return was, now


def _target_text(target: Mapping[str, Any]) -> str:
    """`"ipu2, 8 tiles"`, and what else is not as of a real machine."""
    changed = [each for each in target.get("what_if", ()) if not each.startswith("tiles_per_ipu=")]
    return ", ".join([target["name"], things_text(target["tiles_per_ipu"], "tile"), *changed])


def _amounts(profile: Profile, name: str) -> pd.DataFrame:
    frame = profile.operations.layers if name == "layers" else getattr(profile, name)
    keys, amounts = list(KEYS[name]), list(AMOUNTS[name])
    return frame.groupby(keys, sort=False)[amounts].sum()


def _change(first: pd.DataFrame, other: pd.DataFrame, name: str, place: int) -> pd.DataFrame:
    both = first.add_suffix(" before").join(other.add_suffix(" after"), how="outer")
    amounts = AMOUNTS[name]
    there = {
        "added": ~both.index.isin(first.index),
        "removed": ~both.index.isin(other.index),
    }
    both = both.fillna(0).astype("int64")
    found = both.reset_index()
    status = pd.Series("changed", index=found.index).mask(there["added"], "added").mask(there["removed"], "removed")
    found.insert(len(KEYS[name]), "status", status)
    found.insert(len(KEYS[name]) + 1, "profile", place)
    for amount in amounts:
        found[f"{amount} change"] = found[f"{amount} after"] - found[f"{amount} before"]
    moved = (found[[f"{amount} change" for amount in amounts]] != 0).any(axis=1) | (found["status"] != "changed")
    largest = found[f"{amounts[0]} change"].abs()
    order = largest[moved].sort_values(ascending=False, kind="stable").index
    return found.loc[order]


def _with_status(frame: pd.DataFrame, status: str) -> pd.DataFrame:
    return frame[frame["status"] == status].reset_index(drop=True)


def _signed(value: float, is_bytes: bool) -> str:
    text = bytes_text(abs(value)) if is_bytes else cycles_text(abs(value))
    return f"{'+' if value > 0 else MINUS if value < 0 else '±'}{text}"
