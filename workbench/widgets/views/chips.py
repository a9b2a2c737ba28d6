"""All IPUs in a strip: how full each is and how long it waits; the chosen one is shown in the views under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import ACCENT, BAD, CAUSES
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile
    from workbench.profiler.reports.chips import Chips as Report

WAITING = CAUSES["idle_wait_stage"]
PER_ROW = 32


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Bytes and waiting cycles of every IPU."""
    rows = report.rows
    layout, buffer = pack(
        {
            "tile": ("i4", rows["fullest_tile"]),
            "bytes": ("i4", rows["tile_bytes"]),
            "waiting": ("f8", rows["waiting_cycles"]),
        }
    )
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "ipu": int(report.profile.peak.ipu),
        "capacity_bytes": report.capacity_bytes,
        "total_cycles": report.profile.total_cycles,
        "stages": rows["stages"].tolist(),
        "paints": {"memory": {"label": "fullest tile", "colour": ACCENT, "pattern": ""}, "waiting": WAITING},
        "bad": BAD,
        "per_row": PER_ROW,
    }
    return data, buffer


class ChipsView(View):
    """The strip; a click or a key chooses an IPU in every linked view."""

    _esm = assets.stub("views/chips.js")
    _css = assets.style("views/chips")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))


def widget(report: Report, selection: Selection | None = None) -> ChipsView:
    """The view in a notebook."""
    return ChipsView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.rows))


def draw(report: Report) -> str:
    """The stored picture: a cell per IPU, filled as far as its fullest tile is, and under it how long it waits."""
    rows = report.rows
    across = min(PER_ROW, len(rows))
    wide, high = min(64.0, 928 / across), 64
    lines = -(-len(rows) // across)
    picture = svg.Picture(960, 84 + lines * (high + 34), "IPUs: how full, and how long each waits")
    paints = [payload(report)[0]["paints"][name] for name in ("memory", "waiting")]
    picture.legend(16, 46, paints, 944)
    amounts = (rows[name].tolist() for name in ("ipu", "tile_bytes", "waiting_cycles"))
    for ipu, size, waiting in zip(*amounts, strict=True):
        x, y = 16 + ipu % across * wide, 66 + ipu // across * (high + 34)
        full, idle = size / report.capacity_bytes, waiting / max(1, report.profile.total_cycles)
        picture.box(x, y, wide - 2, high, "c")
        tall = high * min(1.0, full)
        picture.box(x, y + high - tall, (wide - 2) * 0.6, tall, fill=BAD if full > 1 else ACCENT)
        waits = picture.fill(WAITING)
        picture.box(x + (wide - 2) * 0.64, y + high * (1 - idle), (wide - 2) * 0.36, high * idle, fill=waits)
        if ipu % max(1, across // 16) == 0:
            picture.text(x + (wide - 2) / 2, y + high + 14, str(ipu), anchor="middle")
    return str(picture)


def figure(report: Report) -> go.Figure:
    """Both shares of every IPU as a plain plotly figure."""
    import plotly.graph_objects as go

    rows, chart = report.rows, go.Figure()
    chart.add_bar(x=rows["ipu"], y=rows["tile_bytes"] / report.capacity_bytes, name="fullest tile", marker_color=ACCENT)
    share = rows["waiting_cycles"] / max(1, report.profile.total_cycles)
    chart.add_bar(x=rows["ipu"], y=share, name="waiting", marker_color=WAITING["colour"])
    chart.update_layout(title=report.sentence, xaxis_title="IPU", yaxis_title="share", yaxis_tickformat=".0%")
    return chart


def several(profile: Profile) -> bool:
    """Whether there is an IPU to choose."""
    return profile.ipus > 1


register(
    Face(
        name="chips",
        title="IPUs",
        order=5,
        short="ipus",
        shown=several,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
