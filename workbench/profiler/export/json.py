"""The verdict and the headline numbers as JSON."""

from __future__ import annotations

import json

from workbench.profiler.profile import Profile
from workbench.profiler.registry import export


@export("json")
def to_json(profile: Profile) -> str:
    """The verdict and the headline numbers as JSON."""
    return json.dumps(profile.summary.data, indent=2)
