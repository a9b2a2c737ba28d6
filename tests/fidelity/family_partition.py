"""Cutting chains of layers into stages: the best cuts, transfers, and what crosses each layer."""

from __future__ import annotations

import re
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from workbench.engine.partition import GIB, ChainLayer, Wire, best_partitions, carried_elements, transfer_cycles

# The chains: graphcore/ipu_tensorflow_addons@6dcfc49a591a keras/experimental/auto_pipeline/prediction/
# partition_test.py, utils/types_utils_test.py, by number of IPUs.
LAYERS = {2: 6, 4: 16}
FORWARD_CYCLES = 10_000
MEMORY_BYTES = int(894 * 1024**2 * 0.85)
GROUPS = {2: (2, 4), 4: (2, 7, 3, 4)}
HEAVY, HEAVY_BYTES = {2: (0, 1), 4: (0, 1, 6, 7)}, 600 * 1024**2
CHEAP, DEAR_BYTES = {2: (2,), 4: (2, 5, 6, 8)}, 99_999_999_999
HOST, LINK = Wire(gib_per_second=1, idle_cycles=10**6), Wire(gib_per_second=10, idle_cycles=10**5)


def partition(case: Case) -> Any:
    """Every best cut of a chain."""
    found = re.fullmatch(r"AUTOPIPE-(even|param|mem|xfer)(\d)", case["id"])
    if not found:
        return NotRun(f"no chain called {case['id']!r}")
    kind, ipus = found[1], int(found[2])
    layers = [ChainLayer(**_layer(kind, ipus, place)) for place in range(LAYERS[ipus])]
    wires = [Wire(gib_per_second=1)] * ipus

    def transfer(ipu: int, first: int, last: int) -> int:
        return transfer_cycles(layers, wires, wires, ipu, first, last, GIB)

    return [list(way) for way in best_partitions(layers, ipus, MEMORY_BYTES, transfer)]


def _layer(kind: str, ipus: int, place: int) -> dict[str, Any]:
    layer: dict[str, Any] = {"cycles": FORWARD_CYCLES}
    if kind == "mem":
        layer["memory_bytes"] = HEAVY_BYTES * (place in HEAVY[ipus])
    if kind == "param":
        groups = [name for name, count in enumerate(GROUPS[ipus]) for _ in range(count)]
        layer["variable"] = str(groups[place])
    if kind == "xfer":
        layer["input_bytes"] = DEAR_BYTES * (place not in CHEAP[ipus])
        layer["output_bytes"] = DEAR_BYTES * (place + 1 not in CHEAP[ipus])
    return layer


def transfer(case: Case) -> Any:
    """Cycles of the transfers of an IPU that has some of 12 layers, of which layer i moves 1000 (i + 1) bytes."""
    found = re.search(r"(\d+) IPUs; IPU (\d+) runs layers (\d+)\.\.(\d+)", said(case))
    if not found:
        return NotRun("which IPU has which layers is not stated")
    ipus, ipu, first, last = map(int, found.groups())
    layers = [ChainLayer(cycles=0, input_bytes=1000 * n, output_bytes=1000 * n) for n in range(1, 13)]
    receive, send = [HOST, *[LINK] * (ipus - 1)], [*[LINK] * (ipus - 1), HOST]
    return transfer_cycles(layers, receive, send, ipu, first, last, GIB)


def carry(case: Case) -> Any:
    """Elements that cross each of a chain of dense layers; with a residual the fourth reads the first one's too.

    Attention hands on as many elements as it is given; with a residual a sum behind it reads what it was given, too.
    """
    if "attention" in said(case).lower():
        rows, width = (int(each) for each in re.findall(r"\d+", re.sub(r".*\(|\).*", "", said(case)) or "128,768"))
        alone = not re.search(r"bert|residual|x0 ?\+", f"{case['id']} {said(case)}", re.IGNORECASE)
        return carried_elements([rows * width] * (2 if alone else 3), [[0]] if alone else [[0], [1, 0]])
    found = re.search(r"\d+(?:-\d+)+", said(case))
    if not found:
        return NotRun("the widths are not stated")
    sizes = [int(width) for width in found[0].split("-")]
    reads = [[layer] for layer in range(len(sizes) - 1)]
    if case["id"].endswith("-residual"):
        reads[3].append(1)
    return carried_elements(sizes, reads)
