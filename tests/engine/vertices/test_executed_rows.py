"""Vertices against the published estimators themselves: values they gave when they were executed."""

import json
from pathlib import Path

import pytest

from tests.engine.vertices.machine import MACHINE
from workbench.engine import vertices
from workbench.errors import InputError

DATA = Path(__file__).parents[2] / "data"
ROWS = json.loads((DATA / "vertex_executed.json").read_text())["rows"]
LIBRARIES = ("popops::", "popnn::", "poprand::", "poplin::")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}-{row['cycles']}")
def test_row_is_exact(row):
    assert vertices.cycles(MACHINE, row["name"], **row["args"]) == row["cycles"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}-{row['cycles']}")
def test_all_quantities_take_the_arguments_of_the_cycles(row):
    vertex = vertices.find(row["name"])
    quantities = (vertex.state_bytes, vertex.code_bytes, vertex.flops)
    assert all(quantity(**vertex.inputs(MACHINE, row["args"])) >= 0 for quantity in quantities)


def test_every_vertex_of_the_libraries_has_an_executed_value():
    """All but the ones the estimators do not hold: a fused expression, and the name a vertex had before."""
    executed = {row["name"] for name in ("vertex_executed", "poplin_executed") for row in _rows(name)}
    executed |= {row["name"] for row in json.loads((DATA / "vertex_cycles.json").read_text())}
    named = {name for name in vertices.load() if name.startswith(LIBRARIES)}
    assert named - executed == {"popops::MapExpression", "popops::MultiUpdateAdd"}


def _rows(name):
    return json.loads((DATA / f"{name}.json").read_text())["rows"]


def test_a_row_in_place_is_selected_at_the_cost_of_its_number():
    """PopLibs passes the number of rows where elements are meant: one row of any length 5 + 6 + 5, three 5 + 3 * 21."""
    assert vertices.cycles(MACHINE, "popops::SelectInPlace", type="half", n=1) == 16
    assert vertices.cycles(MACHINE, "popops::SelectInPlace", type="half", n=1000) == 16
    assert vertices.cycles(MACHINE, "popops::SelectInPlace", type="half", rows=[1, 50, 9]) == 68


def test_five_elements_of_a_mixed_addition_wrap():
    """Half data with float scales: of five elements the loop of pairs after the first six counts minus one."""
    arguments = {"type": "half", "scale_type": "float", "memory_constraints": False}
    assert vertices.cycles(MACHINE, "popops::aXPlusbY2D", rows=[5], **arguments) == 22 + 5 * (4 + 15 - 5 + 9 + 1)
    assert vertices.cycles(MACHINE, "popops::aXPlusbY2D", rows=[6], **arguments) == 22 + 5 * (4 + 15 + 0 + 1)


def test_an_outer_strided_log_add_is_compiled():
    """Two vectors of two floats: 3 + (2 + 2) + 2 outer strides of 3 + 20 * 3, where the assembly takes 23 a vector."""
    arguments = {"type": "float", "op": "LOG_ADD", "num_partials": 4, "num_outputs": 4, "stride": 4}
    compiled = vertices.cycles(
        MACHINE, "popops::Reduce", specialisation="STRIDED_REDUCE_OUTER", num_outer_strides=2, **arguments
    )
    assert compiled == 16 + 2 * (3 + 4 + 2 * (3 + 20 * 3))
    assembly = vertices.cycles(
        MACHINE, "popops::Reduce", specialisation="STRIDED_REDUCE", num_outer_strides=2, **arguments
    )
    assert assembly == 16 + 2 * (3 + 4 + 2 * (3 + 23 * 3))


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        (
            "popops::aXPlusbYSupervisor",
            {"type": "half", "scale_type": "half", "memory_constraints": True, "n": 8, "layout": "Pointer"},
            "unknown layout 'Pointer'.*OnePtr",
        ),
        ("popops::NormaliseImage", {"in_type": "int", "out_type": "half", "pixels": 6}, "no codelet reads 'int'.*half"),
        ("popops::SplineBasis", {"type": "half", "degree": 4, "rows": [8]}, "splines of degree 4.*1, 2 or 3"),
        (
            "popops::Reduce",
            {
                "specialisation": "DEFAULT",
                "type": "half",
                "op": "ADD",
                "reductions": 2,
                "out_elements": [4, 8],
                "regions": 2,
                "partial_elements": [8, 8, 16],
            },
            "2 outputs, 2 counts of regions and 3 regions of 2 reductions.*2 outputs, 2 counts and 4 regions",
        ),
        ("poplin::experimental::LUDCoreVertex", {"align": 2, "depth": 24}, "alignment of 2 bytes.*4 or 8"),
        (
            "popops::BroadcastScalar1DRelationalOpDualOutput",
            {"op": "EQUAL", "type": "unsigned int", "out_type": "int", "n": 6},
            "no codelet writes 'int'.*float, half",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "::" in value else None,
)
def test_what_has_no_codelet_is_named(name, arguments, text):
    with pytest.raises(InputError, match=text):
        vertices.cycles(MACHINE, name, **arguments)
