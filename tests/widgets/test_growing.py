"""What a cell shows of a report while it is made: in a notebook only, fed as rows come, and gone at the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import IPython
import IPython.display
import pytest

import workbench as wb
from tests.widgets.too_large import too_large
from workbench.widgets.growing import growing, in_notebook
from workbench.widgets.views.diagnosis import DiagnosisView


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A notebook's kernel, and what was displayed and put in its place."""
    found: list[Any] = []

    def display(shown: Any, display_id: bool = False) -> Any:
        assert display_id
        found.append(shown)
        return SimpleNamespace(update=lambda data, raw: found.append((data, raw)))

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "display", display)
    return found


def test_outside_of_a_notebook_nothing_is_shown() -> None:
    assert not in_notebook()
    with growing() as so_far:
        assert so_far is None


def test_a_diagnosis_is_shown_row_by_row_and_taken_away(displayed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sentences: list[str] = []
    executable = too_large()
    found = wb.diagnose(
        executable, compiles=3, heard=lambda fix: sentences.extend(each.data["sentence"] for each in displayed)
    )
    view, gone = displayed
    assert isinstance(view, DiagnosisView)
    assert gone == ({"text/html": ""}, True)
    # A row is heard before it is shown: at the second the view has the first, and so on.
    assert [text.split(".")[0] for text in sentences] == [
        f"{count} compiled so far" for count in range(1, len(found.tried))
    ]
    assert view.comm is None  # closed


def test_what_fails_takes_the_view_away_too(displayed: list[Any]) -> None:
    def stop(text: str) -> None:
        if displayed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wb.diagnose(too_large(), compiles=4, progress=stop)
    assert displayed[-1] == ({"text/html": ""}, True)
