"""Cycles, peak bytes and code per line of the user's code, and the text that stands there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.source.lines import file_and_number
from workbench.base.units import bytes_text, cycles_text, percent_text, things_text
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records


@report("source")
@dataclass(frozen=True, kw_only=True, eq=False)
class Source(Report):
    """A line's cycles are those of its steps on every IPU they occupy; with waiting and what has no line they sum to
    IPUs x total cycles.

    A step belongs to the line at which its operation was called: of a program by hand or a graph where it was made; of
    a model of Keras in a layer's own `call`, and of a layer of the library where the layer was made."""

    kinds: ClassVar[tuple[str, ...]] = ("cycles", "memory")
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Source:
        """The lines of a profile."""
        return cls(profile=profile)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A row for each step and each of its callers: `source` ("" for none), `step`, `name`, `layer`, `operator`,
        `cycles` of all executions on every IPU it occupies."""
        steps = self.profile.steps
        ends = np.where(steps["to_ipu"] < 0, 1, 1 + (steps["to_ipu"] != steps["ipu"]))
        return pd.DataFrame(
            {
                "source": steps["source"],
                "step": steps["id"],
                "name": steps["name"],
                "layer": steps["layer"],
                "operator": steps["operator"],
                "cycles": steps["total_cycles"] * ends,
            }
        )

    @cached_property
    def lines(self) -> pd.DataFrame:
        """`source` ("model.py:12"), cycles, fraction, peak_bytes (the fullest tile at any of its steps), code_bytes (of
        its operators; what they share counts for each), `text`, `layers` and `steps` (ids); the dearest first. Of a
        body that several lines share each has the cycles of its own runs."""
        frame = self.rows[self.rows["source"] != ""].copy()
        fullest = self.profile.liveness.groupby("step")["worst_tile_bytes"].max()
        frame["peak_bytes"] = frame["step"].map(fullest).fillna(0).astype("int64")
        groups = frame.groupby("source", sort=False)
        found = groups.agg(
            cycles=("cycles", "sum"), peak_bytes=("peak_bytes", "max"), layers=("layer", _named), steps=("step", _each)
        )
        found = found.reset_index().sort_values("cycles", ascending=False, kind="stable").reset_index(drop=True)
        found.insert(2, "fraction", found["cycles"] / max(1, self.total_cycles))
        code = self._code_bytes
        found.insert(4, "code_bytes", np.array([code.get(line, 0) for line in found["source"]], dtype=np.int64))
        found.insert(5, "text", [self._texts.get(line, "").strip() for line in found["source"]])
        return found

    @cached_property
    def _code_bytes(self) -> Mapping[str, int]:
        """Code of operators by line; an operator of several lines belongs to the one with most of its cycles."""
        frame = self.rows[self.rows["operator"] != ""]
        taken = frame.groupby(["operator", "source"], sort=False)["cycles"].sum().reset_index()
        main = taken.sort_values("cycles", ascending=False, kind="stable").drop_duplicates("operator")
        operators = self.profile.operators.groupby("name")["code_bytes"].sum()
        bytes_of = main["operator"].map(operators).fillna(0).astype("int64")
        return {str(line): int(size) for line, size in bytes_of.groupby(main["source"]).sum().items() if line}

    @cached_property
    def files(self) -> list[dict[str, Any]]:
        """The files that have lines, the dearest first: `file`, `name` for people, and `lines`, pairs of a number and
        the text there (None where it was not recorded), in order; a gap in the numbers is left out."""
        found: dict[str, dict[int, str | None]] = {}
        for line in self.lines["source"]:
            file, number = file_and_number(line)
            found.setdefault(file, {})[number] = None
        sources = self.profile.meta.get("sources", {})
        for file, numbered in found.items():
            for first, texts in sources.get(file, {}).get("stretches", ()):
                numbered.update(enumerate(texts, first))
        return [
            {"file": file, "name": sources.get(file, {}).get("name", file), "lines": sorted(numbered.items())}
            for file, numbered in found.items()
        ]

    @cached_property
    def titles(self) -> dict[str, str]:
        """Each line as people know it: `"model.py:12"`, `"Cell In[3], line 12"`."""
        names = {about["file"]: about["name"] for about in self.files}
        found = {}
        for line in self.lines["source"]:
            file, number = file_and_number(line)
            found[line] = line if names[file] == file else f"{names[file]}, line {number}"
        return found

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {
            f"{file}:{number}": text
            for file, about in self.profile.meta.get("sources", {}).items()
            for first, texts in about["stretches"]
            for number, text in enumerate(texts, first)
        }

    @property
    def total_cycles(self) -> int:
        """IPUs x cycles of one call."""
        return self.profile.ipus * self.profile.total_cycles

    @property
    def unattributed_cycles(self) -> int:
        """Cycles of no line: waiting, synchronisation, and steps without a source."""
        return self.total_cycles - int(self.lines["cycles"].sum())

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: lines, the text of their files, total and unattributed cycles."""
        files = [{**each, "lines": [list(pair) for pair in each["lines"]]} for each in self.files]
        return {
            "lines": records(self.lines),
            "files": files,
            "total_cycles": self.total_cycles,
            "unattributed_cycles": self.unattributed_cycles,
        }

    @property
    def sentence(self) -> str:
        """The dearest line."""
        if self.lines.empty:
            return "No step names a line of code"
        first, count = self.lines.iloc[0], len(self.lines)
        title, cycles = self.titles[first["source"]], cycles_text(int(first["cycles"]))
        return (
            f"{things_text(count, 'line')} of code; {title} takes {cycles} ({percent_text(first['fraction'])} of all "
            f"cycles, modelled) with at most {bytes_text(int(first['peak_bytes']))} on a tile; "
            f"{percent_text(self.unattributed_cycles / max(1, self.total_cycles))} of all cycles belong to no line"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The lines."""
        return self.lines.copy(deep=False)


def _each(steps: pd.Series) -> list[int]:
    return list(dict.fromkeys(steps.tolist()))


def _named(layers: pd.Series) -> list[str]:
    return [layer for layer in dict.fromkeys(layers.tolist()) if layer]
