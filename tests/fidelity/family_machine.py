"""Constants of the targets, the map of a tile's memory, and where compiled tensors lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fidelity.compiling import struct
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.program import OnTileExecute, Variable
from workbench.engine.target import target

MIB = 1024 * 1024
FIRST_ADDRESS = 0x4C000  # of a Mk2 tile's memory: osmarks/ipu-stack@ce7c7e94 crates/ipu-target/src/memory.rs
TARGETS = {"mk1": ("ipu1", "ipu1"), "mk2": ("ipu2", "bow")}


def constants(case: Case) -> Any:
    """Tiles, bytes, workers, exchange and clocks of a generation."""
    names = TARGETS.get(case["id"].split("-")[1].lower())
    if names is None:
        return NotRun("no such generation")
    model, hardware = (target(name) for name in names)
    found: dict[str, Any] = {
        "tiles": model.tiles_per_ipu,
        "bytes_per_tile": model.bytes_per_tile,
        "total_bytes": model.bytes_per_tile * model.tiles_per_ipu,
        "ipu_MB(1024^2)": model.bytes_per_tile * model.tiles_per_ipu // MIB,
        "workers": model.workers_per_tile,
    }
    clocks = [each.clock_hz / 1e9 for each in (model, hardware)]
    if clocks[0] == clocks[1]:
        return found | {"clock_GHz": clocks[0]}
    return found | {
        "exchange_bytes_per_cycle_per_tile": model.exchange_bytes_per_cycle,
        "model_clock_GHz": clocks[0],
        "hw_clock_GHz": " / ".join(f"{clock:.4g}" for clock in clocks),
    }


def memory_map(_case: Case) -> dict[str, Any]:
    """Elements and regions of a Mk2 tile."""
    memory = target("ipu2").memory

    def kib(size: int) -> str:
        return f"{size // 1024} KiB"

    return {
        "base": hex(FIRST_ADDRESS),
        "size": memory.total_bytes,
        "element": memory.element_bytes,
        "executable_limit": f"{FIRST_ADDRESS + memory.executable_bytes:#x} (first {kib(memory.executable_bytes)})",
        "interleaved_from": f"base+{memory.non_interleaved_bytes:#x} ({kib(memory.non_interleaved_bytes)})",
    }


def tile_map(case: Case) -> Any:
    """Where the tensors of three small programs lie."""
    name = case["id"].removeprefix("TMAP-")
    return _MAPS[name]() if name in _MAPS else NotRun(f"no program called {name!r}")


def _input(variables: tuple[Variable, ...], name: str) -> Variable:
    return next(variable for variable in variables if variable.name == name)


def _strided() -> dict[str, int]:
    import jax.numpy as jnp

    def program(a: Any, b: Any, c: Any) -> Any:
        return jnp.broadcast_to(a, (1024,)) + b[::8] + jnp.pad(c, ((256, 256),))

    compiled = api.compile(program, struct(), struct(8192), struct(512), target="ipu2")
    source = _input(compiled.program.variables, "args[1]")
    elements = np.asarray(source.bytes_per_tile) // ITEMSIZE_BYTES[source.dtype] // 8
    tiles = np.flatnonzero(elements)
    return {"tiles": len(tiles), "first_tile": int(tiles[0]), "elements_per_tile": int(elements[tiles].max())}


def _added() -> bool:
    """Whether a sum lies as its first operand does."""
    program = api.compile(lambda a, b: a + b, struct(1000), struct(1000), target="ipu2").program
    written = [name for step in program.steps if isinstance(step, OnTileExecute) for name in step.writes]
    result, first = program.variables[written[-1]], _input(program.variables, "args[0]")
    return result.mapping_text == first.mapping_text


def _dot() -> list[int]:
    """Elements on the emptiest and the fullest tile of an outer product, as the driver's mapping_test.py takes it."""
    import jax.numpy as jnp

    small = target("ipu2", tiles_per_ipu=8)
    compiled = api.compile(lambda a, b: jnp.tensordot(a[2028:2032], b, 0), struct(2048), struct(4), target=small)
    elements = sum(
        np.asarray(variable.bytes_per_tile) // ITEMSIZE_BYTES[variable.dtype] for variable in compiled.program.variables
    )
    return [int(elements.min()), int(elements.max())]


_MAPS = {"slice": _strided, "add-inplace": _added, "8tiles": _dot}
