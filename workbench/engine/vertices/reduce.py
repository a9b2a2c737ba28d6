"""popops reductions: one codelet name, `specialisation` chooses its form.

`SCALAR_OUTPUT_SINGLE_INPUT`: `num_partials` elements to one. `ALL_REGIONS_CONTINUOUS`: `num_partials` elements to
each of `num_outputs`. `STRIDED_REDUCE` and `STRIDED_REDUCE_OUTER`: `num_partials` rows of `num_outputs` elements,
`stride` elements apart, `num_outer_strides` times. `DEFAULT` and `SCALAR_OUTPUT_REGIONS`: `reductions` outputs of
`out_elements`, each from `regions` regions of `partial_elements`; where they differ, `out_elements` and `regions` of
every reduction and `partial_elements` of every region in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import Arguments, Sizes
from workbench.errors import InputError

_SOURCE = "poplibs@7eac0f26 lib/popops/reduction/CycleEstimationFunctions.cpp"
_ACCUMULATED = ("ADD", "SQUARE_ADD")
_VECTORISED = ("ADD", "SQUARE_ADD", "MUL", "MAX", "MIN")
_COMPILED = ("LOG_ADD", "LOGICAL_AND", "LOGICAL_OR")
_ACCUMULATORS = {"half": 8, "float": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What a reduction's loops depend on: types, operation, vector of the operation and its cycles."""

    op: str
    dtype: str
    out_type: str
    update: bool
    width: int
    per_load: int
    cycles_per_vector: int

    @property
    def per_cycle(self) -> int:
        """Elements that arrive and are taken in a cycle."""
        return min(self.width, self.per_load)

    @property
    def accumulates(self) -> bool:
        """Whether the sum is kept in the accumulators."""
        return self.op in _ACCUMULATED


def _form(op: str, dtype: str, out_type: str, update: bool, strided: bool, *, data_path_bytes: int) -> _Form:
    if op not in _VECTORISED and op not in _COMPILED:
        raise InputError(f"unknown reduction {op!r}", expected="one of: " + ", ".join(_VECTORISED + _COMPILED))
    width = _ACCUMULATORS.get(dtype, 1) if op in _ACCUMULATED else p.vector_width(dtype, data_path_bytes)
    cycles = 1
    if op == "LOG_ADD":
        cycles = (13 if dtype == "half" else 23) if strided else 20
    return _Form(
        op=op,
        dtype=dtype,
        out_type=out_type,
        update=update,
        width=width,
        per_load=p.elements_per_load(dtype, data_path_bytes),
        cycles_per_vector=cycles,
    )


def _single_input(form: _Form, partials: int) -> int:
    loads = form.width // form.per_cycle
    per_loop = form.per_cycle * loads
    loop = max(loads, form.cycles_per_vector) * partials // per_loop
    return 17 + loop + partials % per_loop + (5 if form.out_type != "float" else 0)


def _continuous(form: _Form, partials: int, outputs: int) -> int:
    width = form.width if form.accumulates else _continuous_width(form)
    per_loop = min(width, form.per_load)
    loops = form.cycles_per_vector * outputs * (partials // per_loop)
    return loops + (2 if partials % 2 else 0) + 12 * outputs + 17 + form.update


def _continuous_width(form: _Form) -> int:
    return 1 if form.op == "LOG_ADD" else _ACCUMULATORS.get(form.dtype, 1)


# (result type, operation, update): cycles of storing one vector of results; PopLibs has no figure for others
_HALF_STORE = {
    ("half", "ADD"): (7, 9),
    ("half", "MAX"): (7, 10),
    ("half", "MIN"): (7, 10),
    ("half", "LOG_ADD"): (7, 22),
    ("float", "ADD"): (6, 11),
    ("float", "MAX"): (7, 10),
    ("float", "MIN"): (7, 10),
    ("float", "LOG_ADD"): (7, 56),
}
_FLOAT_STORE = {
    ("half", False): (2, 4),
    ("half", True): (2, 13),
    ("float", False): (2, 5),
    ("float", True): (2, 27),
}


def _strided_store(form: _Form) -> int:
    if form.dtype == "half":
        return 1 + _HALF_STORE.get((form.out_type, form.op), (0, 0))[form.update]
    store = _FLOAT_STORE.get((form.out_type, form.op == "LOG_ADD"), (0, 0))[form.update]
    return (3 if form.op == "ADD" else 2) + store


def _strided(form: _Form, partials: int, outputs: int, stride: int, outer: int) -> int:
    per_loop = gcd(form.per_cycle, stride)
    inner = outer * (3 + form.cycles_per_vector * (partials - 1))
    return 16 + ceil_div(outputs, per_loop) * (3 + _strided_store(form) + inner)


def _store_cycles(form: _Form, width: int, *, data_path_bytes: int) -> int:
    per_store = min(width, p.vector_width(form.out_type, data_path_bytes))
    return (2 + form.update) * per_store + form.accumulates


_GENERAL = {"reductions": 1, "out_elements": 1, "regions": 1, "partial_elements": 0}
Counts = int | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """`times` reductions of the general vertex to `out_elements`, from one region of each of the sizes."""

    times: int
    out_elements: int
    region_elements: tuple[int, ...]


def _jobs(reductions: int, out_elements: Counts, regions: Counts, partial_elements: Counts) -> list[_Job]:
    """The reductions of the general vertex; those that are alike once."""
    if not (
        isinstance(out_elements, Sequence) or isinstance(regions, Sequence) or isinstance(partial_elements, Sequence)
    ):
        return [_Job(times=reductions, out_elements=out_elements, region_elements=(partial_elements,) * regions)]
    outs = list(out_elements) if isinstance(out_elements, Sequence) else [out_elements] * reductions
    counts = list(regions) if isinstance(regions, Sequence) else [regions] * reductions
    total = sum(counts)
    sizes = list(partial_elements) if isinstance(partial_elements, Sequence) else [partial_elements] * total
    if len(outs) != reductions or len(counts) != reductions or len(sizes) != total:
        raise InputError(
            f"{len(outs)} outputs, {len(counts)} counts of regions and {len(sizes)} regions of {reductions} reductions",
            expected=f"{reductions} outputs, {reductions} counts and {total} regions",
        )
    ends = [sum(counts[: place + 1]) for place in range(reductions)]
    return [
        _Job(times=1, out_elements=out, region_elements=tuple(sizes[end - count : end]))
        for out, count, end in zip(outs, counts, ends, strict=True)
    ]


def _generic_one(form: _Form, job: _Job, *, data_path_bytes: int) -> int:
    """One reduction of the general vertex: whole vectors of outputs, then the powers of two of the rest."""
    regions = len(job.region_elements)
    rows = sum(size // job.out_elements for size in job.region_elements)
    out_elements = job.out_elements
    vectors, rest = divmod(out_elements, form.width)
    checks = range(p.ceil_log2(form.width))
    load = (2 if form.accumulates else 0) + 2 + form.width // form.per_cycle
    start = 5 if form.accumulates else 3
    cycles = 24 + 2 * len(checks)
    cycles += vectors * (start + _store_cycles(form, form.width, data_path_bytes=data_path_bytes) + 1 + 10 * regions)
    cycles += vectors * rows * (load + 3)
    for size in (1 << bit for bit in checks if rest >> bit & 1):
        loads = size // min(size, form.per_load)
        cycles += start - 1 + _store_cycles(form, size, data_path_bytes=data_path_bytes) + 10 * regions
        cycles += rows * (2 + loads + 3)
    return cycles


def _generic(form: _Form, jobs: Sequence[_Job], *, data_path_bytes: int) -> int:
    if form.op in _VECTORISED:
        return 33 + sum(job.times * _generic_one(form, job, data_path_bytes=data_path_bytes) for job in jobs)
    each = 24 + (12 if form.op == "LOG_ADD" else 1) + (form.out_type != form.dtype)
    return 31 + sum(job.times * (8 + sum(22 + each * size for size in job.region_elements)) for job in jobs)


_FORMS = (
    "SCALAR_OUTPUT_SINGLE_INPUT",
    "ALL_REGIONS_CONTINUOUS",
    "STRIDED_REDUCE",
    "STRIDED_REDUCE_OUTER",
    "DEFAULT",
    "SCALAR_OUTPUT_REGIONS",
)


def _flops(
    *,
    specialisation: str,
    type: str,
    op: str,
    num_partials: int = 0,
    num_outputs: int = 1,
    num_outer_strides: int = 1,
    reductions: int = 1,
    out_elements: Counts = 1,
    regions: Counts = 1,
    partial_elements: Counts = 0,
    update: bool = False,
    **_: object,
) -> int:
    """One operation per element beyond the first of each output (two for SQUARE_ADD, six for LOG_ADD)."""
    each = {"SQUARE_ADD": 2, "LOG_ADD": 6, "LOGICAL_AND": 0, "LOGICAL_OR": 0}.get(op, 1)
    if not p.is_float(type):
        return 0
    if specialisation in ("DEFAULT", "SCALAR_OUTPUT_REGIONS"):
        jobs = _jobs(reductions, out_elements, regions, partial_elements)
        return each * sum(job.times * (sum(job.region_elements) - (1 - update) * job.out_elements) for job in jobs)
    return each * num_outputs * (num_partials * num_outer_strides - 1 + update)


def _state_bytes(*, specialisation: str, reductions: int = 0, regions: Counts = 1, **_: object) -> int:
    """Scaled pointers are full ones on Mk2; the strided form has five shorts, the general two vector lists."""
    if specialisation in ("DEFAULT", "SCALAR_OUTPUT_REGIONS"):
        total = sum(regions) if isinstance(regions, Sequence) else reductions * regions
        return 2 * p.VECTOR_LIST + p.SCALED_POINTER + 6 * reductions + 4 * total
    if specialisation.startswith("STRIDED"):
        return 2 * p.SCALED_POINTER + p.POINTER + 12
    return 2 * p.SCALED_POINTER + 4


def _code_bytes(*, specialisation: str, type: str, op: str, **_: object) -> int:
    """Assembly files ReductionSpecial{01,2,3}*.S and ContinuousReduction*.S, 4 B an instruction."""
    if op in _COMPILED and not (op == "LOG_ADD" and specialisation.startswith("STRIDED")):
        return 420
    if specialisation.startswith("STRIDED"):
        return 500
    if specialisation == "ALL_REGIONS_CONTINUOUS":
        return 260
    if specialisation == "SCALAR_OUTPUT_SINGLE_INPUT":
        return 220
    return 440 if type == "half" else 400


def _operands(arguments: Arguments) -> Sizes:
    """Partials, and one result for each output."""
    form, outputs = arguments["specialisation"], arguments.get("num_outputs", 1)
    if form in ("DEFAULT", "SCALAR_OUTPUT_REGIONS"):
        counts = {key: arguments.get(key, least) for key, least in _GENERAL.items()}
        jobs = _jobs(**counts)
        read = {sum(job.times * sum(job.region_elements) for job in jobs)}
        outputs = sum(job.times * job.out_elements for job in jobs)
    else:
        rows = arguments.get("num_partials", 0) * arguments.get("num_outer_strides", 1)
        read = {rows * outputs, rows * (arguments.get("stride") or outputs)}
    return Sizes(read=frozenset(read | ({outputs} if arguments.get("update") else set())), written=frozenset([outputs]))


@codelet(
    "popops::Reduce",
    kind="worker",
    source=f"{_SOURCE}:64 (general), :212 (strided), :292 (single input), :333 (continuous)",
    formula=(
        "single input 17 + n / elements per cycle + rest (+5 half result); continuous 17 + 12 per output + "
        "outputs * (partials / elements per cycle); strided 16 + per vector of outputs: 3 + store + outer * "
        "(3 + partials - 1); general 33 + per reduction: 24 + checks + outputs' loops + partials * (load + 3)"
    ),
    state_bytes=_state_bytes,
    code_bytes=_code_bytes,
    flops=_flops,
    operands=_operands,
    also_types=("float",),
)
def reduce(
    *,
    specialisation: str,
    type: str,
    op: str,
    num_partials: int = 0,
    num_outputs: int = 1,
    stride: int = 0,
    num_outer_strides: int = 1,
    reductions: int = 1,
    out_elements: Counts = 1,
    regions: Counts = 1,
    partial_elements: Counts = 0,
    out_type: str | None = None,
    update: bool = False,
    data_path_bytes: int,
) -> int:
    """Worker cycles; `op` is ADD, SQUARE_ADD, MUL, MAX, MIN, LOG_ADD, LOGICAL_AND or LOGICAL_OR.

    `update` adds to what the output holds; `out_type` is that of the partials unless given.
    """
    if specialisation not in _FORMS:
        raise InputError(f"unknown specialisation {specialisation!r}", expected="one of: " + ", ".join(_FORMS))
    # Only the form without outer strides has LOG_ADD in assembly (CycleEstimationFunctions.cpp:368).
    form = _form(
        op, type, out_type or type, update, strided=specialisation == "STRIDED_REDUCE", data_path_bytes=data_path_bytes
    )
    if specialisation == "SCALAR_OUTPUT_SINGLE_INPUT":
        return _single_input(form, num_partials)
    if specialisation == "ALL_REGIONS_CONTINUOUS":
        return _continuous(form, num_partials, num_outputs)
    if specialisation.startswith("STRIDED_REDUCE"):
        return _strided(form, num_partials, num_outputs, stride or num_outputs, num_outer_strides)
    return _generic(form, _jobs(reductions, out_elements, regions, partial_elements), data_path_bytes=data_path_bytes)
