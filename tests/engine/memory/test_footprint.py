"""Bytes that are not variables, by hand on four tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder, sequence
from workbench.base.categories import CODE_CATEGORIES, FOOTPRINT_CATEGORIES
from workbench.engine import vertices
from workbench.engine.cost import formulas
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.memory.footprint import StepSizes, footprint, kept_by
from workbench.engine.memory.host_copies import followers
from workbench.engine.program import Call, Leaf, Repeat, TileProgram, VertexGroup

STUB = vertices.find("stub")
BEGIN_CODE = 4 * 2 + 12  # a run begins with an exchange: each tile takes one piece, the number of the program
STUB_CODE, STUB_STATE = STUB.code_bytes(cycles=1), STUB.state_bytes(cycles=1)


def test_code_once_per_tile_and_state_once_per_vertex() -> None:
    b = Builder()
    program = b.program(b.compute({0: 5, 1: 7}), b.compute({1: 9}), b.sync())
    found = footprint(program).categories
    assert found["vertex_code"].tolist() == [[STUB_CODE, STUB_CODE, 0, 0]]
    assert found["vertex_instance_state"].tolist() == [[STUB_STATE + 4, 2 * (STUB_STATE + 4), 0, 0]]
    # base 600, 12 per set of worker vertices, 4 for the barrier
    assert found["control_code"].tolist() == [[616, 628, 604, 604]]
    assert found["stack"].tolist() == [[3168] * 4]


def test_instantiations_differ_by_types_and_operations_not_by_sizes() -> None:
    b = Builder()

    def add(op: str, n: int) -> VertexGroup:
        return VertexGroup("popops::BinaryOp1D", (("op", op), ("type", "float"), ("n", n)), tile_set([0]))

    program = b.program(b.groups(add("ADD", 8), add("ADD", 16), add("MULTIPLY", 8)))
    found = footprint(program)
    names = [(variant.vertex, variant.template) for variant in found.variants]
    assert names == [
        ("popops::BinaryOp1D", "op=ADD, type=float"),
        ("popops::BinaryOp1D", "op=MULTIPLY, type=float"),
    ]
    assert found.categories["vertex_code"][0, 0] == sum(variant.code_bytes for variant in found.variants)


def test_copies_inside_a_tile_are_described_apart() -> None:
    b = Builder()
    copy = VertexGroup("poplar::Memcpy", (("bytes", 64),), tile_set([2]), 3)
    found = footprint(b.program(b.groups(copy))).categories
    assert found["copy_descriptor"].tolist() == [[0, 0, 3 * vertices.find("poplar::Memcpy").state_bytes(bytes=64), 0]]
    assert found["vertex_instance_state"].sum() == 0


def test_exchange_code_counts_sends_and_control_events() -> None:
    b = Builder()
    # tile 0 sends 1,028 B = 257 words in 2 pieces: 3 events and 4 more sends; a receiver of one piece 2 events
    moved = b.exchanged([1028], [0, 1028], [2, 1])
    found = footprint(b.program(b.exchange(moved), b.exchange(moved))).categories
    own = [2 * (4 * 7 + 12), 2 * (4 * 2 + 12), 2 * 12, 2 * 12]
    assert found["internal_exchange_code"].tolist() == [[BEGIN_CODE + each for each in own]]


def test_fragmented_tensors_are_staged_and_sent_in_full_sends() -> None:
    b = Builder()
    # 4,000 B in 10 pieces: 15 events and 15 further sends directly, against 16 sends and 6 for the copies
    few, many = b.exchanged([4000], [0, 4000], [10, 10]), b.exchanged([4000], [0, 4000], [1000, 1000])
    code = footprint(b.program(b.exchange(few))).categories["internal_exchange_code"]
    assert (code - BEGIN_CODE).tolist() == [[4 * 22 + 12, 4 * (2 + 6) + 12, 12, 12]]
    # however small the pieces: the receiver has one source and its copies
    assert (footprint(b.program(b.exchange(many))).categories["internal_exchange_code"] == code).all()
    # 300 pieces from tiles that send 100 B each: 40 sources at least
    gathered = b.exchanged([100], [0, 0, 4000], [1, 0, 300])
    code = footprint(b.program(b.exchange(gathered))).categories["internal_exchange_code"]
    assert (code[0] - BEGIN_CODE).tolist() == [4 * 2 + 12, 12, 4 * (2 * 40 + 6) + 12, 12]


def test_host_copies_and_links() -> None:
    b = Builder(ipus=2)
    sent, received = b.exchanged([256], [], [1]), b.exchanged([], [0, 256], [0, 1])
    program = b.program(
        b.stream(2100, ipu=0),
        b.link(256, 0, 1, sent=sent, received=received),
    )
    found = footprint(program).categories
    # a run begins with two copies on every IPU
    assert found["host_exchange_code"].tolist() == [[(2 + 1) * 58] * 4, [2 * 58] * 4]
    assert found["host_exchange_packet_headers"].tolist() == [[3 * 8, 0, 0, 0], [0] * 4]
    assert found["global_exchange_code"].tolist() == [[4 * (2 + 1) + 12, 12, 12, 12], [12, 4 * 2 + 12, 12, 12]]


def test_host_copies_that_follow_each_other_are_one() -> None:
    b = Builder()
    arriving, leaving = [b.stream(64), b.stream(64)], [b.stream(64, "to_host"), b.stream(64, "to_host")]
    found = footprint(b.program(*arriving, b.compute(), b.stream(64), *leaving)).categories
    # two before the compute set, one behind it, two of the other direction
    assert found["host_exchange_code"].tolist() == [[(2 + 3) * 58] * 4]


def test_a_body_that_runs_often_is_stored_once() -> None:
    b = Builder()
    b.functions["f"] = sequence(b.compute({0: 5}), b.exchange(b.exchanged([64], [0, 64], [1, 1])))
    call = Call(function="f")
    once = footprint(b.program(call))
    often = footprint(b.program(call, Repeat(times=9, body=call), call))
    for name in FOOTPRINT_CATEGORIES:
        assert (once.categories[name] == often.categories[name]).all(), name


def test_without_ipu_code_there_is_no_code_and_no_stack() -> None:
    b = Builder()
    program = b.program(b.compute(), b.stream(64))
    with_code, without = footprint(program), footprint(program, compile_ipu_code=False)
    assert all(without.categories[name].sum() == 0 for name in (*CODE_CATEGORIES, "stack"))
    rest = set(FOOTPRINT_CATEGORIES) - {*CODE_CATEGORIES, "stack"}
    assert all((without.categories[name] == with_code.categories[name]).all() for name in rest)


@given(programs())
def test_every_figure_is_a_term_of_a_registered_formula(program: TileProgram) -> None:
    found = footprint(program)
    for name in FOOTPRINT_CATEGORIES:
        for ipu in range(program.ipus):
            for tile in (0, 3):
                cost = found.cost(name, ipu, tile)
                assert cost.value == found.categories[name][ipu, tile]
                for part in cost.terms:
                    formula = formulas.get(part.formula)
                    assert formula.unit == "bytes"
                    assert formula.evaluate(**dict(part.inputs)) == part.value


@given(programs(), programs())
def test_what_an_earlier_program_had_changes_nothing(program: TileProgram, other: TileProgram) -> None:
    first = footprint(program)
    for earlier in (first, footprint(other), footprint(other, earlier=first)):
        again = footprint(program, earlier=earlier)
        assert [(each.vertex, each.template) for each in again.variants] == [
            (each.vertex, each.template) for each in first.variants
        ]
        for one, each in zip(first.variants, again.variants, strict=True):
            assert (one.tiles == each.tiles).all()
        for name in FOOTPRINT_CATEGORIES:
            assert (again.categories[name] == first.categories[name]).all(), name


def test_of_an_ipu_only_what_differs_from_before_is_looked_at() -> None:
    b = Builder()
    shared: list[Leaf] = [b.compute({0: 10, 1: 20}), b.exchange(b.exchanged([8], [0, 8], [1, 1])), b.compute({2: 10})]
    add = b.groups(VertexGroup("popops::BinaryOp1D", (("op", "ADD"), ("type", "float"), ("n", 8)), tile_set([0, 2])))
    copy = b.groups(VertexGroup("poplar::Memcpy", (("bytes", 64),), tile_set([2])))
    before, anew = footprint(b.program(*shared, add)), footprint(b.program(*shared, copy))
    of_groups, sized = StepSizes.of_groups, set[VertexGroup]()

    def noted(sizes: StepSizes, groups: tuple[VertexGroup, ...]) -> object:
        sized.update(groups)
        return of_groups(sizes, groups)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StepSizes, "of_groups", noted)
        again = footprint(b.program(*shared, copy), earlier=before)
    assert sized == {*add.compute_set.groups, *copy.compute_set.groups}
    assert [each.vertex for each in again.variants] == ["stub", "poplar::Memcpy"]
    for name in FOOTPRINT_CATEGORIES:
        assert (again.categories[name] == anew.categories[name]).all(), name


def test_ipus_with_the_same_steps_take_the_same() -> None:
    b = Builder(ipus=3)
    steps: list[Leaf] = [b.compute({0: 10, 1: 20}), b.exchange(b.exchanged([8], [0, 8], [1, 1])), b.compute({1: 5})]
    moved = [replace(step, id=step.id + 10, ipu=1) for step in steps]
    fewer = [replace(step, id=step.id + 20, ipu=2) for step in steps[:2]]
    found = footprint(b.program(*steps, *moved, *fewer))
    alone = footprint(Builder().program(*steps[:2]))
    for name in FOOTPRINT_CATEGORIES:
        assert (found.categories[name][0] == found.categories[name][1]).all(), name
        assert (found.categories[name][2] == alone.categories[name][0]).all(), name


@given(programs())
def test_what_steps_keep_is_what_a_program_has_beyond_an_empty_one(program: TileProgram) -> None:
    told = tuple(name for name in FOOTPRINT_CATEGORIES if name not in ("vertex_code", "stack"))
    empty = Builder(program.target, program.ipus)
    whole, none = (footprint(each).categories for each in (program, empty.program()))
    for ipu in range(program.ipus):
        kept_bytes = kept_by([step for step in program.steps if step.ipu == ipu], StepSizes(program.target), ipu, told)
        merged = sum(step.ipu == ipu and step.id in followers(program) for step in program.steps)
        merged_bytes = merged * program.target.code.host_exchange_bytes_per_copy
        beyond_bytes = sum(whole[name][ipu] - none[name][ipu] for name in told)
        assert kept_bytes.tolist() == (beyond_bytes + merged_bytes).tolist()
