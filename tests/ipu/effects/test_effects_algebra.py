"""Block sizes of factorisations and solves: smaller blocks take more products and more control code."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from workbench.ipu.config import IPUConfig

ROWS = 64


def cholesky(matrix: Any) -> Any:
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


def solve(matrix: Any, sides: Any) -> Any:
    return jax.lax.linalg.triangular_solve(matrix, sides, left_side=True, lower=True)


# Products and substitutions of one block and of two: what is below a block and its square; both blocks of both halves
# of the right-hand sides, which have a product between them.
CASES = [
    (cholesky, "cholesky_block_size", [(ROWS, ROWS)], ((0, 0), (2, 0))),
    (solve, "triangular_solve_expander_block_size", [(ROWS, ROWS), (ROWS, 96)], ((0, 1), (2, 4))),
]


OPS = ("matmul", "substitution")


def profile(source: Any, option: str, block: int, shapes: list[tuple[int, ...]]) -> Any:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    setattr(config.optimizations, option, block)
    return wb.profile(source, *(np.zeros(shape, "float32") for shape in shapes), config=config)


@pytest.mark.parametrize(("source", "option", "shapes", "products"), CASES)
def test_cholesky_and_triangular_solve_expander_block_size(
    source: Any, option: str, shapes: Any, products: tuple[tuple[int, int], ...]
) -> None:
    """64 rows are one block, or two of 32: more tiles factorise, each block is written out. What solves one unknown
    after another takes longer in blocks, which share a body of half the products.
    """
    whole, halves = (profile(source, option, block, shapes) for block in (ROWS, ROWS // 2))
    found = [tuple((each.operators["op"] == op).sum() for op in OPS) for each in (whole, halves)]
    assert tuple(found) == products
    assert (halves.total_cycles < whole.total_cycles) is (source is cholesky)
    assert (code_bytes(halves) > code_bytes(whole)) is (source is cholesky)


def code_bytes(found: Any) -> int:
    """Control code of all tiles."""
    return int(found.tiles["control_code"].sum())
