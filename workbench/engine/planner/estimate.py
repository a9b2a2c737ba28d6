"""What a plan costs the planner: the terms of a candidate, or of arrays of them, from sizes on the fullest tile.

The planner chooses by what PopLibs' planner charges, which is bytes exchanged, vertices and what is rearranged: no
barrier, no launch and no copy of what a tile has already (poplibs@7eac0f26 lib/poplin/ConvModel.cpp:2071-2079, the
total). What the steps of the chosen plan then take, all of these included, is the program's (`engine/time/execute.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.cost import formulas
from workbench.engine.planner.formulas import shared_out
from workbench.engine.planner.method import Method, Rules, Shares, TermSpec
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.vertices.sizes import Sizes, larger, smaller, where

MOST_VIEWED = 7  # receivers of weights that are not rearranged: poplibs@7eac0f26 lib/poplin/Convolution.cpp:2585


def term_specs(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    """The terms of a plan's cost: (name, formula, arguments); arguments may be arrays over candidates."""
    step = [*_moves(problem, method, shares, rules), *_cast(problem, method, shares, rules)]
    step += _slices(problem, method, shares, rules)
    around = _transforms(problem, shares, rules)
    times = shares.serial_in * shares.serial_out
    if isinstance(times, int) and times == 1:
        return step + around
    further = {"times": times, "step_cycles": total_cycles(step)}
    return [*step, ("further steps", "plan.further_steps", further), *around]


def own_inputs(shares: Shares) -> tuple[Sizes, Sizes]:
    """Most and fewest inputs that a tile owns."""
    return shared_out(shares.owned, shares.out_parts * shares.kernel_parts)


def own_weights(shares: Shares) -> tuple[Sizes, Sizes]:
    """Most and fewest weights that a tile owns."""
    return shared_out(shares.weights, shares.position_parts)


def own_outputs(shares: Shares) -> Sizes:
    """Most results that a tile owns."""
    return shared_out(shares.outputs, shares.depth)[0]


def _arriving(shares: Shares) -> tuple[Sizes, Sizes]:
    """Inputs and weights that other tiles send to the one with the fewest of its own."""
    return larger(shares.inputs - own_inputs(shares)[1], 0), larger(shares.weights - own_weights(shares)[1], 0)


def _moves(
    problem: ConvProblem, method: Method, shares: Shares, rules: Rules, *, at_least: bool = False
) -> list[TermSpec]:
    """What every plan has: operands in, compute (or a lower bound of it), partials together."""
    target = rules.target
    travelling = rules.travels_as(method.partials_type)
    item_bytes, partial_bytes = TYPE_BYTES[problem.in_type], TYPE_BYTES[travelling]
    rate = target.exchange_bytes_per_cycle
    paired = where(shares.out_parts % 2 == 0, rate * target.tiles_per_exchange_bus, rate)
    inputs, weights = _arriving(shares)
    reduced = {"elements": shares.outputs, "depth": shares.depth, "multi_stage": rules.multi_stage}
    types = {"partials_type": travelling, "out_type": problem.out_type}
    zeros = method.zeros(problem, shares)
    beside = {"size_bytes": zeros * item_bytes, "rate": rate}
    return [
        ("inputs", "plan.exchange", {"size_bytes": inputs * item_bytes, "rate": paired}),
        ("weights", "plan.exchange", {"size_bytes": weights * item_bytes, "rate": rate}),
        (method.least if at_least else method.cost)(problem, shares, rules),
        ("partials", "plan.reduce_exchange", {**reduced, "element_bytes": partial_bytes, "rate": rate}),
        (
            "reduce",
            "plan.reduce",
            {**reduced, **types, **target.machine._asdict()} | ({"fast": True} if rules.fast_reduce else {}),
        ),
        *([] if isinstance(zeros, int) and zeros == 0 else [("zeros", "plan.exchange", beside)]),
    ]


def _cast(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    alone = int(method.partials_type != problem.out_type)
    before = int(method.partials_type != rules.travels_as(method.partials_type))
    if not alone and not before:
        return []
    elements = where(shares.depth > 1, before * shares.outputs, alone * shares.outputs)
    workers, wide = rules.target.workers_per_tile, rules.target.data_path_bytes // TYPE_BYTES["float"]
    return [("cast", "plan.cast", {"elements": elements, "workers": workers, "wide_vector": wide})]


def staged(shares: Shares, rules: Rules) -> Sizes:
    """Elements that the rearranged operands of a tile take up, all steps together."""
    elements: Sizes = 0
    if rules.rearrange_inputs:
        elements = elements + own_inputs(shares)[0] * shares.serial_in
    if rules.rearrange_weights:
        elements = elements + own_weights(shares)[0] * (shares.serial_in * shares.serial_out)
    return elements


def rearranged(shares: Shares, rules: Rules) -> Sizes:
    """Elements of the operands that a tile rearranges, all steps together: no zeros, no weights that are filled up."""
    without = replace(shares, owned=shares.unfilled_owned, weights=shares.unfilled_weights)
    if not rules.fills_weights:
        return staged(without, rules)
    inputs = staged(without, replace(rules, rearrange_weights=False))
    return where(filled_up(shares, rules), inputs, staged(without, rules))


def filled_up(shares: Shares, rules: Rules) -> Any:
    """Whether weights are used where they lie, with the last block of outputs copied beside zeros."""
    return (shares.position_parts <= MOST_VIEWED) & rules.fills_weights


def _transforms(problem: ConvProblem, shares: Shares, rules: Rules) -> list[TermSpec]:
    """Zeros between outputs, and what is rearranged: operands in one step, results in another.

    Forward, the operands of the free layout are made where the rearrangement wants them.
    """
    specs: list[TermSpec] = []
    machine = rules.target.machine._asdict()
    item_bytes, out_bytes = TYPE_BYTES[problem.in_type], TYPE_BYTES[problem.out_type]
    if problem.result_elements:
        specs.append(("spread outputs", "plan.spread", _spread_arguments(problem, shares, rules)))
    if rules.rearrange_inputs or rules.rearrange_weights:
        elements = rearranged(shares, rules)
        rate = rules.target.exchange_bytes_per_cycle
        if rules.brings_operands:
            size_bytes = elements * item_bytes
            specs.append(("operands to rearrange", "plan.exchange", {"size_bytes": size_bytes, "rate": rate}))
        moved = {"elements": elements, "element_bytes": item_bytes, "run": rules.operand_run, **machine}
        specs.append(("rearrange operands", "plan.rearrange", moved))
    if rules.fills_weights:
        own, lies = own_weights(shares)[0], _arriving(shares)[1] == 0
        size_bytes = where(filled_up(shares, rules) & lies, own * item_bytes, 0)
        specs.append(("fill weights", "plan.copy", {"size_bytes": size_bytes, **machine}))
    if rules.rearrange_outputs and not rules.trims_outputs:
        results = own_outputs(shares) * shares.serial_out
        moved = {"elements": results, "element_bytes": out_bytes, "run": 1, **machine}
        specs.append(("rearrange outputs", "plan.rearrange", moved))
    return specs


def _spread_arguments(problem: ConvProblem, shares: Shares, rules: Rules) -> dict[str, Any]:
    return {
        "outputs": ceil_div(rules.output_elements, shares.tiles),
        "elements": ceil_div(problem.result_elements, shares.tiles),
        "element_bytes": TYPE_BYTES[problem.out_type],
        **rules.target.machine._asdict(),
    }


def _slices(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> list[TermSpec]:
    workers = rules.target.workers_per_tile
    vector = rules.target.data_path_bytes // TYPE_BYTES[problem.in_type]
    partial_vector = rules.target.data_path_bytes // TYPE_BYTES[method.partials_type]
    times = shares.serial_in * shares.serial_out
    if isinstance(times, int) and times == 1:
        return []
    sliced_inputs = where(shares.serial_in > 1, own_inputs(shares)[0], 0)
    sliced_weights, result = own_weights(shares)[0], own_outputs(shares)
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


def floor_cycles(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> Sizes:
    """A quick lower bound of the total: operands in, compute, and the partials' first exchange."""
    found = total_cycles(_moves(problem, method, shares, rules, at_least=True)[:3]) + _first_partials(
        shares, method, rules
    )
    return found * (shares.serial_in * shares.serial_out)


def floor_in_steps(problem: ConvProblem, method: Method, shares: Shares, alone: Shares, rules: Rules) -> Sizes:
    """A lower bound of the total in two or more serial steps, from the sizes at once.

    Each step over output channels takes all inputs again, and slices of the weights and the outputs. Each step over
    input channels makes all partials again and adds them up, and takes slices of both operands. What the steps share
    out takes no less in parts, but for a vertex that writes its first partials faster than it adds to them: in `alone`
    each step has one block of input channels, and no number of steps computes faster than both that and at once.
    """
    moves = _moves(problem, method, shares, rules, at_least=True)
    named = {spec[0]: spec for spec in moves}
    inputs, weights = _least_brought(problem, shares, rules, named["inputs"][2]["rate"])
    around = total_cycles([spec for spec in _transforms(problem, shares, rules) if spec[0] != "fill weights"])
    computed = total_cycles([named["compute"]])
    by_blocks = total_cycles([method.least(problem, alone, rules)]) * alone.serial_in
    summed = total_cycles([named["partials"], named["reduce"], *_cast(problem, method, shares, rules)])
    one = {"elements": 1, "workers": rules.target.workers_per_tile, "vector": 1}
    sliced, added = (formulas.get(f"plan.{name}").evaluate(**one) for name in ("dynamic_slice", "add_in_place"))
    over_inputs = smaller(computed, by_blocks) + 2 * (summed + added)
    over_outputs = computed + inputs + _first_partials(shares, method, rules)
    return inputs + weights + around + 2 * 2 * sliced + smaller(over_inputs, over_outputs)


def _least_brought(problem: ConvProblem, shares: Shares, rules: Rules, rate: Sizes) -> tuple[Sizes, Sizes]:
    """Cycles, unrounded, of bringing each input and each weight to its tile once, without filling up channels."""
    item_bytes = TYPE_BYTES[problem.in_type]
    unfilled = shares.unfilled_owned / larger(shares.owned, 1), shares.unfilled_weights / larger(shares.weights, 1)
    inputs = larger(shares.inputs - shares.owned / (shares.out_parts * shares.kernel_parts), 0) * unfilled[0]
    weights = (shares.weights - shares.weights / shares.position_parts) * unfilled[1]
    return inputs * item_bytes / rate, weights * item_bytes / rules.target.exchange_bytes_per_cycle


def _first_partials(shares: Shares, method: Method, rules: Rules) -> Sizes:
    """Cycles of the partials' first exchange."""
    element_bytes = TYPE_BYTES[rules.travels_as(method.partials_type)]
    return ceil_div(shares.outputs * element_bytes, rules.target.exchange_bytes_per_cycle)


def total_cycles(specs: list[TermSpec]) -> Sizes:
    """The sum of the terms, an element per candidate."""
    total: Sizes = 0
    for _, formula_id, arguments in specs:
        total = total + formulas.get(formula_id).evaluate(**arguments)
    return total
