"""The pipeline view in the real JupyterLab: micro-batches light up, ranges are counted, markers are moved."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import eventually, view
from tests.profiler.scheduled import scheduled_profile

pytestmark = pytest.mark.browser

MAKE = "from tests.profiler.scheduled import scheduled_profile\n"
PIPELINE = MAKE + "shown = scheduled_profile('Grouped', 4, 16, recompute=200).pipeline.widget()\nshown"
MANY = MAKE + "shown = scheduled_profile('Grouped', 64, 1_024).pipeline.widget()\nshown"
# Of the canvas: left and right of the lanes, above them, and the height of a lane of four with its gap.
LEFT, RIGHT, TOP, PITCH = 84, 62, 30, 64
REPORT = scheduled_profile("Grouped", 4, 16, recompute=200).pipeline
Run = Callable[..., NotebookPage]


class Canvas:
    """The canvas of a pipeline whose visible range is its span."""

    def __init__(self, lab: NotebookPage) -> None:
        self.section = view(lab.page, "Pipeline")
        self.lab = lab
        self.element = self.section.locator("canvas.wb-canvas")
        self.element.wait_for()
        self.element.scroll_into_view_if_needed()
        lab.page.wait_for_timeout(400)

    def place(self, cycle: float, ipu: int, *, whole: bool = False) -> tuple[float, float]:
        """Pixels from the canvas' corner, near the top of a lane; `whole`: not the span but the whole call is shown."""
        size = self.element.bounding_box()
        assert size is not None
        first, last = (0, REPORT.profile.total_cycles) if whole else REPORT.span
        return LEFT + (cycle - first) / (last - first) * (size["width"] - LEFT - RIGHT), TOP + ipu * PITCH + 6

    def click(self, cycle: float, ipu: int) -> None:
        x, y = self.place(cycle, ipu)
        self.element.click(position={"x": x, "y": y})
        self.lab.page.wait_for_timeout(300)

    def colours(self, places: list[tuple[float, int]]) -> list[tuple[int, ...]]:
        """The colour in the middle of each block, given by cycle and IPU."""
        self.lab.page.mouse.move(5, 5)
        image = Image.open(io.BytesIO(self.element.screenshot())).convert("RGB")
        found = []
        for cycle, ipu in places:
            x, y = self.place(cycle, ipu)
            pixel = image.getpixel((round(x), round(y)))
            assert isinstance(pixel, tuple)
            found.append(pixel)
        return found

    def side(self) -> Locator:
        return self.section.locator(".wb-side")


def forward_blocks(micro_batch: int) -> list[tuple[float, int]]:
    """Middle and IPU of the forward blocks, whose fill is plain."""
    table = REPORT.of_micro_batch(micro_batch)
    rows = table[(table["direction"] == "forward") & (table["layer"] != "")]
    return [((row["cycles_from"] + row["cycles_to"]) / 2, row["ipu"]) for row in rows.to_dict("records")]


def near(left: tuple[int, ...], right: tuple[int, ...], most: int = 12) -> bool:
    return max(abs(a - b) for a, b in zip(left, right, strict=True)) <= most


@EVERY_SCREEN
def test_a_click_lights_up_a_micro_batch_on_every_ipu(screens: Screens, run_views: Run) -> None:
    lab = run_views(PIPELINE, screen=screens[0])
    for screen in lab.on(screens):
        assert_lights_up(lab, screen)


def assert_lights_up(lab: NotebookPage, screen: str) -> None:
    canvas = Canvas(lab)
    mine, others = forward_blocks(5), forward_blocks(6)
    assert [ipu for _, ipu in mine] == [0, 1, 2, 3]
    before = canvas.colours([*mine, *others])
    # Neighbours have different colours.
    assert not near(before[0], before[4])
    canvas.click(*mine[1])
    canvas.section.get_by_role("heading", name="Micro-batch 5").wait_for()
    after = canvas.colours([*mine, *others])
    assert all(near(*pair) for pair in zip(before[:4], after[:4], strict=True))
    assert not any(near(*pair, most=40) for pair in zip(before[4:], after[4:], strict=True))
    table = REPORT.of_micro_batch(5)
    # Forward, recompute and backward, and both ends of three copies.
    assert len(table) == 4 * 3 + 3 * 2
    said = canvas.section.locator("[aria-live]").inner_text()
    ends = f"{table['cycles_from'].min():,} to {table['cycles_to'].max():,}"
    assert said == f"Micro-batch 5: 18 blocks on 4 IPUs, cycles {ends}"
    rows = canvas.side().get_by_role("region", name="Blocks of the micro-batch").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [str(ipu) for ipu in table["ipu"]]
    assert [row.split("\t")[2].removesuffix(" copy") for row in rows] == list(table["direction"])
    lab.screenshot(f"pipeline-chosen-{screen}")
    # A second click, or Escape, puts everything back.
    canvas.click(*mine[2])
    canvas.section.get_by_role("heading", name="Micro-batch", exact=True).wait_for()
    assert all(near(*pair) for pair in zip(before, canvas.colours([*mine, *others]), strict=True))


# Pixels, nearly opaque, as light as text on a dark ground; blocks this narrow have no caption.
LIGHT_PIXELS = """canvas => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) {
        found += data[i + 3] > 200 && data[i] + data[i + 1] + data[i + 2] > 720;
    }
    return found;
}"""


@pytest.mark.slow
def test_views_in_sight_and_out_of_it_follow_the_theme(run_views: Run) -> None:
    """JupyterLab hides itself for a frame as it changes the theme, and lays out only what is in sight."""
    lab = run_views(PIPELINE, "print('\\n' * 60)", PIPELINE, "print('\\n' * 150)")
    canvases = view(lab.page, "Pipeline").locator("canvas.wb-canvas")
    expect(canvases).to_have_count(2)

    def is_in(place: int, screen: str) -> bool:
        return bool(canvases.nth(place).evaluate(LIGHT_PIXELS) > 100) == screen.endswith("dark")

    for screen in lab.on(((1280, "dark"), (1280, "light"), (1280, "dark"), (1280, "light"))):
        for place in (0, 1, 0):
            canvases.nth(place).scroll_into_view_if_needed()
            eventually(lab.page, partial(is_in, place, screen), f"picture {place} is {screen}")


@pytest.mark.slow
def test_the_keyboard_reaches_micro_batches_and_markers(run_views: Run) -> None:
    lab = run_views(PIPELINE)
    canvas = Canvas(lab)
    canvas.element.focus()
    for _ in range(3):
        lab.page.keyboard.press("ArrowRight")
    canvas.section.get_by_role("heading", name="Micro-batch 2").wait_for()
    lab.page.keyboard.press("t")
    table = REPORT.of_micro_batch(2)
    first, last = int(table["cycles_from"].min()), int(table["cycles_to"].max())
    canvas.section.get_by_role("heading", name=f"B − A: {last - first:,} cycles").wait_for()
    marker = canvas.section.get_by_role("slider", name="Marker A, cycles")
    expect(marker).to_have_attribute("aria-valuenow", str(first))
    marker.focus()
    lab.page.keyboard.press("Alt+ArrowRight")
    expect(marker).to_have_attribute("aria-valuenow", str(first + 1))
    canvas.section.get_by_text(re.compile(rf"A at {first + 1:,}, B at {last:,}; .* % of it waiting")).wait_for()
    canvas.element.focus()
    lab.page.keyboard.press("Escape")
    canvas.section.get_by_role("heading", name="Micro-batch", exact=True).wait_for()
    lab.page.keyboard.press("t")
    expect(marker).to_be_hidden()
    drag_marker(canvas)
    # The notebook's own keys for the letters were not meant.
    assert [cell["cell_type"] for cell in lab.cells()] == ["code"]


def drag_marker(canvas: Canvas) -> None:
    """A marker that is dragged keeps to the end of the block that it comes near."""
    canvas.section.get_by_role("button", name="Markers").click()
    marker = canvas.section.get_by_role("slider", name="Marker B, cycles")
    box, size = marker.bounding_box(), canvas.element.bounding_box()
    assert box is not None
    assert size is not None
    goal = int(REPORT.of_micro_batch(9)["cycles_to"].iloc[0])
    x, _ = canvas.place(goal, 0)
    mouse = canvas.lab.page.mouse
    mouse.move(box["x"] + 9, box["y"] + 9)
    mouse.down()
    mouse.move(size["x"] + x + 2, box["y"] + 9, steps=5)
    mouse.up()
    expect(marker).to_have_attribute("aria-valuenow", str(goal))


def counted(canvas: Canvas) -> dict[str, int]:
    rows = canvas.side().locator("table").first.locator("tbody tr").all_inner_texts()
    return {row.split("\t")[0].strip(): int(row.split("\t")[1].replace(",", "")) for row in rows}


@pytest.mark.slow
def test_causes_are_those_of_the_visible_range(run_views: Run) -> None:
    lab = run_views(PIPELINE)
    canvas = Canvas(lab)
    canvas.element.focus()
    lab.page.keyboard.press("Home")
    canvas.section.get_by_role("heading", name="The whole program").wait_for()
    lab.page.wait_for_timeout(500)
    breakdown = REPORT.profile.cycle_breakdown.groupby("cause")["cycles"].sum()
    found = counted(canvas)
    names = {"between IPUs": "inter_ipu", "idle: filling": "idle_fill", "idle: draining": "idle_drain"}
    names |= {"idle: waits for a stage": "idle_wait_stage", "idle: waits for the host": "idle_wait_host"}
    assert {names.get(label, label): cycles for label, cycles in found.items()} == breakdown.to_dict()
    # A click on a column shows it alone, and counts only what is in it.
    columns = REPORT.columns()
    column = columns[columns["phase"] == "steady"].iloc[3]
    middle = (column["cycles_from"] + column["cycles_to"]) / 2
    x, _ = canvas.place(middle, 0, whole=True)
    canvas.element.click(position={"x": x, "y": 12})
    canvas.section.get_by_role("heading", name=re.compile(r"^Cycles ")).wait_for()
    lab.page.wait_for_timeout(600)
    title = canvas.side().locator("h4").first.inner_text()
    ends = [int(part.replace(",", "")) for part in re.findall(r"[\d,]+", title)]
    assert ends[0] <= column["cycles_from"] < column["cycles_to"] <= ends[1]
    assert ends[1] - ends[0] < 1.2 * (column["cycles_to"] - column["cycles_from"])
    assert sum(counted(canvas).values()) == pytest.approx(4 * (ends[1] - ends[0]), abs=8)
    assert "idle: filling" not in counted(canvas)


@pytest.mark.slow
def test_64_ipus_and_1024_micro_batches(run_views: Run) -> None:
    lab = run_views(MANY)
    canvas = Canvas(lab)
    assert lab.picture(canvas.element).is_drawn(colours=12, filled=0.1)
    canvas.element.focus()
    lab.page.keyboard.press("ArrowRight")
    canvas.section.get_by_role("heading", name="Micro-batch 0").wait_for()
    expect(canvas.section.locator("[aria-live]")).to_have_text(re.compile(r"^Micro-batch 0: 254 blocks on 64 IPUs"))
    lab.page.keyboard.press("o")
    canvas.section.get_by_role("heading", name=re.compile(r"^Cycles ")).wait_for()
    lab.screenshot("pipeline-64-1280-light")
    assert lab.websocket_bytes < 2_000_000
