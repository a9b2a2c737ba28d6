"""Run one published case through the engine: `run(case) -> answer | NotRun`.

A case is a row as it is published: a case with `id`, `description`, `config` and `quantity`; a vertex with `name` and
`args`; a matrix product with `dtype`, `m`, `k`, `n`; a configuration with `id` and its fields. What was expected or
measured is taken out before a family sees the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fidelity.family_compute_sets import compute_sets
from tests.fidelity.family_config import configuration_behaviour
from tests.fidelity.family_configurations import configuration
from tests.fidelity.family_counted import counted_vertex
from tests.fidelity.family_devices import places, selection
from tests.fidelity.family_errors import validation_error
from tests.fidelity.family_gemm import gemm
from tests.fidelity.family_halo import halo
from tests.fidelity.family_liveness import live
from tests.fidelity.family_machine import constants, memory_map, tile_map
from tests.fidelity.family_matvec import matvec
from tests.fidelity.family_memory import memory
from tests.fidelity.family_orders import inequality
from tests.fidelity.family_partition import carry, partition, transfer
from tests.fidelity.family_pipeline import (
    errors,
    mapped,
    offsets,
    order,
    overlap,
    popart,
    schedule_text,
    stage_order,
    stash,
    values,
)
from tests.fidelity.family_products import vision
from tests.fidelity.family_recurrent import long_short, recurrent
from tests.fidelity.family_reports import documented, products
from tests.fidelity.family_semantics import semantics
from tests.fidelity.family_vertex import amp, described_vertex, vertex_row
from tests.fidelity.outcome import Case, NotRun

HIDDEN = ("expected", "exc", "history", "notes", "cycles", "measured_cycles_at_1p85GHz", "measured_tflops_digitised")

# First word of the id -> the family that answers.
FAMILIES: dict[str, Callable[[Case], Any]] = {
    "VTX": described_vertex,
    "AMP": amp,
    "HALO": halo,
    "TS": counted_vertex,
    "MV": matvec,
    "CONST": constants,
    "SRAM": memory_map,
    "TMAP": tile_map,
    "ORDER": order,
    "SCHED": schedule_text,
    "FIFO": stash,
    "OFFSETS": offsets,
    "STAGE": stage_order,
    "POPART": popart,
    "PIPE": errors,
    "VAL": values,
    "MAP": lambda case: mapped(case) if case["id"] == "MAP-devmap" else places(case),
    "MEM": memory,
    "CYC": memory,
    "RNN": recurrent,
    "KLSTM": long_short,
    "TUT4": products,
    "DOC": documented,
    "SIGLIP": vision,
    "FP8": vision,
    "CFG": configuration_behaviour,
    "ERR": validation_error,
    "INEQ": inequality,
    "SEL": selection,
    "OVERLAP": overlap,
    "AUTOPIPE": partition,
    "XFER": transfer,
    "CARRY": carry,
    "LIVE": live,
    "SEM": semantics,
    "CS": compute_sets,
}


def run(case: Case) -> Any:
    """The engine's answer in the shape of what is expected, or `NotRun` with a reason."""
    row = {key: value for key, value in case.items() if key not in HIDDEN}
    if "args" in row:
        return vertex_row(row)
    if {"m", "k", "n"} <= set(row):
        return gemm(row)
    if "micro_batch_size" in row or "precision" in row:
        return configuration(row)
    if {"func", "cond"} <= set(row):
        return validation_error(row)
    family = FAMILIES.get(str(row.get("id", "")).split("-")[0])
    return family(row) if family else NotRun("this kind of case is not run yet")


__all__ = ["FAMILIES", "NotRun", "run"]
