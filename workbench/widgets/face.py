"""How a report is drawn: its widget, stored HTML, SVG and plotly figure, registered by the file of the view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.base.registry import faces
from workbench.profiler.profile import Profile

if TYPE_CHECKING:
    import plotly.graph_objects as go


def _always(profile: Profile) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """How the report `name` is drawn. A profile shows the faces that have an `order`, lowest first, where `shown`.

    `widget(report, selection)` is the interactive view: views that are given one selection are linked. `svg` is the
    still picture, `figure` a plain plotly figure of at most 20,000 points. `html` needs no kernel, no script and no
    trust. `stored` is the state of the widget for a page without a kernel: JSON values, and `buffer` in bytes.
    `short` is what `wb.views` calls it too.
    """

    name: str
    title: str
    widget: Callable[..., Any]
    svg: Callable[[Any], str]
    html: Callable[[Any], str]
    figure: Callable[[Any], go.Figure]
    stored: Callable[[Any], dict[str, Any]] | None = None
    order: int | None = None
    short: str = ""
    shown: Callable[[Profile], bool] = _always

    def mimebundle(self, report: Any) -> dict[str, Any]:
        """Widget view, stored HTML and text at once: a stored notebook shows its pictures though nothing runs."""
        return {**self.widget(report)._repr_mimebundle_(), "text/plain": str(report)}


def register(face: Face) -> None:
    """Make a face the one of its report."""
    faces.add(face.name, face)


def views() -> list[Face]:
    """The faces that show a profile, in their order."""
    placed = [(each.order, each) for each in faces.values() if isinstance(each, Face) and each.order is not None]
    return [each for _, each in sorted(placed, key=lambda pair: pair[0])]
