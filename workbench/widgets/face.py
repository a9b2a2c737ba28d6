"""The drawn faces of a report: widget, stored HTML, SVG, plotly figure. Light to import: a view loads when used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.base.collection import paused_collection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile

# Report name → title, in the order in which a profile shows them.
VIEWS: Mapping[str, str] = {
    "summary": "Summary",
    "memory": "Memory",
    "tile_map": "Tile map",
    "liveness_view": "Liveness",
    "trace": "Trace",
    "pipeline": "Pipeline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """How one report is drawn, by the module of its name in this folder."""

    name: str
    title: str

    def _module(self) -> Any:
        return importlib.import_module(f"workbench.widgets.views.{self.name}")

    def widget(self, report: Any, selection: Any = None) -> Any:
        """The interactive view; views that are given one `selection` are linked."""
        return self._module().widget(report, selection)

    def svg(self, report: Any) -> str:
        """The still picture as SVG text."""
        return str(self._module().draw(report))

    def figure(self, report: Any) -> go.Figure:
        """A plain plotly figure of at most 20,000 points."""
        return self._module().figure(report)

    def html(self, report: Any) -> str:
        """The stored face: it needs no kernel, no script and no trust."""
        return str(self._module().html(report))

    def stored(self, report: Any) -> dict[str, Any]:
        """State of the widget for a page without a kernel: JSON values, and `buffer` in bytes."""
        found: dict[str, Any] = self._module().stored(report)
        return found

    def mimebundle(self, report: Any) -> dict[str, Any]:
        """Widget view, stored HTML and text at once: a stored notebook shows its pictures though nothing runs."""
        return {**self.widget(report)._repr_mimebundle_(), "text/plain": str(report)}


@dataclass(frozen=True, slots=True)
class Page:
    """A whole profile: as one rich view in a notebook, and as one file."""

    @paused_collection()
    def mimebundle(self, profile: Profile) -> dict[str, Any]:
        """Summary and the tabs as linked widgets, every picture as stored HTML, and text."""
        from workbench.widgets import linked

        return {**linked.profile_view(profile)._repr_mimebundle_(), "text/plain": str(profile)}

    def widget(self, profile: Profile) -> Any:
        """Summary and the tabs as linked widgets."""
        from workbench.widgets import linked

        return linked.profile_view(profile)

    def views(self, profile: Profile, *names: str) -> Any:
        """The named views of a profile, linked by one selection."""
        from workbench.widgets import linked

        return linked.views(profile, *names)

    def script(self) -> str:
        """The JavaScript of the views for a page without a kernel: a module script that ends with `load` made."""
        from workbench.widgets.kit import assets

        return assets.script()

    def style(self, names: tuple[str, ...]) -> str:
        """The styles of the named views."""
        from workbench.widgets.kit import assets

        return assets.style(*(f"views/{name}" for name in names))
