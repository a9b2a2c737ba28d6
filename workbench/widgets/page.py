"""The drawn face of a whole profile: one rich view in a notebook, and what one file of it needs."""

from __future__ import annotations

from typing import Any

from workbench.base.collection import paused_collection
from workbench.base.registry import faces
from workbench.profiler.profile import Profile
from workbench.widgets import linked
from workbench.widgets.kit import assets


class Page:
    """A profile as the views it is shown with."""

    @paused_collection()
    def mimebundle(self, profile: Profile) -> dict[str, Any]:
        """Summary and the tabs as linked widgets, every picture as stored HTML, and text."""
        return {**linked.profile_view(profile)._repr_mimebundle_(), "text/plain": str(profile)}

    def shown(self, profile: Profile) -> tuple[str, ...]:
        """Names of the views, in order."""
        return linked.shown(profile)

    def script(self) -> str:
        """The JavaScript of the views for a page without a kernel: a module script that ends with `load` made."""
        return assets.script()

    def style(self, names: tuple[str, ...]) -> str:
        """The styles of the named views."""
        return assets.style(*(f"views/{name}" for name in names))


faces.add("html", Page())
