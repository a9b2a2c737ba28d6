"""A view that is shown alone brings its own style, and does not lean on that of another in the notebook."""

from __future__ import annotations

import pytest

from tests.profiler.handmade import handmade_profile
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.kit import assets

SHOWN = ("summary", *linked.shown(handmade_profile()))


@pytest.mark.parametrize("name", sorted(set(SHOWN)))
def test_a_view_brings_the_shared_style(name: str) -> None:
    made = face(name).widget(getattr(handmade_profile(), name))
    assert assets.style() in made.get_state()["_css"]
