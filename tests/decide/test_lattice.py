"""The lattice that first fixes are held against: what is in it, and a small case of it compiled."""

from __future__ import annotations

import pytest

from tests.decide.cases import MODELS, WAYS, Case, drawn
from tests.decide.lattice import TRIPLES, apart, points, values
from tests.decide.write import near, row


def test_every_model_is_drawn_in_every_way_half_of_them_later() -> None:
    cases = drawn()
    assert len({(case.model, case.way) for case in cases}) == len(cases) == len(MODELS) * len(WAYS) == 30
    assert sum(case.later for case in cases) == len(cases) // 2
    assert drawn() == cases


def test_the_lattice_is_every_single_every_pair_and_seeded_triples() -> None:
    case = Case(model="cnn", way="activations", width=8, batch=8, tiles=4, share=0.8, keep_numbers="any", later=False)
    every = values(case)
    # 3 shares, 2 precisions, half sums, 2 orders, shared code or not, 3 batches, recomputation, 4 streams.
    assert len(every) == 3 + 2 + 1 + 2 + 1 + 3 + 1 + 4
    pairs = len(every) * (len(every) - 1) // 2 - 3 - 1 - 1 - 3  # of one axis: shares, precisions, orders, batches
    assert len(points(case, 0)) == len(every) + pairs + TRIPLES
    assert len(set(points(case, 0))) == len(points(case, 0))
    assert all(apart(point) for point in points(case, 0))
    assert points(case, 0) != points(case, 1)


@pytest.mark.slow
def test_a_first_fix_costs_little_more_than_the_cheapest_of_the_lattice() -> None:
    ((place, case),) = ((place, case) for place, case in enumerate(drawn()) if case.name == "depthwise, inference")
    came = row(case, place)
    assert came["max_tile_bytes"] > came["bytes_per_tile"]
    assert came["lattice"]["fitting"]
    assert came["first"]["fits"]
    assert near(came)
