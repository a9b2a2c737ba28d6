"""The browser harness itself: it runs widgets in JupyterLab, sees what is drawn, and notices what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.driver import EVERY_SCREEN, Screens
from tests.browser.pixels import Picture

pytestmark = pytest.mark.browser

CANVAS = '''
import anywidget, traitlets

class Canvas(anywidget.AnyWidget):
    """Bars from a binary buffer; a click sends back the bar's number, and Python answers with its height."""

    _esm = """
    function render({ model, el }) {
      const canvas = Object.assign(document.createElement("canvas"), { width: 300, height: 100 });
      const said = document.createElement("p");
      el.append(canvas, said);
      const heights = new Uint8Array(model.get("heights").buffer);
      const context = canvas.getContext("2d");
      heights.forEach((height, i) => {
        context.fillStyle = `hsl(${i * 36} 80% 50%)`;
        context.fillRect(i * 30, 100 - height, 25, height);
      });
      canvas.addEventListener("click", event => {
        model.set("clicked", Math.floor(event.offsetX / 30));
        model.save_changes();
      });
      model.on("change:said", () => { said.textContent = model.get("said"); });
    }
    export default { render };
    """
    heights = traitlets.Bytes().tag(sync=True)
    clicked = traitlets.Int(-1).tag(sync=True)
    said = traitlets.Unicode("").tag(sync=True)

    @traitlets.observe("clicked")
    def _answer(self, change):
        self.said = f"bar {change.new} is {self.heights[change.new]} high"

Canvas(heights=bytes(range(10, 110, 10)))
'''
SLIDER = """
import ipywidgets
slider = ipywidgets.IntSlider(value=3, min=1, max=16, description="tiles", tooltip="tiles")
slider
"""
LoadNotebook = Callable[..., str]


@pytest.fixture
def add_notebook(lab_folder: Path, request: pytest.FixtureRequest) -> LoadNotebook:
    """`add_notebook(source, ...)`: a served notebook of these code cells; returns its path there."""

    def add(*sources: str) -> str:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
        name = f"{request.node.originalname}.ipynb"
        nbformat.write(notebook, lab_folder / name)
        return name

    return add


@EVERY_SCREEN
def test_widgets_run_and_are_drawn(screens: Screens, open_notebook: OpenNotebook, add_notebook: LoadNotebook) -> None:
    lab = open_notebook(add_notebook(SLIDER, CANVAS, "print(slider.value)"), screens[0])
    before = lab.websocket_bytes
    lab.run_all()
    assert lab.cell_errors() == []
    assert lab.page.get_by_role("slider").count() == 1
    canvas = lab.output(1).locator("canvas")
    canvas.wait_for()
    picture = lab.picture(canvas)
    assert picture.width == 300
    assert picture.is_drawn(colours=10, filled=0.2)
    canvas.click(position={"x": 125, "y": 90})
    lab.page.get_by_text("bar 4 is 50 high").wait_for()
    assert lab.cells()[2]["outputs"][0]["text"] == "3\n"
    # The canvas's JavaScript alone crosses as more than its own length.
    assert 1_000 < lab.websocket_bytes - before < 1_000_000
    assert lab.foreign_requests == []
    for screen in lab.on(screens):
        whole = Picture.from_png(lab.screenshot_whole(f"harness-{screen}").read_bytes())
        assert f"{whole.width}-" in screen
        assert whole.height > 900


def test_theme_and_news_come_from_the_settings(open_notebook: OpenNotebook, add_notebook: LoadNotebook) -> None:
    lab = open_notebook(add_notebook("1"))
    assert lab.page.evaluate("() => document.body.dataset.jpThemeLight") == "true"
    lab.page.wait_for_timeout(1_500)
    assert lab.page.get_by_text("Jupyter news").count() == 0
    assert lab.page.locator(".jp-Dialog").count() == 0


@pytest.mark.slow
def test_a_blank_canvas_is_seen_as_blank(open_notebook: OpenNotebook, add_notebook: LoadNotebook) -> None:
    lab = open_notebook(add_notebook(CANVAS.replace("context.fillRect", "context.clearRect")))
    lab.run_all()
    canvas = lab.output(0).locator("canvas")
    canvas.wait_for()
    assert not lab.picture(canvas).is_drawn()


@pytest.mark.slow
def test_a_failing_cell_is_seen(open_notebook: OpenNotebook, add_notebook: LoadNotebook) -> None:
    lab = open_notebook(add_notebook("import os; print(os.environ['KERAS_BACKEND'])", "1 / 0"))
    lab.wait_until_idle()
    lab.command("notebook:run-all-cells")
    assert lab.cells()[0]["outputs"][0]["text"] == "jax\n"
    assert lab.cell_errors() == ["ZeroDivisionError: division by zero"]


def test_stored_outputs_are_untrusted_until_run(open_notebook: OpenNotebook, lab_folder: Path) -> None:
    """A fresh clone: the picture in an <img> shows, inline SVG does not."""
    square = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><rect width='40' height='40'/></svg>"
    html = f'<img alt="stored" src="data:image/svg+xml;utf8,{square.replace("<", "%3C").replace(">", "%3E")}">{square}'
    output = nbformat.v4.new_output("execute_result", {"text/html": html, "text/plain": "x"}, execution_count=1)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell("x", outputs=[output], execution_count=1)]
    nbformat.write(notebook, lab_folder / "stored.ipynb")
    lab = open_notebook("stored.ipynb")
    assert not lab.trusted()
    lab.page.get_by_alt_text("stored").wait_for()
    assert lab.output(0).locator("svg[width='40']").count() == 0


def test_pixels_are_counted() -> None:
    import io

    from PIL import Image

    image = Image.new("RGB", (10, 10), "white")
    for x in range(4):
        image.putpixel((x, 0), (x, 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    picture = Picture.from_png(buffer.getvalue())
    assert picture == Picture(width=10, height=10, colours=5, filled=pytest.approx(0.04))
    assert picture.is_drawn(colours=5, filled=0.03)
    assert not picture.is_drawn(colours=6, filled=0.03)
    assert not picture.is_drawn(colours=5, filled=0.05)
