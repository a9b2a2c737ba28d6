"""The published cases this project commits, each with its source; what is compared with and in which group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fidelity.outcome import Case

DATA = Path(__file__).parents[1] / "data"
LARGE_COLUMNS = 256  # products of this many columns and more are judged apart from smaller ones

WHOLE = "whole model"
# First word of the id -> group of the table; any other word is a group of its own.
GROUPS = {
    "RNN": WHOLE,
    "KLSTM": WHOLE,
    "CYC": WHOLE,
    "SIGLIP": WHOLE,
    "FP8": "products of 8-bit floats",
    "VAL": "pipeline",
    "ORDER": "pipeline",
    "SCHED": "pipeline",
    "FIFO": "pipeline",
    "OFFSETS": "pipeline",
    "STAGE": "pipeline",
    "OVERLAP": "pipeline",
    "MAP": "pipeline",
    "POPART": "pipeline",
    "SEL": "pipeline",
    "AUTOPIPE": "partition",
    "XFER": "partition",
    "AGG": "partition",
    "CARRY": "partition",
    "LINER": "partition",
    "KERAS": "partition",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case to run: its name in reports, its group, the row handed to `run` and the answer measured."""

    name: str
    group: str
    case: Case
    expected: Any


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def group_of(case: Case) -> str:
    """The group of a case by its id; whole models have one for cycles and one for memory."""
    words = str(case["id"]).split("-")
    if words[0] == "DOC":
        return "-".join(words[:2])
    group = GROUPS.get(words[0], words[0])
    if group != WHOLE:
        return group
    return f"{WHOLE} cycles" if case["category"] == "b" else f"{WHOLE} memory"


def vertices() -> Iterator[Row]:
    """Cycles of PopLibs vertices."""
    for number, row in enumerate(_read("vertex_cycles.json")):
        yield Row(name=f"{number}:{row['name']}", group="vertex cycles", case=row, expected=row["cycles"])


def gemm() -> Iterator[Row]:
    """Matrix products measured on Bow; digitised to 3 %, so none is exact."""
    for row in _read("fidelity/gemm_bow.json")["rows"]:
        large = row["n"] >= LARGE_COLUMNS
        name = f"{row['dtype']} {row['m']}x{row['k']}x{row['n']}"
        case = {**row, "reproducibility": "within 20 %" if large else "within 40 %"}
        yield Row(
            name=name,
            group=f"GEMM n {'>=' if large else '<'} {LARGE_COLUMNS}",
            case=case,
            expected=row["measured_cycles_at_1p85GHz"],
        )


def amp_curve() -> Iterator[Row]:
    """The whole curve of the matrix unit, from its points."""
    found = _read("amp_1x1_hardware.json")
    case = {"id": "AMP-CURVE", "source": found["source"], "description": "", "reproducibility": "within 2 %"}
    yield Row(name="AMP-CURVE", group="AMP", case=case, expected=found["cycles"])


def cases() -> Iterator[Row]:
    """Cases with an id, a file per family."""
    for path in sorted((DATA / "fidelity").glob("cases_*.json")):
        for row in json.loads(path.read_text()):
            yield Row(name=row["id"], group=group_of(row), case=row, expected=row["expected"])


def also() -> list[Row]:
    """More cases of the same kinds, found later and run apart: nothing was adjusted to them when they came.

    Each is in the group of its kind with `also` before it; they have a table of their own, `also.json`.
    """
    return [
        Row(name=row["id"], group=f"also {group_of(row)}", case=row, expected=row["expected"])
        for path in sorted((DATA / "fidelity").glob("also_*.json"))
        for row in json.loads(path.read_text())
    ]


def raise_sites() -> Iterator[Row]:
    """Places of the SDK's Python that raise, by function and condition, of the parts this API has."""
    found = _read("fidelity/raise_sites.json")
    for row in found["rows"]:
        name = f"{row['file'].rpartition('/')[2]} {row['func']} {row['cond']}".strip()
        case = {**row, "source": found["source"]}
        yield Row(name=name, group="raise sites", case=case, expected={"exception": row["exc"]})


def configurations() -> Iterator[Row]:
    """Configurations that ship, so each fits; throughput where it is published for this one."""
    found = _read("fidelity/configurations.json")
    for name, fields in found["configurations"].items():
        case = {"id": name, "reproducibility": "within x1.5", "source": found["source"], **fields}
        expected = {"fits": True} | found["throughput"].get(name, {})
        yield Row(name=name, group="configurations", case=case, expected=expected)


def rows() -> list[Row]:
    """Everything, in the order of the table."""
    return [*vertices(), *amp_curve(), *gemm(), *cases(), *raise_sites(), *configurations()]
