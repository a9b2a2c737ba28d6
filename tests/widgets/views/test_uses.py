"""Numbers of IPUs as bars: what is written beside a bar is never crossed by the line of the limit."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pandas as pd

from workbench.widgets.views.uses import draw_fewest

CAPACITY = 600 * 1024


def drawn(*sizes: int) -> tuple[dict[str, float], float]:
    """Where the text beside each bar begins, by that text, and where the limit is; sizes in KiB."""
    rows = [
        {"ipus": ipus, "max_tile_bytes": size * 1024, "margin_bytes": CAPACITY - size * 1024, "fits": size <= 600}
        for ipus, size in enumerate(sizes, start=1)
    ]
    report: Any = SimpleNamespace(table=pd.DataFrame(rows))
    picture = draw_fewest(report)
    (limit,) = re.findall(r'd="M([\d.]+) [\d.]+v', picture)
    texts = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)</text>', picture)
    return {text: float(x) for x, text in texts if re.fullmatch(r"[\d.]+ [KM]iB", text)}, float(limit)


def test_a_text_that_the_limit_would_cross_stands_behind_it() -> None:
    begins, limit = drawn(100, 560)
    assert limit == 420 + 400  # the capacity is the most there is: the whole width
    assert begins["100.0 KiB"] == round(420 + 400 * 100 / 600 + 8, 1)  # its 9 letters end far before the limit
    assert begins["560.0 KiB"] == limit + 8  # else from 801, over 820


def test_what_is_over_the_limit_is_written_behind_its_bar() -> None:
    begins, limit = drawn(1200, 610)
    assert limit == 420 + 400 / 2
    assert begins["1.2 MiB"] == 420 + 400 + 8
    assert begins["610.0 KiB"] == round(420 + 400 * 610 / 1200 + 8, 1)  # 631, right of 620


def test_a_reason_ends_within_the_picture() -> None:
    why = (
        "no split over 16 IPUs compiles: layers that share a variable have to be on one, 'token_embedding' and 'logits'"
    )
    rows = [
        {"ipus": 1, "max_tile_bytes": 1800 * 1024, "margin_bytes": CAPACITY - 1800 * 1024, "fits": False, "why": ""},
        {"ipus": 2, "max_tile_bytes": None, "margin_bytes": None, "fits": False, "why": why},
    ]
    report: Any = SimpleNamespace(table=pd.DataFrame(rows))
    texts = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)</text>', draw_fewest(report))
    ((left, said),) = [(float(x), text) for x, text in texts if text.startswith("no split")]
    # Behind the limit at 420 + 400 / 3, to the margin at 944, in letters of 6 pixels: 63, the last of them the sign.
    assert left == round(420 + 400 / 3 + 8, 1)
    assert len(said) <= 63
    assert said.endswith("…")
    assert why.startswith(said.removesuffix("…").replace("&#39;", "'"))
