"""Blanks that say nothing leave; all else of a source stays, and means the same."""

from __future__ import annotations

import pytest

from tests.widgets.kit.test_javascript import evaluate
from workbench.widgets.kit import assets
from workbench.widgets.kit.tighten import tighten


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("const a = {b: 1, c: [2, 3]};\n", "const a={b:1,c:[2,3]};"),
        ("return a + +b - -c;", "return a+ +b- -c;"),
        ("x = \"a  ,  b\" + 'c';", "x=\"a  ,  b\"+'c';"),
        ('`a  ${b ? `c ,  ${ d } e` : "f , g"}  h`', '`a  ${b?`c ,  ${d} e`:"f , g"}  h`'),
        ("s.replace(/a (?= b)[/ ]/g, x) / y / z", "s.replace(/a (?= b)[/ ]/g,x)/y/z"),
        ("for (const x of y) if (x in z) typeof x", "for(const x of y)if(x in z)typeof x"),
        ("f = () => {\n  a;\n}\ng(\n  1,\n)", "f=()=>{a;}\ng(1,)"),
        ("if (a) return\n  b", "if(a)return\nb\n"),
    ],
)
def test_what_stays(source: str, expected: str) -> None:
    assert tighten(source).rstrip() == expected.rstrip()


def test_tight_modules_answer_as_the_readable_ones(node: str) -> None:
    """Every pure function of the shared code that makes text, called from both."""
    calls = "[f.bytesText(1536), f.shortText('128.0 KiB'), f.wholeText(1234567), f.ticks(0, 10, 5), f.percentText(0.5)]"
    source = assets.FOLDER.joinpath("kit", "kernel.js").read_text(encoding="utf-8")
    for text in (source, tighten(source)):
        module = f"data:text/javascript,{quoted(text)}"
        found = evaluate(node, f"const f = await import('{module}');\nconsole.log(JSON.stringify({calls}));")
        assert found == ["1.5 KiB", "128 KiB", "1,234,567", [0, 2, 4, 6, 8, 10], "50.0 %"]


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text)
