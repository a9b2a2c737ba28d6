"""Columns and objectives of one's own: none hides what a sweep has, and an objective is a number."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.errors import InputError

GRID = {"batch_size": [1]}


def small() -> Any:
    return wb.ready("mlp", layers=1, hidden=16)


@pytest.mark.parametrize("name", ["batch_size", "fits", "problem", "compile_seconds"])
def test_no_column_hides_one_of_the_sweep(name: str) -> None:
    with pytest.raises(InputError, match=rf"the column '{name}' is called as one of the sweep's own\."):
        wb.sweep(small(), GRID, columns={name: lambda profile: -1})


def test_a_column_the_sweep_has_may_be_named_again() -> None:
    found = wb.sweep(small(), GRID, columns=["seconds", "name"]).to_pandas()
    assert list(found["name"]) == ["mlp"]
    assert list(found.columns).count("seconds") == 1


def test_a_near_column_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"the column 'pek' is 'pek'\. .* did you mean 'peak'\?"):
        wb.sweep(small(), GRID, columns=["pek"])


@pytest.mark.parametrize("given", ["3", None, float("nan"), [1.0, 2.0]])
def test_an_objective_gives_a_number(given: Any) -> None:
    pytest.importorskip("optuna")
    with pytest.raises(InputError, match=r"objective gave .* for a profile\. Expected: a number, less being better\."):
        wb.search(small(), {"batch_size": [1, 2]}, lambda profile: given, trials=1)


def test_a_near_objective_is_asked_for() -> None:
    pytest.importorskip("optuna")
    with pytest.raises(InputError, match=r"did you mean 'total_cycles'\?"):
        wb.search(small(), {"batch_size": [1, 2]}, "total_cycle", trials=1)


def test_a_function_that_takes_no_profile_is_refused_before_anything_compiles() -> None:
    """Python's own TypeError came after the first compile."""
    with pytest.raises(
        InputError, match=r"the column 'one' is <function .*, which takes \(\)\. Expected: a name of Pro"
    ):
        wb.sweep(small(), GRID, columns={"one": lambda: 1})
    pytest.importorskip("optuna")
    with pytest.raises(InputError, match=r"objective is <function .*, which takes \(one, two\)\. Expected: one of: "):
        wb.search(small(), {"batch_size": [1, 2]}, lambda one, two: 1.0, trials=1)
