"""The summary drawn: the verdict big and plain, the numbers as cards, then what was assumed, changed or warned of."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from workbench.base.arrays import ceil_div
from workbench.base.text import markup
from workbench.base.units import bytes_text, cycles_text, percent_text, rate_text, seconds_text, things_text
from workbench.profiler.advice.explain import known_error
from workbench.profiler.fidelity import NOT_KNOWN
from workbench.profiler.profile import call_text, samples_text
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, picture_html
from workbench.widgets.kit.palette import CAUSES
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.summary import Summary as Report

CARDS_A_ROW = 3
CARD_HIGH, NOTE_LINES, NOTE_LINE = 98, 2, 16
_TONES = {"good": "#1d7f4e", "close": "#a86a12", "bad": "#c8352b"}


def content(report: Report) -> dict[str, Any]:
    """What the cards say, as texts."""
    data, profile = report.data, report.profile
    status = "close" if data["caution"] else "good" if data["fits"] else "bad"
    reason = data["verdict"].partition(": ")[2]
    reason = reason[:1].upper() + reason[1:]
    used, capacity = data["max_tile_bytes"], int(profile.target["bytes_per_tile"])
    return {
        "status": status,
        "headline": "Fits" if data["fits"] else "Does not fit",  # in doubt, too: colour, mark and caution say that
        "verdict": reason,
        "caution": data["sureness"] or data["caution"],
        "sentence": report.sentence,
        "gauge": {
            "used": used,
            "capacity": capacity,
            "text": f"{bytes_text(used)} on the fullest tile: {percent_text(used / capacity)} of a tile",
        },
        "cards": cards(report),
        "shares": shares(report),
        "groups": groups(report),
    }


def cards(report: Report) -> list[dict[str, str]]:
    """The headline numbers: label, value, note."""
    data, profile = report.data, report.profile
    peak, target = profile.peak, profile.target
    over = data["margin_bytes"] < 0
    what = call_text(profile.meta).partition(",")[0]
    clock = f"{float(target['clock_hz']) / 1e9:.3g} GHz"
    found = [
        ("Over by" if over else "Margin", bytes_text(abs(data["margin_bytes"])), _error(report, "memory")),
        (
            "Fullest tile",
            f"tile {peak.tile:,}, IPU {peak.ipu}",
            f"{bytes_text(peak.bytes)} at step {peak.step:,}, {data['peak_step']}",
        ),
        (
            f"Time of one {what}",
            seconds_text(data["seconds"]),
            f"{cycles_text(data['total_cycles'])}, {_error(report, 'cycles')}",
        ),
    ]
    if data["samples_per_second"]:
        found.append(("Throughput", rate_text(data["samples_per_second"]), samples_text(profile.meta)))
    tiles, steps, variables = target["tiles_per_ipu"], data["program"]["steps"], data["program"]["variables"]
    size = f"{things_text(tiles, 'tile')} × {bytes_text(target['bytes_per_tile'])}, {clock}"
    ipus = things_text(data["ipus"], "IPU") + (f" × {data['replicas']} replicas" if data["replicas"] > 1 else "")
    found.append(("Target", f"{ipus}, {target['name']}", size))
    program = (things_text(steps, "step"), things_text(variables, "variable"))
    found.append(("Program", *program))
    return [{"label": label, "value": value, "note": note} for label, value, note in found]


def _error(report: Report, kind: str) -> str:
    known = known_error(report.profile, kind)
    return known.short if known else NOT_KNOWN


def shares(report: Report) -> list[dict[str, Any]]:
    """Cycles by cause over all IPUs as fractions."""
    table = report.profile.tables["cycle_breakdown"]
    whole = int(table["cycles"].sum()) or 1
    sums = {name: int(table["cycles"][table["cause"] == name].sum()) for name in CAUSES}
    return [
        {"paint": CAUSES[name], "share": cycles / whole, "text": percent_text(cycles / whole)}
        for name, cycles in sums.items()
        if cycles
    ]


def groups(report: Report) -> list[dict[str, Any]]:
    """Lists of texts; what a user must not miss comes first."""
    data = report.data
    unmodelled = [
        f"{row['primitive']} × {row['count']} in {row['layer'] or '(no layer)'}" for row in data["unmodelled"]
    ]
    found = (
        ("Not a real machine", list(data["what_if"]), True),
        ("By the generic rule, not modelled on their own", unmodelled, True),
        ("Warnings", [str(text) for text in data["warnings"]], True),
        ("Assumed", list(data["assumptions"]), False),
        ("Options changed", [f"{name} = {value}" for name, value in data["config_changed"].items()], False),
    )
    return [{"title": title, "items": items, "alert": alert} for title, items, alert in found if items]


class SummaryView(View):
    """The verdict and the headline numbers, as text."""

    _esm = assets.stub("views/summary.js")
    _css = assets.style("views/summary")

    def _begin(self) -> None:
        self.data = content(self._report)


def widget(report: Report, selection: Selection | None = None) -> SummaryView:
    """The view in a notebook."""
    return SummaryView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    return {"data": content(report), "buffer": b""}


def html(report: Report) -> str:
    """Picture and table."""
    rows = "".join(
        f'<tr><td style="text-align:left">{markup(item)}</td><td style="text-align:left">{markup(value)}</td></tr>'
        for item, value in report.lines
    )
    return picture_html(report.sentence, draw(report), f"<table><tbody>{rows}</tbody></table>")


def draw(report: Report) -> str:
    """The stored picture: verdict, gauge and cards."""
    found = content(report)
    tone = _TONES[found["status"]]
    rows = ceil_div(len(found["cards"]), CARDS_A_ROW)
    picture = svg.Picture(960, 140 + rows * (CARD_HIGH + 10))
    picture.raw(f'<circle cx="40" cy="44" r="22" fill="{tone}"/>')
    marks = {
        "good": "M30 45l7 7 13-15",
        "close": "M30 40q5-6 10 0t10 0M30 50q5-6 10 0t10 0",
        "bad": "M32 36l16 16M48 36L32 52",
    }
    picture.raw(f'<path d="{marks[found["status"]]}" fill="none" stroke="#fff" stroke-width="4"/>')
    picture.text(76, 42, found["headline"], "t l")
    picture.text(76, 58 if found["caution"] else 62, found["verdict"])
    picture.text(76, 74, found["caution"])
    used, capacity = found["gauge"]["used"], found["gauge"]["capacity"]
    whole = max(used, capacity, 1)
    picture.box(18, 84, 924, 12, "c", radius=6)
    picture.box(18, 84, max(3.0, 924 * used / whole), 12, fill=tone, radius=6)
    picture.box(18 + 924 * capacity / whole - 3, 80, 3, 20, "t")
    picture.text(18, 116, found["gauge"]["text"])
    wide = (924 - 10 * (CARDS_A_ROW - 1)) / CARDS_A_ROW
    for place, card in enumerate(found["cards"]):
        row, column = divmod(place, CARDS_A_ROW)
        x, y = 18 + column * (wide + 10), 132 + row * (CARD_HIGH + 10)
        picture.box(x, y, wide, CARD_HIGH, "c", radius=7)
        picture.text(x + 12, y + 22, card["label"])
        picture.text(x + 12, y + 45, card["value"], "t v")
        for number, line in enumerate(_lines(card["note"], int(wide / 6.4))):
            picture.text(x + 12, y + 67 + number * NOTE_LINE, line)
    return str(picture)


def _lines(text: str, most: int) -> list[str]:
    """A note in the lines of a card, of at most so many letters; what is left over ends in `…`."""
    return textwrap.wrap(text, most, max_lines=NOTE_LINES, placeholder="…")


def figure(report: Report) -> go.Figure:
    """Cycles by cause as one bar, titled by the verdict."""
    import plotly.graph_objects as go

    chart = go.Figure()
    for part in shares(report):
        colours = part["paint"]
        chart.add_bar(
            x=[part["share"]], y=["time"], orientation="h", name=colours["label"], marker_color=colours["colour"]
        )
    chart.update_layout(title=report.sentence, barmode="stack", xaxis_title="share of the cycles")
    return chart


register(
    Face(
        name="summary",
        title="Summary",
        order=10,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
