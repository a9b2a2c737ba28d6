"""A view without its script says so where it is defined, and not by an empty place in a page."""

from __future__ import annotations

import re

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


def test_no_two_styles_are_about_one_class() -> None:
    """Styles are the whole page's: a class of two of them would look in one place as it should in the other."""
    places: dict[str, set[str]] = {}
    for path in assets.FOLDER.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for selectors in re.findall(r"([^{}]+)\{", text):
            for selector in selectors.split(","):
                if re.fullmatch(r"\.[\w-]+", selector.strip()):
                    places.setdefault(selector.strip(), set()).add(path.relative_to(assets.FOLDER).as_posix())
    assert len(places) > 50
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
