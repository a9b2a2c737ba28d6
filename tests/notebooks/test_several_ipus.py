"""The page on several IPUs: its stored numbers hold together; the browser runs it and holds it to the same."""

from __future__ import annotations

from pathlib import Path

import nbformat

from tests.notebooks.several_ipus import check

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "03-several-ipus.ipynb"


def test_the_stored_numbers_hold_together() -> None:
    check(nbformat.read(PAGE, 4))
    assert PAGE.stat().st_size < 1_000_000
