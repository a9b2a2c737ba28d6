"""What the page on several IPUs must say, stored or run."""

from __future__ import annotations

import re
from typing import Any


def outputs(notebook: Any, source: str) -> list[Any]:
    """The outputs of the cell with this text."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    return list(cell.outputs)


def check(notebook: Any) -> None:
    causes = outputs(notebook, "causes =")[0].data["text/plain"].splitlines()
    sums = [line.split()[-1] for line in causes if re.match(r"\d", line)][-4:]
    assert len(sums) == 4
    assert len(set(sums)) == 1  # all IPUs take the same time, whatever they do in it
    (schedules,) = outputs(notebook, "compare_schedules")
    assert schedules.data["text/plain"].startswith("Grouped is the fastest that fits")
    assert re.search(r'<img alt="[^"]{20,}" src="data:image/', schedules.data["text/html"])
    waiting = re.findall(r"(\d+\.\d)%\s+(\d+\.\d)%", outputs(notebook, "for count in")[0].data["text/plain"])
    assert [equal for _, equal in waiting] == ["27.3", "15.8", "8.6", "4.5", "2.3"]  # 3 / (count + 3)
    assert all(float(idle) >= float(equal) for idle, equal in waiting)
