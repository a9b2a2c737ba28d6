"""The JavaScript of the views: its pure functions under node, its size, and that it says numbers as Python does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from workbench.base import units
from workbench.widgets.face import VIEWS
from workbench.widgets.kit import assets

HERE = Path(__file__).parent
MAX_BYTES = 30_000


def run(node: str, *arguments: str, text: str = "") -> str:
    done = subprocess.run([node, *arguments], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluate(node: str, source: str) -> Any:
    """The JSON that a module prints; it may import from the folder of the widgets as `from WIDGETS/...`."""
    folder = assets.FOLDER.as_uri()
    return json.loads(run(node, "--input-type=module", "-", text=source.replace("WIDGETS", folder)))


@pytest.mark.parametrize("path", sorted(HERE.parent.rglob("*.test.mjs")), ids=lambda path: path.stem)
def test_node_tests(node: str, path: Path) -> None:
    run(node, "--test", str(path))


@pytest.mark.parametrize("name", VIEWS)
def test_widget_is_one_small_module(node: str, name: str) -> None:
    source = assets.javascript(name)
    assert len(source.encode()) <= MAX_BYTES
    assert "import " not in source
    assert source.count("export ") == 1
    run(node, "--input-type=module", "--check", "-", text=source)


@pytest.mark.parametrize("name", VIEWS)
def test_widget_has_all_it_reaches(node: str, name: str) -> None:
    """The joined module loads, and nothing it calls of the shared code was left behind."""
    shared = evaluate(
        node,
        "const names = [], stems = ['kernel', 'tiles', 'lanes'];\n"
        "for (const stem of stems) names.push(...Object.keys(await import(`WIDGETS/kit/${stem}.js`)));\n"
        "console.log(JSON.stringify(names));",
    )
    own = (assets.FOLDER / "views" / f"{name}.js").read_text(encoding="utf-8").partition("const ")[2]
    joined = assets.javascript(name)
    called = [each for each in shared if f"{each}(" in own]
    assert called
    for each in called:
        assert f"function {each}(" in joined or f"const {each}=" in joined, each


def test_stored_page_has_one_script(node: str) -> None:
    source = assets.script(tuple(VIEWS))
    run(node, "--check", "-", text=source)
    assert source.count("function bytesText(") == 1
    assert source.count("</") == 0


def test_no_view_writes_markup() -> None:
    """Names of layers are text: nothing assigns HTML."""
    for path in assets.FOLDER.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path.name}: {word}"


NUMBERS = [0, 1, 400, 1023, 1024, 1536, 638_976, 10**6, 1_234_567, 999, 1_000, 5 * 2**30, 10**12, 12.5]


@pytest.mark.parametrize("name", ["bytes", "cycles", "count"])
def test_quantities_read_the_same_in_both_languages(node: str, name: str) -> None:
    source = f"import {{{name}Text as f}} from 'WIDGETS/kit/kernel.js';\nconsole.log(JSON.stringify({NUMBERS}.map(f)));"
    python = getattr(units, f"{name}_text")
    # Python rounds a half to even where JavaScript rounds it up, which no whole number meets.
    whole = [value for value in NUMBERS if isinstance(value, int)]
    assert evaluate(node, source.replace(str(NUMBERS), str(whole))) == [python(value) for value in whole]
