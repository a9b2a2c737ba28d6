"""One serial step of a plan: no tile has more of it than the plan counted."""

from __future__ import annotations

import pytest

from tests.engine.planner.cases import dot_node
from workbench.engine.planner.plan import cutting_of, evenest, step_of
from workbench.engine.planner.problem import problem_of
from workbench.engine.planner.search import Settings, plan
from workbench.engine.target import target


@pytest.mark.parametrize(
    ("blocks", "steps", "cuts"),
    [
        ((4, 3), 2, (2, 1)),  # 2 x 3 blocks a step; the other way 4 x 2
        ((3, 12), 8, (1, 8)),  # 3 x 2; by 4 and 2 as many on two axes
        ((2, 2), 4, (2, 2)),  # one block; by 4 on one axis two
        ((8, 4), 2, (2, 1)),  # as many either way: the larger axis
        ((5,), 4, (4,)),
    ],
)
def test_steps_cut_where_the_largest_is_smallest(blocks: tuple[int, ...], steps: int, cuts: tuple[int, ...]) -> None:
    assert evenest(blocks, steps) == cuts


def test_a_step_of_a_plan_has_its_part_of_the_outputs() -> None:
    """The input gradient of BERT's second dense layer: 3072 x 768 by 768 x (8 x 512), in two steps of the outputs.

    A tile has 4 x 48 outputs, 48 being three blocks of 16: a step has 2 x 48 of them and not 4 x 32. With 280 rows
    and 128 channels it holds 280 x 128 inputs, 96 x 128 weights and 280 x 96 partials, two bytes each.
    """
    node = dot_node((8, 512, 768), (3072, 768), ((2,), (1,)), dtype="float16")
    found = plan(problem_of(node, "half").problem, target("bow"), Settings(proportion=0.25))
    assert (found.swapped, found.serial_in, found.serial_out) == (True, 1, 2)
    cuts = cutting_of(step_of(found)).cuts
    assert {axis: int(cut.lengths.max()) for axis, cut in cuts.items()} == {"c0": 128, "b0": 280, "o0": 2, "o1": 48}
    assert found.temporary_bytes == 2 * (280 * 128 + 96 * 128 + 280 * 96)
