"""Plans of square products on a whole machine, held against rates published for hardware."""

from __future__ import annotations

import pytest

from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.search import Settings, plan
from workbench.engine.target import target

# Measured cycles at 1.85 GHz, compute and exchange without sync, digitised to +-3 % (Bow; float16 with half partials):
# graphcore-research/sparsity-benchmarks, analysis/Analysis.ipynb, figure dense_ipu_gpu.
MEASURED = [
    ("half", 1024, 256, 11274),
    ("half", 1024, 1024, 33526),
    ("half", 1024, 4096, 89782),
    ("half", 4096, 256, 91858),
    ("half", 4096, 1024, 308570),
    ("float", 1024, 256, 29385),
    ("float", 1024, 1024, 92177),
    ("float", 1024, 4096, 289989),
    ("float", 4096, 256, 306192),
]


def product_problem(dtype: str, rows: int, depth: int, columns: int) -> ConvProblem:
    return ConvProblem(
        kind="matmul",
        direction="forward",
        in_type=dtype,
        partials_type=dtype,
        out_type=dtype,
        batch=(rows,),
        in_chans=(depth,),
        out_chans=(columns,),
    )


@pytest.mark.parametrize(("dtype", "size", "columns", "measured_cycles"), MEASURED)
def test_products_come_near_measured_rates(dtype: str, size: int, columns: int, measured_cycles: int) -> None:
    found = plan(product_problem(dtype, size, size, columns), target("bow"), Settings())
    assert 0.85 < found.total_cycles / measured_cycles < 1.15
