"""A comparison in a browser: every change that stands on the page is later minus earlier of the profiles' tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.base.categories import CATEGORY_WORDS
from workbench.base.causes import CAUSE_WORDS
from workbench.base.units import bytes_text, cycles_text
from workbench.profiler.advice.compare import AMOUNTS, Comparison

pytestmark = pytest.mark.browser


@pytest.fixture
def reports() -> tuple[Comparison, Comparison]:
    """There and back."""
    first, other = handmade_profile(), handmade_pipeline()
    return wb.compare(first, other), wb.compare(other, first)


@pytest.fixture
def page(chromium: Browser, reports: tuple[Comparison, Comparison], tmp_path: Path) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    opened = context.new_page()
    failed: list[object] = []
    opened.on("pageerror", lambda error: failed.append(error))
    opened.goto(reports[0].to_html(tmp_path / "comparison.html").as_uri())
    opened.locator(".wb-deltas .wb-card").first.wait_for()
    yield opened
    assert failed == []
    context.close()


def number(text: str) -> float:
    return float(text.translate(str.maketrans({"−": "-", "±": "", "+": "", ",": ""})))


def change_bytes(page: Page) -> float:
    """The change beside the picture, to the byte: in brackets where what stands before them is rounded."""
    short, _, exact = page.locator(".wb-change").inner_text().removesuffix(")").partition("(")
    return number((exact or short).strip().removesuffix(" B"))


def rows(page: Page, name: str) -> list[list[str]]:
    page.locator(".wb-listed select").first.select_option(name)
    return rows_in_sight(page)


def rows_in_sight(page: Page) -> list[list[str]]:
    found = page.locator(".wb-listed tbody tr:not([aria-hidden])").all()
    return [row.locator("td").all_inner_texts() for row in found]


def test_every_change_is_later_minus_earlier_in_both_orders(page: Page, reports: tuple[Comparison, Comparison]) -> None:
    for report in reports:
        assert report.sentence in page.locator(".wb-said").inner_text()
        for card in page.locator(".wb-deltas .wb-card").all():
            quantity = card.get_attribute("data-quantity") or ""
            first, other = (getattr(profile, quantity) for profile in report.profiles)
            assert float(card.get_attribute("data-change") or "") == pytest.approx(other - first, rel=1e-12)
        for name, keys in (("operators", 1), ("layers", 1), ("variables", 2)):
            frame = report.table(name)
            amounts = [f"{each} {part}" for each in AMOUNTS[name] for part in ("before", "after", "change")]
            expected = {
                tuple(str(row[key]) or "no layer" for key in frame.columns[:keys]): (
                    row["status"],
                    [row[each] for each in amounts],
                )
                for _, row in frame.iterrows()
            }
            shown = rows(page, name)
            assert len(shown) == len(frame)  # so few that all are in sight
            for cells in shown:
                status, values = expected[tuple(cells[:keys])]
                assert cells[keys] == status
                assert [number(cell) for cell in cells[keys + 1 :]] == values
        page.get_by_role("button", name="Swap").click()


def test_pictures_by_keys_say_the_change_of_a_tile(page: Page, reports: tuple[Comparison, Comparison]) -> None:
    canvas = page.locator("canvas.wb-canvas").first
    canvas.focus()
    page.keyboard.press("3")
    first, other = (profile.arrays for profile in reports[0].profiles)
    ipu = reports[0].profiles[0].peak.ipu
    sizes = [(arrays["always_live"] + arrays["live_peak"])[ipu] for arrays in (first, other)]
    for sign in (1, -1):
        page.keyboard.press("Home")
        for _ in range(40):
            page.keyboard.press("ArrowLeft")
        for tile in range(3):
            assert page.locator(".wb-side h4").first.inner_text() == f"Tile {tile:,} of IPU {ipu}"
            assert change_bytes(page) == sign * (sizes[1][tile] - sizes[0][tile])
            page.keyboard.press("ArrowDown")
        page.keyboard.press("s")


def test_curves_and_tables_say_the_change_of_every_place_and_tile(
    page: Page, reports: tuple[Comparison, Comparison]
) -> None:
    """Liveness place by place, memory tile by tile, and each part of the reasons."""
    canvas = page.locator("canvas.wb-canvas").first
    page.get_by_text("Data table").first.click()
    ipu = reports[0].profiles[0].peak.ipu
    canvas.focus()
    page.keyboard.press("1")
    for report in reports:
        curves = [profile.liveness_view.of(ipu=ipu).worst_tile_bytes for profile in report.profiles]
        length = max(len(curve) for curve in curves)
        canvas.focus()
        for _ in range(length):
            page.keyboard.press("ArrowLeft")
        for place in range(length):
            assert page.locator(".wb-side h4").first.inner_text() == f"Place {place} of IPU {ipu}"
            said = change_bytes(page)
            # Of programs of two lengths as far on their way.
            before, after = (int(curve[int((place + 0.5) * len(curve) / length)]) for curve in curves)
            assert said == after - before
            page.keyboard.press("ArrowRight")
        arrays = [profile.arrays for profile in report.profiles]
        sizes = [(each["always_live"] + each["live_peak"])[ipu].tolist() for each in arrays]
        shown = page.locator(".wb-data tbody tr:not([aria-hidden])").all()
        cells = [[number(cell) for cell in row.locator("td").all_inner_texts()] for row in shown]
        tiles = range(len(sizes[0]))
        expected = [[tile, sizes[0][tile], sizes[1][tile], sizes[1][tile] - sizes[0][tile]] for tile in tiles]
        assert sorted(cells) == expected
        reasons = Counter((each[0], each[1], each[-1]) for each in rows(page, "why"))
        page.locator(".wb-listed .wb-window").press("End")  # the last rows, of more than are in sight at once
        expected_reasons = Counter(_reasons(report))
        reasons |= Counter((each[0], each[1], each[-1]) for each in rows_in_sight(page))
        assert reasons == expected_reasons
        page.get_by_role("button", name="Swap").click()


def _reasons(report: Comparison) -> Iterator[tuple[str, str, str]]:
    """Layer, cause or category in words, and the change as the page writes it, of every part that changes."""
    for _, row in report.why.iterrows():
        for unit, of, text in (("cycles", "cause", cycles_text), ("bytes", "category", bytes_text)):
            if row[of] and row[unit]:
                words = {**CAUSE_WORDS, **CATEGORY_WORDS}.get(row[of], row[of])
                yield row["layer"] or "no layer", words, f"{'+' if row[unit] > 0 else '−'}{text(abs(row[unit]))}"


def test_traces_on_one_axis_say_the_change_of_every_cause(page: Page, reports: tuple[Comparison, Comparison]) -> None:
    canvas = page.locator("canvas.wb-canvas").first
    canvas.focus()
    page.keyboard.press("4")
    for report in reports:
        first, other = (profile.cycle_breakdown.groupby("cause")["cycles"].sum() for profile in report.profiles)
        expected = other.sub(first, fill_value=0)
        total = report.profiles[1].total_cycles - report.profiles[0].total_cycles
        assert number(page.locator(".wb-change").inner_text().removesuffix(" cycles")) == total
        shown = page.locator(".wb-side table").first.locator("tbody tr").all()
        assert len(shown) == len(expected)
        found = [number(row.locator("td").nth(3).inner_text()) for row in shown]
        assert sorted(found) == sorted(expected.tolist())
        page.screenshot(path=Path(__file__).parents[2] / "build" / "screens" / "comparison-traces.png")
        page.keyboard.press("s")


def test_rows_are_found_sorted_and_walked_by_keys(page: Page) -> None:
    all_rows = rows(page, "variables")
    page.locator(".wb-listed input[type=search]").fill(all_rows[0][0])
    found = page.locator(".wb-listed tbody tr:not([aria-hidden])")
    assert all_rows[0][0] in found.first.inner_text()
    assert found.count() < len(all_rows)
    page.locator(".wb-listed input[type=search]").fill("")
    page.get_by_role("button", name="name", exact=True).click()
    head = page.locator(".wb-listed th").first
    assert head.get_attribute("aria-sort") == "ascending"
    page.locator(".wb-listed .wb-window").focus()
    page.keyboard.press("End")
    assert page.locator(".wb-listed tr.wb-at").count() == 1
