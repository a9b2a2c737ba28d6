"""The JavaScript of the views: its pure functions under node, its size, and that it says numbers as Python does."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

from tests.profiler.handmade import handmade_pipeline
from tests.widgets.kit.javascript import evaluate, run
from workbench.base import units
from workbench.widgets import linked
from workbench.widgets.app import App
from workbench.widgets.face import views
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn, Library

VIEWS = [each.name for each in views()]

HERE = Path(__file__).parent
MAX_BYTES = 30_000
MAX_SESSION_BYTES = 300_000


@pytest.mark.parametrize("path", sorted(HERE.parent.rglob("*.test.mjs")), ids=lambda path: path.stem)
def test_node_tests(node: str, path: Path) -> None:
    run(node, "--test", str(path))


MODULES = sorted(assets.sources())


@pytest.mark.parametrize("path", MODULES)
def test_a_module_is_small_and_loads(node: str, path: str) -> None:
    """Under node, by the library's own loader, with all it imports; every name it imports is there."""
    source = assets.sources()[path]
    assert len(source.encode()) <= MAX_BYTES
    assert evaluate(node, f"{LOAD}console.log(JSON.stringify(Object.keys(await load('{path}')).length > 0));")


def test_what_is_brought_is_what_lies_in_the_folder() -> None:
    files = {path.relative_to(assets.FOLDER).as_posix() for path in assets.FOLDER.rglob("*.js")}
    assert set(assets.sources()) == files - {"kit/library.js", "kit/stub.js"}
    for path, source in assets.sources().items():
        assert source == (assets.FOLDER / path).read_text(encoding="utf-8")


# A module as its author likes it: all of this is JavaScript, and nothing asks for another style.
UNUSUAL = r"""/* import {a} from "./none.js"; */
// import {b} from "./none.js";
import {
  twice,
  thrice as three,
} from
  "../kit/made.js";
import * as all from './beside.js'; import "./beside.js"
import other, {deep} from "./in/deep.js"

export default function shown() {
  const text = `import {x} from "./none.js";
    over lines ${twice(1)}`;
  return [text.length, "import {y} from './none.js'", three(2), all.one, other, deep, /import "z"/.source];
}
  const notAtTheMargin = 1; export {notAtTheMargin}
"""
LOAD = (
    "import {loader, importsOf, resolved} from 'WIDGETS/kit/library.js';\n"
    f"const toUrl = (text) => `data:text/javascript,${{encodeURIComponent(text)}}`;\n"
    f"const load = loader({json.dumps(dict(assets.sources()))}, toUrl);\n"
)


def test_a_module_may_be_written_as_its_author_likes(node: str) -> None:
    sources = {
        "kit/made.js": "export const twice = (x) => 2 * x, thrice = (x) => 3 * x;",
        "views/beside.js": "export const one = 1;",
        "views/in/deep.js": 'import {twice} from "../../kit/made.js";\nexport const deep = twice(4); export default 7;',
        "views/unusual.js": UNUSUAL,
    }
    found = evaluate(
        node,
        f"{LOAD}const own = loader({json.dumps(sources)}, toUrl);\n"
        "console.log(JSON.stringify((await own('views/unusual.js')).default()));",
    )
    assert found == [
        len('import {x} from "./none.js";\n    over lines 2'),
        "import {y} from './none.js'",
        6,
        1,
        7,
        8,
        'import "z"',
    ]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a.js": 'import "./b.js";'}, "there is no module b.js, which a.js asks for"),
        ({"a.js": 'import "./b.js";', "b.js": 'import "./a.js";'}, "modules import each other: a.js > b.js > a.js"),
        ({}, "there is no module a.js, which a page asks for"),
    ],
)
def test_what_cannot_be_loaded_says_why(node: str, sources: dict[str, str], expected: str) -> None:
    asked = f"{LOAD}try {{ await loader({json.dumps(sources)}, toUrl)('a.js'); }} "
    assert evaluate(node, f"{asked}catch (error) {{ console.log(JSON.stringify(error.message)); }}") == expected


def test_stored_page_has_one_script(node: str) -> None:
    source = assets.script()
    run(node, "--input-type=module", "--check", "-", text=source)
    assert source.count("function bytesText(") == 1
    assert source.count("</") == 0


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_carries_a_stub(node: str, name: str) -> None:
    source = assets.stub(f"views/{name}.js")
    run(node, "--input-type=module", "--check", "-", text=source)
    assert len(source) < 1_500
    assert f'["{assets.digest()}", "views/{name}.js"]' in source


def test_a_view_that_has_gone_holds_nothing_it_was_drawn_with(node: str) -> None:
    """JupyterLab holds the element of a closed widget, and its cleanup: neither may hold the view's."""
    source = f"""
        const said = [], el = {{append() {{}}, replaceChildren(...nodes) {{ el.drawn = nodes; }}}};
        const render = () => {{ el.drawn = ["picture"]; return () => said.push("left"); }};
        const stand = async (context, render) => {{ await render(context); return () => said.push("away"); }};
        const library = async (path) => (path === "kit/around.js" ? {{stand}} : {{default: {{render}}}});
        const shelf = [{json.dumps(assets.digest())}, {{library: Promise.resolve(library)}}];
        globalThis.document = {{createElement: () => ({{remove() {{}}}})}};
        globalThis[Symbol.for("workbench libraries")] = new Map([shelf]);
        const stub = encodeURIComponent({json.dumps(assets.stub("views/trace.js"))});
        const {{default: view}} = await import("data:text/javascript," + stub);
        const gone = await view.render({{model: {{}}, el}}), drawn = el.drawn;
        gone();
        console.log(JSON.stringify([drawn, said]));
    """
    assert evaluate(node, source) == [["picture"], ["away"]]


STANDS = """
    import {{stand}} from "WIDGETS/kit/around.js";
    const said = [], heard = new Map(), el = {{querySelector: () => null, replaceChildren: () => said.push("cleared")}};
    const model = {{on: (name, call) => heard.set(name, call), off: (name) => heard.delete(name), get: () => null}};
    let shown = 1;
    const draws = async () => {{
        const mine = shown;
        said.push(`draws ${{mine}}`);
        await 0;
        return () => said.push(`left ${{mine}}`);
    }};
    const away = await stand({{model, el}}, draws);
    const tell = (drawn) => heard.get("msg:custom")({{drawn}});
    const settled = () => new Promise((resolve) => setTimeout(resolve, 10));
    {does}
    console.log(JSON.stringify([said, heard.size]));
"""


def test_a_view_is_drawn_anew_when_it_took_another_report(node: str) -> None:
    """What it was drawn with is let go once, before the kernel sends what comes; the element is cleared as it draws."""
    does = 'tell("leave"); shown = 2; tell("again"); await settled(); away(); away();'
    said, left = evaluate(node, STANDS.format(does=does))
    assert said == ["cleared", "draws 1", "left 1", "cleared", "draws 2", "left 2", "cleared", "cleared"]
    assert left == 0


def test_reports_that_come_while_a_view_is_drawn_are_drawn_in_turn(node: str) -> None:
    does = 'tell("leave"); shown = 2; tell("again"); tell("leave"); shown = 3; tell("again"); await settled();'
    said, _ = evaluate(node, STANDS.format(does=does))
    assert [each for each in said if each != "cleared"] == ["draws 1", "left 1", "draws 3", "left 3", "draws 3"]


def test_a_session_brings_its_javascript_once() -> None:
    """Bytes of JavaScript in the state of all widgets of an app, and of every view of three profiles."""
    profiles = [linked.profile_view(handmade_pipeline()) for _ in range(3)]
    for each in profiles:
        for name in each.names:
            each.view(name)
    opened = [App(), *profiles]
    widgets = list(_widgets_of(opened))
    libraries = {id(each.library) for each in widgets}
    assert len(libraries) == 1
    assert len(widgets) >= 3 * len(VIEWS)
    state = widgets[0].library.get_state()
    sent = sum(len(each._esm) for each in widgets) + len(state.pop("sources")) + len(json.dumps(state))
    assert sent <= MAX_SESSION_BYTES


def _widgets_of(shown: Iterable[Any]) -> Iterator[Drawn]:
    for each in shown:
        if isinstance(each, Drawn):
            yield each
        elif isinstance(each, ipywidgets.Box):
            yield from _widgets_of(each.children)


def test_what_is_sent_is_what_lies_in_the_folder(node: str) -> None:
    """As the page unpacks it."""
    packed = base64.b64encode(Library.shared().sources).decode()
    source = f"""
        import {{unpacked}} from "WIDGETS/kit/library.js";
        console.log(JSON.stringify(await unpacked(Buffer.from("{packed}", "base64"))));
    """
    assert evaluate(node, source) == assets.sources()


def test_a_new_library_comes_after_all_widgets_were_closed() -> None:
    first = Library.shared()
    first.close()
    assert Library.shared() is not first
    assert Library.shared().comm is not None


def test_no_view_writes_markup() -> None:
    """Names of layers are text: nothing assigns HTML."""
    for path in assets.FOLDER.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path.name}: {word}"


NUMBERS = [0, 1, 400, 1023, 1024, 1536, 638_976, 10**6, 1_234_567, 999, 1_000, 5 * 2**30, 10**12, 12.5, -7, -1_536]


@pytest.mark.parametrize("name", ["bytes", "cycles", "count"])
def test_quantities_read_the_same_in_both_languages(node: str, name: str) -> None:
    source = f"import {{{name}Text as f}} from 'WIDGETS/kit/kernel.js';\nconsole.log(JSON.stringify({NUMBERS}.map(f)));"
    python = getattr(units, f"{name}_text")
    # Python rounds a half to even where JavaScript rounds it up, which no whole number meets.
    whole = [value for value in NUMBERS if isinstance(value, int)]
    assert evaluate(node, source.replace(str(NUMBERS), str(whole))) == [python(value) for value in whole]


def test_less_than_nothing_has_a_minus_sign_and_thousands_are_apart(node: str) -> None:
    """Nowhere a hyphen, at which a line may end."""
    source = """
        import {bytesText, percentText, thingsText, wholeText} from "WIDGETS/kit/kernel.js";
        const said = [bytesText(-1536), percentText(-0.125), wholeText(-1472), thingsText(-1472, "tile")];
        said.push(bytesText(1000), bytesText(1024000), percentText(19.58), percentText(-1234.5678));
        console.log(JSON.stringify(said));
    """
    said = ["−1.5 KiB", "−12.5 %", "−1,472", "−1,472 tiles", "1,000 B", "1,000.0 KiB", "1,958.0 %", "−123,456.8 %"]
    assert evaluate(node, source) == said
    python = [units.bytes_text(-1536), units.percent_text(-0.125), said[2], units.things_text(-1472, "tile")]
    python += [units.bytes_text(each) for each in (1_000, 1_024_000)]
    python += [units.percent_text(each) for each in (19.58, -1234.5678)]
    assert python == said
    assert [units.seconds_text(-0.00123), units.seconds_text(-1e-10)] == ["−1.23 ms", "−0.1 ns"]
