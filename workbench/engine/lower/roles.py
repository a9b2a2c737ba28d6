"""What kind of variable an entry parameter becomes, by its role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from workbench.base.categories import VariableKind
from workbench.engine.graph.graph import Role

_HELD_AS: Mapping[str, VariableKind] = {
    "accumulator": "optimizer",
    "seed": "state",
    "target": "input",
    "argument": "input",
}

KIND_OF_ROLE: Mapping[str, VariableKind] = {
    role: _HELD_AS.get(role, cast(VariableKind, role)) for role in get_args(Role)
}
"""A role is a kind of its own name, but for those that are held as another."""
