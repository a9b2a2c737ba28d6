"""What every codelet of the registry owes: whole positive cycles that grow with the work, sizes, a source."""

import math
import re

import pytest

from tests.engine.samples import collected, place
from tests.engine.vertices.machine import MACHINE
from tests.engine.vertices.sampled import NAMES, SAMPLES
from workbench.base.arithmetic import worked_out
from workbench.engine import cost, vertices
from workbench.engine.target import Machine

# What counts work, in the order it is looked for; one of them grows by four, unless a sample says what grows.
GROWN = collected("vertices", "GROWN")
COUNTS = (
    *("n", "num_elems", "rows", "elements", "size", "bytes", "positions", "pairs", "indices", "cycles", "batch"),
    *("num_partials", "partial_elements", "region_size", "region_sizes", "slices", "columns", "out_size", "pencils"),
    *("b_broadcast_factor", "worklist_elements", "conv_size", "width", "channels", "an", "dim"),
    *("depth", "height", "pixels", "label", "row_count", "row_counts", "region_widths", "size_in_8_bytes_per_worker"),
)


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("machine", [MACHINE, Machine(workers=8, data_path_bytes=16)], ids=["real", "wide"])
def test_arithmetic_comes_to_the_cycles_and_the_state(name, machine):
    codelet = vertices.find(name)
    given = codelet.inputs(machine, dict(cost.inputs_of(SAMPLES[name])))
    for function in (codelet.cycles, codelet.state_bytes):
        text = worked_out(function, given)
        assert eval(text, {"__builtins__": {}, "ceil": math.ceil, "floor": math.floor}, dict(given)) == function(
            **given
        )
    assert cost.evaluated(f"vertex:{name}", given) == worked_out(codelet.cycles, given)


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_goes_by_the_workers_of_the_target(name):
    """Where cycles depend on how many workers there are, so says the text, and holds no number of them."""
    codelet = vertices.find(name)
    few, many = (
        codelet.inputs(MACHINE._replace(workers=count), dict(cost.inputs_of(SAMPLES[name]))) for count in (3, 12)
    )
    if codelet.cycles(**few) != codelet.cycles(**many):
        assert "worker" in codelet.formula
    assert not re.search(r"\bsix\b|\b6 \* \(|/ 6\)", codelet.formula)


def test_no_sample_is_left_over():
    assert set(SAMPLES) == set(NAMES)
