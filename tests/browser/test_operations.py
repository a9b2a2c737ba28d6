"""Operations and insights in a browser: tips that choose, icicle and table by keys, totals that are the profile's."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.profiler.handmade import handmade_profile
from tests.widgets.evil import evil_profile

pytestmark = pytest.mark.browser


def test_a_layer_is_walked_into_by_keys_and_its_rows_are_listed(chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_profile()
    page = chromium.new_page()
    failed: list[object] = []
    page.on("pageerror", lambda error: failed.append(error))
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    view = page.locator("#view-operations")
    rows = view.locator(".wb-listed tbody tr:not([aria-hidden])")
    expect(rows).to_have_count(len(profile.operators))
    view.locator("select").nth(1).select_option("layers")
    expect(rows).to_have_count(len(profile.operations.layers))
    shown = [int(row.locator("td").nth(1).inner_text().replace(",", "")) for row in rows.all()]
    assert sum(shown) == int(profile.steps["total_cycles"].sum())
    view.locator("canvas.wb-canvas").focus()
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert 0 < rows.count() < len(shown)
    page.keyboard.press("Home")
    expect(rows).to_have_count(len(shown))
    assert failed == []
    page.close()


def test_escape_lets_go_of_all_and_shows_all_layers(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    profile = handmade_profile()
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    page.locator("#view-tile_map canvas.wb-canvas").focus()
    page.keyboard.press("ArrowUp")
    tile = page.locator("#view-tile_map .wb-side h4").first
    chosen = tile.inner_text()
    assert chosen.startswith("Tile ")
    view = page.locator("#view-operations")
    rows = view.locator(".wb-listed tbody tr:not([aria-hidden])")
    view.locator("select").nth(1).select_option("layers")
    expect(rows).to_have_count(len(profile.operations.layers))
    view.locator("canvas.wb-canvas").focus()
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(rows).not_to_have_count(len(profile.operations.layers))
    page.keyboard.press("Escape")
    expect(rows).to_have_count(len(profile.operations.layers))
    expect(tile).not_to_have_text(chosen)
    expect(view.locator(".wb-chosen")).to_have_count(0)
    page.close()


def test_names_are_text(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(evil_profile().to_html(tmp_path / "evil.html").as_uri())
    view = page.locator("#view-operations")
    view.locator("section.wb").wait_for()
    assert view.locator("script, img, iframe").count() == 0
    assert "<" in view.inner_text()
    page.close()


def test_a_tip_shows_what_it_is_about_in_the_other_views(chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_profile(fits=False)
    page = chromium.new_page()
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    page.locator("#view-insights").get_by_role("button", name="Show in the other views").first.click()
    heading = page.locator("#view-tile_map .wb-side h4").first
    expect(heading).to_have_text(f"Tile {profile.peak.tile:,} of IPU {profile.peak.ipu}")
    page.locator("#view-insights canvas.wb-canvas").focus()
    page.keyboard.press("ArrowRight")
    first = profile.insights.histogram["tiles"].iloc[0]
    expect(page.locator("#view-insights .wb-tip strong")).to_have_text(f"{first} tiles")
    page.close()
