"""`make fidelity`: run every case, print the table by group, and write it where the tests and the app read it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from tests.fidelity.cases import NotRun, run
from tests.fidelity.data import Row, also, rows
from tests.fidelity.judge import Verdict, band, bound_of, judge, same_order
from tests.fidelity.kinds import typical
from workbench.profiler.fidelity import PATH as SUMMARY

TABLE = Path(__file__).parent / "table.json"
ALSO = TABLE.with_name("also.json")
FAR = TABLE.with_name("far.json")
BEYOND = 0.20  # of |ln ratio|: rows with more than this are listed, each with why in reasons.json
STEP = 0.003  # of a listed factor: less than any table shows
OUTSIDE, NOT_RUN = "outside its band", "not run"
COLUMNS = ("cases", "run", "exact", "within", "median", "p90", "worst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row with its verdict, or the reason why it has none."""

    row: Row
    verdict: Verdict | None
    reason: str = ""
    answer: Any = None


def result(row: Row) -> Result:
    """Run one row; an exception of the engine is a case not run."""
    try:
        answer = run(row.case)
    except Exception as problem:
        return Result(row=row, verdict=None, reason=f"{type(problem).__name__}: {str(problem)[:200]}")
    if isinstance(answer, NotRun):
        return Result(row=row, verdict=None, reason=answer.reason)
    return Result(row=row, verdict=judge(row.case, answer, row.expected), answer=answer)


def all_results(chosen: Iterable[Row]) -> list[Result]:
    """Run rows; those of which only an order is claimed are within their band when all of their family keep it."""
    found = [result(row) for row in chosen]
    families: dict[str, list[Result]] = {}
    for each in found:
        if each.verdict and band(each.row.case) is None and isinstance(each.answer, int | float):
            families.setdefault(each.row.name.rsplit("-", 1)[0], []).append(each)
    broken = {
        each.row.name
        for family in families.values()
        if not same_order([each.answer for each in family], [each.row.expected for each in family])
        for each in family
        if not bound_of(each.row.case)
    }
    return [_outside(each) if each.row.name in broken else each for each in found]


def _outside(each: Result) -> Result:
    verdict = each.verdict and replace(each.verdict, within=False)
    return replace(each, verdict=verdict, reason="not in the order measured")


def summarise(results: Iterable[Result]) -> dict[str, Any]:
    """One line of the table. Errors are |ln ratio|, rounded so that they read and compare the same everywhere."""
    found = list(results)
    done = [(each.row.name, each.verdict) for each in found if each.verdict]
    errors = sorted((verdict.error, name) for name, verdict in done if verdict.error is not None)
    line: dict[str, Any] = {
        "cases": len(found),
        "run": len(done),
        "exact": sum(verdict.exact for _, verdict in done),
        "within": sum(verdict.within for _, verdict in done),
        "median": None,
        "p90": None,
        "worst": "",
    }
    if errors:
        values = [error for error, _ in errors]
        line["median"] = _rounded(median(values))
        line["p90"] = _rounded(values[math.ceil(0.9 * len(values)) - 1])
        line["worst"] = errors[-1][1] if errors[-1][0] else ""
    return line


def _rounded(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def by_group(results: Iterable[Result]) -> dict[str, dict[str, Any]]:
    """The table: a line per group, in the order of the groups' first rows."""
    found = list(results)
    order = {name: place for place, name in reversed(list(enumerate(each.row.group for each in found)))}
    ranked = sorted(found, key=lambda each: order[each.row.group])
    return {group: summarise(members) for group, members in groupby(ranked, key=lambda each: each.row.group)}


def furthest(results: Iterable[Result], count: int = 20) -> list[dict[str, Any]]:
    """The cases with the largest finite errors, worst first."""
    ranked = sorted(
        (-each.verdict.error, each.row.name, each.row.group)
        for each in results
        if each.verdict and each.verdict.error and math.isfinite(each.verdict.error)
    )
    return [
        {"case": name, "group": group, "factor": round(math.exp(-error), 3)} for error, name, group in ranked[:count]
    ]


def far(results: Iterable[Result]) -> dict[str, dict[str, float | str]]:
    """By group, the rows that miss: the factor of their worst number beyond `BEYOND`, else `OUTSIDE` or `NOT_RUN`."""
    found: dict[str, dict[str, float | str]] = {}
    for each in results:
        if (missed := _missed(each)) is not None:
            found.setdefault(each.row.group, {})[each.row.name] = missed
    return {group: dict(sorted(rows.items())) for group, rows in sorted(found.items())}


def _missed(each: Result) -> float | str | None:
    if each.verdict is None:
        return NOT_RUN
    error = each.verdict.error or 0.0
    if error > BEYOND:
        return round(math.exp(error), 3) if math.isfinite(error) else OUTSIDE
    return None if each.verdict.within else OUTSIDE


def as_listed(results: Iterable[Result], group: str, table: dict[str, dict[str, float | str]]) -> None:
    """Raises an AssertionError where other rows of a group miss than its table lists, or by other factors."""
    now, then = far(results).get(group, {}), table.get(group, {})
    assert now.keys() == then.keys(), f"rows that miss changed: {sorted(now.keys() ^ then.keys())}; make fidelity"
    moved = {name: (then[name], now[name]) for name in now if not _alike(now[name], then[name])}
    assert not moved, f"rows miss by other factors: {moved}; make fidelity"


def _alike(now: float | str, then: float | str) -> bool:
    if isinstance(now, str) or isinstance(then, str):
        return now == then
    return math.isclose(now, then, rel_tol=STEP)


def to_text(table: dict[str, dict[str, Any]]) -> str:
    """The table as aligned text."""
    lines = [("group", *COLUMNS)]
    for group, line in table.items():
        lines.append((group, *("-" if line[name] is None else str(line[name]) for name in COLUMNS)))
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def details(results: Iterable[Result], group: str) -> str:
    """A line per case of a group."""
    return "\n".join(
        f"{each.row.name}: " + (f"{each.verdict} {each.reason}" if each.verdict else f"not run: {each.reason}")
        for each in results
        if each.row.group == group
    )


def main(arguments: list[str]) -> None:
    """Print the tables and write them, or, given groups, print their cases and write nothing."""
    wanted = set(arguments)
    first, later = ([row for row in each if not wanted or row.group in wanted] for each in (rows(), also()))
    results = all_results(first) + all_results(later)
    table = by_group(results)
    for group in sorted(wanted):
        print(details(results, group))
    print(to_text(table))
    if not wanted:
        write(results, table)


def write(results: list[Result], table: dict[str, dict[str, Any]]) -> None:
    """Both tables, the later cases' apart, the rows that miss, and what the package ships of all of them."""
    later = {row.group for row in also()}
    first = {group: line for group, line in table.items() if group not in later}
    TABLE.write_text(json.dumps(first, indent=1) + "\n")
    ALSO.write_text(json.dumps({group: table[group] for group in later}, indent=1, sort_keys=True) + "\n")
    FAR.write_text(json.dumps(far(results), indent=1) + "\n")
    shipped = {"kinds": typical(results), "groups": table, "worst": furthest(results)}
    SUMMARY.write_text(json.dumps(shipped, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
