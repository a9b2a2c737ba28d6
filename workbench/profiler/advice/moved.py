"""Through what a layer that did not change takes other cycles: its plan, code that it shares, or where things lie.

Layers are placed one after another and equal operations share code, so that one layer's change moves others. A layer
of which none of this is different takes what it took.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from workbench.profiler.advice.origins import rows_of

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

# In the order in which they are told; the first that is different is.
WORDS: Mapping[str, str] = {
    "plan": "its plan",
    "code": "the code that it shares",
    "inputs": "where its inputs lie",
    "place": "where its variables lie",
}
Layouts: TypeAlias = dict[str, set[tuple[Any, ...]]]
_HELD = ("parameter", "state", "optimizer")


def moved(before: Profile, after: Profile) -> dict[str, str]:
    """By layer of both profiles the first of `WORDS` that is different; "" where none is."""
    sides = [_told(each) for each in (before, after)]
    layers = [layer for layer in sides[1]["place"] if layer and layer in sides[0]["place"]]
    return {layer: next((word for word in WORDS if _differ(sides, word, layer)), "") for layer in layers}


def _differ(sides: list[dict[str, Layouts]], word: str, layer: str) -> bool:
    first, second = (each[word].get(layer) for each in sides)
    return first != second


def _told(profile: Profile) -> dict[str, Layouts]:
    operators, found = profile.tables["operators"], _layouts(profile)
    members: dict[str, str] = {}
    for name, body in zip(operators["name"].tolist(), operators["body"].tolist(), strict=True):
        members.setdefault(body, name if body else "")  # a body lies as its first caller has it
    for layer, name, plan, body in zip(
        *(operators[each].tolist() for each in ("layer", "name", "plan", "body")), strict=True
    ):
        found["plan"].setdefault(layer, set()).add((name, plan))
        found["code"].setdefault(layer, set()).add((name, members[body]))
    return found


def _layouts(profile: Profile) -> dict[str, Layouts]:
    """By layer the variables that its steps touch, with the bytes of each tile; `inputs` are those of other layers and
    those that it holds from call to call."""
    steps, variables, accesses = (profile.tables[name] for name in ("steps", "variables", "accesses"))
    touching = rows_of(steps["id"])[accesses["step"]]
    layers, of = np.unique(steps["layer"], return_inverse=True)
    touched = rows_of(variables["id"])[accesses["variable"]]
    pairs = np.unique(np.stack([of[touching], touched, accesses["write"]]), axis=1)
    names, holders, kinds = (variables[each].tolist() for each in ("name", "layer", "kind"))
    described = list(zip(names, *(variables[each].tolist() for each in ("ipu", "dtype", "shape")), strict=True))
    digests: dict[int, bytes] = {}
    found: dict[str, Layouts] = {word: {} for word in WORDS}
    for layer, row, write in zip(layers[pairs[0]].tolist(), *pairs[1:].tolist(), strict=True):
        index = int(variables["bytes_index"][row])
        if index not in digests:
            digests[index] = blake2b(np.ascontiguousarray(profile.vector(index)).tobytes(), digest_size=16).digest()
        lies = (*described[row], digests[index])
        found["place"].setdefault(layer, set()).add(lies)
        if not write and (holders[row] != layer or kinds[row] in _HELD):
            found["inputs"].setdefault(layer, set()).add(lies)
    return found


__all__ = ["WORDS", "moved"]
