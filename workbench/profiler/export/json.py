"""The verdict and the headline numbers as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.base.files import whole_file
from workbench.profiler.profile import Profile
from workbench.profiler.registry import export


@export("json")
def to_json(profile: Profile, path: str | Path | None = None) -> str:
    """The verdict and the headline numbers as JSON; with a path also written there, whole or not at all."""
    text = json.dumps(profile.summary.data, indent=2)
    if path is not None:
        with whole_file(path, text=True) as file:
            file.write(text)
    return text
