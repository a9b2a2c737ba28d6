"""Rows of a long run, each in a file as it comes: a run that broke off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def identity(*folders: Path) -> str:
    """A digest of what rows come from: the package, and the modules of these folders."""
    files = [file for folder in (ROOT / "workbench", *folders) for file in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


class KeptRows:
    """`rows` by key of one run, those that an earlier process made among them; rows of other runs are none.

    `run` names all that the rows depend on.
    """

    def __init__(self, name: str, run: str) -> None:
        self._path = ROOT / "build" / f"{name}.jsonl"
        self._run = run
        self._path.parent.mkdir(exist_ok=True)
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]  # the last may be half written
        self.rows: dict[str, dict[str, Any]] = {line["key"]: line["row"] for line in found if line["run"] == run}

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row."""
        self.rows[key] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"run": self._run, "key": key, "row": row}) + "\n")

    def done(self, table: Path, rows: list[dict[str, Any]]) -> None:
        """Write the table, and forget what was kept."""
        table.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        self._path.unlink(missing_ok=True)
