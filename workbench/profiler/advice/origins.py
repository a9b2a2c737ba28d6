"""Which layer's change a difference comes of: that of the layer itself, or of one whose results it reads.

A layer has changed itself where it reads what it read, and has other parameters or other operations. One that reads
results of another shape or type takes part in the change they come of: nothing tells a change of its own from that. One
that reads what it read and does what it did has not changed, whatever it takes now: it lies elsewhere, shares its code
with others, or is planned under other options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

Reads: TypeAlias = dict[str, frozenset[tuple[str, str, str]]]


def origins(before: Profile, after: Profile) -> dict[str, str]:
    """By layer of either profile the layer whose change its differences come of; "" where no layer's is known."""
    was, now = _reads(before), _reads(after)
    did, does = _made_of(before), _made_of(after)
    found = {layer: layer for layer in was if layer not in now}
    for layer in now:
        if layer not in was:
            found[layer] = layer
        elif was[layer] != now[layer]:
            found[layer] = _source(was[layer] ^ now[layer], found)
        else:
            found[layer] = layer if did.get(layer) != does.get(layer) else ""
    return found


def _source(moved: frozenset[tuple[str, str, str]], known: Mapping[str, str]) -> str:
    """The first in the program's order of the changes that other inputs come of."""
    wanted = {known.get(source, "") for source, _, _ in moved} - {""}
    return next((layer for layer in known if layer in wanted), "")


def _reads(profile: Profile) -> Reads:
    """By layer, in the order of the forward steps: whose results of which type and shape it reads there.

    What stands in a shared body is its callers': they copy what they read into it, and that counts.
    """
    steps, variables, accesses = (profile.tables[name] for name in ("steps", "variables", "accesses"))
    row = rows_of(steps["id"])[accesses["step"]]
    inner = _in_bodies(profile)[row]
    shared = np.unique(accesses["variable"][inner])
    outside = ~inner & ~accesses["write"] & (steps["direction"] == "forward")[row]
    outside &= ~np.isin(accesses["variable"], shared)
    found: dict[str, set[tuple[str, str, str]]] = {}
    for layer in steps["layer"][steps["direction"] == "forward"].tolist():
        found.setdefault(layer, set())
    of = rows_of(variables["id"])
    for step, read in zip(row[outside].tolist(), of[accesses["variable"][outside]].tolist(), strict=True):
        layer, source = str(steps["layer"][step]), str(variables["layer"][read])
        if source != layer:
            found[layer].add((source, str(variables["dtype"][read]), str(variables["shape"][read])))
    found.pop("", None)
    return {layer: frozenset(each) for layer, each in found.items()}


def rows_of(ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The row of each id."""
    found = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.int64)
    found[ids] = np.arange(len(ids))
    return found


def _in_bodies(profile: Profile) -> np.ndarray[Any, Any]:
    """Which steps stand in a body that operators share."""
    bodies = set(profile.tables["operators"]["body"].tolist()) - {""}
    parents, places = np.unique(profile.tables["steps"]["parent"], return_inverse=True)
    inner = np.array([str(parent).partition("/")[0] in bodies for parent in parents], dtype=bool)
    found: np.ndarray[Any, Any] = inner[places]
    return found


def _made_of(profile: Profile) -> dict[str, list[tuple[Any, ...]]]:
    """By layer its parameters and its forward operations, as long as nothing says where they lie or how they go."""
    operators, variables = profile.tables["operators"], profile.tables["variables"]
    forward, held = operators["direction"] == "forward", variables["kind"] == "parameter"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for names, table, chosen in ((("op", "flops"), operators, forward), (("dtype", "shape"), variables, held)):
        columns = [table[name][chosen].tolist() for name in ("layer", *names)]
        for layer, *told in zip(*columns, strict=True):
            found.setdefault(layer, []).append(tuple(told))
    return {layer: sorted(each, key=repr) for layer, each in found.items()}


__all__ = ["origins", "rows_of"]
