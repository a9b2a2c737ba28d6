"""popops and poprand vertices: the published rows, the fused expression, and figures worked out by hand."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.vertices.machine import MACHINE, flops_of
from workbench.engine import vertices
from workbench.engine.vertices import popops
from workbench.errors import InputError

DATA = Path(__file__).parents[2] / "data"
ROWS = [row for row in json.loads((DATA / "vertex_cycles.json").read_text()) if not row["name"].startswith("poplin::")]
CASES = json.loads((DATA / "vertex_cases.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}-{row['cycles']}")
def test_row_is_exact(row):
    assert vertices.cycles(MACHINE, row["name"], **row["args"]) == row["cycles"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_is_exact(case):
    assert vertices.cycles(MACHINE, case["name"], **case["args"]) == case["cycles"]


def test_all_rows_are_there():
    assert len(ROWS) == 131
    assert len(CASES) == 34


# PopLibs counts the strided and the general reduction's FLOPs by fields that are not the elements reduced.
FLOPS = [
    row for row in ROWS if row.get("flops") and row["args"].get("specialisation") not in ("STRIDED_REDUCE", "DEFAULT")
]


@pytest.mark.parametrize("row", FLOPS, ids=lambda row: row["name"])
def test_row_flops_are_exact(row):
    assert flops_of(row["name"], row["args"]) == row["flops"]


def test_reduction_flops_by_hand():
    """Four rows of 64 elements to 64 outputs are three additions each; two times 64 to 8 are 56 each."""
    flops = vertices.find("popops::Reduce").flops
    strided = {"specialisation": "STRIDED_REDUCE", "type": "float", "op": "ADD", "stride": 64}
    assert flops(**strided, num_partials=4, num_outputs=64) == 192
    general = {"specialisation": "DEFAULT", "type": "half", "op": "MAX"}
    assert flops(**general, reductions=2, out_elements=8, partial_elements=64) == 112


@pytest.mark.parametrize(
    ("name", "arguments", "cycles"),
    [
        # 100 // 6 -> 17 ints a worker, 7 cycles each, 26 around: 6 * 145 + 11
        ("popops::BinaryOp1D", {"op": "BITWISE_AND", "type": "int", "n": 100}, 881),
        # 2D in place: 20 + ceil(10 / 2) * 3 + ceil(20 / 2) * 3
        ("popops::BinaryOp2DInPlace", {"op": "ADD", "type": "float", "rows": [10, 20]}, 65),
        # no vector: 17 elements, 1 + 4 each: 6 * (17 + 85) + 9 + 11
        ("popops::UnaryOp1D", {"op": "ABSOLUTE", "type": "half", "n": 100}, 632),
        # outer by row: ceil(12 / 6) = 2 rows of (25 + 2 * (64 + 1) // 2 = 65): 6 * (15 + 180) + 11
        (
            "popops::BroadcastVectorOuterByRow1D",
            {"op": "ADD", "type": "float", "rows": 12, "columns": 64, "allow_misaligned": True},
            1181,
        ),
        # one row for all workers: searched for (20 + 9) and copied whole, 32 vectors: 6 * (30 + 29 + 19 + 64)
        (
            "popops::MultiSlice",
            {"type": "float", "region_size": 64, "offsets": 1, "split_single_region": True},
            852,
        ),
        # 3 + 29 + 8 indices * (11 + 31 words * 3): 6 * (32 + 832)
        ("popops::MultiUpdateOp", {"type": "float", "op": "MAX", "region_size": 32, "offsets": 8}, 5184),
        # 32 + 6 - 1 and 8 a row of 64 bits: 6 * (37 + 80)
        (
            "popops::MultiUpdateAdd",
            {"type": "float", "scale_type": "float", "region_size": 2, "offsets": 10},
            702,
        ),
        # overhead 11, then fifty vectors and a half: 2 * 101 // 2
        ("popops::Clamp", {"type": "float", "n": 100}, 112),
        ("popops::Iota", {"type": "int", "n": 10}, 44),
        ("popops::EncodeOneHot", {"index_type": "unsigned int", "output_type": "half", "indices": 2}, 159),
        # floor(log2 16) = 4: 8 * (19 * 64 + 96 + 2)
        ("popops::HeapSortVertex", {"type": "float", "n": 16}, 10512),
        # overhead 136, then 4 a pair: 4 * 1001 // 2
        ("poprand::Normal", {"type": "float", "n": 1000}, 2138),
        ("poprand::Dropout", {"type": "half", "n": 1000}, 651),
        ("poprand::SetSeed", {}, 176),
        # 6 * 23 + 11 + 128
        ("poplar::Memcpy", {"bytes": 1024}, 277),
        ("poplar::StridedMemcpy", {"bytes": 1024, "run_bytes": 4}, 469),
        # 17 pieces a worker: 6 * (36 + 17 * 45), the 801 cycles of a worker that Poplar's profile shows
        ("poplar::DstStridedMemcpy", {"bytes": 408, "pieces": 102}, 4806),
        # one piece of 20 bytes a worker: 6 * (36 + 44 + 3)
        ("poplar::DstStridedMemcpy", {"bytes": 120, "pieces": 6}, 498),
        ("stub", {"cycles": 600}, 600),
        # strided float: per pair of outputs 3 + 2 + 2 + 2 * (3 + 3); 16 + 4 * 19
        (
            "popops::Reduce",
            {
                "specialisation": "STRIDED_REDUCE_OUTER",
                "type": "float",
                "op": "MAX",
                "num_partials": 4,
                "num_outputs": 8,
                "stride": 8,
                "num_outer_strides": 2,
            },
            92,
        ),
        # compiled: 31 + 8 + 22 + 64 elements * (24 + 1)
        (
            "popops::Reduce",
            {
                "specialisation": "DEFAULT",
                "type": "bool",
                "op": "LOGICAL_AND",
                "reductions": 1,
                "out_elements": 1,
                "partial_elements": 64,
            },
            1661,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_by_hand(name, arguments, cycles):
    assert vertices.cycles(MACHINE, name, **arguments) == cycles


@pytest.mark.parametrize(
    "op",
    [
        *["ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "POWER", "REMAINDER", "ATAN2"],
        *["EQUAL", "NOT_EQUAL", "LESS_THAN", "LESS_THAN_EQUAL", "GREATER_THAN", "GREATER_THAN_EQUAL"],
    ],
)
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_binary_operations_of_floats(op, dtype):
    assert vertices.cycles(MACHINE, "popops::BinaryOp1D", op=op, type=dtype, n=64) > 0
    assert vertices.cycles(MACHINE, "popops::BroadcastScalar1D", op=op, type=dtype, n=64) > 0


@pytest.mark.parametrize(
    "op",
    [
        *["EXPONENT", "LOGARITHM", "LOGARITHM_ONE_PLUS", "EXPONENT_MINUS_ONE", "TANH", "SIGMOID", "RELU", "SQRT"],
        *["RSQRT", "INVERSE", "SQUARE", "NEGATE", "ABSOLUTE", "SIGNUM", "SIN", "COS", "TAN", "ERF", "CBRT"],
        *["FLOOR", "CEIL", "ROUND", "IS_FINITE", "ASIN", "TRUNC", "GELU_ERF", "EXPONENT2", "NEARBY_INT"],
    ],
)
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_unary_operations_of_floats(op, dtype):
    assert vertices.cycles(MACHINE, "popops::UnaryOp1D", op=op, type=dtype, n=64) > 0


@pytest.mark.parametrize("op", ["BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "SHIFT_LEFT", "SHIFT_RIGHT"])
def test_bit_operations(op):
    assert vertices.cycles(MACHINE, "popops::BinaryOp1D", op=op, type="unsigned int", n=64) > 0


def test_an_unknown_operation_lists_the_known_ones():
    with pytest.raises(InputError, match=r"unknown binary operation 'PLUS'.*ADD, ATAN2"):
        vertices.cycles(MACHINE, "popops::BinaryOp1D", op="PLUS", type="float", n=1)


def test_a_type_without_codelet_lists_those_with_one():
    with pytest.raises(InputError, match=r"LOGICAL_AND has no codelet for 'float'.*one of: bool"):
        vertices.cycles(MACHINE, "popops::BinaryOp1D", op="LOGICAL_AND", type="float", n=1)


def test_half_rows_that_end_inside_a_word_need_sub_word_writes():
    arguments = {"type": "half", "op": "MAX", "region_size": 5, "offsets": 1}
    with pytest.raises(InputError, match="sub_word_writes_required=True"):
        vertices.cycles(MACHINE, "popops::MultiUpdateOp", **arguments)
    # 3 + 30 + 12 + 5 * 20
    assert vertices.cycles(MACHINE, "popops::MultiUpdateOp", sub_word_writes_required=True, **arguments) == 6 * 145


UNARY = ["EXPONENT", "TANH", "SIGMOID", "RELU", "NEGATE", "SQUARE", "SQRT", "ABSOLUTE", "FLOOR", "LOGARITHM"]
BINARY = ["ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "GREATER_THAN"]


def _fused(operations, loads, n):
    dtype = operations[0][1]
    return vertices.cycles(
        MACHINE, "popops::MapExpression", loads=[dtype] * loads, stores=[dtype], operations=operations, n=n
    )


def _separate(operations, n):
    names = {True: "popops::BinaryOp1D", False: "popops::UnaryOp1D"}
    return sum(vertices.cycles(MACHINE, names[op in BINARY], op=op, type=dtype, n=n) for op, dtype in operations)


@given(
    st.lists(st.sampled_from(UNARY + BINARY), min_size=2, max_size=8),
    st.sampled_from(["float", "half"]),
    st.integers(1, 5000),
)
def test_a_fused_chain_never_costs_more_than_its_parts(ops, dtype, n):
    operations = [(op, dtype) for op in ops]
    loads = 1 + sum(op in BINARY for op in ops)
    assert _fused(operations, loads, n) <= _separate(operations, n)


@given(st.lists(st.sampled_from(UNARY + BINARY), min_size=1, max_size=6), st.integers(1, 5000))
def test_a_fused_chain_is_monotone_in_elements(ops, n):
    operations = [(op, "half") for op in ops]
    assert _fused(operations, 2, n) <= _fused(operations, 2, n + 1)


def test_a_fused_multiply_add_by_hand():
    """34 floats a worker are 17 vectors: 3 loads and a store each, and one cycle each of both operations."""
    operations = [("MULTIPLY", "float"), ("ADD", "float")]
    assert _fused(operations, 3, 200) == 6 * (29 + 17 * (3 + 1 + 1 + 1)) + 11
    assert _separate(operations, 200) == 2 * (6 * (29 + 17 * 3) + 11)


def test_a_long_chain_gains_from_fusion():
    operations = [("ADD", "half"), ("TANH", "half"), ("MULTIPLY", "half"), ("SUBTRACT", "half")]
    assert _fused(operations, 4, 10_000) < 0.8 * _separate(operations, 10_000)


def test_an_expression_refuses_what_is_no_operation():
    with pytest.raises(InputError, match="unknown operation 'CONVOLVE'"):
        _fused([("CONVOLVE", "float")], 1, 10)


@pytest.mark.parametrize("op", [*popops.operations("unary"), *popops.operations("binary"), "SELECT", "CAST"])
@pytest.mark.parametrize("dtype", popops.TYPE_BYTES)
def test_an_expression_prices_every_operation_of_every_type(op, dtype):
    assert _fused([(op, dtype)], 1, 64) > 6 * 17


def test_a_type_without_codelet_is_priced_as_the_int():
    assert _fused([("BITWISE_XOR", "bool")], 2, 60) == _fused([("BITWISE_XOR", "int")], 2, 60)


def test_an_expression_that_only_copies_loads_and_stores():
    """Ten floats a worker: five vectors, a load and a store each."""
    copied = vertices.cycles(MACHINE, "popops::MapExpression", loads=["float"], stores=["float"], operations=[], n=60)
    assert copied == 6 * (17 + 10) + 20


def test_supports_names_what_has_a_codelet():
    assert popops.supports("binary", "ADD", "float")
    assert not popops.supports("unary", "NEGATE", "unsigned int")
