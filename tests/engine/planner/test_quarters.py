"""8-bit floats: multiplied as they are where the machine has units for them, as halves elsewhere."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import workbench as wb

ROWS, CHANS, OUT = 256, 512, 1024
F8 = "float8_e4m3fn"


def product(dtypes: tuple[str, str], target: str) -> Any:
    shapes = ((ROWS, CHANS), (CHANS, OUT))
    operands = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    config = wb.ipu.config.IPUConfig()
    config.matmuls.poplar_options = {"partialsType": "half"}
    return wb.compile(
        lambda a, b: jnp.matmul(a, b, preferred_element_type="float16"), *operands, target=target, config=config
    )


def vertices(compiled: Any) -> list[dict[str, Any]]:
    """The arguments of the vertices that multiply."""
    groups = [
        group
        for step in compiled.compiled.program.steps
        if hasattr(step, "compute_set")
        for group in step.compute_set.groups
        if group.vertex.startswith("poplin::ConvPartial")
    ]
    return [dict(group.arguments) for group in groups]


@pytest.mark.parametrize("right", [F8, "float8_e5m2"])
def test_a_c600_multiplies_them_32_deep_with_16_units_and_half_partials(right: str) -> None:
    compiled = product((F8, right), "ipu21")
    found = vertices(compiled)
    assert {(each["in_type"], each["partials_type"], each["conv_units"]) for each in found} == {("quarter", "half", 16)}
    (row,) = [each for each in compiled.profile.operators.itertuples() if each.op == "matmul"]
    assert "amp 16 units 32x16" in row.plan
    assert row.flops == 2 * prod((ROWS, CHANS, OUT))


def test_they_take_fewer_cycles_than_halves_and_more_than_half_as_many() -> None:
    """Twice the depth a pass; exchange of half the bytes, sums and starts as of halves."""
    quarters, halves = (product((dtype, dtype), "ipu21").profile.operators["cycles"].sum() for dtype in (F8, "float16"))
    assert halves / 2 < quarters < halves


def test_other_machines_multiply_them_as_halves() -> None:
    assert {each["in_type"] for each in vertices(product((F8, F8), "ipu2"))} == {"half"}
