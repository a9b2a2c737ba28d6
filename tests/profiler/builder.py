"""A builder that completes small profiles written by hand, by the plainest arithmetic; no engine takes part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.categories import FOOTPRINT_CATEGORIES
from workbench.profiler.profile import Profile
from workbench.profiler.schema import SCHEMA, table_from_rows

TILES = 16
FORMULAS = {
    "made.vertex": {
        "text": "6 x (overhead + elements / width)",
        "source": "made up for this profile",
        "unit": "cycles",
        "error_kind": "cycles",
    },
    "made.exchange": {
        "text": "latency + bytes / 4",
        "source": "made up for this profile",
        "unit": "cycles",
        "error_kind": "cycles",
    },
    "made.stack": {
        "text": "bytes of one worker x workers",
        "source": "made up",
        "unit": "bytes",
        "error_kind": "memory",
    },
}


def spread(total: int, tiles: Sequence[int] = range(TILES)) -> list[int]:
    """`total` bytes over the tiles, the first ones taking the rest."""
    chosen = list(tiles)
    each, rest = divmod(total, len(chosen))
    vector = [0] * TILES
    for place, tile in enumerate(chosen):
        vector[tile] = each + (1 if place < rest else 0)
    return vector


class Builder:
    """Collects rows, then works out liveness, addresses and time by the plainest means."""

    def __init__(self, name: str, *, ipus: int = 1, bytes_per_tile: int = 16_384) -> None:
        self.name, self.ipus, self.bytes_per_tile = name, ipus, bytes_per_tile
        self.vectors: list[tuple[int, ...]] = [(0,) * TILES]
        self.variables: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.terms: list[dict[str, Any]] = []
        self.accesses: list[dict[str, Any]] = []
        self.intervals: list[dict[str, Any]] = []
        self.timeline: list[dict[str, Any]] = []
        self.footprint = {name: np.zeros((ipus, TILES), dtype=np.int64) for name in FOOTPRINT_CATEGORIES}
        self.meta: dict[str, Any] = {}
        self.moves: list[dict[str, Any]] = []
        self.placements: list[dict[str, Any]] = []
        self.placement_numbers: list[int] = []

    def passed_on(self, sent: Sequence[int], received: Sequence[int]) -> int:
        """What senders hold end to end goes to receivers end to end, from tile 1 on and last to tile 0; 0, nothing
        recorded, where the sums differ or a tile would send to itself."""
        last_is_first = [*range(1, len(received)), 0]
        owner = [tile for tile, size in enumerate(sent) for _ in range(size)]
        taker = [tile for tile in last_is_first for _ in range(received[tile])]
        if len(owner) != len(taker) or any(one == other for one, other in zip(owner, taker, strict=True)):
            return 0
        number = len(self.moves) + 1
        held, needed = self.runs(sent, range(len(sent))), self.runs(received, last_is_first)
        self.moves.append({"set": number, "held": held, "needed": needed, "itemsize_bytes": 1})
        return number

    def runs(self, sizes: Sequence[int], order: Sequence[int]) -> int:
        """Bytes end to end on the tiles that have some, as differences of where they begin and of their tiles."""
        tiles = [tile for tile in order if sizes[tile]]
        ends = np.cumsum([sizes[tile] for tile in tiles])
        starts = [0, *ends[:-1].tolist()]
        numbers = [*np.diff(starts, prepend=0).tolist(), *np.diff(tiles, prepend=0).tolist()]
        head = json.dumps({"size": sum(sizes), "runs": len(tiles)})
        self.placements.append({"kind": "runs", "head": head, "numbers": len(numbers)})
        self.placement_numbers += numbers
        return len(self.placements) - 1

    def intern(self, vector: Sequence[int]) -> int:
        key = tuple(vector)
        if key not in self.vectors:
            self.vectors.append(key)
        return self.vectors.index(key)

    def variable(self, name: str, kind: str, vector: Sequence[int], **more: Any) -> int:
        """A variable; `lives` are (first, last) positions, none for one that is always live."""
        lives = more.pop("lives", [])
        layer = name.rsplit("/", 1)[0] if "/" in name else ""
        row = {
            "id": len(self.variables),
            "name": name,
            "layer": layer,
            "direction": "forward",
            "kind": kind,
            "dtype": "float32",
            "shape": f"({sum(vector) // 4},)",
            "bytes": sum(vector),
            "always_live": not lives,
            "ipu": 0,
            "bytes_index": self.intern(vector),
            "mapping": f"over {sum(1 for size in vector if size)} tiles",
            "interleaved": False,
            "tiles": sum(1 for size in vector if size),
            "first_step": 0,
            "last_step": 0,
        }
        row.update(more)
        self.variables.append(row)
        self.intervals += [{"variable": row["id"], "first": first, "last": last} for first, last in lives]
        return int(row["id"])

    def step(self, kind: str, name: str, cycles: int | Sequence[int], **more: Any) -> int:
        """A step; `cycles` per tile for compute, else of the whole step. `times` how often it runs in one call."""
        number = len(self.steps)
        vector = [cycles] * TILES if isinstance(cycles, int) else list(cycles)
        worst = max(vector)
        causes = {"OnTileExecute": "compute", "DoExchange": "exchange", "StreamCopy": "host", "Sync": "sync"}
        sent, received = more.pop("sent", [0] * TILES), more.pop("received", [0] * TILES)
        for variables, write in ((more.pop("reads", ()), False), (more.pop("writes", ()), True)):
            self.accesses += [{"step": number, "variable": variable, "write": write} for variable in variables]
        times = more.pop("times", 1)
        row = {
            "id": number,
            "parent": "",
            "kind": kind,
            "name": name,
            "layer": name.rsplit("/", 1)[0] if "/" in name else "",
            "layer_class": "Dense" if name.startswith("dense") else "",
            "direction": "forward",
            "ipu": 0,
            "to_ipu": -1,
            "stage": -1,
            "times": times,
            "cycles": worst,
            "total_cycles": worst * times,
            "cause": causes.get(kind, "inter_ipu"),
            "bytes_sent": sum(sent),
            "bytes_received": sum(received),
            "active_tiles": sum(1 for value in vector if value) if kind == "OnTileExecute" else 0,
            "tile_balance": sum(vector) / (sum(map(bool, vector)) * worst) if worst else 1.0,
            "cycles_index": self.intern(vector) if kind == "OnTileExecute" else 0,
            "sent_index": self.intern(sent),
            "received_index": self.intern(received),
            "fragments_index": self.intern([bool(out) + bool(into) for out, into in zip(sent, received, strict=True)]),
            "shared_index": 0,
            "moves": self.passed_on(sent, received) if kind == "DoExchange" and sum(sent) else 0,
            "operator": "",
            "source": "",
        }
        row.update(more)
        self.steps.append(row)
        formula = "made.vertex" if row["kind"] == "OnTileExecute" else "made.exchange"
        inputs = json.dumps({"bytes": row["bytes_sent"], "tiles": row["active_tiles"]})
        self.terms.append(
            {"step": number, "name": "all", "value": worst, "formula": formula, "inputs": inputs, "of": ""}
        )
        return number

    def live(self, ipu: int, tile: int | None = None) -> np.ndarray:
        """Bytes not always live at each place of an IPU's program: one tile, or [positions, tiles]."""
        length = sum(1 for row in self.timeline if row["ipu"] == ipu)
        found = np.zeros((length, TILES), dtype=np.int64)
        for row in self.intervals:
            owner = self.variables[row["variable"]]
            if owner["ipu"] == ipu:
                found[row["first"] : row["last"] + 1] += np.array(self.vectors[owner["bytes_index"]])
        return found if tile is None else found[:, tile]

    def addresses(self, ipu: int, tile: int) -> list[dict[str, Any]]:
        """Always-live things from address 0 up, then each variable at the lowest address free during its life."""
        rows: list[dict[str, Any]] = []
        top = 0

        def place(variable: int, label: str, category: str, address: int, size: int) -> None:
            place_row = {"ipu": ipu, "tile": tile, "variable": variable, "label": label, "category": category}
            rows.append({**place_row, "address": address, "bytes": size})

        for name, sizes in self.footprint.items():
            if sizes[ipu, tile]:
                place(-1, name.replace("_", " "), name, top, int(sizes[ipu, tile]))
                top += int(sizes[ipu, tile])
        owned = [row for row in self.variables if row["ipu"] == ipu and self.vectors[row["bytes_index"]][tile]]
        for row in sorted(owned, key=lambda row: not row["always_live"]):
            size = self.vectors[row["bytes_index"]][tile]
            address = top if row["always_live"] else self.lowest(rows, row["id"], top, size)
            place(row["id"], row["name"], row["kind"], address, size)
            top += size if row["always_live"] else 0
        return rows

    def lowest(self, rows: list[dict[str, Any]], variable: int, bottom: int, size: int) -> int:
        lives = [(row["first"], row["last"]) for row in self.intervals if row["variable"] == variable]

        def together(other: int) -> bool:
            return any(
                row["first"] <= last and first <= row["last"]
                for row in self.intervals
                if row["variable"] == other
                for first, last in lives
            )

        address = bottom
        for row in sorted(rows, key=lambda row: int(row["address"])):
            clash = row["address"] < address + size and address < row["address"] + row["bytes"]
            if clash and together(row["variable"]):
                address = row["address"] + row["bytes"]
        return int(address)

    def profile(self, trace: dict[str, Any], **tables: list[dict[str, Any]]) -> Profile:
        """The finished profile."""
        always, peak, where, liveness, allocation, gaps = self.memory()
        worst = int(np.argmax(gaps))
        ipu, tile = divmod(worst, TILES)
        at = int(where[ipu, tile])
        step = next(row["step"] for row in self.timeline if (row["ipu"], row["position"]) == (ipu, at))
        used = int(gaps[ipu, tile])
        for row in self.variables:
            spans = [item for item in self.intervals if item["variable"] == row["id"]]
            places = {item["position"]: item["step"] for item in self.timeline if item["ipu"] == row["ipu"]}
            row["first_step"] = places[min((item["first"] for item in spans), default=0)]
            row["last_step"] = places[max((item["last"] for item in spans), default=len(places) - 1)]
        verdict = {
            "fits": used <= self.bytes_per_tile,
            "max_tile_bytes": used,
            "peak": {"ipu": ipu, "tile": tile, "step": step, "bytes": used},
        }
        rows: dict[str, list[dict[str, Any]]] = {
            "variables": self.variables,
            "steps": self.steps,
            "accesses": self.accesses,
            "intervals": self.intervals,
            "timeline": self.timeline,
            "liveness": liveness,
            "terms": self.terms,
            "moves": self.moves,
            "placements": self.placements,
            "allocation": allocation,
            **tables,
        }
        arrays = {
            "per_tile": np.array(self.vectors, dtype=np.int64),
            "always_live": always,
            "live_peak": peak,
            "live_peak_position": where,
            "allocated_as": np.tile(np.arange(TILES), (self.ipus, 1)),
            "total_with_gaps": gaps,
            "placement_numbers": np.array(self.placement_numbers, dtype=np.int64),
            **{f"category.{name}": sizes for name, sizes in self.footprint.items()},
            "input.stack.worker_bytes": self.footprint["stack"] // 6,
        }
        return Profile(
            meta={**self.base_meta(), **self.meta, "verdict": verdict, "trace": trace},
            tables={name: table_from_rows(name, rows.get(name, [])) for name in SCHEMA},
            arrays=arrays,
        )

    def memory(self) -> tuple[Any, ...]:
        shape = (self.ipus, TILES)
        always, peak, where, gaps = (np.zeros(shape, dtype=np.int64) for _ in range(4))
        liveness: list[dict[str, Any]] = []
        allocation: list[dict[str, Any]] = []
        for ipu in range(self.ipus):
            for sizes in self.footprint.values():
                always[ipu] += sizes[ipu]
            for row in self.variables:
                if row["always_live"] and row["ipu"] == ipu:
                    always[ipu] += np.array(self.vectors[row["bytes_index"]])
            live = self.live(ipu)
            peak[ipu], where[ipu] = live.max(axis=0), live.argmax(axis=0)
            for tile in range(TILES):
                rows = self.addresses(ipu, tile)
                allocation += rows
                gaps[ipu, tile] = max((row["address"] + row["bytes"] for row in rows), default=0)
            places = [row for row in self.timeline if row["ipu"] == ipu]
            for row, sizes in zip(places, live, strict=True):
                worst = int(np.argmax(always[ipu] + sizes))
                liveness.append(
                    {
                        **row,
                        "always_live_bytes": int(always[ipu].sum()),
                        "live_bytes": int(sizes.sum()),
                        "worst_tile": worst,
                        "worst_tile_bytes": int(always[ipu, worst] + sizes[worst]),
                    }
                )
        return always, peak, where, liveness, allocation, gaps

    def base_meta(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mode": "training",
            "batch_size": 4,
            "samples_per_call": 12,
            "engine_version": "hand",
            "format_version": 1,
            "ipus": self.ipus,
            "replicas": 1,
            "target": {
                "name": "ipu2",
                "architecture": "ipu2",
                "tiles_per_ipu": TILES,
                "bytes_per_tile": self.bytes_per_tile,
                "non_interleaved_bytes": self.bytes_per_tile // 4,
                "interleaved_bytes": self.bytes_per_tile - self.bytes_per_tile // 4,
                "executable_bytes": self.bytes_per_tile // 4,
                "clock_hz": 1.0e9,
                "exchange_bytes_per_cycle": 4,
                "peak_flops_per_second": 2.048e12,
                "host_bytes_per_second": 8.0e9,
                "what_if": [f"tiles_per_ipu={TILES}", f"bytes_per_tile={self.bytes_per_tile}"],
            },
            "config": {"matmuls.poplar_options.availableMemoryProportion": "0.6", "auto_select_ipus": self.ipus},
            "config_changed": {"auto_select_ipus": self.ipus},
            "assumptions": ["optimizer SGD(0.01), because none was given"],
            "warnings": [],
            "formulas": FORMULAS,
            "category_formulas": {"stack": {"formula": "made.stack", "inputs": {"workers": 6}}},
            "typical_errors": {
                "memory": {"typical": 0.05, "spread": 0.2, "numbers": 12, "against": ["published reports"]},
                "cycles": {"typical": 0.15, "spread": 2.5, "numbers": 80, "against": ["hardware"]},
                "stack": {"typical": 0.04, "spread": 0.04, "numbers": 1, "against": ["hardware"]},
                "compute": {"typical": 0.01, "spread": 0.02, "numbers": 3, "against": ["IPU Model"]},
            },
            "pipeline": {},
            "passes": [{"pass": "plan", "seconds": 0.01, "changed": "2 plans"}],
        }
