"""A machine is one record: one of 8 workers and accesses of 16 bytes runs every operator, and numbers move with it."""

from __future__ import annotations

import dataclasses

import pytest

import workbench as wb
from tests.engine.ops.lowered import Case, single
from tests.engine.ops.sampled import Sample
from tests.engine.samples import collected
from workbench.engine import vertices
from workbench.engine.cost import formulas
from workbench.engine.mapping import linear
from workbench.engine.program import OnTileExecute
from workbench.engine.target import targets
from workbench.engine.vertices.conv import hmac_cycles

SAMPLES: dict[str, Sample] = collected("ops")
MK2 = targets["ipu2"]
WIDE = dataclasses.replace(MK2, name="wide", workers_per_tile=8, data_path_bytes=16, exchange_bytes_per_cycle=8)
HALVES = {"op": "ADD", "type": "half", "n": 960}
SAMPLES = collected("ops")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(targets, "wide", WIDE)  # type: ignore[arg-type]


def check_costs(case: Case) -> None:
    """Every number follows from its recorded inputs, and those of compute sets are the machine's."""
    for step in case.trace.steps.values():
        for term in step.cost.terms:
            assert formulas.get(term.formula).evaluate(**dict(term.inputs)) == term.value
            if term.formula == "compute.tile":
                assert dict(term.inputs)["slots"] == 8


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_operator_runs_on_it(name: str) -> None:
    case = SAMPLES[name](kind="wide", tiles=8)
    assert case.trace.total_cycles > 0
    check_costs(case)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_vertex_is_told_its_workers(name: str) -> None:
    """Where the cycles of a vertex name the workers or the access, they are evaluated on this machine's."""
    for step in SAMPLES[name](kind="wide", tiles=8).lowered.program.steps:
        for group in step.compute_set.groups if isinstance(step, OnTileExecute) else ():
            codelet, arguments = vertices.find(group.vertex), dict(group.arguments)
            given = codelet.inputs(WIDE.machine, arguments)
            assert given.get("workers", 8) == 8
            assert given.get("data_path_bytes", 16) == 16
            found = formulas.get(f"vertex:{group.vertex}").evaluate(**given)
            assert found == vertices.cycles(WIDE.machine, group.vertex, **arguments)


def test_work_is_split_over_the_workers_and_a_vector_is_twice_as_wide() -> None:
    """960 halves: 160 a worker in 40 vectors of 4 elements, now 120 in 15 vectors of 8, at three cycles a vector."""
    assert vertices.cycles(MK2.machine, "popops::BinaryOp1D", **HALVES) == 6 * (26 + 3 * 40) + 11
    assert vertices.cycles(WIDE.machine, "popops::BinaryOp1D", **HALVES) == 8 * (26 + 3 * 15) + 11


def test_twice_the_width_halves_the_inner_loop() -> None:
    """With the workers as they were: 160 halves a worker in 20 vectors instead of 40."""
    wider = MK2.machine._replace(data_path_bytes=16)
    assert vertices.cycles(wider, "popops::BinaryOp1D", **HALVES) == 6 * (26 + 3 * 20) + 11


@pytest.mark.parametrize(
    ("name", "arguments", "narrow", "wide"),
    [
        ("popops::Fill", {"type": "half", "n": 960}, 26 + 240, 26 + 120),
        ("popops::Fill", {"type": "float", "n": 962}, 23 + 481, 23 + 240 + 1),
        ("popops::Fill2d", {"type": "half", "rows": [960]}, 5 + 266 - 2, 5 + 146 - 2),
        # a loop of a vector of halves, 40 of them a worker, or 20
        ("popops::ScalarMultiply1D", {"n": 960}, 6 * (51 + 9 + 5 * 39), 6 * (51 + 9 + 5 * 19)),
        # 160 floats of a worker, three positions
        (
            *("popops::DynamicSlice1D", {"type": "float", "region_size": 960, "num_sub_elements": 3}),
            *(25 + 6 * (39 + 3 * (24 + 2 * 80)), 25 + 6 * (39 + 3 * (24 + 2 * 40))),
        ),
        (
            *("popops::DynamicSlice2D", {"type": "float", "region_sizes": [960], "num_sub_elements": 3}),
            *(27 + 13 + 3 * (29 + 480), 27 + 13 + 3 * (29 + 240)),
        ),
    ],
)
def test_a_loop_over_vectors_takes_those_of_the_target(
    name: str, arguments: dict[str, object], narrow: int, wide: int
) -> None:
    given = {**arguments, **({"num_base_elements": 4} if "Dynamic" in name else {})}
    assert vertices.cycles(MK2.machine, name, **given) == narrow
    assert vertices.cycles(MK2.machine._replace(data_path_bytes=16), name, **given) == wide


def test_a_dot_product_of_channels_takes_a_vector_a_cycle() -> None:
    """16 positions a worker of 16 halves: 16 / 4 cycles each, of 16 bytes 16 / 8."""
    given = {"in_chans": 16, "out_chans": 1, "rows": 6, "row_width": 16, "kernel_zeroing": False}
    narrow, wide = (hmac_cycles(**given, workers=6, data_path_bytes=size) for size in (8, 16))
    assert narrow - wide == 6 * 16 * (16 // 4 - 16 // 8)


def test_a_copy_moves_an_access_a_cycle() -> None:
    assert vertices.cycles(WIDE.machine, "poplar::Memcpy", bytes=960) == 8 * 23 + 11 + 60


def test_a_profile_by_hand_has_these_cycles() -> None:
    """The vertex above and the 80 cycles of launching it."""
    g = wb.tiles.Graph(WIDE, tiles=2)
    a, b, out = (g.variable(name, 960, "float16").map({0: slice(0, 960)}) for name in "abc")
    add = g.compute_set("add").vertex("popops::BinaryOp1D", tile=0, op="ADD", a=a, b=b, out=out)
    assert wb.profile(add).steps["cycles"].tolist() == [8 * (26 + 3 * 15) + 11 + 80]


def test_a_fill_has_a_vertex_on_each_worker() -> None:
    """64 floats on each of two tiles: eight a worker."""
    case = single(
        "broadcast_in_dim",
        [((), "float32")],
        [((8, 16), "float32")],
        kind="wide",
        tiles=2,
        broadcast_dimensions=(),
        shape=(8, 16),
    )
    fills = [found for found in case.vertices() if found[0] == "popops::Fill"]
    assert [(arguments["n"], count) for _, arguments, _, count in fills] == [(8, 8)]


def test_tensors_are_spread_in_whole_vectors() -> None:
    """Four floats stay together: 10 floats are three grains, on three tiles if each may hold as little as one."""
    spread = linear((10,), "float32", 8, 1, vector_bytes=WIDE.data_path_bytes)
    assert spread.elements_per_tile(8).tolist() == [4, 4, 2, 0, 0, 0, 0, 0]
