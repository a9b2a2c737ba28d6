"""Quantities as people read them."""

from __future__ import annotations

import pytest

from workbench.base.units import bytes_text, cycles_text, percent_text, rate_text, things_text


@pytest.mark.parametrize(
    ("samples_per_second", "expected"),
    [
        (8 / 180.66, "0.0443 samples/s"),  # a batch of 8 in three minutes is slow, but not nothing
        (1.4, "1.4 samples/s"),  # "1" would be off by 29 %
        (25.0, "25 samples/s"),
        (99.96, "100 samples/s"),
        (249.3, "249 samples/s"),
        (15_320.0, "15.32 k samples/s"),
        (0.0, "0 samples/s"),
    ],
)
def test_a_rate_keeps_three_digits(samples_per_second: float, expected: str) -> None:
    assert rate_text(samples_per_second) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (400, "400 B"),
        (1_000, "1,000 B"),
        (1_000 * 1024, "1,000.0 KiB"),
        (638_976, "624.0 KiB"),
        (3 * 2**30, "3.0 GiB"),
        (12 * 2**40, "12.0 TiB"),  # weights of a model that was given another zero
        (-1536, "−1.5 KiB"),
    ],
)
def test_bytes_have_the_largest_unit_below_them(size_bytes: int, expected: str) -> None:
    assert bytes_text(size_bytes) == expected


def test_a_share_of_many_times_has_its_thousands_apart() -> None:
    assert [percent_text(share) for share in (0.125, 19.58, -19.58)] == ["12.5 %", "1,958.0 %", "−1,958.0 %"]


@pytest.mark.parametrize(
    ("count", "thing", "text"),
    [
        (1, "entry", "1 entry"),
        (3, "entry", "3 entries"),
        (0, "batch", "0 batches"),
        (2, "vertex", "2 vertices"),
        (1472, "tile", "1,472 tiles"),
    ],
)
def test_things_are_counted_in_the_singular_or_the_plural(count: int, thing: str, text: str) -> None:
    assert things_text(count, thing) == text


@pytest.mark.parametrize(
    ("cycles", "text"), [(0, "0 cycles"), (1, "1 cycle"), (0.6, "1 cycle"), (1000, "1.00 k cycles")]
)
def test_one_cycle_is_said_in_the_singular(cycles: float, text: str) -> None:
    assert cycles_text(cycles) == text
