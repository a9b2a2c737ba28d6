"""Where a number comes from: its formula with the inputs filled in, the formula's source, and its typical error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.base.categories import FOOTPRINT_CATEGORIES
from workbench.base.units import bytes_text, cycles_text, percent_text
from workbench.errors import InputError
from workbench.profiler.memory import live_bytes
from workbench.profiler.memory.addresses import bytes_by_category
from workbench.profiler.operators.steps import OperatorSteps, StepsByOperator
from workbench.profiler.profile import Profile
from workbench.profiler.registry import method
from workbench.profiler.report import records

MAX_PARTS_SHOWN = 12
# Sources of numbers that are read from the program itself rather than computed by a formula of the engine.
MAPPING = "the tile mapping of the program"
ALLOCATOR = "the addresses the allocator gave"
CODE = "the size its codelet states"
WHY_PLANNED = (
    "plan_cycles is what the planner charged, which counts bytes exchanged, vertices and what is rearranged on the"
    " fullest tile, but no launches, synchronisation or copies on a tile, and does not know yet where operands lie"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One number taken apart. `unit` is "bytes" or "cycles"; the values of `parts` sum to `value`.

    `formula` states the arithmetic in words, `inputs` what it was evaluated on, `source` where it was read. A sum has
    no source of its own: its parts have theirs. `typical_error` is a fraction, from held-out reference cases of the
    same kind of number; None when there are none.
    """

    subject: str
    value: int
    unit: str
    formula: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    typical_error: float | None = None
    parts: tuple[Explanation, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: str = "") -> list[str]:
        """The explanation as text, parts indented."""
        show = cycles_text if self.unit == "cycles" else bytes_text
        exact = f" ({self.value:,} {self.unit})" if abs(self.value) >= 1000 else ""
        error = f", typical error {percent_text(self.typical_error)}" if self.typical_error is not None else ""
        found = [f"{indent}{self.subject}: {show(self.value)}{exact}{error}", f"{indent}  = {self.formula}"]
        if self.inputs:
            shown = ", ".join(f"{name} = {value}" for name, value in self.inputs.items())
            found.append(f"{indent}  with {shown}")
        if self.source:
            found.append(f"{indent}  from {self.source}")
        for part in self.parts[:MAX_PARTS_SHOWN]:
            found += part.lines(indent + "  ")
        if len(self.parts) > MAX_PARTS_SHOWN:
            rest = sum(part.value for part in self.parts[MAX_PARTS_SHOWN:])
            found.append(f"{indent}  and {len(self.parts) - MAX_PARTS_SHOWN} smaller ones: {show(rest)}")
        return found


def typical_error(profile: Profile, kind: str) -> float | None:
    """The typical relative error of a kind of modelled number, from the fidelity table; None when not known."""
    known = profile.meta.get("typical_errors", {}).get(kind)
    if not known:
        return None
    if "typical" in known:
        return float(known["typical"])
    return abs(float(known["median_ratio"]) - 1.0)


@method("explain")
def explain(
    profile: Profile,
    *,
    tile: int | None = None,
    step: int | None = None,
    variable: str | int | None = None,
    operator: str | None = None,
    ipu: int | None = None,
) -> Explanation:
    """Where a number comes from: value, formula with its inputs filled in, source, typical error and parts.

    Give a tile (its bytes), a step (its cycles), a tile and a step (bytes live there), a variable or an operator.
    """
    given = [name for name, value in (("variable", variable), ("operator", operator)) if value is not None]
    if len(given) + (step is not None or tile is not None) != 1:
        raise InputError(
            "explain was not given one thing to explain",
            expected="a tile, a step, a tile and a step, a variable, or an operator",
            todo="for example profile.explain(step=profile.peak.step)",
        )
    if variable is not None:
        return _variable(profile, variable, ipu)
    if operator is not None:
        return _operator(profile, operator)
    if tile is None:
        return _step(profile, step if step is not None else -1)
    place = profile.peak.ipu if ipu is None else ipu
    profile.addresses.check(place, tile)
    return _tile(profile, place, tile) if step is None else _tile_at_step(profile, ipu, tile, step)


def _row_of_step(profile: Profile, step: int) -> int:
    rows = np.flatnonzero(profile.tables["steps"]["id"] == step)
    if not len(rows):
        raise InputError(f"no step {step!r}", expected="an id of profile.steps")
    return int(rows[0])


def _step(profile: Profile, step: int) -> Explanation:
    steps = profile.tables["steps"]
    row = _row_of_step(profile, step)
    parts = _terms(profile, step)
    kinds = sorted({part.subject for part in parts})
    times = int(steps["times"][row])
    counted = "once" if times == 1 else f"{times} times"
    return Explanation(
        subject=f"one execution of step {step} {steps['name'][row]} ({steps['kind'][row]}), which runs {counted}",
        value=int(steps["cycles"][row]),
        unit="cycles",
        formula=" + ".join(kinds) or "no cost",
        typical_error=_largest_error(parts),
        parts=parts,
    )


def _terms(profile: Profile, step: int) -> tuple[Explanation, ...]:
    terms, formulas = profile.tables["terms"], profile.meta["formulas"]
    found = []
    for row in np.flatnonzero(terms["step"] == step):
        known = formulas[terms["formula"][row]]
        found.append(
            Explanation(
                subject=str(terms["name"][row]),
                value=int(terms["value"][row]),
                unit=str(known["unit"]),
                formula=str(known["text"]),
                inputs=json.loads(terms["inputs"][row]),
                source=str(known["source"]),
                typical_error=typical_error(profile, str(known["error_kind"])),
            )
        )
    return tuple(found)


def _bytes(profile: Profile, subject: str, value: int, formula: str, source: str = ALLOCATOR) -> Explanation:
    return Explanation(
        subject=subject,
        value=int(value),
        unit="bytes",
        formula=formula,
        source=source,
        typical_error=typical_error(profile, "memory"),
    )


def _category(profile: Profile, name: str, value: int, ipu: int, tile: int) -> Explanation:
    """A category of a tile; one that is not variables has a formula and inputs."""
    words = name.replace("_", " ")
    described = profile.meta["category_formulas"].get(name)
    if described is not None:
        known = profile.meta["formulas"][described["formula"]]
        return Explanation(
            subject=words,
            value=value,
            unit="bytes",
            formula=str(known["text"]),
            inputs=_category_inputs(profile, name, described["inputs"], ipu, tile),
            source=str(known["source"]),
            typical_error=typical_error(profile, str(known["error_kind"])),
            parts=_codelets(profile, ipu, tile) if name == "vertex_code" else (),
        )
    if name in FOOTPRINT_CATEGORIES:
        return _bytes(profile, words, value, f"bytes of {words} on this tile", "")
    return _bytes(profile, words, value, f"addresses that {words} variables use and no category before them")


def _category_inputs(profile: Profile, name: str, fixed: Mapping[str, Any], ipu: int, tile: int) -> dict[str, Any]:
    start = f"input.{name}."
    found = {key.removeprefix(start): values for key, values in profile.arrays.items() if key.startswith(start)}
    return {key: int(values[ipu, tile]) for key, values in found.items()} | dict(fixed)


def _codelets(profile: Profile, ipu: int, tile: int) -> tuple[Explanation, ...]:
    """The code of each instantiation of a vertex class on a tile, the largest first."""
    table = profile.tables["codelets"]
    held = profile.arrays["per_tile"][table["tiles_index"], tile] > 0
    rows = np.flatnonzero(held & (table["ipu"] == ipu))
    order = rows[np.argsort(-table["code_bytes"][rows], kind="stable")]
    return tuple(
        _bytes(
            profile, table["vertex"][row], table["code_bytes"][row], table["template"][row] or "one instantiation", CODE
        )
        for row in order.tolist()
    )


def _tile(profile: Profile, ipu: int, tile: int) -> Explanation:
    rows, value = profile.addresses.tile(ipu, tile)
    by_category = bytes_by_category(rows)
    parts = [_category(profile, name, size, ipu, tile) for name, size in by_category.items() if size]
    gaps = value - sum(by_category.values())
    if gaps:
        parts.append(_bytes(profile, "gaps", gaps, "addresses that nothing uses, below the last one that is used"))
    return Explanation(
        subject=f"memory of tile {tile} of IPU {ipu}",
        value=value,
        unit="bytes",
        formula="every allocated address once, by category, and the gaps between them",
        typical_error=typical_error(profile, "memory"),
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )


def _tile_at_step(profile: Profile, ipu: int | None, tile: int, step: int) -> Explanation:
    _row_of_step(profile, step)
    places = live_bytes.ipus_of_step(profile, step)
    place = (places[0] if places else profile.peak.ipu) if ipu is None else ipu
    live = profile.live_variables(step, place, tile)
    fixed = {name: int(live_bytes.footprint(profile, name)[place, tile]) for name in FOOTPRINT_CATEGORIES}
    parts = [_category(profile, name, size, place, tile) for name, size in fixed.items()]
    parts += [
        _bytes(
            profile,
            row["name"],
            row["bytes"],
            f"{row['kind']} {row['dtype']}{row['shape']}, its part on this tile",
            MAPPING,
        )
        for row in records(live)
    ]
    parts = sorted((part for part in parts if part.value), key=lambda part: -part.value)
    return Explanation(
        subject=f"bytes live on tile {tile} of IPU {place} at step {step}",
        value=sum(part.value for part in parts),
        unit="bytes",
        formula="what is always live and the variables whose life covers the step",
        typical_error=typical_error(profile, "memory"),
        parts=tuple(parts),
    )


def _variable(profile: Profile, variable: str | int, ipu: int | None) -> Explanation:
    table = profile.tables["variables"]
    chosen = table["id"] == variable if isinstance(variable, int) else table["name"] == variable
    if ipu is not None:
        chosen = chosen & (table["ipu"] == ipu)
    rows = np.flatnonzero(chosen)
    if not len(rows):
        raise InputError(f"no variable {variable!r}", expected="a name or id of profile.variables")
    if len(rows) == 1:
        return _one_variable(profile, int(rows[0]))
    found = [(_one_variable(profile, row), table["id"][row]) for row in rows.tolist()]
    parts = [replace(part, subject=f"{part.subject}, id {number}") for part, number in found]
    places = sorted(set(table["ipu"][rows].tolist()))
    return Explanation(
        subject=f"{len(parts)} variables named {variable} on IPU {', '.join(map(str, places))}",
        value=sum(part.value for part in parts),
        unit="bytes",
        formula="the variables of this name; explain(variable=<its id>) gives one of them",
        typical_error=typical_error(profile, "memory"),
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )


def _one_variable(profile: Profile, row: int) -> Explanation:
    table = profile.tables["variables"]
    vector = profile.vector(table["bytes_index"][row])
    life = (
        "always live" if table["always_live"][row] else f"steps {table['first_step'][row]} to {table['last_step'][row]}"
    )
    inputs = {
        "kind": table["kind"][row],
        "dtype": table["dtype"][row],
        "shape": table["shape"][row],
        "mapping": table["mapping"][row],
        "tiles": int(table["tiles"][row]),
        "largest part": f"{int(vector.max())} bytes on tile {int(vector.argmax())}",
        "life": life,
    }
    return Explanation(
        subject=f"variable {table['name'][row]} on IPU {table['ipu'][row]}",
        value=int(table["bytes"][row]),
        unit="bytes",
        formula="elements x bytes of an element on every tile it is mapped to, copies and padding included",
        inputs=inputs,
        source=MAPPING,
        typical_error=typical_error(profile, "memory"),
    )


def _runs(profile: Profile, row: int, shared: OperatorSteps | None = None) -> Explanation:
    """All runs of a step of an operator, with the sources of what one costs; `explain(step=...)` takes it apart.
    Of a step in a body that the operator has `shared` with others, the operator's part."""
    steps = profile.tables["steps"]
    terms = _terms(profile, int(steps["id"][row]))
    times, total = int(steps["times"][row]), int(steps["total_cycles"][row])
    part = f" x {shared.own_runs} / {shared.runs} runs of a shared body" if shared and shared.runs else ""
    return Explanation(
        subject=f"step {steps['id'][row]} {steps['name'][row]}",
        value=shared.shared_part(total) if shared else total,
        unit="cycles",
        formula=f"{times} x {steps['cycles'][row]} cycles{part}",
        inputs={part.subject: part.value for part in terms},
        source="; ".join(dict.fromkeys(part.source for part in terms)),
        typical_error=_largest_error(terms),
    )


def _largest_error(parts: Iterable[Explanation]) -> float | None:
    return max((part.typical_error for part in parts if part.typical_error is not None), default=None)


def _operator(profile: Profile, operator: str) -> Explanation:
    operators = profile.tables["operators"]
    rows = np.flatnonzero(operators["name"] == operator)
    if not len(rows):
        raise InputError(f"no operator {operator!r}", expected="a name of profile.operators")
    row = int(rows[0])
    lowered = StepsByOperator.of_profile(profile).of(operator)
    parts = [_runs(profile, place) for place in lowered.own]
    parts += [_runs(profile, place, lowered) for place in lowered.shared]
    planned = int(operators["plan_cycles"][row])
    return Explanation(
        subject=f"operator {operator} ({operators['op'][row]})",
        value=sum(part.value for part in parts),
        unit="cycles",
        formula="the steps it was lowered to, each as often as it runs" + (f"; {WHY_PLANNED}" if planned else ""),
        inputs={"plan": operators["plan"][row], "flops": int(operators["flops"][row])}
        | ({"plan_cycles": planned} if planned else {}),
        typical_error=typical_error(profile, "cycles"),
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )
