"""Bytes of small programs of the TensorFlow driver's tests, written again in JAX and Keras; pipelines in its own words.

Source: graphcore/tensorflow@b2127bba, the tests each case names. Tests that leave code out set `compile_ipu_code`
false; default machines have 8 tiles, unless a case names its tiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.fidelity import memory_functions, memory_programs
from tests.fidelity.compiling import config
from tests.fidelity.measuring import measured
from tests.fidelity.outcome import Case, NotRun, said, source_of
from tests.fidelity.pipeline_memory import asked, pipeline_of
from workbench import api
from workbench.engine.target import target
from workbench.executable import Executable

DEFAULT_TILES = 8
SOLVE_BLOCK = 16  # of the tests of triangular solves
WIDE_TILES = 128  # of the tests of wide constants


def memory(case: Case) -> Any:
    """Bytes (or cycles) of the program of a case."""
    quantity = str(case["quantity"])
    if "-PIPE-" in case["id"] or "/pipelining_" in source_of(case):
        which = asked(case)
        if which is None:
            return NotRun("its pipeline is not built here")
        return measured(pipeline_of(which, _tiles(case)), quantity)
    name = _program_of(case)
    if name is None:
        return NotRun(f"the program of {case['id']} is not built here")
    code = PROGRAMS[name][1] and "no code" not in said(case)
    return measured(program_of(name, _tiles(case), code, **stated(name, said(case))), quantity)


def stated(name: str, text: str) -> dict[str, int]:
    """The sizes a text says for the programs that take any: a system and its blocks, a wide variable, host rows."""
    words = SIZES.get(name.split("-")[0], {}) if name not in ("WIDE-alloc", "WIDE-pad", "WIDE-pad2") else {}
    found = {size: re.search(pattern, text) for size, pattern in words.items()}
    return {size: int(match[1]) for size, match in found.items() if match}


def _program_of(case: Case) -> str | None:
    """The program an id begins with, the longest that does; else that of the test the source names."""
    name = case["id"].split("-", 1)[1]
    known = max((known for known in PROGRAMS if (name + "-").startswith(known + "-")), key=len, default=None)
    if known:
        return known
    found = re.search(r"\[(\w+)\]", source_of(case))
    return TESTS.get(found[1]) if found else None


def _tiles(case: Case) -> int:
    """Tiles the case states: `1472 tiles`, `tiles_per_ipu=4`; several are of several SDKs and begin with the newest."""
    found = re.search(r"tiles_per_ipu=(\d+)|(\d+) tiles", said(case))
    if found:
        return int(found[1] or found[2])
    if "SDK 2.0" in said(case):
        return 1472
    return WIDE_TILES if case["id"].startswith("MEM-WIDE") else DEFAULT_TILES


@cache
def program_of(name: str, tiles: int, code: bool, **sizes: int) -> Executable:
    """The compiled program of this name on an IPU of so many tiles, with other sizes than the tests' where given."""
    return PROGRAMS[name][0](target("ipu2", tiles_per_ipu=tiles), code, **sizes)


def _options(code: bool, *, dot_strength: bool = True, solve_block: int = 0) -> Any:
    made = config()
    made.ipu_model.compile_ipu_code = code
    made.optimizations.math.dot_strength = dot_strength
    made.optimizations.triangular_solve_expander_block_size = solve_block
    return made


def _function(name: str, *, solve_block: int = 0) -> Callable[..., Executable]:
    def build(machine: Any, code: bool, *, block: int = solve_block, **sizes: int) -> Executable:
        module = memory_programs if hasattr(memory_programs, name) else memory_functions
        function, inputs = getattr(module, name)(**sizes)
        return api.compile(function, *inputs, target=machine, config=_options(code, solve_block=block))

    return build


def _model(name: str, *, dot_strength: bool = True, **arguments: Any) -> Callable[..., Executable]:
    def build(machine: Any, code: bool) -> Executable:
        model, more = getattr(memory_programs, name)(**arguments)
        return api.compile(model, target=machine, config=_options(code, dot_strength=dot_strength), **more)

    return build


# First word of a program's name -> the sizes its texts state.
SIZES = {
    "TRI": {"unknowns": r"A\[(\d+),", "right": r"B\[\d+,(\d+)\]", "block": r"block_size=(\d+)"},
    "WIDE": {"rows": r"f32\[(\d+),", "columns": r"f32\[\d+,(\d+)\]"},
    "HOSTEMB": {"rows": r"(\d+) (?:int32 indices|rows)", "width": r"(?:f32\[\d+,|rows of )(\d+)"},
}

# name -> how to compile it, and whether code counts where a case does not say `no code`: tests of earlier releases
# leave out what later ones compile (wide_const_expansion_test.py: 6,240 B of a tile with 5,704 B of data and no stack)
PROGRAMS: dict[str, tuple[Callable[..., Executable], bool]] = {
    "FUNC-infer": (_function("outlined_inference"), False),
    "FUNC-train": (_function("outlined_training"), False),
    "FUNC-nested": (_function("nested_training"), False),
    "FUNC-const": (_function("split_training"), False),
    "FUNC-alias": (_function("aliased_inputs"), False),
    "COMBINED": (_function("combined_weights"), True),
    "TABLE": (_function("shared_table"), True),
    "FUNC-lookup": (_function("serial_lookup"), False),
    "WIDE-init": (_function("wide_initial"), True),
    "WIDE-run": (_function("wide_sum"), True),
    "WIDE-alloc": (_function("wide_slices"), True),
    "WIDE-pad": (_function("padded_product"), True),
    "WIDE-pad2": (_function("product_padded"), True),
    "MM-bcast": (_function("broadcast_products"), False),
    "CONV-bcast": (_function("broadcast_convolutions"), False),
    "NORM": (_function("constant_norms"), False),
    "MLP-inf": (_model("perceptron", dot_strength=False, batch=2, training=False), False),
    "MLP-train1": (_model("perceptron", dot_strength=False, batch=1, training=True), False),
    "MLP-train2": (_model("perceptron", dot_strength=False, batch=2, training=True), False),
    "SERMM": (_function("serial_product"), False),
    "MANY-init": (_function("many_variables"), True),
    "RESNET-inf": (_model("residual", rule=""), False),
    "RESNET-sgd": (_model("residual", rule="sgd"), False),
    "RESNET-mom": (_model("residual", rule="momentum"), False),
    "RESNET-loop-sgd": (_model("residual", rule="sgd"), False),
    "RESNET-loop-sgd-ga": (_model("residual", rule="sgd", accumulated=5), False),
    "RESNET-loop-mom": (_model("residual", rule="momentum"), False),
    "RESNET-loop-mom-ga": (_model("residual", rule="momentum", accumulated=10), False),
    "EMB-realloc": (_function("product_updated"), False),
    "HOSTEMB-DIEN": (_function("host_rows_dien"), False),
    "HOSTEMB-AGI": (_function("host_rows_agi"), False),
    "HOSTEMB-GA-DIEN": (_function("host_rows_dien"), False),
    "HOSTEMB-GA-AGI": (_function("host_rows_agi"), False),
    "OUTFEEDBATCH": (_function("batched_sums"), False),
    "REARR-dev": (_function("batched_products"), False),
    "TRI-LA": (_function("solve_lower_adjoint", solve_block=SOLVE_BLOCK), False),
    "TRI-LN": (_function("solve_lower", solve_block=SOLVE_BLOCK), False),
    "TRI-UA": (_function("solve_upper_adjoint", solve_block=SOLVE_BLOCK), False),
    "TRI-UN": (_function("solve_upper", solve_block=SOLVE_BLOCK), False),
}

# Test a source names -> its program, for ids that begin with none of those above.
TESTS = {
    "testNestedFunctionTraining": "FUNC-nested",
    "testFunctionTrainingConstants": "FUNC-const",
    "testInputsWithAliasing": "FUNC-alias",
    "testMergedWeightDownload": "COMBINED",
    "testMatmulAndEmbedding": "TABLE",
    "testCheckMaxTileSize": "WIDE-run",
    "testWideConstantWithAllocationTarget": "WIDE-alloc",
    "testSingleOutfeedWithBatchingFinalNonTuple": "OUTFEEDBATCH",
    "testSingleOutfeedWithBatchingFinalNonTupleRearrangeDevice": "REARR-dev",
    "testSingleOutfeedWithBatchingFinalNonTupleRearrangeHost": "REARR-dev",
}
