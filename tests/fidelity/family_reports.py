"""Published memory and execution reports: two chained products on Mk2, an adder and an overflowing tile on Mk1.

Sources: graphcore/examples tutorials/poplar/tut4_profiling (screenshots of PopVision); graphcore/tensorflow
r2.1/release-1.2 docs/logging.rst.

The memory report of the products is of the IPU Model as it is by default, which compiles no code: its picture counts
0 B of each kind of code. Its tiles beyond the 1,400 of the products hold what mapTensorLinearly puts on them of m1, m2
and m3. The picture of the operations has code, which the same program has when it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tests.fidelity.compiling import breakdown, config, struct
from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.vertex_fields import edges, worklist_bytes
from workbench import api
from workbench.engine.program import OnTileExecute
from workbench.engine.target import target
from workbench.executable import Executable
from workbench.tiles import ComputeSet, Graph, Step

PHASES = {"compute": "Convolve", "copy": "Transpose_#0", "reduce": "Reduce0"}
PRODUCTS = ("m4", "m5")
SHAPES = ((800, 500), (500, 400), (400, 200))  # of m1, m2 and m3, by the bytes the liveness panel shows
MK1_RESERVED_BYTES = 8192  # of region 0, not for data: logging.rst shows 122,880 of 131,072 usable
COUNTERS = "counters"
INSTRUMENTATION_BYTES = 4  # a counter of each vertex: 4,876 B of 1,219


def products(case: Case) -> Any:
    """One number of the reports of m5 = (m1 m2) m3."""
    stated = re.findall(r"\{(\d+),(\d+)\}", said(case))[-3:]
    sizes = tuple((int(rows), int(columns)) for rows, columns in stated) or SHAPES
    name = case["id"].removeprefix("TUT4-").removeprefix("EX-")
    if name not in _PRODUCTS:
        return NotRun(f"no number called {name!r} in the engine's reports")
    return _PRODUCTS[name](_product(sizes, name.startswith("code")))


@cache
def _product(sizes: tuple[tuple[int, int], ...], compiled: bool) -> Executable:
    """m5 = (m1 m2) m3 of matrices that are mapped linearly: nothing asks a layout of what is read in halves."""
    import jax.numpy as jnp

    def chained(*matrices: Any) -> Any:
        first, second, third = [jnp.concatenate(jnp.split(matrix, 2)) for matrix in matrices]
        return (first @ second) @ third

    made = config()
    made.ipu_model.compile_ipu_code = compiled
    return api.compile(chained, *[struct(*size) for size in sizes], target="ipu2", config=made)


@cache
def _adder() -> Executable:
    """(a + b) + (a + c) as the driver of the report has it, each sum a compute set, two of them in place.

    Before it runs every tile's generator is seeded, from a seed the host sends: driver/prng_seed_state.cc,
    poplibs@7eac0f26 lib/poprand/RandomGen.cpp:630-649. Small tensors are on the first tile, as PopLibs maps them.
    The report counts instrumentation results: every tile's cycle counter is sent to the host at the end.
    """
    return api.compile(_sums())


@cache
def _sums() -> Step:
    graph = Graph("ipu1")
    seed = graph.variable("seed", 2, "uint32").map_linearly()
    a, b, c, both = (graph.variable(name, 2).map_linearly() for name in ("a", "b", "c", "a+b"))
    seeds = graph.compute_set("setMasterSeed")
    for tile in range(graph.target.tiles_per_ipu):
        seeds.vertex("poprand::SetSeed", tile=tile, reads=(seed,))
    first, second, last = (graph.compute_set(name) for name in ("add", "add_1", "add_2"))
    first.vertex("popops::BinaryOp1D", tile=0, op="ADD", a=a, b=b, out=both)
    for sums, total, term in ((second, c, a), (last, both, c)):  # ScaledAddSupervisor<float,float,true> in the report
        sums.vertex("popops::ScaledAddSupervisor", tile=0, a=total, b=term, scale_type="float", memory_constraints=True)
    inputs = [graph.host_copy(tensor) for tensor in (seed, a, b, c)]
    tiles = graph.target.tiles_per_ipu
    counters = graph.variable(COUNTERS, tiles, "uint32").map_linearly(tiles=tiles, grain=1)
    outputs = [graph.host_copy(tensor, "to_host") for tensor in (both, counters)]
    return graph.sequence(inputs[0], seeds, *inputs[1:], first, second, last, *outputs)


def _edges(_executable: Executable) -> int:
    """Tensors that the adder's vertices are connected to, one that is read and written once."""
    sets = [part for part in _sums().parts if isinstance(part, ComputeSet)]
    made = [vertex for part in sets for vertex in part.vertices]
    return sum(len({field for field, _ in (*vertex.reads, *vertex.writes)}) for vertex in made)


def documented(case: Case) -> Any:
    """One number of the adder's report, or of the sums of the tile that overflows."""
    _, report, name = case["id"].split("-", 2)
    if report == "OOM":
        return _overflow(case, name)
    if name not in _ADDER:
        return NotRun(f"no number called {name!r} in the engine's reports")
    return _ADDER[name](_adder())


def _overflow(case: Case, name: str) -> Any:
    """What does not fit the usable regions of a Mk1 tile overflows; the total is the sum of the three."""
    memory = target("ipu1").memory
    regions = {"ni": memory.non_interleaved_bytes - MK1_RESERVED_BYTES, "i": memory.interleaved_bytes}
    if name in regions:
        return regions[name]
    if name == "stack":
        return target("ipu1").stack_bytes
    total = re.search(r"=(\d+)", said(case))
    if not total or name not in ("ov", "exc"):
        return NotRun("the program of this report is not published")
    return int(total[1]) - (sum(regions.values()) if name == "ov" else 0)


# -- numbers ---------------------------------------------------------------------------------------------


def _column(name: str) -> Callable[[Executable], int]:
    return lambda executable: int(executable.profile.tiles[name].sum())


def _most(name: str) -> Callable[[Executable], int]:
    return lambda executable: int(executable.profile.tiles[name].max())


def _variables(executable: Executable) -> int:
    """Bytes of variables at their own addresses, shared or not; counters are instrumentation results instead."""
    tiles = executable.profile.tiles
    names = ("parameter", "optimizer", "state", "constant", "stash", "stream", "input", "activation", "gradient")
    return int(sum(tiles[name].sum() for name in (*names, "temporary")) - _counters(executable))


def _counters(executable: Executable) -> int:
    """Bytes of the counters that are sent to the host, which the engine counts with the vertices too."""
    return int(sum(each.bytes_per_tile.sum() for each in executable.program.variables if each.name == COUNTERS))


def _instances(executable: Executable) -> int:
    """Bytes of vertices' states without their counters."""
    return _column("vertex_instance_state")(executable) - INSTRUMENTATION_BYTES * _vertices(executable)


def _unshared(executable: Executable) -> int:
    """Bytes of variables that are no temporaries of an operator."""
    return int(sum(each.bytes_per_tile.sum() for each in executable.program.variables if each.kind != "temporary"))


def _reached(executable: Executable) -> list[int]:
    """By tile: where the last thing on it ends. What Poplar calls used with gaps: the unused end of the first region
    counts where something lies in the second. 1,400 tiles with 6,400 B behind 212,992 B, the others as without gaps.
    """
    allocation = executable.compiled.allocation
    ends = {}
    for tile in sorted(set(allocation.classes[0].tolist())):
        ends[tile] = max((each.address + each.size_bytes for each in allocation.tile(0, tile).blocks), default=0)
    return [ends[tile] for tile in allocation.classes[0].tolist()]


def _interleaved(executable: Executable) -> int:
    """Addresses of what must lie in the interleaved region, each once: on each tile the reach of such blocks."""
    allocation = executable.compiled.allocation
    border = executable.program.target.memory.non_interleaved_bytes
    must = {each.id for each in executable.program.variables if each.interleaved}
    ends = {}
    for tile in sorted(set(allocation.classes[0].tolist())):
        blocks = [each for each in allocation.tile(0, tile).blocks if each.variable in must]
        ends[tile] = max((each.address + each.size_bytes - border for each in blocks), default=0)
    return sum(ends[tile] for tile in allocation.classes[0].tolist())


def _compute_sets(executable: Executable) -> int:
    return sum(isinstance(step, OnTileExecute) for step in executable.program.steps)


def _pieces(executable: Executable) -> int:
    """Variables counted once for each tile they are on, as Poplar does.

    Its list of what is always live has vertices' states, the counters of vertices and packet headers among them.
    """
    variables = executable.program.variables
    counters = 0 if any(each.name == COUNTERS for each in variables) else _vertices(executable)
    headers = int(np.count_nonzero(executable.profile.tiles["host_exchange_packet_headers"]))
    made = sum(int(np.count_nonzero(variable.bytes_per_tile)) for variable in variables)
    return made + _vertices(executable) + counters + headers


def _vertices(executable: Executable) -> int:
    return int(executable.profile.meta["program"]["vertices"])


def _on_device(executable: Executable) -> int:
    causes = breakdown(executable.profile)
    return causes["compute"] + causes["exchange"] + causes["sync"]


def _efficiency(executable: Executable) -> float:
    """Percent of the cycles on the device in which tiles compute or exchange."""
    causes = breakdown(executable.profile)
    return round(100 * (causes["compute"] + causes["exchange"]) / _on_device(executable), 2)


def _balance(executable: Executable) -> int:
    """Percent: mean over all tiles against the slowest, compute sets weighed by their cycles."""
    trace = executable.compiled.trace
    steps = [trace.steps[step.id] for step in executable.program.steps if isinstance(step, OnTileExecute)]
    mean = sum(float(step.cycles_per_tile.mean()) for step in steps)
    return round(100 * mean / sum(int(step.cycles_per_tile.max()) for step in steps))


def _operation(number: int, column: str = "cycles") -> Callable[[Executable], int]:
    """Of one product, summed over the tiles."""

    def of(executable: Executable) -> int:
        tiles = executable.program.target.tiles_per_ipu
        return int(executable.profile.operators[column].iloc[number]) * tiles

    return of


def _names(executable: Executable) -> list[str]:
    """The phases of each product under Poplar's names, in its order."""
    found = []
    operators = list(dict.fromkeys(step.operator for step in executable.program.steps if step.operator))
    for operator, product in zip(operators, PRODUCTS, strict=True):
        steps = [step for step in executable.program.steps if isinstance(step, OnTileExecute)]
        phases = {step.name.rsplit("/", 1)[1] for step in steps if step.operator == operator}
        found += [f"{product}/Conv_1/{word}" for phase, word in PHASES.items() if phase in phases]
    return found


def _tile_bytes(part: slice) -> Callable[[Executable], int]:
    return lambda executable: int(executable.profile.tiles["total_bytes"].iloc[part].median())


_PRODUCTS: dict[str, Callable[[Executable], Any]] = {
    "cs": _compute_sets,
    "vertices": _vertices,
    "edges": edges,
    "vars": _pieces,
    "incgaps": lambda executable: sum(_reached(executable)),
    "excgaps": _column("total_bytes"),
    "nonint": lambda executable: _column("total_bytes")(executable) - _interleaved(executable),
    "int": _interleaved,
    "ovf": lambda executable: 0 if executable.profile.fits else -executable.profile.margin_bytes,
    "notovl": _unshared,
    "const": lambda executable: _column("constant")(executable) + worklist_bytes(executable),
    "flat": _tile_bytes(slice(0, 1400)),
    "tail": _tile_bytes(slice(1400, None)),
    "total": _on_device,
    "eff": _efficiency,
    "balance": _balance,
    "ops4": _operation(0),
    "ops5": _operation(1),
    "opst": lambda executable: _operation(0)(executable) + _operation(1)(executable),
    "code4": _operation(0, "code_bytes"),
    "code5": _operation(1, "code_bytes"),
    "CS": _names,
}
_ADDER: dict[str, Callable[[Executable], Any]] = {
    "vertices": _vertices,
    "edges": _edges,
    "vars": _pieces,
    "cs": _compute_sets,
    "incgaps": lambda executable: sum(_reached(executable)),
    "nonint": lambda executable: _column("total_bytes")(executable) - _counters(executable),
    "variables": _variables,
    "hosthdr": _column("host_exchange_packet_headers"),
    "stack": _column("stack"),
    "vinst": _instances,
    "ctrl": _column("control_code"),
    "vcode": _column("vertex_code"),
    "iexch": _column("internal_exchange_code"),
    "hexch": _column("host_exchange_code"),
    "instr": lambda executable: INSTRUMENTATION_BYTES * _vertices(executable),
    "tile0": _most("total_bytes"),
    "tile0inc": lambda executable: max(_reached(executable)),
}
