"""Where a number comes from: its formula with the inputs filled in, the formula's source, and its typical error."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.base.categories import CATEGORY_WORDS, FOOTPRINT_CATEGORIES
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.base.text import short
from workbench.errors import InputError
from workbench.profiler.advice.explanation import Explanation
from workbench.profiler.fidelity import KINDS, TypicalError, error_of
from workbench.profiler.memory import live_bytes
from workbench.profiler.memory.addresses import addresses_by_category
from workbench.profiler.places import ipu_of, step_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import method
from workbench.profiler.report import records

MOST_TERMS = 8  # of a sum that is written out
MOST_MEANT = 3  # names that a misspelt one may stand for
# Sources of numbers that are read from the program itself rather than computed by a formula of the engine.
MAPPING = "the tile mapping of the program"
ALLOCATOR = "the addresses the allocator gave"
CODE = "the size its codelet states"
WHY_PLANNED = (
    "plan_cycles is what the planner charged, which counts bytes exchanged, vertices and what is rearranged on the"
    " fullest tile, but no launches, synchronisation or copies on a tile, and does not know yet where operands lie"
)


# Cause of a step -> the kind of its cycles, where that has another name.
_KIND_OF_CAUSE = {"inter_ipu": "links", "collective": "links"}


def known_error(profile: Profile, kind: str) -> TypicalError | None:
    """How far published numbers of a kind, and of no other, are from modelled ones; None when there are none."""
    return error_of(profile.meta.get("typical_errors", {}), kind)


@method("explain")
def explain(
    profile: Profile,
    *,
    tile: int | None = None,
    step: int | None = None,
    variable: str | int | None = None,
    operator: str | None = None,
    ipu: int | None = None,
    depth: int | None = None,
) -> Explanation:
    """Where a number comes from: value, formula with its inputs filled in, source, typical error and parts.

    Give a tile (its bytes), a step (its cycles), a tile and a step (bytes live there), a variable or an operator.
    `depth=1` writes one line for who only wants to know what most of it is, 2 its parts too, and so on to the bottom.
    """
    if depth is not None and depth < 1:
        raise InputError(f"explain was asked for depth {depth!r}", expected="1 for one line, 2 with parts, or None")
    found = _explained(profile, tile=tile, step=step, variable=variable, operator=operator, ipu=ipu)
    return replace(found, depth=depth)


def _explained(
    profile: Profile,
    *,
    tile: int | None,
    step: int | None,
    variable: str | int | None,
    operator: str | None,
    ipu: int | None,
) -> Explanation:
    if ipu is not None:
        ipu_of(profile, ipu)
    told = {"tile": tile, "step": step, "variable": variable, "operator": operator}
    given = {name: value for name, value in told.items() if value is not None}
    if len({"place" if name in ("tile", "step") else name for name in given}) != 1:
        raise InputError(
            "explain was not given one thing to explain" + (f", but {short(given)}" if given else ""),
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
    return int(np.flatnonzero(profile.tables["steps"]["id"] == step_of(profile, step))[0])


def _step(profile: Profile, step: int) -> Explanation:
    steps = profile.tables["steps"]
    row = _row_of_step(profile, step)
    parts = _terms(profile, step)
    kinds = sorted({part.subject for part in parts})
    times, known = int(steps["times"][row]), profile.steps_by_caller
    layers = set(known.layer[known.row == row].tolist())
    counted = ("once" if times == 1 else f"{times:,} times") + (
        f", for {len(layers):,} layers" if len(layers) > 1 else ""
    )
    return Explanation(
        subject=f"one execution of step {step:,} {steps['name'][row]} ({steps['kind'][row]}), which runs {counted}",
        value=int(steps["cycles"][row]),
        unit="cycles",
        formula=" + ".join(kinds) or "no cost",
        error=_error_of_step(profile, row),
        parts=parts,
    )


def _terms(profile: Profile, step: int) -> tuple[Explanation, ...]:
    terms = profile.tables["terms"]
    found = []
    for row in np.flatnonzero(terms["step"] == step).tolist():
        name, value, formula = str(terms["name"][row]), int(terms["value"][row]), str(terms["formula"][row])
        of = json.loads(terms["of"][row] or "[]")
        found.append(_term(profile, name, value, formula, json.loads(terms["inputs"][row]), of))
    return tuple(found)


def explain_term(profile: Profile, name: str, value: int, formula: str, inputs: Mapping[str, Any]) -> Explanation:
    """A number by one of the profile's formulas: arithmetic, source and typical error."""
    return _term(profile, name, value, formula, inputs, ())


def _term(
    profile: Profile, name: str, value: int, formula: str, inputs: Mapping[str, Any], of: Iterable[Mapping[str, Any]]
) -> Explanation:
    """A number by a formula; `of` are those of its inputs that have formulas of their own."""
    known = profile.meta["formulas"][formula]
    needs = tuple(
        _term(profile, str(each["name"]), int(each["value"]), str(each["formula"]), each["inputs"], ()) for each in of
    )
    return Explanation(
        subject=name,
        value=value,
        unit=str(known["unit"]),
        formula=str(known["text"]),
        arithmetic=_evaluated(formula, inputs),
        inputs={key: given for key, given in inputs.items() if not needs or not isinstance(given, list)},
        source=str(known["source"]),
        error=known_error(profile, str(known["error_kind"])),
        needs=needs,
    )


def _evaluated(formula: str, inputs: Mapping[str, Any]) -> str:
    """The formula as arithmetic; the engine is loaded only for who asks where a number comes from."""
    from workbench.profiler.collect import evaluated

    return evaluated(formula, inputs)


def _summed(numbers: Sequence[int]) -> str:
    """Numbers as a sum: those that are alike as a product, of many the largest and what is left."""
    counted = Counter(numbers)
    most = sorted(counted, key=lambda number: -number * counted[number])
    texts = [f"{counted[number]} * {number}" if counted[number] > 1 else str(number) for number in most[:MOST_TERMS]]
    rest = sum(number * counted[number] for number in most[MOST_TERMS:])
    return " + ".join([*texts, str(rest)] if rest else texts)


def _bytes(
    profile: Profile,
    subject: str,
    value: int,
    formula: str,
    source: str = ALLOCATOR,
    *,
    arithmetic: str = "",
    kind: str = "variables",
) -> Explanation:
    return Explanation(
        subject=subject,
        value=int(value),
        unit="bytes",
        formula=formula,
        arithmetic=arithmetic,
        source=source,
        error=known_error(profile, kind),
    )


def _category(profile: Profile, name: str, value: int, ipu: int, tile: int, addresses: str = "") -> Explanation:
    """A category of a tile; one that is not variables has a formula and inputs."""
    words = CATEGORY_WORDS[name]
    described = profile.meta["category_formulas"].get(name)
    if described is not None:
        known = profile.meta["formulas"][described["formula"]]
        inputs = _category_inputs(profile, name, described["inputs"], ipu, tile)
        parts = _codelets(profile, ipu, tile) if name == "vertex_code" else ()
        return Explanation(
            subject=words,
            value=value,
            unit="bytes",
            formula=str(known["text"]),
            arithmetic="" if parts else _evaluated(described["formula"], inputs),
            inputs=inputs,
            source=str(known["source"]),
            error=known_error(profile, name if name in KINDS else str(known["error_kind"])),
            parts=parts,
        )
    if name in FOOTPRINT_CATEGORIES:
        return _bytes(profile, words, value, f"bytes of {words} on this tile", "", kind=name)
    rule = f"addresses that variables of kind {name} use and no category before them"
    return _bytes(profile, words, value, rule, arithmetic=addresses)


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
            profile,
            table["vertex"][row],
            table["code_bytes"][row],
            table["template"][row] or "one instantiation",
            CODE,
            arithmetic=str(int(table["code_bytes"][row])),
            kind="vertex_code",
        )
        for row in order.tolist()
    )


def _lengths(spans: Sequence[tuple[int, int]]) -> str:
    """Spans of addresses as the sum of their lengths, the longest as they lie."""
    longest = sorted(spans, key=lambda span: span[0] - span[1])
    texts = [f"({stop:#x} - {start:#x})" for start, stop in longest[:MOST_TERMS]]
    rest = sum(stop - start for start, stop in longest[MOST_TERMS:])
    return " + ".join([*texts, str(rest)] if rest else texts)


def _tile(profile: Profile, ipu: int, tile: int) -> Explanation:
    rows, value = profile.addresses.tile(ipu, tile)
    used = addresses_by_category(rows)
    by_category = {name: sum(stop - start for start, stop in spans) for name, spans in used.items()}
    parts = [
        _category(profile, name, size, ipu, tile, _lengths(used[name])) for name, size in by_category.items() if size
    ]
    taken = sum(by_category.values())
    if gaps := value - taken:
        unused = "bytes up to the last address that is used, less those that are"
        parts.append(_bytes(profile, "gaps", gaps, unused, arithmetic=f"{value} - {taken}", kind="gaps"))
    return Explanation(
        subject=f"memory of tile {tile:,} of IPU {ipu}",
        value=value,
        unit="bytes",
        formula="every allocated address once, by category, and the gaps between them",
        error=known_error(profile, "memory"),
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )


def _elements(dtype: str, size_bytes: int) -> str:
    """Bytes as elements of a type, where they are whole ones."""
    each = ITEMSIZE_BYTES.get(dtype, 1)
    return f"{size_bytes // each} * {each}" if size_bytes % each == 0 else str(size_bytes)


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
            f"{row['kind']} {row['dtype']}{row['shape']}, its part on this tile: elements x bytes of one",
            MAPPING,
            arithmetic=_elements(row["dtype"], int(row["bytes"])),
        )
        for row in records(live)
    ]
    parts = sorted((part for part in parts if part.value), key=lambda part: -part.value)
    return Explanation(
        subject=f"bytes live on tile {tile:,} of IPU {place} at step {step:,}",
        value=sum(part.value for part in parts),
        unit="bytes",
        formula="what is always live and the variables whose life covers the step",
        error=known_error(profile, "memory"),
        parts=tuple(parts),
    )


def _meant(asked: str | int, names: Iterable[str]) -> str:
    """The names that begin with what was asked, or look like it, as a question; "" where there are none."""
    if not isinstance(asked, str) or not asked:
        return ""
    known = list(dict.fromkeys(map(str, names)))
    found = [name for name in known if name.startswith(asked)] or difflib.get_close_matches(asked, known, n=MOST_MEANT)
    return f"did you mean {', or '.join(repr(name) for name in found[:MOST_MEANT])}?" if found else ""


def _variable(profile: Profile, variable: str | int, ipu: int | None) -> Explanation:
    table = profile.tables["variables"]
    chosen = table["id"] == variable if isinstance(variable, int) else table["name"] == variable
    if ipu is not None:
        chosen = chosen & (table["ipu"] == ipu)
    rows = np.flatnonzero(chosen)
    if not len(rows):
        todo = _meant(variable, table["name"])
        raise InputError(f"no variable {variable!r}", expected="a name or id of profile.variables", todo=todo)
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
        error=known_error(profile, "variables"),
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )


def _one_variable(profile: Profile, row: int) -> Explanation:
    table = profile.tables["variables"]
    vector = profile.vector(table["bytes_index"][row])
    life = (
        "always live"
        if table["always_live"][row]
        else f"steps {table['first_step'][row]:,} to {table['last_step'][row]:,}"
    )
    inputs = {
        "kind": table["kind"][row],
        "dtype": table["dtype"][row],
        "shape": table["shape"][row],
        "mapping": table["mapping"][row],
        "tiles": int(table["tiles"][row]),
        "largest part": f"{int(vector.max()):,} bytes on tile {int(vector.argmax()):,}",
        "life": life,
    }
    return Explanation(
        subject=f"variable {table['name'][row]} on IPU {table['ipu'][row]}",
        value=int(table["bytes"][row]),
        unit="bytes",
        formula="elements x bytes of an element on every tile it is mapped to, copies and padding included: as many "
        "tiles x the bytes on one of them, for each size of a part",
        arithmetic=_summed(vector[vector > 0].tolist()),
        inputs=inputs,
        source=MAPPING,
        error=known_error(profile, "variables"),
    )


def _runs(profile: Profile, place: int) -> Explanation:
    """All runs of a step for one caller, a row of `steps_by_caller`, with the sources of what one costs;
    `explain(step=...)` takes it apart."""
    steps, known = profile.tables["steps"], profile.steps_by_caller
    row = int(known.row[place])
    terms = _terms(profile, int(steps["id"][row]))
    own, times = int(known.times[place]), int(steps["times"][row])
    part = f" x {own} / {times} runs of a shared body" if known.callers[place] > 1 else ""
    once = " + ".join(str(part.value) for part in terms) or "0"
    return Explanation(
        subject=f"step {steps['id'][row]:,} {known.name[place]}",
        value=int(known.total_cycles[place]),
        unit="cycles",
        formula=f"{times} x {steps['cycles'][row]} cycles{part}",
        arithmetic=f"{own} * ({once})",
        inputs={part.subject: part.value for part in terms},
        source="; ".join(dict.fromkeys(part.source for part in terms)),
        error=_error_of_step(profile, row),
        needs=terms,
    )


def _part_of(profile: Profile, body: str, cycles: int) -> Explanation:
    """Of a file that does not say for whom its bodies are called."""
    error = known_error(profile, "compute")
    return Explanation(
        subject=f"its part of {body}",
        value=cycles,
        unit="cycles",
        formula="as stored",
        arithmetic=str(cycles),
        error=error,
    )


def _error_of_step(profile: Profile, row: int) -> TypicalError | None:
    cause = str(profile.tables["steps"]["cause"][row])
    return known_error(profile, _KIND_OF_CAUSE.get(cause, cause))


def _operator(profile: Profile, operator: str) -> Explanation:
    operators = profile.tables["operators"]
    rows = np.flatnonzero(operators["name"] == operator)
    if not len(rows):
        todo = _meant(operator, operators["name"])
        raise InputError(f"no operator {operator!r}", expected="a name of profile.operators", todo=todo)
    row = int(rows[0])
    parts = [_runs(profile, place) for place in profile.steps_by_caller.of_operator(operator)]
    left = int(operators["cycles"][row]) - sum(part.value for part in parts)
    if left and operators["body"][row]:  # in files of versions before, where calls do not say for whom they are made
        parts.append(_part_of(profile, str(operators["body"][row]), left))
    planned = int(operators["plan_cycles"][row])
    return Explanation(
        subject=f"operator {operator} ({operators['op'][row]})",
        value=sum(part.value for part in parts),
        unit="cycles",
        formula="the steps it was lowered to, each as often as it runs" + (f"; {WHY_PLANNED}" if planned else ""),
        inputs={"plan": operators["plan"][row], "flops": int(operators["flops"][row])}
        | ({"plan_cycles": planned} if planned else {}),
        error=known_error(profile, "product") if planned else None,
        parts=tuple(sorted(parts, key=lambda part: -part.value)),
    )
