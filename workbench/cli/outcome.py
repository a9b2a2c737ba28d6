"""What a command ends with: its exit code and its words, as a value and as a file between two processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.base.files import whole_file

FITS, DOES_NOT_FIT, MISUSE, DEFECT, INTERRUPTED = 0, 1, 2, 3, 130
_CODES = (FITS, DOES_NOT_FIT, MISUSE, DEFECT, INTERRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An exit code, the text for stdout and the text for stderr; a text may be empty, and ends without a newline."""

    code: int
    result: str = ""
    complaint: str = ""

    def write(self, path: Path) -> None:
        """Write it to a file, whole or not at all."""
        with whole_file(path, text=True) as file:
            file.write(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Outcome | None:
        """The outcome in a file; None where there is none."""
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            found = cls(**said)
        except (OSError, ValueError, TypeError):
            return None
        return found if found.code in _CODES else None
