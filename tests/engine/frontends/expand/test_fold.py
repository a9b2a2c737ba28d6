from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.frontends.expand.fold import fold

FLOATS = st.floats(-1000, 1000, width=32, allow_subnormal=False)  # XLA on the host takes subnormals for zero


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min", "eq", "lt", "ge"])
@given(a=FLOATS, b=FLOATS)
def test_folding_is_what_the_program_would_compute(op: str, a: float, b: float) -> None:
    operands = [np.asarray(value, "float32") for value in (a, b)]
    dtype = "bool" if op in ("eq", "lt", "ge") else "float32"
    found = fold(op, operands, {}, dtype)
    with np.errstate(all="ignore"):
        expected: Any = getattr(jax.lax, op)(*operands)
    if found is None:  # left to the program: divisions by zero and results that are not finite
        assert op == "div"
        assert b == 0 or not np.isfinite(expected)
    elif dtype == "bool":
        assert found == bool(expected)
    else:
        assert np.float32(found) == pytest.approx(np.float32(expected), rel=1e-6)


def test_whole_numbers_do_not_divide() -> None:
    assert fold("div", [np.asarray(7, "int32"), np.asarray(2, "int32")], {}, "int32") is None


def test_arrays_are_folded_only_into_scalars() -> None:
    shape = np.asarray([3, 4], "int32")
    assert fold("reduce_prod", [shape], {"axes": (0,)}, "int32") == 12
    assert fold("add", [shape, shape], {}, "int32") is None


def test_an_operation_without_a_rule_is_left_to_the_program() -> None:
    assert fold("erf", [np.asarray(0.5, "float32")], {}, "float32") is None
