"""What samples of operators are made of: types of a few elements, and operators compiled alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.engine.ops.lowered import F32, Case, single

I32, U32 = "int32", "uint32"
VECTOR, MATRIX = ((30,), F32), ((12, 10), F32)
TABLE, INDICES, TAKEN = ((20, 6), F32), ((5, 1), I32), ((5, 6), F32)

Sample = Callable[..., Case]


def sample(op: str, operands: Any, results: Any, **attributes: Any) -> Sample:
    """`sample(...)(kind="ipu2", tiles=4)`: one operator between inputs and outputs, compiled there."""
    return lambda **where: single(op, operands, results, **where, **attributes)
