"""Bytes of small programs of the TensorFlow driver's tests, written again in JAX and Keras; pipelines in its own words.

Source: graphcore/tensorflow@b2127bba, the tests each case names. Tests that leave code out set `compile_ipu_code`
false; default machines have 8 tiles, unless a case names its tiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.fidelity import memory_programs as programs
from tests.fidelity.compiling import config
from tests.fidelity.measuring import measured
from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.pipeline_memory import PIPELINES, pipeline_of
from workbench import api
from workbench.engine.target import target
from workbench.executable import Executable

DEFAULT_TILES = 8
SOLVE_BLOCK = 16  # of the tests of triangular solves
WIDE_TILES = 128  # of the tests of wide constants


def memory(case: Case) -> Any:
    """Bytes (or cycles) of the program of a case."""
    name, quantity = _program_of(case["id"]), str(case["quantity"])
    if name is None:
        return NotRun(f"the program of {case['id']} is not built here")
    executable = program_of(name, _tiles(case))
    return measured(executable, quantity)


def _program_of(id: str) -> str | None:
    """The program an id begins with, the longest that does."""
    name = id.split("-", 1)[1]
    return max((known for known in PROGRAMS if (name + "-").startswith(known + "-")), key=len, default=None)


def _tiles(case: Case) -> int:
    """Tiles the case states: `1472 tiles`, `tiles_per_ipu=4`; several are of several SDKs and begin with the newest."""
    found = re.search(r"tiles_per_ipu=(\d+)|(\d+) tiles", said(case))
    if found:
        return int(found[1] or found[2])
    if "SDK 2.0" in said(case):
        return 1472
    return WIDE_TILES if case["id"].startswith("MEM-WIDE") else DEFAULT_TILES


@cache
def program_of(name: str, tiles: int) -> Executable:
    """The compiled program of this name on an IPU of so many tiles."""
    build, code = PROGRAMS[name]
    return build(target("ipu2", tiles_per_ipu=tiles), code)


def _options(code: bool, *, dot_strength: bool = True, solve_block: int = 0) -> Any:
    made = config()
    made.ipu_model.compile_ipu_code = code
    made.optimizations.math.dot_strength = dot_strength
    made.optimizations.triangular_solve_expander_block_size = solve_block
    return made


def _function(name: str, *, solve_block: int = 0) -> Callable[..., Executable]:
    def build(machine: Any, code: bool) -> Executable:
        function, inputs = getattr(programs, name)()
        return api.compile(function, *inputs, target=machine, config=_options(code, solve_block=solve_block))

    return build


def _model(name: str, *, dot_strength: bool = True, **arguments: Any) -> Callable[..., Executable]:
    def build(machine: Any, code: bool) -> Executable:
        model, more = getattr(programs, name)(**arguments)
        return api.compile(model, target=machine, config=_options(code, dot_strength=dot_strength), **more)

    return build


def _pipeline(name: str) -> Callable[..., Executable]:
    return lambda machine, _code: pipeline_of(name, machine.tiles_per_ipu)


# name -> how to compile it, and whether code counts
PROGRAMS: dict[str, tuple[Callable[..., Executable], bool]] = {
    **{f"PIPE-{name}": (_pipeline(name), True) for name in PIPELINES},
    "FUNC-infer": (_function("outlined_inference"), False),
    "FUNC-train": (_function("outlined_training"), False),
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
