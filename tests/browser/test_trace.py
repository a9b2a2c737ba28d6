"""The trace in a stored page: markers measure a range, the small picture moves the window, layers are gone to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.driver import NotebookPage, Screen
from tests.browser.looking import eventually, top_of, view
from tests.profiler.handmade import handmade_profile

pytestmark = pytest.mark.browser

PROFILE = handmade_profile()


@pytest.fixture
def trace(chromium: Browser, tmp_path: Path) -> Iterator[Locator]:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    failed: list[Any] = []
    page.on("pageerror", lambda error: failed.append(error))
    page.goto(PROFILE.to_html(tmp_path / "profile.html").as_uri())
    found = page.locator("#view-trace")
    found.locator("canvas.wb-canvas").wait_for()
    found.scroll_into_view_if_needed()
    yield found
    assert failed == []
    page.close()


def cycles(trace: Locator) -> int:
    """The cycles by cause that stand in the panel's table, added up."""
    cells = trace.locator("aside table").first.locator("tbody tr td:nth-child(2)").all_inner_texts()
    return sum(int(text.replace(",", "")) for text in cells)


def ends(trace: Locator) -> tuple[int, int]:
    """The range that the panel names; the whole program where it names none."""
    words = trace.locator("aside h4").first.inner_text().replace(",", "").split()
    numbers = [int(word) for word in words if word.isdigit()]
    return (numbers[0], numbers[1]) if numbers else (0, PROFILE.total_cycles)


def test_markers_measure_a_range_by_keys_and_by_drag(trace: Locator) -> None:
    canvas = trace.locator("canvas.wb-canvas")
    assert cycles(trace) == PROFILE.total_cycles
    canvas.focus()
    canvas.press("t")
    heading = trace.locator("aside h4").first
    expect(heading).to_contain_text("A to B")
    grips = trace.get_by_role("slider")
    expect(grips).to_have_count(2)
    first, last = ends(trace)
    assert abs(cycles(trace) - (last - first)) <= 5  # by cause, each rounded
    grips.nth(1).press("Alt+ArrowRight")
    expect(heading).to_contain_text(f"{last + 1:,}")
    canvas.press("t")
    expect(heading).to_have_text("The whole program")
    box = canvas.bounding_box()
    assert box is not None
    mouse = trace.page.mouse
    trace.page.keyboard.down("Shift")
    mouse.move(box["x"] + 200, box["y"] + 80)
    mouse.down()
    mouse.move(box["x"] + 420, box["y"] + 80, steps=4)
    mouse.up()
    trace.page.keyboard.up("Shift")
    expect(heading).to_contain_text("A to B")
    first, last = ends(trace)
    assert 0 < first < last < PROFILE.total_cycles
    assert abs(cycles(trace) - (last - first)) <= 5
    trace.get_by_role("button", name="Zoom to the markers").click()
    canvas.press("t")
    expect(heading).to_contain_text("Cycles")
    assert ends(trace) == (first, last)


def test_the_small_picture_chooses_what_is_in_view(trace: Locator) -> None:
    canvas = trace.locator("canvas.wb-canvas")
    box = canvas.bounding_box()
    assert box is not None
    mouse = trace.page.mouse
    wide = box["width"] - 62 - 14
    start = box["x"] + 62 + wide / 2
    mouse.move(start, box["y"] + 10)
    mouse.down()
    mouse.move(start + wide / 4, box["y"] + 10, steps=4)
    mouse.up()
    heading = trace.locator("aside h4").first
    expect(heading).to_contain_text("Cycles")
    first, last = ends(trace)
    assert first == pytest.approx(PROFILE.total_cycles / 2, rel=0.02)
    assert last == pytest.approx(PROFILE.total_cycles * 3 / 4, rel=0.02)
    mouse.move(start + wide / 8, box["y"] + 10)  # inside what is in view: it moves
    mouse.down()
    mouse.move(start - wide / 8, box["y"] + 10, steps=4)
    mouse.up()
    expect(heading).not_to_contain_text(f"Cycles {first:,}")
    moved = ends(trace)
    assert moved[1] - moved[0] == pytest.approx(last - first, abs=2)
    assert moved[0] == pytest.approx(PROFILE.total_cycles / 4, rel=0.03)


def test_layers_and_steps_are_gone_to_and_nothing_jumps(trace: Locator) -> None:
    canvas = trace.locator("canvas.wb-canvas")
    high = canvas.bounding_box()
    canvas.focus()
    canvas.press("d")
    dearest = PROFILE.steps.sort_values("total_cycles", ascending=False, kind="stable").iloc[0]
    row = trace.get_by_role("region", name="Dearest steps").locator("tbody tr").first
    expect(row).to_contain_text(f"{dearest['total_cycles']:,}")
    expect(row).to_have_attribute("aria-current", "true")
    said, seen = trace.locator(".wb-hidden"), []
    for _ in range(3):
        before = said.inner_text()
        canvas.press("]")
        expect(said).not_to_have_text(before)
        seen.append(said.inner_text())
    layer = dearest["layer"]
    starts = [int(text.removeprefix(f"{layer}, cycles ").split()[0].replace(",", "")) for text in seen]
    assert starts == sorted(set(starts))
    canvas.press("[")
    expect(said).to_have_text(seen[-2])
    assert canvas.bounding_box() == high


def test_what_stands_below_stays_where_it_is_as_fewer_causes_come_into_view(trace: Locator) -> None:
    page = trace.page
    page.set_viewport_size({"width": 700, "height": 900})  # the panel is below the lanes, and as high as what it holds
    side, canvas, title = trace.locator("aside"), trace.locator("canvas.wb-canvas"), trace.locator("aside h4").first
    rows = side.locator("table").first.locator("tbody tr")
    canvas.press("+")
    expect(title).to_contain_text("Cycles ")
    canvas.press("Home")
    expect(title).to_have_text("The whole program")
    whole, high = rows.count(), (side.bounding_box() or {})["height"]
    for _ in range(8):
        canvas.press("+")
    eventually(page, lambda: rows.count() < whole, "fewer causes are in view")
    assert (side.bounding_box() or {})["height"] == high


def test_a_step_chosen_in_another_view_comes_into_a_zoomed_trace_and_liveness(trace: Locator) -> None:
    page, canvas = trace.page, trace.locator("canvas.wb-canvas")
    canvas.focus()
    for _ in range(5):
        canvas.press("+")
    wide = 0.6**5 * PROFILE.total_cycles

    def zoomed() -> bool:
        first, last = ends(trace)
        return bool(last - first == pytest.approx(wide, abs=2))

    eventually(page, zoomed, "five steps of the zoom")
    # The last step, which copies the loss to the host for 500 cycles: out of view now.
    assert ends(trace)[1] < PROFILE.total_cycles - 500
    page.locator("#view-liveness_view canvas.wb-canvas").focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    eventually(page, lambda: ends(trace)[1] > PROFILE.total_cycles - 500, "the last step is in view")
    assert zoomed()


@pytest.mark.parametrize("screen", [(1280, "light"), (1920, "dark")])
def test_a_trace_of_few_ipus_is_as_high_as_its_lanes_and_grows_with_the_tiles_that_are_drawn(
    screen: Screen, run_views: Callable[..., NotebookPage]
) -> None:
    model = 'wb.ready("mlp", layers=1, hidden=64, input_size=64)'
    lab = run_views(f"import workbench as wb\nwb.compile({model}, batch_size=4).profile.trace", screen=screen)
    page, canvas = lab.page, view(lab.page, "Trace").locator("canvas.wb-canvas")
    canvas.wait_for()

    def high() -> float:
        return (canvas.bounding_box() or {})["height"]

    # The whole program in small and what is above the lane are 54, a lane with its layers 135, words 32, the axis 42.
    eventually(page, lambda: high() == 263, "as high as the lane needs")
    below = view(page, "Trace").locator("details").last
    canvas.focus()
    for _ in range(12):
        canvas.press("+")
    eventually(page, lambda: high() == 381, "tiles are drawn, 150 high in place of the words")
    place = top_of(below)
    canvas.press("Home")
    eventually(page, lambda: high() == 263, "as high as the lane needs, again")
    assert top_of(below) == place
