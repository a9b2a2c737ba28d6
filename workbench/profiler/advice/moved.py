"""Through what a layer that did not change takes other cycles: its plan, code that it shares, or where things lie.

Layers are placed one after another and equal operations share code, so that one layer's change moves others. A layer
of which none of this is different takes what it took.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
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
    operators, (found, inside) = profile.tables["operators"], _layouts(profile)
    members: dict[str, str] = {}
    for name, body in zip(operators["name"].tolist(), operators["body"].tolist(), strict=True):
        members.setdefault(body, name if body else "")  # a body lies as its first caller has it
    for layer, name, plan, body in zip(
        *(operators[each].tolist() for each in ("layer", "name", "plan", "body")), strict=True
    ):
        found["plan"].setdefault(layer, set()).add((name, plan))
        found["code"].setdefault(layer, set()).add((name, members[body], frozenset(inside.get(body, ()))))
    return found


def _layouts(profile: Profile) -> tuple[dict[str, Layouts], Layouts]:
    """What the steps of each layer touch and where it lies, and the same of each body that operators share.

    `inputs` are what other layers wrote and what a layer holds from call to call. Bytes of each tile tell where a
    variable lies; of what an exchange moves, also which elements.
    """
    steps, variables = profile.tables["steps"], profile.tables["variables"]
    touching, touched, writes = _touched(profile)
    layers, parents = steps["layer"].tolist(), steps["parent"].tolist()
    holders, kinds = variables["layer"].tolist(), variables["kind"].tolist()
    lies, held, needed = _lies(profile), *_held_and_needed(profile)
    names, moves = steps["name"].tolist(), steps["moves"].tolist()
    found: dict[str, Layouts] = {word: {} for word in WORDS}
    inside: Layouts = {}
    for step, row, write in zip(touching.tolist(), touched.tolist(), writes.tolist(), strict=True):
        layer, of = layers[step], (names[step], held.get(moves[step]))
        here = {lies(row), (*of, needed.get(moves[step]))}
        found["place"].setdefault(layer, set()).update(here)
        inside.setdefault(parents[step].partition("/")[0], set()).update(here)
        if not write and (holders[row] != layer or kinds[row] in _HELD):
            found["inputs"].setdefault(layer, set()).update((lies(row), of))
    return found, inside


def _touched(profile: Profile) -> tuple[np.ndarray[Any, Any], ...]:
    """Rows of the steps, rows of the variables that they touch, and whether they write these."""
    steps, variables, accesses = (profile.tables[name] for name in ("steps", "variables", "accesses"))
    touching, touched = rows_of(steps["id"])[accesses["step"]], rows_of(variables["id"])[accesses["variable"]]
    return touching, touched, accesses["write"]


def _lies(profile: Profile) -> Callable[[int], tuple[Any, ...]]:
    """What a row of the variables is and how many bytes each tile has of it, as a digest."""
    variables = profile.tables["variables"]
    described = list(zip(*(variables[each].tolist() for each in ("name", "ipu", "dtype", "shape")), strict=True))
    indices = variables["bytes_index"].tolist()

    @cache
    def digest(index: int) -> bytes:
        return _digest(np.ascontiguousarray(profile.vector(index)).tobytes())

    return lambda row: (*described[row], digest(indices[row]))


def _held_and_needed(profile: Profile) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Of each set of moves which elements the tiles hold before, and which they need, as digests."""
    moves, table = profile.tables["moves"], profile.tables["placements"]
    parts = np.split(profile.arrays["placement_numbers"], np.cumsum(table["numbers"])[:-1])
    known = [
        f"{kind} {head} ".encode() + part.tobytes()
        for kind, head, part in zip(table["kind"].tolist(), table["head"].tolist(), parts, strict=False)
    ]
    found: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    sets = moves["set"].tolist()
    for told, column in zip(found, ("held", "needed"), strict=True):
        for number, row in zip(sets, moves[column].tolist(), strict=True):
            told[number] = _digest(told.get(number, b"") + known[row])
    return found


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


__all__ = ["WORDS", "moved"]
