"""Every operator is measured against the peak of the type that it computes in."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import workbench as wb
from tests.profiler.builder import TILES
from tests.profiler.handmade import handmade_profile
from workbench.profiler.operators.rates import peaks
from workbench.profiler.storage import profile_bytes, profile_from

SHAPE, FLOPS = (64, 64), 2 * 64 * 64 * 64
# Facts of the matrix unit: multiply-accumulates a cycle and tile in each type.
UNITS = {
    "ipu1": {"float16": 32, "float32": 8},
    "ipu2": {"float16": 64, "float32": 16},
    "bow": {"float16": 64, "float32": 16},
    "ipu21": {"float8": 128, "float16": 64, "float32": 16},
}


def product(left: str, right: str, machine: str) -> Any:
    kinds = [jax.ShapeDtypeStruct(SHAPE, name) for name in (left, right)]
    function = lambda a, b: jax.lax.dot(a, b, preferred_element_type="float16")  # noqa: E731
    same = lambda a, b: a @ b  # noqa: E731
    return wb.profile(same if left == right else function, *kinds, target=wb.target(machine, tiles_per_ipu=4))


@pytest.mark.parametrize("machine", UNITS)
def test_peaks_are_what_the_units_of_a_target_multiply(machine: str) -> None:
    target = product("float32", "float32", machine).target
    found = {name: peak / target["clock_hz"] / 4 / 2 for name, peak in peaks(target).items()}
    assert found == UNITS[machine]
    assert list(found) == list(UNITS[machine])  # the highest first


@pytest.mark.parametrize(
    ("left", "right", "machine", "kind"),
    [
        ("float32", "float32", "ipu2", "float32"),
        ("float16", "float16", "ipu2", "float16"),
        ("bfloat16", "bfloat16", "ipu2", "float16"),
        ("float8_e4m3fn", "float8_e4m3fn", "ipu21", "float8"),
        ("float8_e4m3fn", "float8_e4m3fn", "ipu2", "float16"),  # which has no such unit
        ("float8_e4m3fn", "float16", "ipu21", "float16"),  # the unit multiplies two of a kind
        ("float32", "float32", "ipu21", "float32"),
    ],
)
def test_a_product_is_measured_against_the_peak_of_its_type(left: str, right: str, machine: str, kind: str) -> None:
    profile = product(left, right, machine)
    rows = profile.operators.set_index("op")
    row = rows[rows["flops"] == FLOPS].iloc[0]
    allowed = 2 * UNITS[machine][kind] * 4 * row["cycles"]
    assert row["type"] == kind
    assert row["utilisation"] == pytest.approx(FLOPS / allowed, rel=1e-12)
    points = profile.roofline.points.set_index("name")
    assert points["type"].loc[row["name"]] == kind
    assert set(profile.roofline.peaks) == set(points["type"])
    assert f" of the {kind} peak" in profile.roofline.sentence
    if len(rows) == 1:
        assert profile.operations.sentence.endswith(f" of the {kind} peak rate")


def test_a_file_of_before_is_measured_in_the_same_way() -> None:
    """Its column is of the float16 peak for all; what is shown is worked out of flops and cycles."""
    again = profile_from(profile_bytes(handmade_profile()))
    rows = again.operators.set_index("layer")
    single = again.target["peak_flops_per_second"] / again.target["clock_hz"] / 4
    assert single == 2_048 / 4 == 32 * TILES
    assert rows["type"].tolist() == ["float32", "float32"]
    assert rows.loc["dense_1", "utilisation"] == 1_920_000 / (4_920 * single)
