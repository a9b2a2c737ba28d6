"""A channel more or less moves a network's bytes and cycles little: the committed table, and a sample of it anew."""

from __future__ import annotations

from random import Random

import pytest

from tests.stability.networks import (
    AROUND,
    MEASURES,
    NETWORKS,
    SEED,
    WIDTHS,
    Network,
    drawn,
    measured,
    profiled,
    ratios,
)
from tests.stability.write import GOAL, MOST, far, stored

SAMPLE = 8  # networks


def sampled() -> list[tuple[Network, int]]:
    """Networks with a width whose neighbours are all in the table; another sample each time the seed changes."""
    random = Random(SEED)
    widths = [width for width in WIDTHS if WIDTHS[0] <= width - AROUND and width + AROUND <= WIDTHS[-1]]
    return [(network, random.choice(widths)) for network in random.sample(drawn(), SAMPLE)]


def test_the_table_is_of_the_networks_that_are_drawn() -> None:
    assert tuple(stored()) == drawn()
    assert len(stored()) == NETWORKS


def test_ratios_by_hand() -> None:
    rows = {width: dict.fromkeys(MEASURES, 10) for width in range(40, 49)}
    rows[44] = dict(zip(MEASURES, (15, 8), strict=True))
    assert list(ratios(rows)) == [(44, MEASURES[0], 1.5), (44, MEASURES[1], 0.8)]


def test_a_width_costs_what_its_neighbours_cost() -> None:
    found = stored()
    every = sum(1 for widths in found.values() for _ in ratios(widths))
    beyond = far(found.items(), GOAL)
    assert len(beyond) <= every / 10, beyond
    assert {measure for _, _, measure, _ in beyond} == {"fullest_tile_bytes"}  # cycles never jump


def test_a_cliff_is_of_weight_gradients_that_lay_their_kernel_out_as_channels() -> None:
    """What exceeds the goal's upper end is PopLibs' rule: fewest cycles within the bound, whatever bytes they take. A
    weight gradient's kernel is an image; laid out as channels it takes a copy per position that a tile has, and the
    few cycles it saves over the next plan decide (poplibs@7eac0f26 lib/poplin/ConvPlan.cpp:1704, the objective)."""
    cliffs = far(stored().items(), MOST)
    assert len(cliffs) <= 10
    for network, width, _, _ in cliffs:
        name, _, plan = stored()[network][width]["dearest"].partition(": ")
        assert "backward#1" in name, name
        assert "kernel of field 0,1 as channels" in plan, plan


@pytest.mark.slow
@pytest.mark.parametrize(("network", "width"), sampled(), ids=lambda value: str(value))
def test_a_sample_is_as_the_table_says(network: Network, width: int) -> None:
    """Where this fails the table is older than the last change of numbers: `make stability` writes it again."""
    table = stored()[network]
    near = range(width - AROUND, width + AROUND + 1)
    assert {each: measured(network, each) for each in near} == {each: table[each] for each in near}


@pytest.mark.slow
@pytest.mark.parametrize("network", [network for network, _ in sampled()[:4]], ids=str)
def test_a_larger_batch_never_needs_less(network: Network) -> None:
    """What is always live is the model's and does not fall; nor does the sum over tiles of what else lives at once."""
    needed = []
    for batch in (2, 3, 4, 8, 16):
        variables = profiled(network, 48, batch).variables
        kept = int(variables.loc[variables["always_live"], "bytes"].sum())
        activations = variables[variables["kind"] == "activation"]
        firsts = sorted(set(activations["first_step"]))
        live = [
            int(activations.loc[(activations["first_step"] <= at) & (activations["last_step"] >= at), "bytes"].sum())
            for at in firsts
        ]
        needed.append((kept, max(live)))
    assert needed == sorted(needed)
    assert [live for _, live in needed] == sorted(live for _, live in needed)
