"""Stored digests against new ones, and two checkouts' columns against each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.corpus.digest import Digests

ROOT = Path(__file__).parents[2]
PATH = Path(__file__).parent / "digests.json"
LONGEST = 160


def stored() -> dict[str, Any]:
    """`programs`: the digests of each; `added`: tables and `table.column`s that came since, which are not compared."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    return {"added": [], "programs": {}, **found}


def write(added: list[str], programs: Mapping[str, Digests]) -> None:
    """A line per table, so that a difference reads by program and table."""
    blocks = [
        f" {json.dumps(name)}: {{\n" + ",\n".join(f"  {json.dumps(t)}: {json.dumps(c)}" for t, c in found.items()) + "}"
        for name, found in sorted(programs.items())
    ]
    text = f'{{"added": {json.dumps(sorted(added))},\n"programs": {{\n' + ",\n".join(blocks) + "}}\n"
    json.loads(text)
    PATH.write_text(text, encoding="utf-8")


def differences(old: Digests, new: Digests, added: list[str]) -> list[str]:
    """What is no longer as it was: a line per table or column."""
    lines = [f"{name}: the table is gone" for name in old if name not in new]
    lines += [line for name in old if name in new for line in _of_table(name, old[name], new[name])]
    return lines + [f"{name}: new, and not listed as added" for name in news(old, new) if name not in added]


def news(old: Digests, new: Digests) -> list[str]:
    """Tables, and columns as `table.column`, that are not stored."""
    tables = [name for name in new if name not in old]
    return tables + [f"{name}.{column}" for name in old for column in new.get(name, ()) if column not in old[name]]


def _of_table(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    rows = old.get("rows"), new.get("rows")
    if rows[0] != rows[1]:
        yield f"{name}: {rows[1]} rows, were {rows[0]}"
    for column in old.keys() - {"rows"}:
        if column not in new:
            yield f"{name}.{column}: the column is gone"
        elif rows[0] == rows[1] and old[column] != new[column]:
            yield f"{name}.{column}: other values"


def columns_in(checkout: Path, program: str) -> dict[str, Any]:
    """The columns of a program as another checkout compiles it; one without a corpus takes ours."""
    path = os.pathsep.join([str(checkout.resolve()), str(ROOT)])
    command = [sys.executable, "-m", "tests.corpus.write", "--columns", program]
    done = subprocess.run(
        command, cwd=checkout, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def first_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Of every column that is not alike in both, the first place that is not."""
    for table in one.keys() | other.keys():
        left, right = one.get(table, {}), other.get(table, {})
        for column in left.keys() | right.keys():
            if left.get(column) != right.get(column):
                yield f"{table}.{column}" + _difference(left.get(column), right.get(column))


def _difference(one: Any, other: Any) -> str:
    """Down to the first entry of lists and mappings that is not alike."""
    if isinstance(one, dict) and isinstance(other, dict):
        key = next(key for key in [*one, *other] if one.get(key) != other.get(key))
        return f"[{key!r}]" + _difference(one.get(key), other.get(key))
    if isinstance(one, list) and isinstance(other, list):
        pairs = enumerate(zip(one, other, strict=False))
        place = next((number for number, (left, right) in pairs if left != right), None)
        if place is None:
            return f": {len(one)} entries, and {len(other)} there"
        return f"[{place}]" + _difference(one[place], other[place])
    here, there = (text if len(text := repr(each)) <= LONGEST else text[:LONGEST] + "…" for each in (one, other))
    return f": {here}, and {there} there"
