"""What a user of the views and the app waits for, in the real JupyterLab in a headless chromium.

    python benchmarks/cockpit.py --measure pictures

The clock is the page's own: a picture is there when the canvas has paint, a frame is what our script takes between two
pictures. A busy machine moves seconds on the clock a lot: `idle` is what an empty question to the kernel takes beside.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import ROOT, Budgets, Figures, main

MEDIAN_S, P95_S = 0.012, 0.025
BUDGETS: Budgets = (
    ("resnet50", "s", 1.0, "from the cell's run to the first picture of ResNet-50's profile"),
    ("pipeline_64", "s", 2.0, "the same of the pipeline of 64 IPUs and 1,024 micro-batches"),
    ("trace_median", "s", MEDIAN_S, "script of a drawn frame while ResNet-50's trace is zoomed and moved"),
    ("trace_p95", "s", P95_S, "the same, of the slowest in twenty"),
    ("player_median", "s", MEDIAN_S, "script of a drawn frame while ResNet-50's program is played"),
    ("player_p95", "s", P95_S, "the same, of the slowest in twenty"),
    ("refined", "s", 0.1, "from a key that zooms the trace to its refined picture, without 1.5 empty questions"),
    ("whatif", "s", 0.5, "from a key on a slider of the small CNN to what it gives"),
    ("heap", "", 1.1, "JavaScript's heap after 50 compiles in the app, over that after 10"),
    ("heap_bytes", "MB", None, "that heap"),
    ("idle", "s", None, "an empty question to the kernel, there and back"),
)
RESNET = 'import workbench as wb\nprofile = wb.profile("resnet50", batch_size=4, mode="training")'
SCHEDULED = "from tests.profiler.scheduled import scheduled_profile\nprofile = scheduled_profile('Grouped', 64, 1_024)"
APP = "import workbench as wb\napp = wb.app({source!r})\napp"
COMPILE_MS = 300_000

# Every callback of a frame is counted, ours and JupyterLab's; frames in which nothing ran are none.
_COUNT = """() => {
    const ask = window.requestAnimationFrame.bind(window);
    window.frames_s = new Map();
    window.requestAnimationFrame = callback => ask(now => {
        const start = performance.now();
        callback(now);
        window.frames_s.set(now, (window.frames_s.get(now) ?? 0) + (performance.now() - start) / 1000);
    });
}"""
_PAINTED = """() => [...document.querySelectorAll('section.wb canvas.wb-canvas')].some(canvas => {
    if (!canvas.width || !canvas.height || !canvas.offsetParent) return false;
    const column = canvas.getContext('2d').getImageData(canvas.width >> 1, 0, 1, canvas.height).data;
    return column.some((part, i) => i % 4 === 3 && part);
})"""
_FIRST_PICTURE = f"""() => new Promise(resolve => {{
    const start = performance.now(), painted = {_PAINTED};
    const look = () => painted() ? resolve((performance.now() - start) / 1000) : requestAnimationFrame(look);
    window.jupyterapp.commands.execute('notebook:run-cell-and-select-next');
    look();
}})"""
_QUESTION = """async () => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel, start = performance.now();
    await kernel.requestExecute({code: '', silent: true}).done;
    return (performance.now() - start) / 1000;
}"""
# From a key to the first frame behind the update of the view that answers it.
_REFINED = """() => new Promise((resolve) => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel, start = performance.now();
    const heard = (_, message) => {
        if (message.content.data?.method !== 'update' || !('data' in message.content.data.state)) return;
        kernel.iopubMessage.disconnect(heard);
        requestAnimationFrame(() => requestAnimationFrame(() => resolve((performance.now() - start) / 1000)));
    };
    kernel.iopubMessage.connect(heard);
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true, cancelable: true}));
})"""


@contextmanager
def opened(*cells: str) -> Iterator[Any]:
    """A notebook of these cells, not run, in the browser: a page of the tests' driver."""
    import nbformat
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT))
    from tests.browser.driver import NotebookPage
    from workbench import lab

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, folder / "cockpit.ipynb")
        path = os.environ.get("WORKBENCH_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        server = lab.Server(
            folder,
            settings=lab.write_settings(folder / "settings"),
            log=folder / "log",
            options=("--LabApp.expose_app_in_browser=True",),
            environment={"PYTHONPATH": str(ROOT)},
        )
        with server:
            page = NotebookPage(browser.new_page(viewport={"width": 1280, "height": 900}), server)
            page.open("cockpit.ipynb")
            page.wait_until_idle()
            yield page
        browser.close()


def run_next(lab: Any) -> None:
    """Run the chosen cell to its end, and choose the next."""
    lab.command("notebook:run-cell-and-select-next", seconds=COMPILE_MS / 1000)
    if errors := lab.cell_errors():
        raise SystemExit(errors[0])


def first_picture(make: str, show: str) -> float:
    """Seconds from the run of a cell that shows what another has made to the first paint of a canvas."""
    with opened("import workbench as wb\nwb.profile('mlp', batch_size=4)", make, show) as lab:
        run_next(lab)  # the modules of the views are there, as in a notebook that is worked in
        lab.page.wait_for_function(_PAINTED)
        run_next(lab)
        lab.page.evaluate("() => document.querySelectorAll('section.wb').forEach(each => each.remove())")
        seconds: float = lab.page.evaluate(_FIRST_PICTURE)
        return seconds


def pictures() -> Figures:
    return {
        "resnet50": first_picture(RESNET, "profile"),
        "pipeline_64": first_picture(SCHEDULED, "profile.pipeline.widget()"),
    }


def frames(lab: Any) -> tuple[float, float]:
    """Median and 95th percentile of the frames that were drawn since they are counted; the count begins anew."""
    taken = sorted(lab.page.evaluate("() => [...window.frames_s.values()].filter(each => each > 0.0005)"))
    lab.page.evaluate("() => window.frames_s.clear()")
    if len(taken) < 20:
        raise SystemExit(f"only {len(taken)} frames were drawn")
    return statistics.median(taken), taken[int(len(taken) * 0.95)]


def moved() -> Figures:
    """The trace zoomed by the wheel and moved by keys; the program played."""
    with opened(RESNET, "profile") as lab:
        run_next(lab)
        run_next(lab)
        page, found = lab.page, Figures()
        page.evaluate(_COUNT)
        for name, gesture in (("Trace", zoom_and_pan), ("Player", played)):
            page.get_by_role("tab", name=name, exact=True).click()
            canvas = page.locator(f'section.wb[aria-label="{name}"] canvas.wb-canvas').first
            canvas.wait_for()
            canvas.scroll_into_view_if_needed()
            page.wait_for_timeout(2_000)
            page.evaluate("() => window.frames_s.clear()")
            gesture(page, canvas)
            found[f"{name.lower()}_median"], found[f"{name.lower()}_p95"] = frames(lab)
            if name == "Trace":
                found |= refined(page, canvas)
        return found


def refined(page: Any, canvas: Any) -> Figures:
    """The trace zoomed by keys, one at a time, with an empty question to the kernel before each."""
    page.get_by_role("button", name="Show all").first.click()
    page.wait_for_timeout(1_000)
    canvas.focus()
    taken, idle = [], []
    for _ in range(9):
        idle.append(page.evaluate(_QUESTION))
        taken.append(page.evaluate(_REFINED))
    asked = statistics.median(idle)
    return {"refined": statistics.median(taken) - 1.5 * asked, "idle": asked}


def zoom_and_pan(page: Any, canvas: Any) -> None:
    canvas.hover()
    canvas.focus()
    for turn in range(60):
        page.mouse.wheel(0, -120 if turn < 40 else 120)
        page.wait_for_timeout(30)
    for turn in range(60):
        page.keyboard.press("d" if turn % 20 < 10 else "a")
        page.wait_for_timeout(30)


def played(page: Any, canvas: Any) -> None:
    player = page.locator('section.wb[aria-label="Player"]')
    player.get_by_label("speed").select_option("15")
    player.get_by_role("button", name="Play").click()
    page.wait_for_timeout(5_000)


def app() -> Figures:
    """A slider of the small CNN, and the heap of 50 compiles."""
    with opened(APP.format(source="cnn")) as lab:
        run_next(lab)
        page = lab.page
        compile_at(page, 4)
        page.get_by_text("What if: move it, and see").click()
        what = page.locator(".wb-whatif")
        what.get_by_text("As it was compiled: fits").wait_for()
        slider = what.get_by_label("What if batch size", exact=True)
        slider.focus()
        taken = []
        for _ in range(7):
            started = page.evaluate("() => performance.now()")
            page.keyboard.press("ArrowRight")
            told = f"What if batch size {slider.get_attribute('aria-valuetext')}: "
            ended = page.wait_for_function(
                "told => document.querySelector('.wb-whatif').textContent.includes(told) && performance.now()",
                arg=told,
                timeout=COMPILE_MS,
            )
            taken.append((ended.json_value() - started) / 1000)
        heaps = {}
        for turn in range(50):
            compile_at(page, 5 + turn % 3)
            if turn in (9, 49):
                heaps[turn] = heap_bytes(page)
        return {"whatif": statistics.median(taken), "heap": heaps[49] / heaps[9], "heap_bytes": heaps[49]}


def compile_at(page: Any, batch: int) -> None:
    field = page.get_by_label("batch size", exact=True)
    field.fill(str(batch))
    field.press("Tab")
    page.locator(".wb-app").get_by_role("button", name="Compile", exact=False).first.click()
    page.locator(".wb-app-shown").get_by_text(f"batch size {batch} ").wait_for(timeout=COMPILE_MS)


def heap_bytes(page: Any) -> float:
    """Bytes of JavaScript's heap once what nothing holds is collected."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


if __name__ == "__main__":
    sys.exit(main(__doc__, {"pictures": pictures, "moved": moved, "app": app}, BUDGETS))
