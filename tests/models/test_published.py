"""Published architectures at their own sizes: what is counted is what is published, and no figure is out of reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.engine import reconcile
from tests.models.published.cases import CASES, MAMBA, Published

PRODUCTS = ("convolution", "matmul")
ONE_IPU = [name for name, case in CASES.items() if "stages" not in case.more and not case.training]


def compiled(case: Published) -> Any:
    return wb.compile(case.build, **case.arguments())


def products(profile: Any) -> Any:
    rows = profile.operators
    return rows[rows["op"].isin(PRODUCTS)]


def is_plausible(case: Published, found: Any) -> None:
    profile, machine = found.profile, found.request.target
    assert profile.unmodelled.empty, profile.unmodelled
    assert profile.fits == case.fits, profile.summary
    rows = products(profile)
    micro_batches = case.more.get("gradient_accumulation_steps", 1)
    forward = rows.loc[rows["direction"] == "forward", "flops"].sum() / 2e9 / case.batch / micro_batches
    if case.gmacs:  # those with the zeros of padding are not counted here
        assert 0.93 * case.gmacs <= forward <= 1.02 * case.gmacs, forward
    if case.training:  # a product has one gradient for each operand, but the first layer's needs none for its images
        backward = rows.loc[rows["direction"] == "backward", "flops"].sum() / 2e9 / case.batch / micro_batches
        assert 1.75 * forward <= backward <= 2.02 * forward, (backward, forward)
    variables = profile.variables
    weights = int(variables.loc[variables["kind"] == "parameter", "bytes"].sum())
    if case.parameters:  # in halves
        assert weights == 2 * case.parameters
    # No product beats the machine's peak, and the whole reaches a few per cent of it, at most three quarters.
    peak = machine.peak_flops_per_second / machine.clock_hz
    assert (rows["flops"] <= peak * rows["cycles"]).all()
    share = rows["flops"].sum() / profile.ipus / (peak * profile.total_cycles)
    assert 0.05 <= share <= 0.75, share
    # The fullest tile holds its share of what is always live at least, and no more than its memory where it fits.
    held = variables.loc[variables["always_live"], "bytes"].sum() / profile.ipus / machine.tiles_per_ipu
    assert held <= profile.max_tile_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_figures_are_those_published_or_within_reason(name: str) -> None:
    case = CASES[name]
    found = compiled(case)
    is_plausible(case, found)
    if name in ONE_IPU:
        reconcile.reconciles(found.compiled)


@pytest.mark.slow
def test_equal_encoders_take_equal_cycles() -> None:
    """Twelve of ViT-B/16 share their bodies; each is credited with its own runs, in steps and by layer alike."""
    steps = compiled(CASES["ViT-B/16, inference"]).profile.steps
    numbers = steps["layer"].str.extract(r"^encoder_(\d+)_", expand=False)
    cycles = steps["total_cycles"].groupby(numbers).sum()
    assert len(cycles) == 12
    assert cycles.max() <= 1.02 * cycles.min(), cycles


@pytest.mark.slow
def test_a_step_of_a_scan_costs_what_its_state_costs() -> None:
    """Mamba-130M: 24 blocks of 256 turns, each of 1,536 by 16 elements. A turn takes what so few elements a tile take,
    a few thousand cycles."""
    profile = wb.compile(*MAMBA).profile
    assert profile.unmodelled.empty
    steps = profile.steps
    turns = steps[steps["times"] == 24 * 256]
    a_turn = int(turns["cycles"].sum())
    elements_per_tile = np.ceil(1536 * 16 / 1472)
    assert 1_000 <= a_turn <= 500 * elements_per_tile, a_turn
