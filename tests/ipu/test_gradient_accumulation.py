"""How gradients of micro-batches become one, by member or by name."""

from __future__ import annotations

import pytest

from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod as Method


def test_a_method_is_parsed_from_itself_or_its_name() -> None:
    assert [Method.parse(each) for each in (Method.MEAN, "sum", "Running_Mean")] == [
        Method.MEAN,
        Method.SUM,
        Method.RUNNING_MEAN,
    ]


@pytest.mark.parametrize("given", ["most", 1, None])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(
        ValueError, match=rf"reduction_method is {given!r}\. Expected: one of SUM, MEAN, RUNNING_MEAN\."
    ):
        Method.parse(given)  # type: ignore[arg-type]
