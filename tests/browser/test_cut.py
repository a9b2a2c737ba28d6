"""Nothing that is read is cut at the width an output has in JupyterLab on a screen of 1,280 pixels, nor at others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import workbench as wb
from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import view
from tests.profiler.scheduled import scheduled_profile
from workbench.profiler.advice.schedules import ScheduleComparison, Trial
from workbench.profiler.export.html import page_of
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report

pytestmark = pytest.mark.browser

WIDTHS = (860, 900, 1540)  # of a page, which leaves 48 pixels beside its views: outputs are 810 to 910 wide at 1,280
CUT = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
# Circles and squares as [x, y, radius], too.
# What a canvas writes: its texts with the edges in pixels that they have from `textAlign`, condensed where asked.
WRITTEN = """() => {
    const written = (window.written = []), pen = CanvasRenderingContext2D.prototype, write = pen.fillText;
    pen.fillText = function (text, x, y, most = Infinity) {
        const wide = Math.min(most, this.measureText(text).width), at = this.getTransform().transformPoint({x, y});
        const part = {center: 0.5, right: 1, end: 1}[this.textAlign] ?? 0, ratio = window.devicePixelRatio;
        const from = at.x / ratio - part * wide, upright = this.getTransform().b === 0;
        written.push({text, from, to: from + wide, y: at.y / ratio, of: this.canvas.clientWidth, upright});
        return write.apply(this, arguments);
    };
    const points = (window.points = []), arc = pen.arc, rect = pen.rect;
    pen.arc = function (x, y, radius) { points.push([x, y, radius]); return arc.apply(this, arguments); };
    pen.rect = function (x, y, w) { points.push([x + w / 2, y + w / 2, w / 2]); return rect.apply(this, arguments); };
}"""
Show = Callable[..., Page]


@pytest.fixture(scope="module")
def cnn() -> Profile:
    return wb.profile("cnn", batch_size=8, mode="training")


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Show]:
    """`show(860, operations=report)`: a stored page of these reports, of that width; no script of it may fail."""
    opened: list[Page] = []
    failed: list[str] = []

    def open_it(width: int, **reports: Report) -> Page:
        path = tmp_path / "page.html"
        path.write_text(page_of(reports, "cut", ""), encoding="utf-8")
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.add_init_script(f"({WRITTEN})()")
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(path.as_uri())
        page.locator("section.wb").first.wait_for()
        opened.append(page)
        return page

    yield open_it
    for page in opened:
        page.close()
    assert failed == []


def assert_read(listed: Locator, *, scrolls: bool = False) -> None:
    """Every head and every number of a table, whole and in its box; of names a part, the whole as title."""
    assert listed.locator("th button, td.wb-num").evaluate_all(CUT) == []
    assert listed.locator("th").evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0
    box = listed.locator(".wb-window")
    assert scrolls or box.evaluate("e => e.scrollWidth <= e.clientWidth")
    names = listed.locator("td.wb-gives").evaluate_all("all => all.map(e => [e.title, e.textContent, e.clientWidth])")
    assert names
    assert all(title == text and width >= 72 for title, text, width in names)


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_of_operations_are_whole(width: int, cnn: Profile, show: Show) -> None:
    listed = show(width, operations=cnn.operations).locator("#view-operations .wb-listed")
    assert_read(listed)
    assert "flops" in listed.locator("th").all_inner_texts()
    for head in listed.locator("th button").all():
        head.click()
        assert_read(listed)
        assert head.evaluate("e => getComputedStyle(e, '::after').content") in ('"\u00a0↓"', '"\u00a0↑"')
    listed.locator("select").first.select_option("layers")
    assert_read(listed, scrolls=True)  # eleven columns of numbers


def test_ends_of_names_stand_where_the_names_are_cut(cnn: Profile, show: Show) -> None:
    listed = show(WIDTHS[0], operations=cnn.operations).locator("#view-operations .wb-listed")
    cut = listed.locator("td.wb-gives:has(.wb-start)")
    shown = cut.evaluate_all("all => all.map(e => e.scrollWidth <= e.clientWidth)")
    assert len(shown) > 4
    assert all(shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_headings_of_a_comparison_are_told_apart(width: int, cnn: Profile, show: Show) -> None:
    other = wb.profile("cnn", batch_size=4, mode="training")
    listed = show(width, comparison=wb.compare(cnn, other)).locator("#view-comparison .wb-listed")
    heads = [text.lower() for text in listed.locator("th").all_inner_texts()]
    assert [head for head in heads if head.startswith("temp")] == [
        f"temp. bytes, {part}" for part in ("before", "after", "change")
    ]
    for table in ("operators", "variables", "layers"):
        listed.locator("select").first.select_option(table)
        assert_read(listed, scrolls=table == "variables")


def written(canvas: Locator) -> list[dict[str, Any]]:
    """The level texts of a canvas as it is drawn anew."""
    page = canvas.page
    page.evaluate("() => { window.written.length = window.points.length = 0 }")
    high = canvas.evaluate("e => e.style.height")
    canvas.evaluate("(e, high) => { e.style.height = `${parseFloat(high) + 1}px` }", high)
    page.wait_for_function("() => window.written.length > 0")
    page.wait_for_timeout(200)
    return [each for each in page.evaluate("() => window.written") if each["upright"]]


def assert_inside(texts: list[dict[str, Any]]) -> None:
    cut = [each["text"] for each in texts if each["from"] < -0.5 or each["to"] > each["of"] + 0.5]
    assert cut == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_panel_and_the_axis_of_schedules_are_whole(width: int, show: Show) -> None:
    profiles = tuple(scheduled_profile(name, 4, 8) for name in ("Grouped", "Interleaved", "Sequential"))
    trials = tuple(Trial(schedule=each.name, recomputation=False, executable=each) for each in profiles)
    page = show(width, schedules=ScheduleComparison(profiles=profiles, trials=trials))
    panel = page.locator("#view-schedules .wb-side")
    edge = panel.evaluate("e => e.getBoundingClientRect().right")
    outside = "(all, edge) => all.filter(e => e.getBoundingClientRect().right > edge + 0.5).map(e => e.textContent)"
    assert panel.locator("th, td").evaluate_all(outside, edge) == []
    assert panel.locator("th, td").evaluate_all(CUT) == []
    texts = written(page.locator("#view-schedules canvas.wb-canvas"))
    assert_inside(texts)
    assert any("(1,000 cycles are" in each["text"] for each in texts)


TRACE = 'import workbench as wb\nshown = wb.profile("cnn", batch_size=8, mode="training").trace.widget()\nshown'


@EVERY_SCREEN
def test_what_stands_under_a_trace_is_whole(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(TRACE, screen=screens[0])
    trace = view(lab.page, "Trace")
    canvas = trace.locator("canvas.wb-canvas")
    canvas.wait_for()
    lab.page.evaluate(WRITTEN)
    for screen in lab.on(screens):
        canvas.press("Home")
        trace.get_by_role("heading", name="The whole program").wait_for()
        texts = written(canvas)
        assert_inside(texts)
        assert "is busy in each." in " ".join(each["text"] for each in texts), screen
        lab.screenshot(f"trace-far-{screen}")
        for _ in range(8):
            canvas.press("+")
        lab.page.wait_for_timeout(1_000)
        texts = written(canvas)
        assert_inside([each for each in texts if "tile" in each["text"]])
        assert "blank is waiting for the slowest" in " ".join(each["text"] for each in texts), screen
        lab.screenshot(f"trace-near-{screen}")


@pytest.mark.parametrize("ipus", [4, 16])
def test_what_the_shares_beside_a_pipeline_are_is_said_once_above_them(ipus: int, show: Show) -> None:
    report = scheduled_profile("Grouped", ipus, 2 * ipus).pipeline
    texts = written(show(WIDTHS[1], pipeline=report).locator("#view-pipeline canvas.wb-canvas"))
    (heading,) = [each for each in texts if each["text"] == "waiting"]
    shares = [each for each in texts if each["text"].endswith(" %")]
    assert len(shares) == ipus
    assert all(each["to"] == heading["to"] and each["y"] > heading["y"] for each in shares)
    assert_inside(texts)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_point_lies_on_the_name_of_a_line(width: int, cnn: Profile, show: Show) -> None:
    page = show(width, roofline=cnn.roofline)
    texts = {each["text"]: each for each in written(page.locator("#view-roofline canvas.wb-canvas"))}
    points = [(x, y, r) for x, y, r in page.evaluate("() => window.points") if r < 10]  # the rest clips
    assert len(points) >= len(cnn.roofline.to_pandas())
    assert list(cnn.roofline.peaks) == ["float32"]
    for name in ("exchange", "host", "compute in float32"):
        said = texts[name]
        on = [
            (x, y)
            for x, y, r in points
            if said["from"] < x + r and x - r < said["to"] and said["y"] < y + r < said["y"] + 12 + 2 * r
        ]
        assert on == [], name


NARROW = 400 + 48
BESIDE = """root => [...root.querySelectorAll('*')].filter(e => !e.closest('.wb-scroll, .wb-hidden')
    && (e.getBoundingClientRect().right > root.getBoundingClientRect().right + 1
        || e.matches('.wb-said, h4, p') && e.scrollWidth > e.clientWidth)).map(e => e.textContent)"""


@pytest.fixture(scope="module")
def long_names() -> Profile:
    graph = wb.tiles.Graph("ipu2", tiles=2)
    x = graph.variable("x", (100,), "float32").map_linearly(tiles=1)
    scale = graph.compute_set("a_name_without_any_place_to_break_it_" * 5)
    scale.vertex("popops::BinaryOp1D", tile=0, op="MULTIPLY", a=x, b=x, out=x)
    return wb.profile(graph.sequence(scale))


@pytest.mark.parametrize("name", ["liveness_view", "playback", "xray", "exchange", "trace"])
def test_nothing_stands_beside_a_narrow_view(name: str, long_names: Profile, show: Show) -> None:
    section = show(NARROW, **{name: getattr(long_names, name)}).locator("section.wb").first
    section.locator("canvas").first.wait_for()
    assert section.evaluate(BESIDE) == []


def test_the_name_of_a_row_stays_where_its_numbers_are_scrolled_to(cnn: Profile, show: Show) -> None:
    listed = show(NARROW, operations=cnn.operations).locator("#view-operations .wb-listed")
    listed.locator("select").first.select_option("layers")
    box = listed.locator(".wb-window")
    box.evaluate("e => { e.scrollLeft = 300; e.scrollTop = 60 }")
    assert box.evaluate("e => e.scrollLeft") > 100
    left = box.evaluate("e => e.getBoundingClientRect().left")
    for cell in (listed.locator("th").first, listed.locator("tbody tr:not([aria-hidden])").nth(6).locator("td").first):
        assert cell.evaluate("e => e.getBoundingClientRect().left") == pytest.approx(left, abs=1)
        # What is scrolled under it does not shine through, and nothing lies over it.
        assert cell.evaluate("e => getComputedStyle(e).backgroundColor") not in ("rgba(0, 0, 0, 0)", "transparent")
        assert cell.evaluate(
            """e => { const {x, y, width, height} = e.getBoundingClientRect();
                return e.contains(document.elementFromPoint(x + width / 2, y + height / 2)) }"""
        )


def test_keys_are_hatched_by_the_paper_itself(cnn: Profile, show: Show) -> None:
    """So that no key has to be painted anew in another theme, which one that is hidden then was not."""
    keys = show(WIDTHS[0], trace=cnn.trace).locator(".wb-legend canvas.wb-swatch")
    keys.first.wait_for()
    seen = keys.evaluate_all(
        """all => all.map(e => {
            const {data} = e.getContext('2d').getImageData(0, 0, e.width, e.height), found = new Set();
            for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found.add(data.slice(i, i + 3).join());
            return [found.size, data.some((value, i) => i % 4 === 3 && value < 130)] })"""
    )
    # What covers is of the one colour of its ground; where it is hatched, 55 % of it is taken away: 0.45 x 255 = 115.
    assert {colours for colours, _ in seen} == {1}
    assert {hatched for _, hatched in seen} == {True, False}


def test_a_printed_picture_keeps_its_proportions(cnn: Profile, show: Show) -> None:
    """A page is printed without drawing anew: what was drawn for the screen is made as wide as the paper."""
    page = show(WIDTHS[2], liveness_view=cnn.liveness_view, trace=cnn.trace)
    canvases = page.locator("canvas.wb-canvas")
    expect(canvases).to_have_count(2)
    page.wait_for_function("() => [...document.querySelectorAll('canvas.wb-canvas')].every(e => e.width !== 300)")
    drawn = canvases.evaluate_all("all => all.map(e => e.width / e.height)")
    page.emulate_media(media="print")
    page.add_style_tag(content="section.wb { width: 700px }")  # of paper
    shown = canvases.evaluate_all("all => all.map(e => e.clientWidth / e.clientHeight)")
    assert shown == pytest.approx(drawn, rel=0.02)
    style = page.locator("section.wb").first.evaluate(
        "e => [getComputedStyle(e).breakInside, getComputedStyle(e).printColorAdjust]"
    )
    assert style == ["avoid", "exact"]
