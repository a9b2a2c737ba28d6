"""Which kind of modelled number a published number is one of, and how far ours usually are from those of a kind.

A kind's errors come from numbers of that kind alone: a total says nothing about its parts. A number from which a
constant of the model was taken cannot tell that constant's error, so it counts for nothing. Where a kind was measured,
on a machine or by Poplar's own reports, estimates that PopLibs publishes do not count beside the measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from tests.fidelity.data import Row
from tests.fidelity.judge import error_of, named_leaves
from tests.fidelity.outcome import said
from tests.fidelity.vertex_text import parse_vertex
from workbench.engine.cost import formulas
from workbench.engine.vertices import load

ESTIMATES = "PopLibs' estimates"
AMP_VERTEX = "poplin::ConvPartial1x1Out"

# Kind -> the published numbers of it, by `name of the row/place in its answer`; the first that matches counts.
RULES = {
    "product": r"^(half|float) \d+x|^(SIGLIP|FP8)-(QKV|PV|out)|^TUT4-EX-ops\d/",
    "exchange": r"^MV-.*exchange|^HALO-.*-parts/exchange|^SIGLIP-xchg/exchange",  # of a halo two rows state it
    "sync": r"^(MV|HALO)-.*sync",
    "host": r"^MV-.*host",
    "compute": r"^(MV|HALO)-.*compute|^TS-(?!MAX)",
    "memory": r"^(RNN|KLSTM)-.*(memory|total|max)/|^MEM-(MLP|RESNET|PIPE)-",
    "cycles": r"^(RNN|KLSTM|CYC)-|^(MV|HALO)-.*total|^TUT4-EX-total|/items_per_s",
    "code": r"^TUT4-EX-code",
    "variables": r"^(TUT4-notovl|TUT4-const|DOC-ADD-variables)/",
    "vertex_code": r"^DOC-ADD-vcode/",
    "vertex_instance_state": r"^DOC-ADD-(vinst|instr)/",
    "stack": r"^DOC-(ADD|OOM)-stack/",
    "control_code": r"^DOC-ADD-ctrl/",
    "host_exchange_code": r"^DOC-ADD-hexch/",
    "host_exchange_packet_headers": r"^DOC-ADD-hosthdr/",
    "internal_exchange_code": r"^(DOC-ADD-iexch|SIGLIP-xcode)/",
}

# Numbers that gave the model a constant (`engine/target.py` and the formulas name them): launch, barrier, host rate,
# the bytes of control code, of a host copy and of an exchange, the counter of a vertex, the stack.
GAVE_A_CONSTANT = re.compile(
    r"^(TS-ADD10/|HALO-implicit-parts/sync|MV-MK2-prof-(host|total)/|DOC-ADD-(ctrl|hexch|iexch|instr|stack)/|DOC-OOM-stack/)"
)


def kind_of(row: Row, place: str) -> str:
    """The kind of the number at a place of a row's answer, or "" when nothing that is shown is of its kind."""
    if row.group == "vertex cycles":
        return _family(row.case["name"])
    if row.group == "VTX":
        return _family(parse_vertex(row.case["description"])[0])
    if row.group == "AMP":  # the other rows are points of the curve
        return _family(AMP_VERTEX) if row.name == "AMP-CURVE" else ""
    name = f"{row.name}/{place}"
    return next((kind for kind, pattern in RULES.items() if re.search(pattern, name)), "")


def _family(vertex: str) -> str:
    load()
    return str(formulas.get(f"vertex:{vertex}").error_kind)


def against(row: Row) -> str:
    """Who said the number it is compared with."""
    if row.group in ("vertex cycles", "VTX"):
        return ESTIMATES
    if row.group.startswith(("GEMM", "AMP")) or re.search(r"hardware|C600", said(row.case)):
        return "hardware"
    return "IPU Model" if "IPU Model" in said(row.case) else "published reports"


VERDICTS = ("memory",)  # kinds that decide whether a program fits: how each number turned out is kept, too


def errors_by_kind(results: Iterable[Any]) -> dict[str, list[tuple[Row, float]]]:
    """Kind -> rows and ln(published / modelled) of their numbers, without those that gave the model a constant."""
    found: dict[str, list[tuple[Row, float]]] = {}
    for each in results:
        for place, error in _errors(each):
            kind = kind_of(each.row, place)
            if kind and not GAVE_A_CONSTANT.search(f"{each.row.name}/{place}"):
                found.setdefault(kind, []).append((each.row, error))
    return found


def _errors(result: Any) -> Iterator[tuple[str, float]]:
    if result.verdict is None or result.verdict.error is None:
        return
    for place, ours, theirs in named_leaves(result.answer, result.row.expected):
        error = error_of(ours, theirs)
        if error is not None:
            yield place, math.copysign(error, float(theirs) - float(ours))


def typical(results: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """By kind of number: `typical` and `spread`, the relative errors of the median and of the 90th percentile of
    |ln ratio|; over how many numbers, of how many rows, of which groups, and against what. Of `VERDICTS` besides
    `ratios`, published over modelled, rising.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for kind, counted in sorted(errors_by_kind(results).items()):
        measured = [(row, error) for row, error in counted if against(row) != ESTIMATES] or counted
        errors = sorted(abs(error) for _, error in measured)
        kinds[kind] = {
            "typical": _relative(median(errors)),
            "spread": _relative(errors[math.ceil(0.9 * len(errors)) - 1]),
            "cases": len({row.name for row, _ in measured}),
            "numbers": len(errors),
            "against": sorted({against(row) for row, _ in measured}),
            "groups": sorted({row.group for row, _ in measured}),
        }
        if kind in VERDICTS:
            kinds[kind]["ratios"] = sorted(round(math.exp(max(-20.0, min(error, 20.0))), 4) for _, error in measured)
    return kinds


def _relative(error: float) -> float:
    return round(math.exp(min(error, 20.0)) - 1, 4)
