"""Cells that do not end as they should, by how their names begin, each with its reason; one that is mended fails."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN: Mapping[str, str] = {
    "Profile.to_csv(folder=": "a folder that is a file raises Python's own error",
    "wb.load_profile(path=empty text)": "the path is shown as the folder that it is",
}

# Formats and damages whose files do not end as they should: by how their names begin.
KNOWN_DAMAGE: Mapping[str, str] = {
    "executable foreign": "what the signature of an executable says is not held against its program",
    "executable spliced": "what the signature of an executable says is not held against its program",
    "table": "damage of a table is told by pandas and Python",
}
