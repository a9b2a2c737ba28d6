"""`make picture`: draw the README's picture again, from ResNet-50's profile as it is now.

The verdict goes into the file as text too, so that a test can tell when the picture no longer says what is so.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

import workbench as wb

PICTURE = Path(__file__).parent / "resnet50.png"
WIDTH, HEIGHT = 1000, 2400  # as high as everything drawn: what is out of sight is not drawn
SHOWN = ("view-summary", "view-memory", "view-liveness_view")


def write(image: bytes, verdict: str) -> None:
    """The picture in 256 colours, a third of the bytes, with the verdict as text in its header."""
    told = PngInfo()
    told.add_text("Verdict", verdict)
    picture = Image.open(io.BytesIO(image)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(PICTURE, optimize=True, pnginfo=told)


def screenshot(page: Path) -> bytes:
    """The chosen sections of a profile's page, as drawn by Debian's chromium."""
    chromium = os.environ.get("WORKBENCH_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium here (Debian: apt-get install chromium; else set WORKBENCH_CHROMIUM to its path)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        # The page lets in no style but its own; what is left out of the picture is hidden by one of ours.
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", bypass_csp=True)
        tab.goto(page.as_uri())
        hidden = ", ".join(f":not(#{name})" for name in SHOWN).replace(", ", "")
        tab.add_style_tag(content=f"section[id^=view-]{hidden} {{ display: none }}")
        tab.locator(f"#{SHOWN[-1]} :is(svg, canvas)").first.wait_for()
        tab.wait_for_timeout(1000)
        height = tab.evaluate("Math.ceil(document.body.getBoundingClientRect().bottom)")
        image = tab.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": min(height, HEIGHT)})
        browser.close()
    return image


def main() -> None:
    """Compile, draw, write."""
    profile = wb.profile("resnet50", batch_size=4, mode="training")
    with tempfile.TemporaryDirectory() as folder:
        image = screenshot(profile.to_html(Path(folder) / "resnet50.html").resolve())
    write(image, profile.summary.sentence)
    print(f"{PICTURE}: {profile.summary.sentence}")


if __name__ == "__main__":
    main()
