"""SLIC: which convolutions it takes, with which groupings, and what its windows cost a tile besides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.ops.planned import lowered
from tests.engine.planner.cases import conv_node
from workbench.engine.graph import Node
from workbench.engine.planner.estimate import term_specs, total_cycles
from workbench.engine.planner.methods.slic import Slic
from workbench.engine.planner.problem import ConvProblem, problem_of
from workbench.engine.planner.variant import Variant, chosen_columns, rules_of, shares_of, tables_of, variants_of
from workbench.engine.target import Target, target

ONE = target("ipu2", tiles_per_ipu=1)


def depthwise(field: int = 8, kernel: int = 3, groups: int = 4, around: int = 1, **more: object) -> Node:
    chans = (groups, groups)
    padding = ((around, around),)
    return conv_node(2, (field,), (kernel,), chans, groups=groups, padding=padding, dtype="float16", **more)  # type: ignore[arg-type]


def variants(problem: ConvProblem, machine: Target = ONE) -> list[Variant]:
    return [variant for variant in variants_of(problem, machine) if isinstance(variant.method, Slic)]


def groupings(node: Node, partials_type: str, machine: Target = ONE) -> list[tuple[int, int, int]]:
    methods = [variant.method for variant in variants(problem_of(node, partials_type).problem, machine)]
    return [(each.group_block, each.in_block, each.chains) for each in methods if isinstance(each, Slic)]


def test_groups_side_by_side_and_chains_by_type() -> None:
    """Four units of four: all of them, and groups of 8 and 16, for half partials only, and where there are 16 units."""
    node = depthwise(groups=32)
    assert groupings(node, "half") == [(4, 1, 4), (8, 1, 4), (16, 1, 4)]
    assert groupings(node, "float") == [(4, 1, 2)]
    assert groupings(node, "half", replace(ONE, conv_units_half_partials=8)) == [(4, 1, 2)]


@pytest.mark.parametrize(("chans", "grouping"), [(1, (4, 1)), (2, (2, 2)), (3, (1, 4)), (4, (1, 4)), (5, None)])
def test_channels_of_a_group(chans: int, grouping: tuple[int, int] | None) -> None:
    node = conv_node(1, (8, 8), (3, 3), (8 * chans, 8 * chans), groups=8, dtype="float16")
    assert [each[:2] for each in groupings(node, "float")] == ([grouping] if grouping else [])


def test_what_it_does_not_take() -> None:
    plain = conv_node(1, (9, 9), (3, 3), (8, 8), groups=8, dtype="float16", strides=(3, 2))
    assert groupings(plain, "float")
    others = [
        conv_node(1, (9, 9), (3, 3), (8, 8), groups=8, dtype="float32"),
        conv_node(1, (9, 9), (3, 3), (8, 8), groups=8, dtype="float16", strides=(2, 3)),
        conv_node(1, (9, 9), (3, 3), (8, 8), groups=8, dtype="float16", rhs_dilation=(2, 1)),
        conv_node(1, (9, 9), (3, 3), (8, 8), groups=8, dtype="float16", lhs_dilation=(1, 2)),
        conv_node(1, (9, 9, 9), (3, 3, 3), (8, 8), groups=8, dtype="float16"),
        conv_node(1, (9, 9), (3, 3), (4, 4), dtype="float16"),
    ]
    assert [groupings(node, "float") for node in others] == [[]] * len(others)


def test_one_tile_by_hand() -> None:
    problem = problem_of(depthwise(kernel=4, around=0), "half").problem
    problem = replace(problem, batch=())
    variant = variants(problem)[0]
    shares = shares_of(variant, *chosen_columns(tables_of(variant), [0] * 5))
    rules = rules_of(variant, ONE, multi_stage=True, wide_load=False)
    terms = {
        name: (formula, arguments) for name, formula, arguments in term_specs(problem, variant.method, shares, rules)
    }
    # 5 outputs: five workers have one each, 17 to start and 11 + 13 for the run. One window of weights of four groups
    # is brought into order by the workers: 21 + 6*10 + 16, and 20 around it; 28 + 15 and two loops of one besides.
    assert total_cycles([("compute", *terms["compute"])]) == 6 * (17 + 11 + 13) + (21 + 60 + 16 + 20) + 28 + 15 + 1 + 1
    assert "zeros" not in terms  # a whole window, and nothing around the inputs


def test_windows_are_filled_up_with_zeros() -> None:
    """Three of four positions, and eight inputs with one zero on each side: a weight more, and three inputs a row."""
    case = lowered(depthwise(), ONE, partialsType="half")
    assert isinstance(case.plan.method, Slic)
    held = {value.name.rpartition("/")[2]: value.size_bytes for value in case.lowered.program.variables}
    assert held["zeros"] == 2 * (4 * 1 + 4 * 2 * 3)
    assert held["spare"] == 2 * 4 * 16 + 200  # the outputs of one block of groups, and 200 B
    (fill,) = case.computes("/pad")
    assert [group.vertex for group in fill.compute_set.groups] == ["popops::Fill"]
    (multiply,) = case.computes("/compute")
    (group,) = multiply.compute_set.groups
    assert group.vertex == "poplin::ConvPartial1xNSLIC"
    assert dict(group.arguments)["sub_kernels"] == 1
