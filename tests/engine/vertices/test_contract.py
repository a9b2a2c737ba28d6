"""What every codelet of the registry owes: whole positive cycles that grow with the work, sizes, a source."""

import json
import re
from pathlib import Path

import pytest

from tests.engine.vertices.machine import MACHINE
from workbench.engine import cost, vertices

ROWS = json.loads((Path(__file__).parents[2] / "data" / "vertex_cycles.json").read_text())
HALVES = {"type": "half"}
INNER = {"op": "DIVIDE", "type": "half"}
OUTER = {"op": "ADD", "type": "half", "rows": 24, "columns": 32, "allow_misaligned": False}
SCALED = {"a_type": "half", "b_type": "half", "scale_type": "half", "memory_constraints": False}
AXPBY = {"type": "half", "scale_type": "float", "memory_constraints": True, "n": 96}
CELL = {"op": "TANH", "type": "half"}
UPDATE = {"type": "half", "scale_type": "float", "region_size": 32, "offsets": 8}
POOL = {"type": "half", "positions": 48, "row_width": 8, "kernel_elements": 4, "chans_per_group": 8}
SLICE_2D = {"type": "half", "region_sizes": [32, 64], "num_sub_elements": 2, "num_base_elements": 8}
TRANSPOSE = {"type": "half", "rows": 16, "cols": 16, "matrices": 12}
TWO_TYPES = {"op": "VARIANCE_TO_INV_STD_DEV", "type": "float", "out_type": "half"}
COUNTED = {"type": "half", "is_absolute": True, "histogram_count": 25}
COLUMNS = {"type": "half", "params": 2, "region_widths": [2, 3], "region_heights": [4, 5]}
SWAP = {"key_type": "float", "pairs": 96, "distance": 16, "distance_to_change_order": 64}

# name: arguments of a codelet that no published row exercises
SAMPLES = {
    "generic": {"elements": 96},
    "stub": {"cycles": 96},
    "poplar::Memcpy": {"bytes": 96},
    "poplar::Memset": {"bytes": 96},
    "poplar::StridedMemcpy": {"bytes": 96, "run_bytes": 6},
    "poplar::DstStridedMemcpy": {"bytes": 96, "pieces": 24},
    "poplar_rt::SplitTranspose1D": TRANSPOSE | {"matrices": 2},
    "poplar_rt::Transpose1D": TRANSPOSE,
    "poplar_rt::Transpose1DSingleWorker": TRANSPOSE,
    "poplar_rt::Transpose2D": TRANSPOSE,
    "poplin::ConvPartial1xNSLIC": {"positions": 96, "row_width": 16, "conv_groups": 2, "sub_kernels": 3},
    "poplin::ConvPartialHorizontalMac1x1": {"rows": 24, "row_width": 16, "in_chans": 8, "out_chans": 8},
    "poplin::ConvPartialVerticalMac": {"rows": 24, "kernel_height": 3, "kernel_width": 3, "out_elements": 96},
    "poplin::InverseStdDeviation": {"rows": [96, 48]},
    "poplin::experimental::Householder": {"elements": 96, "offset": 3},
    "poplin::experimental::LUDBlockSplitVertex": {"height": 24, "width": 16},
    "poplin::experimental::LUDBlockVertex": {"align": 8, "depth": 24, "height": 48, "width": 16},
    "poplin::experimental::LUDColVertex": {"align": 4, "depth": 24, "height": 48},
    "poplin::experimental::LUDCoreSplitVertex": {"height": 24, "width": 16},
    "poplin::experimental::LUDCoreVertex": {"align": 8, "depth": 24},
    "poplin::experimental::LUDRowVertex": {"align": 8, "depth": 24, "width": 16},
    "poplin::experimental::PartialSquareElements": {"elements": 96, "offset": 3},
    "poplin::experimental::RowCopy": {"rows": 96},
    "poplin::experimental::Update": {"elements": 96, "rows": 24},
    "poplin::WgdConvComplete": HALVES | {"elements": 96},
    "poplin::WgdPartials": HALVES | {"pencils": 96, "common": 16, "depth": 16, "out_depth": 16},
    "poplin::WgdReduce": HALVES | {"elements": 96, "partials": 4},
    "popnn::CTCAlpha": {"label": 96},
    "popnn::CTCBeta": {"label": 96},
    "popnn::CTCGradGivenAlpha": {"label": 96},
    "popnn::CTCGradGivenBeta": {"label": 96},
    "popnn::CalcAccuracy": {"batch": 96},
    "popnn::LossCrossEntropyTransform": HALVES | {"size": 96},
    "popnn::LossSumSquaredTransform": HALVES | {"size": 96},
    "popnn::MaxPooling": POOL,
    "popnn::MaxPoolingGrad": POOL,
    "popnn::MaxPoolingGradientScale": POOL,
    "popnn::NonLinearity1D": CELL | {"n": 96},
    "popnn::NonLinearity1DInPlace": CELL | {"n": 96},
    "popnn::NonLinearity2D": CELL | {"rows": [96, 48]},
    "popnn::NonLinearity2DInPlace": CELL | {"rows": [96, 48]},
    "popnn::NonLinearityGrad1D": CELL | {"n": 96},
    "popnn::NonLinearityGrad2D": CELL | {"rows": [96, 48]},
    "popnn::ROIAlignBackward": HALVES,
    "popnn::ROIAlignForward": HALVES,
    "popnn::ReduceMaxClassGather": HALVES | {"size": 96},
    "popnn::ReduceMaxClassSparse": HALVES | {"size": 96},
    "popnn::ReduceMaxNClassGather": {"size": 96, "k": 5},
    "popnn::ReduceMaxNClassSparse": {"size": 96, "k": 5},
    "popnn::ReduceMinClassGather": HALVES | {"size": 96},
    "popnn::ReduceMinClassSparse": HALVES | {"size": 96},
    "popnn::SelectiveScaling": {},
    "popnn::SumPooling": POOL,
    "popops::BinaryOp2DInPlace": {"op": "MAXIMUM", "type": "half", "rows": [96, 48]},
    "popops::BroadcastClamp": HALVES | {"n": 96},
    "popops::BroadcastClampInPlace": HALVES | {"n": 96},
    "popops::BroadcastScalar1DRelationalOpDualOutput": {
        "op": "EQUAL",
        "type": "unsigned int",
        "out_type": "half",
        "n": 96,
    },
    "popops::BroadcastScalar2D": {"op": "ADD", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2DDataInPlace": {"op": "ADD", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2DInPlace": {"op": "ADD", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2Types1D": TWO_TYPES | {"n": 96},
    "popops::BroadcastScalar2Types2DData": TWO_TYPES | {"rows": [96, 48]},
    "popops::BroadcastSelect": {"type": "bool", "rows": [96, 48]},
    "popops::BroadcastSelectorSelect": HALVES | {"rows": [96, 48]},
    "popops::BroadcastSelectorSelectInPlace": HALVES | {"rows": [96, 48]},
    "popops::BroadcastVectorInner1DInPlace": INNER | {"b_slice_len": 16, "b_broadcast_factor": 48, "b_slices_m1": 1},
    "popops::BroadcastVectorInner2D": INNER | {"slices": [[16, 48], [7, 5]]},
    "popops::BroadcastVectorInner2DInPlace": INNER | {"slices": [[16, 48], [7, 5]]},
    "popops::BroadcastVectorOuterByColumn1D": OUTER,
    "popops::BroadcastVectorOuterByColumn1DInPlace": OUTER,
    "popops::BroadcastVectorOuterByRow1D": OUTER,
    "popops::BroadcastVectorOuterByRow1DInPlace": OUTER,
    "popops::Cast1DSingleWorker": {"from_type": "half", "to_type": "float", "num_elems": 96},
    "popops::Cast2D": {"from_type": "half", "to_type": "float", "rows": [96, 48]},
    "popops::CheckAccuracyWhenCast": {"input_type": "float", "output_type": "half"},
    "popops::CircOffset": {},
    "popops::Clamp": HALVES | {"rows": [96, 48]},
    "popops::ClampInPlace": HALVES | {"n": 96},
    "popops::CompareAndSwapAtDistance": SWAP,
    "popops::CompareAndSwapAtDistanceKeyVal": SWAP | {"value_type": "int", "values_are_secondary_key": True},
    "popops::DynamicSlice2D": SLICE_2D,
    "popops::DynamicUpdateSlice1D": HALVES | {"region_size": 96, "num_sub_elements": 2, "num_base_elements": 8},
    "popops::DynamicUpdateSlice2D": SLICE_2D,
    "popops::EncodeOneHot": {"index_type": "int", "output_type": "half", "indices": 12},
    "popops::EncodeOneHotCustomValues": {"index_type": "int", "output_type": "half", "indices": 12},
    "popops::Fill2d": HALVES | {"rows": [96, 48]},
    "popops::HasNaNOrInf1D": HALVES | {"has_nan_or_inf": True, "size_in_8_bytes_per_worker": 24},
    "popops::HasNaNOrInf2D": HALVES | {"has_nan_or_inf": True, "rows": [96, 48]},
    "popops::HeapSortVertex": {"type": "int", "n": 96},
    "popops::HeapSortVertexKV": {"key_type": "int", "value_type": "half", "n": 96},
    "popops::Histogram1D": COUNTED | {"split_by_limits": False, "n": 96},
    "popops::Histogram2D": COUNTED | {"rows": [96, 48]},
    "popops::Iota": {"type": "int", "n": 96},
    "popops::MapExpression": {
        "loads": ["half", "half"],
        "stores": ["half"],
        "operations": [["ADD", "half"], ["TANH", "half"]],
        "n": 96,
    },
    "popops::MultiUpdate": HALVES | {"region_size": 32, "offsets": 8},
    "popops::MultiUpdateAdd": UPDATE,
    "popops::MultiUpdateOp": {"type": "half", "op": "MAX", "region_size": 32, "offsets": 8},
    "popops::NormaliseImage": {"in_type": "unsigned char", "out_type": "half", "pixels": 96},
    "popops::ScalarMultiply1D": {"n": 96},
    "popops::ScalarMultiply1DInplace": {"n": 96},
    "popops::ScalarMultiply2D": {"rows": [96, 48]},
    "popops::ScalarMultiply2DInplace": {"rows": [96, 48]},
    "popops::ScaledAdd2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::ScaledMultiUpdateOp": UPDATE,
    "popops::ScaledSubtract2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::ScaledSubtractSupervisor": SCALED | {"n": 96},
    "popops::SelectFromInterval": HALVES | {"row_count": 96},
    "popops::SelectFromIntervals": HALVES | {"params": 2, "row_counts": [24, 48]},
    "popops::SelectFromRowsInColumns": COLUMNS,
    "popops::SelectInPlace": HALVES | {"rows": [96, 48]},
    "popops::SequenceSlice": HALVES | {"region_size": 32, "elements": 96, "sequences": 4},
    "popops::SplineBasis": HALVES | {"degree": 2, "rows": [96, 48]},
    "popops::SplineWeighting": HALVES | {"channels": 8, "splines": 4, "rows": [96, 48]},
    "popops::UnaryOp2DInPlace": CELL | {"rows": [96, 48]},
    "popops::UpdateColumnsDEC": COLUMNS,
    "popops::UpdateIntervalDEC": HALVES | {"row_count": 96},
    "popops::UpdateIntervalsDEC": HALVES | {"params": 2, "row_counts": [24, 48]},
    "popops::XMinusaXPlusbY2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::XMinusaXPlusbYSupervisor": AXPBY,
    "popops::aXMinusbY2D": HALVES | {"scale_type": "float", "memory_constraints": True, "rows": [96, 48]},
    "popops::aXMinusbYSupervisor": AXPBY,
    "popops::aXPlusbY2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::aXPlusbYSupervisor": AXPBY,
    "poprand::Bernoulli": HALVES | {"n": 96},
    "poprand::Dropout": HALVES | {"n": 96},
    "poprand::Normal": HALVES | {"n": 96},
    "poprand::SetSeed": {},
    "poprand::TruncatedNormal": HALVES | {"n": 96, "iterations": 4},
    "poprand::Uniform": HALVES | {"n": 96},
}
for _row in sorted(ROWS, key=lambda row: -row["cycles"]):
    SAMPLES.setdefault(_row["name"], _row["args"])

# What counts work, in the order it is looked for; one of them grows by four.
COUNTS = (
    *("n", "num_elems", "rows", "elements", "size", "bytes", "positions", "pairs", "indices", "cycles", "batch"),
    *("num_partials", "partial_elements", "region_size", "region_sizes", "slices", "columns", "out_size", "pencils"),
    *("b_broadcast_factor", "worklist_elements", "conv_size", "width", "channels", "an", "dim"),
    *("depth", "height", "pixels", "label", "row_count", "row_counts", "region_widths", "size_in_8_bytes_per_worker"),
)
# Its published estimator counts rows, not their elements.
MORE_ROWS = {"popops::SelectInPlace": HALVES | {"rows": 4 * [96, 48]}}
NAMES = sorted(vertices.load())


def _more(value):
    if isinstance(value, list):
        return [_more(item) for item in value]
    return 4 * value


def _grown(vertex):
    if vertex in MORE_ROWS:
        return MORE_ROWS[vertex]
    arguments = SAMPLES[vertex]
    name = next((name for name in COUNTS if name in arguments), None)
    return None if name is None else arguments | {name: _more(arguments[name])}


def _sample(name):
    assert name in SAMPLES, f"give {name} arguments in SAMPLES"
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
