"""A report and an export of one file each, which are no part of the package: tests add them."""

REPORT = '''
"""The three longest steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records


@report("longest")
@dataclass(frozen=True, kw_only=True, eq=False)
class Longest(Report):
    """Of one execution each."""

    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Longest:
        """The longest steps of a profile."""
        return cls(profile=profile)

    @property
    def data(self) -> dict[str, Any]:
        """JSON data."""
        return {"steps": records(self.to_pandas())}

    @property
    def sentence(self) -> str:
        """The longest."""
        return f"{self.to_pandas()['name'].iloc[0]} is the longest step"

    def to_pandas(self) -> pd.DataFrame:
        """Name and cycles."""
        found = self.profile.steps.nlargest(3, "cycles")[["name", "cycles"]]
        return found.reset_index(drop=True)
'''

EXPORT = '''
"""The names of the steps, a line each."""

from __future__ import annotations

from pathlib import Path

from workbench.profiler.profile import Profile
from workbench.profiler.registry import export


@export("names")
def to_names(profile: Profile, path: str | Path, mark: str = "-") -> Path:
    """Write the names of the steps, each after a mark."""
    Path(path).write_text("".join(f"{mark} {name}\\n" for name in profile.steps["name"]), encoding="utf-8")
    return Path(path)
'''
