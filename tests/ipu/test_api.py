"""Every public name of the API reference's sections 21.2 to 21.8 is where it was, with its parameters and defaults.

data/api_first_half.json holds names, kinds, parameters and defaults as facts: from the reference's text, or where the
text lost a heading from the public source that each row names.
"""

from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from workbench import ipu

ROWS = json.loads((Path(__file__).parents[1] / "data" / "api_first_half.json").read_text(encoding="utf-8"))


def found(name: str) -> Any:
    module, *path = name.split(".")
    owner = getattr(ipu, module)
    for part in path:
        owner = inspect.getattr_static(owner, part) if inspect.isclass(owner) else getattr(owner, part)
    return owner


def parameters(row: dict[str, Any]) -> list[list[str]]:
    signature = inspect.signature(found(row["name"]))
    named = [each for each in signature.parameters.values() if each.name not in ("self", "kwargs")]
    return [
        [each.name] if each.default is inspect.Parameter.empty else [each.name, repr(each.default)] for each in named
    ]


def test_nothing_is_missing() -> None:
    missing = []
    for row in ROWS:
        try:
            found(row["name"])
        except AttributeError:
            missing.append(row["name"])
    assert missing == []


@pytest.mark.parametrize("row", [row for row in ROWS if "parameters" in row], ids=lambda row: row["name"])
def test_parameters_and_defaults(row: dict[str, Any]) -> None:
    wanted = [each for each in row["parameters"] if not each[0].startswith("*")]
    ours = parameters(row)
    assert ours[: len(wanted)] == wanted
    assert all(len(each) == 2 for each in ours[len(wanted) :])  # what is added has a default


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_kinds_and_documentation(row: dict[str, Any]) -> None:
    ours = found(row["name"])
    kinds = {
        "property": lambda: isinstance(ours, property),
        "class": lambda: inspect.isclass(ours),
        "enumeration": lambda: inspect.isclass(ours) and issubclass(ours, Enum),
        "function": lambda: callable(ours) and not inspect.isclass(ours),
        "method": lambda: inspect.isfunction(ours),
    }
    assert kinds[row["kind"]]()
    assert inspect.getdoc(ours)
    if "members" in row:
        assert list(ours.__members__) == row["members"]


def test_every_row_says_where_it_comes_from() -> None:
    assert all(row["source"].startswith(("API reference 21.", "graphcore/tensorflow@b2127bba ")) for row in ROWS)
    assert len({row["name"] for row in ROWS}) == len(ROWS) > 60
    modules = {row["name"].split(".")[0] for row in ROWS}
    assert modules >= {"config", "ipu_compiler", "ipu_infeed_queue", "ipu_outfeed_queue", "loops", "scopes", "utils"}
