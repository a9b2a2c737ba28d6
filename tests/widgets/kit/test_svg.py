"""The still pictures' ticks: they read as those of the page."""

from __future__ import annotations

import json
from typing import Any

from tests.widgets.kit.javascript import evaluate
from workbench.base.units import bytes_text, count_text, seconds_text
from workbench.widgets.kit import svg

TEXTS = ["24.0 KiB", "24.5 KiB", "100.0 MiB", "1.20 M", "0 B", "10", "1.00 k cycles", "a.0b", "12.50 ms", "300 B"]


def test_a_tick_has_no_zeros_that_say_nothing(node: str) -> None:
    expected = ["24 KiB", "24.5 KiB", "100 MiB", "1.2 M", "0 B", "10", "1 k cycles", "ab", "12.5 ms", "300 B"]
    assert [svg.short_text(text) for text in TEXTS] == expected
    source = f"""
        import {{shortText}} from "WIDGETS/kit/kernel.js";
        console.log(JSON.stringify({json.dumps(TEXTS)}.map(shortText)));
    """
    assert evaluate(node, source) == expected


def test_axes_write_their_ticks_short() -> None:
    picture: Any = svg.Picture(400, 200, "")
    y = svg.Axis(0, 64 * 1024, "bytes", bytes_text, binary=True)
    picture.axes(svg.Box(60, 20, 300, 120), svg.Axis(0, 2e6, "cycles", count_text, count=4), y)
    drawn = str(picture)
    assert ">16 KiB<" in drawn
    assert ">500 k<" in drawn
    assert ".0 KiB" not in drawn
    assert seconds_text(0.5) not in drawn
