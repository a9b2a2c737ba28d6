"""What the view of a diagnosis is sent: a row for every fix, shares of the largest, the front of what was measured."""

from __future__ import annotations

import re

import pytest

import workbench as wb
from tests.profiler.advice.fake_compiler import profile_of
from tests.widgets.too_large import too_large
from workbench.base.units import bytes_text
from workbench.profiler.advice.diagnose import Diagnosis, Fix
from workbench.profiler.advice.levers.change import Change
from workbench.widgets.views import diagnosis


def test_rows_shares_and_points_are_the_report_s() -> None:
    report = wb.diagnose(too_large(), compiles=3)
    data = diagnosis.stored(report)["data"]
    limit = int(report.profile.target["bytes_per_tile"])
    sizes = [fix.verified_bytes or fix.estimated_bytes for fix in report.fixes]
    # A gauge shows at most two tiles; what is larger fills it and says that it goes on.
    now = report.profile.max_tile_bytes
    most = min(max([limit, now, *sizes]), 2 * limit)
    assert data["limit"] == limit / most
    assert (data["now"]["share"], data["now"]["beyond"]) == (min(1, now / most), now > 2 * limit)
    assert [row["share"] for row in data["fixes"]] == pytest.approx([min(1, size / most) for size in sizes])
    assert [row["bytes"] for row in data["fixes"]] == [bytes_text(size) for size in sizes]
    assert [row["fits"] for row in data["fixes"]] == [bool(fix.fits) for fix in report.fixes]
    assert len(data["tried"]) == len(report.tried)
    measured = [fix for fix in report.tried if fix.verified_bytes is not None and fix.cost]
    points = data["plot"]["points"]
    assert [point["fits"] for point in points] == [bool(fix.fits) for fix in measured]
    # Bytes and cost are in order: what is above the capacity's line needs more than a tile has.
    by_bytes = sorted(range(len(points)), key=lambda place: points[place]["y"])
    assert [measured[place].verified_bytes for place in by_bytes] == sorted(fix.verified_bytes or 0 for fix in measured)
    assert [point["y"] > data["plot"]["limit"] for point in points] == [
        (fix.verified_bytes or 0) > limit for fix in measured
    ]
    order = sorted(range(len(points)), key=lambda place: points[place]["x"])
    assert [measured[place].cost for place in order] == sorted(fix.cost or 0.0 for fix in measured)
    assert data["sentence"] == report.sentence


LONG = " and ".join(["a lever whose name is long"] * 5)


def _report(*, now_bytes: int, fixed_bytes: int) -> Diagnosis:
    """A program on tiles of 10,000 bytes with one fix, in half the cycles."""
    change = Change(lever="lever", title=LONG, estimated_bytes=fixed_bytes)
    measured = {"verified_bytes": fixed_bytes, "verified_cycles": 6_000, "cycles_per_sample": 375.0, "cost": 375.0}
    fix = Fix(
        fix=LONG, lever="lever", estimated_bytes=fixed_bytes, fits=True, margin_bytes=1, change=change, **measured
    )
    return Diagnosis(profile=profile_of(now_bytes, 12_000), fixes=(fix,), tried=(fix,))


def test_a_program_far_beyond_a_tile_leaves_its_fixes_readable() -> None:
    """160,000 bytes against a fix of 5,000: its gauge is a quarter of two tiles, and five doublings are five equal
    lengths of the axis."""
    data = diagnosis.content(_report(now_bytes=160_000, fixed_bytes=5_000))
    assert (data["now"]["share"], data["now"]["beyond"]) == (1.0, True)
    assert (data["fixes"][0]["share"], data["fixes"][0]["beyond"], data["limit"]) == (0.25, False, 0.5)
    plot = data["plot"]
    doubling = plot["limit"] - plot["points"][0]["y"]
    assert plot["now"]["y"] - plot["limit"] == pytest.approx(4 * doubling)
    assert "fullest tile (logarithmic)" in plot["axes"]


def test_a_program_near_a_tile_has_bytes_in_proportion() -> None:
    data = diagnosis.content(_report(now_bytes=12_000, fixed_bytes=6_000))
    assert (data["now"]["share"], data["now"]["beyond"], data["fixes"][0]["share"]) == (1.0, False, 0.5)
    plot = data["plot"]
    assert plot["now"]["y"] == pytest.approx(2 * plot["points"][0]["y"])
    assert plot["now"]["y"] == pytest.approx(1.2 * plot["limit"])
    assert "fullest tile against" in plot["axes"]


def test_no_figure_of_a_long_fix_is_cut_off_in_the_picture() -> None:
    """Names wrap beside the figures, which end at the right edge."""
    picture = diagnosis.draw(_report(now_bytes=160_000, fixed_bytes=5_000))
    figures = f"{bytes_text(5_000)} · fits, {bytes_text(1)} to spare · 375 cycles · −50.0 %"
    assert f'text-anchor="end">{figures}</text>' in picture
    lines = re.findall(r'<text x="18"[^>]*>([^<]*)</text>', picture)
    assert " ".join(lines) == f"As it is {LONG[0].upper()}{LONG[1:]}"
    assert all(len(line) + len(figures) <= 150 for line in lines)
