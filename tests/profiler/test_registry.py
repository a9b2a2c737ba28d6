"""What registers itself must be whole: a report that lacks a part is told so where it is defined."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.profiler.registry import report, reports
from workbench.profiler.report import Report

PARTS: dict[str, Any] = {
    "from_profile": classmethod(lambda cls, profile: cls()),
    "data": property(lambda self: {}),
    "sentence": property(lambda self: "It is whole"),
    "to_pandas": lambda self: pd.DataFrame(),
}


@pytest.mark.parametrize("missing", PARTS)
def test_a_report_without_a_part_is_refused(missing: str) -> None:
    made = type("Short", (Report,), {name: part for name, part in PARTS.items() if name != missing})
    with pytest.raises(InputError) as caught:
        report("short_of_something")(made)
    assert caught.value.what == f"the report 'short_of_something' (Short) has no {missing}"
    assert caught.value.todo == f"define {missing} in {made.__module__}"
    assert "short_of_something" not in reports


def test_all_that_are_registered_are_whole() -> None:
    for name, made in reports.items():
        assert report(name)(made) is made
