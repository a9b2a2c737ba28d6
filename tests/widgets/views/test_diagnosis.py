"""What the view of a diagnosis is sent: a row for every fix, shares of the largest, the front of what was measured."""

from __future__ import annotations

import pytest

import workbench as wb
from tests.widgets.too_large import too_large
from workbench.base.units import bytes_text
from workbench.widgets.views import diagnosis


def test_rows_shares_and_points_are_the_report_s() -> None:
    report = wb.diagnose(too_large(), compiles=3)
    data = diagnosis.stored(report)["data"]
    limit = int(report.profile.target["bytes_per_tile"])
    sizes = [fix.verified_bytes or fix.estimated_bytes for fix in report.fixes]
    most = max([limit, report.profile.max_tile_bytes, *sizes])
    assert data["limit"] == limit / most
    assert data["now"]["share"] == report.profile.max_tile_bytes / most
    assert [row["share"] for row in data["fixes"]] == pytest.approx([size / most for size in sizes])
    assert [row["bytes"] for row in data["fixes"]] == [bytes_text(size) for size in sizes]
    assert [row["fits"] for row in data["fixes"]] == [bool(fix.fits) for fix in report.fixes]
    assert len(data["tried"]) == len(report.tried)
    measured = [fix for fix in report.tried if fix.verified_bytes is not None and fix.cost]
    points = data["plot"]["points"]
    assert [point["fits"] for point in points] == [bool(fix.fits) for fix in measured]
    # Bytes are in proportion, cost in order.
    assert [point["y"] / data["plot"]["limit"] for point in points] == pytest.approx(
        [(fix.verified_bytes or 0) / limit for fix in measured]
    )
    order = sorted(range(len(points)), key=lambda place: points[place]["x"])
    assert [measured[place].cost for place in order] == sorted(fix.cost or 0.0 for fix in measured)
    assert data["sentence"] == report.sentence
