"""A view without its script says so where it is defined, and not by an empty place in a page."""

from __future__ import annotations

import pytest

from workbench.errors import InputError
from workbench.widgets.kit import assets


def test_a_view_without_its_script_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        assets.stub("views/nosuch.js")
    assert caught.value.what == "there is no script 'views/nosuch.js' for this view"
    assert caught.value.todo == f"write {assets.FOLDER / 'views' / 'nosuch.js'}"


def test_every_script_of_a_view_has_its_stub() -> None:
    for path in assets.sources():
        assert f'"{path}"' in assets.stub(path)
