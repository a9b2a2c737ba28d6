"""What a plan costs: registered formulas that take one candidate or arrays of them, and the terms of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from workbench.engine.cost import formula, formulas
from workbench.engine.plan import TYPE_BYTES, ConvProblem, Method
from workbench.engine.planner.candidates import MOST_PARTS
from workbench.engine.planner.reduction import step_table, steps
from workbench.engine.target import Target
from workbench.engine.vertices.conv import (
    amp_1x1_cycles,
    hmac_cycles,
    nx1_cycles,
    outer_product_cycles,
    reduce_add_cycles,
)
from workbench.engine.vertices.sizes import Sizes, ceil_div, where

_MODEL = "poplibs@7eac0f26 lib/poplin/ConvModel.cpp"


@formula(
    "plan.exchange",
    text="bytes that arrive on the fullest tile / bytes per cycle, rounded up",
    source=f"{_MODEL}:957 (addExchangeCycleEstimates)",
    error_kind="exchange",
)
def exchange_cycles(size_bytes: Sizes, rate: Sizes) -> Sizes:
    """Cycles of one exchange."""
    return ceil_div(size_bytes, rate)


@formula(
    "plan.copy",
    text="6*23 + 11 + bytes / 8, rounded up: what a tile has already is copied beside what arrives; 0 for none",
    source="poplar::Memcpy",
)
def copy_cycles(size_bytes: Sizes) -> Sizes:
    """Cycles of a contiguous copy on the tile."""
    return where(size_bytes > 0, 149 + ceil_div(size_bytes, 8), 0)


@formula(
    "plan.phases",
    text="exchanges x (barrier + latency) + compute sets x launch",
    source="the same terms as of the steps themselves: sync.internal, exchange.latency, compute.launch",
    error_kind="sync",
)
def phase_cycles(exchanges: Sizes, computes: Sizes, exchange: int, launch: int) -> Sizes:
    """Cycles around the phases of a plan."""
    return exchanges * exchange + computes * launch


@formula(
    "plan.rearrange",
    text="6*23 + 11 + 5/4 cycle per element rearranged on the tile, rounded up; 0 for none",
    source=f"{_MODEL}:1291 (addTransformCycleEstimate: 5/4 per access of one element)",
)
def rearrange_cycles(elements: Sizes, element_bytes: int) -> Sizes:
    """Cycles of a copy on the tile that moves single elements."""
    accesses = ceil_div(elements * element_bytes, min(8, element_bytes))
    return where(elements > 0, 149 + ceil_div(5 * accesses, 4), 0)


@formula(
    "plan.amp",
    text="ConvPartial1x1Out where the tile has one kernel position and rows follow each other, else ConvPartialnx1",
    source=f"{_MODEL}:49 (canUse1x1Vertex); lib/poplin/PerformanceEstimation.hpp:672, :694",
    error_kind="vertex",
)
def amp_cycles(one_by_one: Any, flat_positions: Sizes, kernel_outer: Sizes, kernel_inner: Sizes, positions: Sizes,
               row_width: Sizes, filter_height: int, **arguments: Any) -> Sizes:  # fmt: skip
    """Cycles of the matrix unit on the fullest tile."""
    if np.all(one_by_one):
        return amp_1x1_cycles(positions=flat_positions, **arguments)
    general = nx1_cycles(
        positions=positions,
        row_width=row_width,
        kernel_outer=kernel_outer,
        kernel_inner=kernel_inner,
        filter_height=filter_height,
        **arguments,
    )
    if not np.any(one_by_one):
        return general
    return where(one_by_one, amp_1x1_cycles(positions=flat_positions, **arguments), general)


formula(
    "plan.hmac",
    text="ConvPartialHorizontalMac over the tile's rows, all its channels in one block",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:133-244",
    error_kind="vertex",
)(hmac_cycles)


@formula(
    "plan.outer_product",
    text="6 x OuterProduct of a worker's share of the inputs",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1516",
    error_kind="vertex",
)
def outer_cycles(width: Sizes, chans: Sizes, groups: Sizes, type: str, workers: int) -> Sizes:
    """Cycles of the outer products of a tile, a vertex per worker and group."""
    share = ceil_div(width, workers)
    return workers * groups * outer_product_cycles(type=type, width=share, chans=chans, chans_per_group=chans)


@formula(
    "plan.reduce",
    text="ReduceAdd of every step on a tile's share of the outputs; no step, no cycles",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1560; steps: lib/poplin/ConvReducePlan.cpp",
)
def reduce_cycles(elements: Sizes, depth: Sizes, multi_stage: bool, partials_type: str, out_type: str) -> Sizes:
    """Cycles of adding up `depth` partials of `elements` results each, spread over the tiles that hold them."""
    total: Sizes = 0
    left = elements
    sums = sums_of(depth, multi_stage)
    for number, together in enumerate(sums):
        left = ceil_div(left, together)
        cycles = _add(left, together, partials_type, out_type)
        if number + 1 < len(sums) and out_type != partials_type:
            # Only the last step of a candidate gives the result's type.
            cycles = where(sums[number + 1] > 1, _add(left, together, partials_type, partials_type), cycles)
        total = total + where(together > 1, cycles, 0)
    return total


def _add(elements: Sizes, together: Sizes, partials_type: str, out_type: str) -> Sizes:
    return reduce_add_cycles(out_size=elements, partials=together, partials_type=partials_type, out_type=out_type)


def sums_of(depth: Sizes, multi_stage: bool) -> list[Sizes]:
    """How many partials each step of a reduction adds up; 1 for steps that a candidate does not have."""
    if not isinstance(depth, np.ndarray):
        return list(steps(int(depth), multi_stage))
    table = step_table(MOST_PARTS, multi_stage)
    return [row[depth] for row in table]


@formula(
    "plan.reduce_exchange",
    text="every step of the reduction brings a tile the partials of its share: bytes / rate, rounded up, a step each",
    source=f"{_MODEL}:1085 (first and remaining stages of the reduction)",
    error_kind="exchange",
)
def reduce_exchange_cycles(elements: Sizes, depth: Sizes, multi_stage: bool, element_bytes: int, rate: int) -> Sizes:
    """Cycles of the exchanges of a reduction."""
    total: Sizes = 0
    left = elements
    for together in sums_of(depth, multi_stage):
        total = total + where(together > 1, ceil_div(left * element_bytes, rate), 0)
        left = ceil_div(left, together)
    return total


@formula(
    "plan.cast",
    text="Cast1D of the outputs of a tile: 12 + 6*(26 + vectors of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp (castCycles); vectors of 8 bytes of the wider type",
)
def cast_cycles(elements: Sizes, workers: int, wide_vector: int) -> Sizes:
    """Cycles of converting a tile's outputs from the type of the partials."""
    return where(elements > 0, 12 + workers * (26 + ceil_div(ceil_div(elements, workers), wide_vector)), 0)


@formula(
    "plan.add_in_place",
    text="BinaryOp1DInPlace ADD: 11 + 6*(58 + 3 per vector of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp, used by lib/poplin/ConvModel.cpp:1761",
)
def add_in_place_cycles(elements: Sizes, workers: int, vector: int) -> Sizes:
    """Cycles of adding one step's outputs to the sum of the steps before."""
    return where(elements > 0, 11 + workers * (58 + 3 * ceil_div(ceil_div(elements, workers), vector)), 0)


@formula(
    "plan.dynamic_slice",
    text="DynamicSlice1D: 25 + 6*(39 + 24 + 2 cycles per vector of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/popopsCycleEstimators.cpp:1755, used by lib/poplin/ConvModel.cpp:1688",
)
def dynamic_slice_cycles(elements: Sizes, workers: int, vector: int) -> Sizes:
    """Cycles of taking one step's share of an operand out of it, or of putting one step's outputs in place."""
    return where(elements > 0, 25 + workers * (63 + 2 * ceil_div(ceil_div(elements, workers), vector)), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Sizes on the fullest tile, for one candidate or as arrays that broadcast over candidates.

    `inputs`, `weights` and `outputs` count elements of one serial step; `positions` are output positions (batch x
    field), `active` those a kernel position reaches, in rows of `row_width`. `*_parts` multiply the parts of the
    axes which the operand does not have: so many tiles need the same elements.
    """

    groups: Sizes
    positions: Sizes
    active: Sizes
    row_width: Sizes
    rows: Sizes
    kernel_outer: Sizes
    kernel_inner: Sizes
    kernel: Sizes
    in_chans: Sizes
    out_chans: Sizes
    inputs: Sizes
    weights: Sizes
    outputs: Sizes
    out_parts: Sizes  # tiles that need the same inputs
    position_parts: Sizes  # tiles that need the same weights
    depth: Sizes  # partials of one output
    tiles: Sizes
    one_by_one: Any
    serial_in: Sizes = 1
    serial_out: Sizes = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the pass of a problem fixes for every candidate: which operands are rearranged, and the machine."""

    rearrange_inputs: bool
    rearrange_weights: bool
    rearrange_outputs: bool
    input_elements: int  # of the whole operand, as laid out for the unit
    weight_elements: int
    output_elements: int
    multi_stage: bool
    wide_load: bool
    target: Target


TermSpec: TypeAlias = tuple[str, str, dict[str, Any]]


@formula(
    "plan.further_steps",
    text="(serial steps - 1) x the cycles of one step",
    source=f"{_MODEL}:2056 (total cycles)",
)
def further_steps_cycles(times: Sizes, step_cycles: Sizes) -> Sizes:
    """Cycles of the serial steps after the first."""
    return (times - 1) * step_cycles


def term_specs(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    """The terms of a plan's cost: (name, formula, arguments); arguments may be arrays over candidates."""
    step = [*_moves(problem, method, shares, rules), *_cast(problem, method, shares, rules)]
    step += [*_slices(problem, method, shares, rules), _phases(problem, method, shares, rules)]
    around = _transforms(problem, shares, rules)
    times = shares.serial_in * shares.serial_out
    if isinstance(times, int) and times == 1:
        return step + around
    further = {"times": times, "step_cycles": total_cycles(step)}
    return [*step, ("further steps", "plan.further_steps", further), *around]


def _moves(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    """What every plan has: operands in, compute, partials together."""
    target = rules.target
    item_bytes, partial_bytes = TYPE_BYTES[problem.in_type], TYPE_BYTES[method.partials_type]
    rate = target.exchange_bytes_per_cycle
    paired = where(shares.out_parts % 2 == 0, rate * target.tiles_per_exchange_bus, rate)
    own_inputs, own_weights = shares.inputs // shares.out_parts, shares.weights // shares.position_parts
    inputs, weights = (shares.inputs - own_inputs) * item_bytes, (shares.weights - own_weights) * item_bytes
    local = where(shares.out_parts > 1, own_inputs, 0) + where(shares.position_parts > 1, own_weights, 0)
    reduced = {"elements": shares.outputs, "depth": shares.depth, "multi_stage": rules.multi_stage}
    types = {"partials_type": method.partials_type, "out_type": problem.out_type}
    return [
        ("inputs", "plan.exchange", {"size_bytes": inputs, "rate": paired}),
        ("weights", "plan.exchange", {"size_bytes": weights, "rate": rate}),
        _compute_spec(problem, method, shares, rules),
        ("copy", "plan.copy", {"size_bytes": local * item_bytes}),
        ("partials", "plan.reduce_exchange", {**reduced, "element_bytes": partial_bytes, "rate": rate}),
        ("reduce", "plan.reduce", {**reduced, **types}),
    ]


def _compute_spec(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> TermSpec:
    if method.vertex == "amp":
        return (
            "compute",
            "plan.amp",
            {
                "one_by_one": shares.one_by_one,
                "flat_positions": shares.positions,
                "positions": shares.active,
                "row_width": shares.row_width,
                "kernel_outer": ceil_div(shares.kernel_outer, method.filter_height),
                "kernel_inner": shares.kernel_inner,
                "filter_height": method.filter_height,
                "in_groups": ceil_div(shares.in_chans, method.in_block),
                "out_groups": ceil_div(shares.out_chans, method.out_block),
                "conv_groups": shares.groups,
                "out_chans_per_group": method.out_block,
                "in_type": problem.in_type,
                "partials_type": method.partials_type,
                "conv_units": method.units,
                "weight_load_bytes_per_cycle": rules.target.conv_weight_load_bytes_per_cycle * (1 + rules.wide_load),
            },
        )
    if method.vertex == "outer_product":
        chans = ceil_div(shares.out_chans, method.out_block) * method.out_block
        arguments = {"width": shares.positions, "chans": chans, "groups": shares.groups}
        workers = rules.target.workers_per_tile
        return "compute", "plan.outer_product", {**arguments, "type": problem.in_type, "workers": workers}
    return (
        "compute",
        "plan.hmac",
        {
            "rows": shares.rows,
            "row_width": shares.row_width,
            "kernel_elements": shares.kernel,
            "in_chans": ceil_div(shares.in_chans, method.in_block) * method.in_block,
            "out_chans": ceil_div(shares.out_chans, method.out_block) * method.out_block,
            "conv_groups": shares.groups,
            "in_type": problem.in_type,
            "partials_type": method.partials_type,
        },
    )


def _cast(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    if method.partials_type == problem.out_type:
        return []
    elements = where(shares.depth > 1, 0, shares.outputs)
    workers = rules.target.workers_per_tile
    return [("cast", "plan.cast", {"elements": elements, "workers": workers, "wide_vector": 2})]


def _transforms(problem: ConvProblem, shares: Shares, rules: Rules) -> list[TermSpec]:
    specs: list[TermSpec] = []
    wanted = (
        ("inputs", rules.rearrange_inputs, rules.input_elements, TYPE_BYTES[problem.in_type]),
        ("weights", rules.rearrange_weights, rules.weight_elements, TYPE_BYTES[problem.in_type]),
        ("outputs", rules.rearrange_outputs, rules.output_elements, TYPE_BYTES[problem.out_type]),
    )
    for name, needed, elements, item_bytes in wanted:
        if not needed:
            continue
        share = ceil_div(elements, shares.tiles)
        rate = rules.target.exchange_bytes_per_cycle
        specs.append((f"{name} to rearrange", "plan.exchange", {"size_bytes": share * item_bytes, "rate": rate}))
        specs.append((f"rearrange {name}", "plan.rearrange", {"elements": share, "element_bytes": item_bytes}))
    return specs


def _slices(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    workers = rules.target.workers_per_tile
    vector = rules.target.data_path_bytes // TYPE_BYTES[problem.in_type]
    partial_vector = rules.target.data_path_bytes // TYPE_BYTES[method.partials_type]
    times = shares.serial_in * shares.serial_out
    if isinstance(times, int) and times == 1:
        return []
    sliced_inputs = where(shares.serial_in > 1, ceil_div(shares.inputs, shares.out_parts), 0)
    sliced_weights = ceil_div(shares.weights, shares.position_parts)
    result = ceil_div(shares.outputs, shares.depth)
    return [
        ("slice inputs", "plan.dynamic_slice", {"elements": sliced_inputs, "workers": workers, "vector": vector}),
        ("slice weights", "plan.dynamic_slice", {"elements": sliced_weights, "workers": workers, "vector": vector}),
        (
            "place outputs",
            "plan.dynamic_slice",
            {"elements": where(shares.serial_out > 1, result, 0), "workers": workers, "vector": partial_vector},
        ),
        (
            "add steps",
            "plan.add_in_place",
            {"elements": where(shares.serial_in > 1, result, 0), "workers": workers, "vector": partial_vector},
        ),
    ]


def _phases(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> TermSpec:
    target = rules.target
    reduce_steps: Sizes = 0
    for together in sums_of(shares.depth, rules.multi_stage):
        reduce_steps = reduce_steps + where(together > 1, 1, 0)
    rearranged = int(rules.rearrange_inputs or rules.rearrange_weights) + int(rules.rearrange_outputs)
    cast = int(method.partials_type != problem.out_type)
    return (
        "phases",
        "plan.phases",
        {
            "exchanges": 1 + rearranged + reduce_steps,
            "computes": 2 + rearranged + reduce_steps + where(shares.depth > 1, 0, cast),
            "exchange": target.internal_sync_cycles + target.exchange_latency_cycles,
            "launch": target.launch_cycles,
        },
    )


def floor_cycles(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> Sizes:
    """A quick lower bound of the total: operands in, compute, and the partials' first exchange."""
    found = _moves(problem, method, shares, rules)[:3]
    element_bytes, rate = TYPE_BYTES[method.partials_type], rules.target.exchange_bytes_per_cycle
    partials = where(shares.depth > 1, 1, 0) * (shares.outputs * element_bytes // rate)
    return (total_cycles(found) + partials) * (shares.serial_in * shares.serial_out)


def total_cycles(specs: list[TermSpec]) -> Sizes:
    """The sum of the terms, an element per candidate."""
    total: Sizes = 0
    for _, formula_id, arguments in specs:
        total = total + formulas.get(formula_id).evaluate(**arguments)
    return total
