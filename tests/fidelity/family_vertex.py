"""Vertices by their formulas: rows with name and arguments, and cases that describe a vertex in words."""

from __future__ import annotations

import re

from tests.engine.vertices.machine import MACHINE
from tests.fidelity.outcome import Case, NotRun
from tests.fidelity.vertex_text import parse_vertex
from workbench.engine import vertices
from workbench.engine.target import target

AMP_POSITIONS = range(16, 2049, 16)
CHANNELS = 16  # of input and of output, per vertex


def vertex_row(row: Case) -> int | NotRun:
    """Cycles of a row of (name, args)."""
    return vertices.cycles(MACHINE, row["name"], **row["args"])


def described_vertex(case: Case) -> int | NotRun:
    """Cycles of a vertex described in a case."""
    try:
        name, arguments = parse_vertex(case["description"])
    except (ValueError, KeyError) as problem:
        return NotRun(f"vertex not understood: {problem}")
    return vertices.cycles(MACHINE, name, **arguments)


def amp_cycles(positions: int) -> int:
    """Cycles of a half/half 1x1 vertex of this many positions, 16 input and 16 output channels."""
    return vertices.cycles(
        MACHINE,
        "poplin::ConvPartial1x1Out",
        in_type="half",
        partials_type="half",
        conv_units=16,
        weight_load_bytes_per_cycle=8,
        positions=positions,
        workers=6,
        conv_groups=1,
        in_groups=1,
        out_groups=1,
        out_chans_per_group=CHANNELS,
    )


def amp(case: Case) -> dict[str, float] | NotRun:
    """The whole curve, or cycles and rate of one point on 1,472 tiles at the clock of the measurement."""
    single = re.search(r"N=(\d+)", case["description"]) if "single point" in case["description"] else None
    if single is None:
        return {str(positions): float(amp_cycles(positions)) for positions in AMP_POSITIONS}
    positions = int(single[1])
    machine = target("bow")
    flops = 2 * positions * CHANNELS * CHANNELS * machine.tiles_per_ipu
    cycles = amp_cycles(positions)
    return {"cycles": float(cycles), "TFLOPS": flops / cycles * machine.clock_hz / 1e12}
