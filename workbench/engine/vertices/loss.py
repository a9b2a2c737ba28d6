"""PopNN losses, arg-max and top-k over classes, and accuracy."""

from __future__ import annotations

from math import log

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import sized, untold
from workbench.engine.vertices.sizes import whole_number

_ESTIMATION = "poplibs@7eac0f26 lib/popnn/PerformanceEstimation.hpp"
_ESTIMATORS = "poplibs@7eac0f26 lib/popnn/popnnCycleEstimators.cpp"
_SUPERVISOR = 9
_LOSS_STATE = 4 * 4 + 4  # pointers of probabilities, expected, deltas, transformed; the size


def _loss_transform(type: str, softmax: bool, size: int) -> int:
    step, odd = (9, 11) if softmax else (4, 6)
    fixed = 14 + (6 if softmax else 5)
    if type == "float":
        return fixed + step * size
    return fixed + 3 + step * (size // 2) + (odd if size % 2 else 0)


@codelet(
    "popnn::LossSumSquaredTransform",
    kind="worker",
    source=f"{_ESTIMATION}:94",
    formula="19 + 4*size float, 22 + 4*(size/2) + 6 if odd half",
    state_bytes=lambda **_: _LOSS_STATE,
    code_bytes=452,
    flops=lambda *, size, **_: 3 * size,
)
def loss_sum_squared_transform(*, type: str, size: int) -> int:
    """Worker cycles of the squared error of `size` outputs and its gradient."""
    return _loss_transform(type, False, size)


@codelet(
    "popnn::LossCrossEntropyTransform",
    kind="worker",
    source=f"{_ESTIMATION}:94",
    formula="20 + 9*size float, 23 + 9*(size/2) + 11 if odd half",
    state_bytes=lambda **_: _LOSS_STATE + 8,
    code_bytes=452,
    flops=lambda *, size, **_: 6 * size + 2,
)
def loss_cross_entropy_transform(*, type: str, size: int) -> int:
    """Worker cycles of the cross entropy of `size` softmax outputs and its gradient."""
    return _loss_transform(type, True, size)


_GATHER_FORMULA = (
    "9 + workers*(30 + 3*min(worker_size - 1, size - 1)), integers 9 + workers*(22 + "
    "ceil(size/worker_size)*(6*worker_size + 25))"
)


def _gather(type: str, size: int, worker_size: int | None, workers: int) -> int:
    share = whole_number(ceil_div(size, workers)) if worker_size is None else worker_size
    if type in ("float", "half"):
        return _SUPERVISOR + workers * (30 + 3 * min(share - 1, size - 1))
    return _SUPERVISOR + workers * (22 + whole_number(ceil_div(size, share)) * (6 * share + 25))


def _float_flops(*, type: str, size: int, **_: object) -> int:
    return size if type in ("float", "half") else 0


@codelet(
    "popnn::ReduceMaxClassGather",
    kind="multi",
    source=f"{_ESTIMATORS}:463",
    formula=_GATHER_FORMULA,
    state_bytes=lambda **_: 24,
    code_bytes=336,
    flops=_float_flops,
    operands=sized(lambda *, size, **_: (size,), untold),
    also_types=("float", "unsigned int"),
)
def reduce_max_class_gather(*, type: str, size: int, worker_size: int | None = None, workers: int) -> int:
    """Tile cycles of the largest of `size` activations and its index, `worker_size` for each worker."""
    return _gather(type, size, worker_size, workers)


@codelet(
    "popnn::ReduceMinClassGather",
    kind="multi",
    source=f"{_ESTIMATORS}:614",
    formula=_GATHER_FORMULA,
    state_bytes=lambda **_: 24,
    code_bytes=336,
    flops=_float_flops,
    operands=sized(lambda *, size, **_: (size,), untold),
    also_types=("float", "unsigned int"),
)
def reduce_min_class_gather(*, type: str, size: int, worker_size: int | None = None, workers: int) -> int:
    """Tile cycles of the smallest of `size` activations and its index, `worker_size` for each worker."""
    return _gather(type, size, worker_size, workers)


def _sparse(type: str, size: int) -> int:
    return 24 + 3 * size if type in ("float", "half") else 23 + 6 * size


_SPARSE_FORMULA = "24 + 3*size, integers 23 + 6*size"


@codelet(
    "popnn::ReduceMaxClassSparse",
    kind="worker",
    source=f"{_ESTIMATORS}:589",
    formula=_SPARSE_FORMULA,
    state_bytes=lambda **_: 20,
    code_bytes=128,
    operands=sized(lambda *, size, **_: (size,), lambda **_: (1,)),
    also_types=("float", "unsigned int"),
)
def reduce_max_class_sparse(*, type: str, size: int) -> int:
    """Worker cycles of the largest of `size` labelled activations."""
    return _sparse(type, size)


@codelet(
    "popnn::ReduceMinClassSparse",
    kind="worker",
    source=f"{_ESTIMATORS}:654",
    formula=_SPARSE_FORMULA,
    state_bytes=lambda **_: 20,
    code_bytes=128,
    flops=_float_flops,
    operands=sized(lambda *, size, **_: (size,), lambda **_: (1,)),
    also_types=("float", "unsigned int"),
)
def reduce_min_class_sparse(*, type: str, size: int) -> int:
    """Worker cycles of the smallest of `size` labelled activations."""
    return _sparse(type, size)


def _heap_top_k(size: int, k: int, ordered: bool, start: int) -> int:
    """Worker cycles to keep the `k` largest in a heap; each step truncates, as the published estimator adds."""
    cycles = start + 23
    for filled in range(1, k):
        cycles = whole_number(cycles + 13 + log(filled) * 20)
    cycles = whole_number(cycles + (size - k) * (13 + log(k) * 20)) + 8 * k
    if ordered:
        for left in range(k, 0, -1):
            cycles = whole_number(cycles + 10 + 20 * log(left))
    return cycles


@codelet(
    "popnn::ReduceMaxNClassGather",
    kind="worker",
    source=f"{_ESTIMATORS}:503",
    formula="12 + outputs*(23 + pushes of 13 + 20*ln(i) for i < k + (size - k)*(13 + 20*ln(k)) + 8*k"
    " + pops of 10 + 20*ln(i) if sorted); outputs = ceil(size / the share of a worker)",
    state_bytes=lambda **_: 24,
    code_bytes=4 * 150,
    operands=sized(lambda *, size, **_: (size,), untold),
)
def reduce_max_n_class_gather(
    *, size: int, k: int, worker_size: int | None = None, sorted: bool = False, workers: int
) -> int:
    """Worker cycles of the `k` largest of `size` activations, found per part of `worker_size`."""
    share = ceil_div(size, workers) if worker_size is None else worker_size
    cycles = 12
    for _ in range(ceil_div(size, share)):
        cycles = _heap_top_k(size, k, sorted, cycles)
    return cycles


@codelet(
    "popnn::ReduceMaxNClassSparse",
    kind="worker",
    source=f"{_ESTIMATORS}:553",
    formula="35 + pushes of 13 + 20*ln(i) for i < k + (size - k)*(13 + 20*ln(k)) + 8*k"
    " + pops of 10 + 20*ln(i) if sorted",
    state_bytes=lambda **_: 28,
    code_bytes=4 * 150,
    operands=sized(lambda *, size, **_: (size,), lambda *, k, **_: (k,)),
)
def reduce_max_n_class_sparse(*, size: int, k: int, sorted: bool = False) -> int:
    """Worker cycles of the `k` largest of `size` labelled activations."""
    return _heap_top_k(size, k, sorted, 12)


@codelet(
    "popnn::CalcAccuracy",
    kind="worker",
    source=f"{_ESTIMATORS}:680",
    formula="14 + 4*batch",
    state_bytes=lambda **_: 16,
    code_bytes=4 * 20,
    operands=sized(lambda *, batch: (batch,), lambda **_: (1,)),
)
def calc_accuracy(*, batch: int) -> int:
    """Worker cycles to count the right labels of a batch."""
    return 14 + 4 * batch
