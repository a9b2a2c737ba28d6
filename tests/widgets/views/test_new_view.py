"""Adding a view touches its own files: one of Python and one of JavaScript show a report wherever views are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.widgets.views.longest_view import shown_in


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return shown_in(tmp_path_factory.mktemp("extended"))


def test_a_view_is_its_own_files(page: tuple[Path, list[str]]) -> None:
    one, bundle, linked, whole, titles = page[1]
    assert one == "LongestView True Figure"
    assert bundle == "['application/vnd.jupyter.widget-view+json', 'text/html', 'text/plain']"
    assert linked == "['LongestView', 'MemoryView'] True"
    names = json.loads(whole)
    assert names[:4] == ["SummaryView", "MemoryView", "LongestView", "TileMapView"]
    assert titles == "('Memory', 'Longest', 'Tile map')"


def test_its_page_has_its_script_and_its_picture(page: tuple[Path, list[str]]) -> None:
    text = page[0].read_text(encoding="utf-8")
    assert 'id="view-longest"' in text
    assert "views/longest.js" in text
