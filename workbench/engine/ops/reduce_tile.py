"""What reduces on one tile: its vertices, which of its six workers take what, and when two steps pay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import Emitter
from workbench.engine.mapping import runs_of_elements
from workbench.engine.ops.codelets import counted
from workbench.engine.program import VertexGroup
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine
from workbench.engine.vertices.popops import vector_width

SUMS = frozenset({"ADD", "SQUARE_ADD"})
CONTINUOUS = SUMS | {"MAX", "MIN"}
STAGE_OVERHEAD_CYCLES = 30  # of one vertex, as popops weighs it against splitting
LEAST_SPLIT_CYCLES = 4
LEAST_SPLIT_ROWS = 2


@dataclass(frozen=True, slots=True, eq=False)
class TileReduction:
    """Vertices of a reduction on the tiles, and those that add up what several workers made of one result.

    `between` counts the partial results that wait for the second step: int64[tiles], of type `dtype`.
    """

    first: tuple[VertexGroup, ...]
    second: tuple[VertexGroup, ...]
    between: IntArray
    dtype: str

    def __bool__(self) -> bool:
        return bool(self.first)


def emit_reductions(
    emit: Emitter, label: str, found: Sequence[TileReduction], reads: Iterable[int], writes: Iterable[int]
) -> None:
    """One compute set for all of them, and one more if some take two steps."""
    results = tuple(writes)
    waiting: list[int] = []
    for one in found:
        if one.second:
            owners = np.repeat(np.arange(len(one.between), dtype=np.int64), one.between)
            held = runs_of_elements(owners.shape, owners)
            waiting.append(emit.new(f"{label}/second_stage", owners.shape, one.dtype, held, "temporary"))
    emit.compute(label, [group for one in found for group in one.first], reads, (*results, *waiting))
    second = [group for one in found for group in one.second]
    emit.compute(f"{label}/second_stage", second, (*waiting, *results), results)


def tile_reduction(
    dtypes: tuple[str, str], results: IntArray, depth: IntArray, op: str, machine: Machine, *, inner: bool
) -> TileReduction:
    """Reduce vertices of `results` results of `depth` elements, both int64[tiles].

    As many results as workers or more are shared out to them. Fewer have a worker each, or several where popops
    expects that to take fewer cycles: then each of these leaves a partial result, and the worker of the result adds
    them up.
    `inner`: a result's elements lie side by side. `dtypes` are those of what is read and what is written.
    Source: poplibs@7eac0f26 lib/popops/reduction/ReductionConnection.cpp:113-117, 277-372, 1048-1067.
    """
    source, result = (DTYPE_WORDS[dtype] for dtype in dtypes)
    summed, workers = op in SUMS, machine.workers
    between = "float" if result == "half" and summed else result
    many = np.where((results >= workers) & (depth > 1), results, 0)
    few = np.where((results > 0) & (results < workers) & (depth > 1), results, 0)
    splits = _splits(few, depth, _vector(between, machine) * (2 if summed else 1), workers)
    vector = _vector(source, machine)
    share = np.minimum(depth, ceil_div(depth, vector * splits) * vector)
    alone, shared = np.where(splits == 1, few, 0), np.where(splits > 1, few, 0)
    first = [
        *_many(inner, many, depth, machine, {"op": op, **_types(source, result)}),
        *_scalars(alone, depth, op=op, **_types(source, result)),
        *_scalars(shared * splits, share, op=op, **_types(source, between)),
    ]
    second = _scalars(shared, splits, op="ADD" if summed else op, **_types(between, result))
    dtype = "float32" if dtypes[1] == "float16" and summed else dtypes[1]
    return TileReduction(first=tuple(first), second=tuple(second), between=shared * splits, dtype=dtype)


def _vector(word: str, machine: Machine) -> int:
    """Elements of a vector of floats or halves; others are reduced one by one."""
    return vector_width(word, machine.data_path_bytes) if word in ("float", "half") else 1


def _scalars(count: IntArray, depth: IntArray, **fixed: str) -> list[VertexGroup]:
    """As many vertices on each tile, each of so many elements to one.

    popops prefers the form for elements side by side where it has assembler for the operation
    (poplibs@7eac0f26 lib/popops/reduction/ReductionConnection.cpp:2222-2240).
    """
    arguments = {"num_partials": np.where(count > 0, depth, 0)}
    form = "ALL_REGIONS_CONTINUOUS" if fixed["op"] in CONTINUOUS else "SCALAR_OUTPUT_SINGLE_INPUT"
    return counted("popops::Reduce", arguments, count, specialisation=form, num_outputs=1, **fixed)


def _splits(few: IntArray, depth: IntArray, per_cycle: int, workers: int) -> IntArray:
    """Workers of each result on every tile: int64[tiles]."""
    splits = np.ones(len(few), np.int64)
    tiles = np.flatnonzero(few)
    for results, elements in {*zip(few[tiles].tolist(), depth[tiles].tolist(), strict=True)}:
        splits[(few == results) & (depth == elements)] = workers_of_a_result(results, elements, per_cycle, workers)
    return splits


@remembered(8192)
def workers_of_a_result(results: int, depth: int, per_cycle: int, workers: int) -> int:
    """How many of the `workers` share one of `results` equal reductions of `depth` elements, the most over the results.

    The slowest gets another worker while one is free, that takes fewer cycles by popops' rough count and no share falls
    under two elements; if the slowest stays as slow, none is shared.
    """
    work = ceil_div(depth, per_cycle)
    alone = STAGE_OVERHEAD_CYCLES + work
    most = min(depth // LEAST_SPLIT_ROWS, alone // LEAST_SPLIT_CYCLES)
    cycles, splits = [alone] * results, [1] * results
    for _ in range(workers - results):
        slowest = cycles.index(max(cycles))
        shared = 2 * STAGE_OVERHEAD_CYCLES + work // (splits[slowest] + 1)
        if splits[slowest] + 1 >= most or shared >= cycles[slowest]:
            break
        splits[slowest] += 1
        cycles[slowest] = shared
    return 1 if max(cycles) == alone else min(splits)


def _types(source: str, result: str) -> dict[str, str]:
    return {"type": source} if source == result else {"type": source, "out_type": result}


def _many(
    inner: bool, results: IntArray, depth: IntArray, machine: Machine, fixed: dict[str, str]
) -> list[VertexGroup]:
    """One vertex for several results on each worker; strided ones take whole vectors, their rows filled up to them.

    Workers get multiples of two vectors of a sum, of one of another operation (poplibs@7eac0f26 lib/popops/reduction/
    ReductionStages.cpp:49-65).
    """
    if inner:
        share = ceil_div(results, machine.workers)
        workers = ceil_div(results, np.maximum(1, share))
        arguments = {"num_outputs": share, "num_partials": np.where(results > 0, depth, 0)}
        return counted("popops::Reduce", arguments, workers, specialisation="ALL_REGIONS_CONTINUOUS", **fixed)
    grain = _vector(fixed["type"], machine) * (2 if fixed["op"] in SUMS else 1)
    vectors = ceil_div(results, grain)
    per_worker = ceil_div(vectors, machine.workers)
    workers = ceil_div(vectors, np.maximum(1, per_worker))
    share = np.minimum(per_worker * grain, ceil_div(results, grain) * grain)
    arguments = {"num_outputs": share, "num_partials": np.where(results > 0, depth, 0), "stride": share}
    return counted("popops::Reduce", arguments, workers, specialisation="STRIDED_REDUCE", num_outer_strides=1, **fixed)
