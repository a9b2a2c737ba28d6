"""What every codelet of the registry owes: whole positive cycles that grow with the work, sizes, a source."""

import json
import re
from pathlib import Path

import pytest

from tests.engine.samples import collected, place
from tests.engine.vertices.machine import MACHINE
from workbench.engine import cost, vertices

ROWS = json.loads((Path(__file__).parents[2] / "data" / "vertex_cycles.json").read_text())
SAMPLES = collected("vertices")  # arguments by name
for _row in sorted(ROWS, key=lambda row: -row["cycles"]):
    SAMPLES.setdefault(_row["name"], _row["args"])

# What counts work, in the order it is looked for; one of them grows by four, unless a sample says what grows.
GROWN = collected("vertices", "GROWN")
COUNTS = (
    *("n", "num_elems", "rows", "elements", "size", "bytes", "positions", "pairs", "indices", "cycles", "batch"),
    *("num_partials", "partial_elements", "region_size", "region_sizes", "slices", "columns", "out_size", "pencils"),
    *("b_broadcast_factor", "worklist_elements", "conv_size", "width", "channels", "an", "dim"),
    *("depth", "height", "pixels", "label", "row_count", "row_counts", "region_widths", "size_in_8_bytes_per_worker"),
)
NAMES = sorted(vertices.load())


def _more(value):
    if isinstance(value, list):
        return [_more(item) for item in value]
    return 4 * value


def _grown(vertex):
    if vertex in GROWN:
        return GROWN[vertex]
    arguments = SAMPLES[vertex]
    name = next((name for name in COUNTS if name in arguments), None)
    return None if name is None else arguments | {name: _more(arguments[name])}


def _sample(name):
    assert name in SAMPLES, f"give {name!r} arguments in {place('vertices', vertices.find(name).cycles)}"
    return vertices.find(name).inputs(MACHINE, dict(cost.inputs_of(SAMPLES[name])))


@pytest.mark.parametrize("name", NAMES)
def test_cycles_are_whole_and_positive(name):
    cycles = vertices.find(name).cycles(**_sample(name))
    assert type(cycles) is int
    assert cycles > 0


@pytest.mark.parametrize("name", NAMES)
def test_cycles_grow_with_the_work(name):
    grown = _grown(name)
    if grown is None:
        assert all(argument.endswith("type") for argument in SAMPLES[name]), "no argument counts its work"
        return
    assert vertices.cycles(MACHINE, name, **grown) > vertices.cycles(MACHINE, name, **SAMPLES[name])


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_flops_are_whole(name):
    codelet = vertices.find(name)
    sizes = (codelet.state_bytes, codelet.code_bytes, codelet.flops)
    state_bytes, code_bytes, flops = (size(**_sample(name)) for size in sizes)
    assert (type(state_bytes), type(code_bytes), type(flops)) == (int, int, int)
    assert (state_bytes, code_bytes) == (0, 0) or (state_bytes >= 4 and 0 < code_bytes < 16_384)
    assert flops >= 0


@pytest.mark.parametrize("name", NAMES)
def test_source_names_a_file_and_formula_reads(name):
    codelet = vertices.find(name)
    assert re.search(r"\.(cpp|hpp|S|py)\b|poplar::Target", codelet.source)
    assert re.search(r"\d|cycles", codelet.formula)
    assert codelet.kind in ("multi", "supervisor", "worker")
    assert f"vertex:{name}" in cost.formulas


@pytest.mark.parametrize("name", NAMES)
def test_every_cost_is_explained_by_its_own_term(name):
    term = cost.term("work", f"vertex:{name}", **_sample(name))
    assert term.value == vertices.cycles(MACHINE, name, **SAMPLES[name])


def test_no_sample_is_left_over():
    assert set(SAMPLES) == set(NAMES)
