"""A change that means to change nothing leaves every profile of the corpus as it is."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.corpus.comparing import differences, first_differences, stored
from tests.corpus.digest import columns, digests, of_table
from tests.corpus.programs import PROGRAMS, Program

EVERY = [pytest.param(each, id=name, marks=[pytest.mark.slow] if each.slow else []) for name, each in PROGRAMS.items()]


@pytest.mark.parametrize("program", EVERY)
def test_profile_is_as_it_was(program: Program) -> None:
    found = stored()
    old = found["programs"].get(program.name)
    assert old is not None, f"{program.name} is new: `make corpus` stores its digests"
    lines = differences(old, digests(program.profile()), found["added"])
    assert not lines, "\n  ".join(
        [
            f"{program.name} is another program. First rows that differ from a checkout of the commit before:",
            f"python -m tests.corpus.write --against DIR {program.name}",
            *lines,
        ]
    )


def test_every_digest_has_its_program() -> None:
    assert sorted(stored()["programs"]) == sorted(PROGRAMS)


@cache
def small() -> Any:
    return PROGRAMS["hand_control"].profile()


def changed(value: Any) -> Any:
    """Another value of the type."""
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, int | float | np.number | np.ndarray):
        return value + 1
    return value + "!" if isinstance(value, str) else [value]


def test_one_other_value_changes_the_digest_of_its_column_alone() -> None:
    found = columns(small())
    before = {name: of_table(table) for name, table in found.items()}
    tried = 0
    for name, table in found.items():
        for column, values in table.items():
            if len(values):
                other = copy.copy(values)
                if isinstance(other, np.ndarray):
                    other.setflags(write=True)
                other[-1] = changed(values[-1])
                after = before | {name: of_table({**table, column: other})}
                assert differences(before, after, []) == [f"{name}.{column}: other values"]
                tried += 1
    assert tried > 100


def test_a_profile_of_one_other_value_is_another() -> None:
    """And the other raw tables are as they were."""
    profile = small()
    steps = dict(profile.tables["steps"])
    steps["cycles"] = steps["cycles"] + np.eye(1, len(steps["cycles"]), 3, dtype=np.int64)[0]
    other = dataclasses.replace(profile, tables={**profile.tables, "steps": steps})
    lines = differences(digests(profile), digests(other), [])
    assert [line for line in lines if line.partition(".")[0] in profile.tables] == ["steps.cycles: other values"]
    assert list(first_differences({"steps": {"cycles": [1, 2]}}, {"steps": {"cycles": [1, 3]}})) == [
        "steps.cycles[1]: 2, and 3 there"
    ]


def test_the_numbers_of_vectors_do_not_matter() -> None:
    profile = small()
    count = len(profile.arrays["per_tile"])
    renumbered = np.concatenate([[0], 1 + np.random.default_rng(1).permutation(count - 1)])
    tables = {
        name: {key: renumbered[values] if key.endswith("_index") else values for key, values in table.items()}
        for name, table in profile.tables.items()
    }
    per_tile = np.empty_like(profile.arrays["per_tile"])
    per_tile[renumbered] = profile.arrays["per_tile"]
    other = dataclasses.replace(profile, tables=tables, arrays={**profile.arrays, "per_tile": per_tile})
    assert differences(digests(profile), digests(other), []) == []


def test_what_is_new_must_be_listed_and_what_is_gone_is_missed() -> None:
    old = {"steps": {"rows": 2, "id": "a"}, "terms": {"rows": 1}}
    new = {"steps": {"rows": 2, "id": "a", "plan_cycles": "b"}, "waits": {"rows": 0}}
    words = "new, and not listed as added"
    assert differences(old, new, []) == ["terms: the table is gone", f"waits: {words}", f"steps.plan_cycles: {words}"]
    assert differences(old, {**old, **new}, ["waits", "steps.plan_cycles"]) == []
    assert differences(new, old, ["terms"]) == [
        "waits: the table is gone",
        "steps.plan_cycles: the column is gone",
    ]
    assert differences(old, {**old, "steps": {"rows": 3, "id": "c"}}, []) == ["steps: 3 rows, were 2"]
