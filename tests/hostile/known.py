"""Cells that do not end as they should, by how their names begin, each with its reason; one that is mended fails."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN: Mapping[str, str] = {}

# Formats and damages whose files do not end as they should: by how their names begin.
KNOWN_DAMAGE: Mapping[str, str] = {}
