"""A report that grows while a cell runs: shown below the cell as rows come, and gone when the cell has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def growing() -> Iterator[Callable[[Any], None] | None]:
    """What to call with the report so far; None where no notebook could show it."""
    if not in_notebook():
        yield None
        return
    shown = _Shown()
    try:
        yield shown
    finally:
        shown.close()


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class _Shown:
    """The view of the first report, fed with those that come after it."""

    def __init__(self) -> None:
        self._view: Any = None
        self._display: Any = None

    def __call__(self, report: Any) -> None:
        from IPython.display import display

        from workbench.widgets.views.diagnosis import DiagnosisView

        if self._view is None:
            self._view = DiagnosisView(report)
            self._display = display(self._view, display_id=True)
            return
        self._view.grow(report)

    def close(self) -> None:
        """Take the view away: what the cell gives shows itself."""
        if self._view is None:
            return
        self._display.update({"text/html": ""}, raw=True)
        self._view.close()


__all__ = ["growing", "in_notebook"]
