"""A large profile made up by rule, for the budgets and the looks of views: layers of a deep network over many tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.profiler.builder import FORMULAS
from workbench.base.categories import FOOTPRINT_CATEGORIES
from workbench.profiler.profile import Profile
from workbench.profiler.schema import SCHEMA, table

DIRECTIONS = ("forward", "backward", "update")
CAUSES = ("exchange", "compute", "compute", "sync")
KINDS = {"exchange": "DoExchange", "compute": "OnTileExecute", "sync": "Sync"}


def large_profile(*, ipus: int = 4, tiles: int = 1472, steps: int = 5_000, micro_batches: int = 16) -> Profile:
    """`steps` static steps an IPU: layers forward, backward and update, each of exchange, two compute sets and a sync.

    The layers' weights stay, activations live from forward to backward; forward and backward run `micro_batches` times.
    """
    random = np.random.default_rng(7)
    count = steps // (3 * len(CAUSES))
    vectors = [np.zeros(tiles, dtype=np.int64)]
    shapes = [1 + 0.35 * np.sin(np.linspace(0, 9 + k, tiles)) + 0.1 * random.random(tiles) for k in range(12)]
    for k in range(240):
        vectors.append((shapes[k % 12] * (120 + 40 * (k // 12))).astype(np.int64))
    rows = _rows(ipus, count, micro_batches, np.array([vector.max() for vector in vectors]), tiles)
    variables, intervals = _variables(ipus, count, np.array([vector.sum() for vector in vectors]), tiles)
    timeline = {
        "ipu": np.repeat(np.arange(ipus), len(rows["id"]) // ipus),
        "position": np.tile(np.arange(len(rows["id"]) // ipus), ipus),
        "step": rows["id"],
    }
    arrays, liveness, verdict = _memory(np.array(vectors), variables, intervals, timeline, ipus)
    empty: dict[str, Any] = {name: [] for name in ()}
    tables = {"variables": variables, "steps": rows, "intervals": intervals, "timeline": timeline, "liveness": liveness}
    total = int(rows["total_cycles"].sum())
    causes = [(ipu, cause) for ipu in range(ipus) for cause in ("exchange", "compute", "sync")]
    amounts = [
        int(rows["total_cycles"][(rows["ipu"] == ipu) & (rows["cause"] == cause)].sum()) for ipu, cause in causes
    ]
    amounts += [total - sum(amounts[3 * ipu : 3 * ipu + 3]) for ipu in range(ipus)]
    causes += [(ipu, "idle_wait_stage") for ipu in range(ipus)]
    tables["cycle_breakdown"] = {
        "ipu": [ipu for ipu, _ in causes],
        "cause": [cause for _, cause in causes],
        "cycles": amounts,
    }
    full = {name: table(name, tables.get(name) or dict.fromkeys(SCHEMA[name], empty.get(name, []))) for name in SCHEMA}
    return Profile(
        meta=_meta(ipus, tiles, total, verdict, _trace(rows, count, micro_batches, ipus)), tables=full, arrays=arrays
    )


def _rows(ipus: int, count: int, micro_batches: int, longest: Any, tiles: int) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA["steps"]}
    for ipu in range(ipus):
        for turn, direction in enumerate(DIRECTIONS):
            for place in range(count):
                layer = f"stage{ipu}/block{place // 6:02d}/conv{place % 6}"
                for part, cause in enumerate(CAUSES):
                    vector = 1 + (place * 7 + part * 31 + turn * 5) % 240 if cause == "compute" else 0
                    cycles = int(longest[vector]) if vector else 90 if cause == "sync" else 400 + 13 * (place % 29)
                    times = 1 if direction == "update" else micro_batches
                    row = {
                        "id": len(columns["id"]),
                        "kind": KINDS[cause],
                        "name": f"{layer}/{direction}/{cause} {part}",
                        "layer": layer,
                        "layer_class": "Conv2D",
                        "direction": direction,
                        "ipu": ipu,
                        "to_ipu": -1,
                        "stage": -1,
                        "times": times,
                        "cycles": cycles,
                        "total_cycles": cycles * times,
                        "cause": cause,
                        "active_tiles": tiles if vector else 0,
                        "tile_balance": 0.8,
                        "cycles_index": vector,
                    }
                    for name, kind in SCHEMA["steps"].items():
                        columns[name].append(row.get(name, "" if kind == "U" else 0))
    return {
        name: np.array(values, dtype=object if SCHEMA["steps"][name] == "U" else None)
        for name, values in columns.items()
    }


def _variables(ipus: int, count: int, sums: Any, tiles: int) -> tuple[dict[str, Any], dict[str, Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA["variables"]}
    spans: list[tuple[int, int, int]] = []
    per = len(CAUSES)
    for ipu in range(ipus):
        for place in range(count):
            layer = f"stage{ipu}/block{place // 6:02d}/conv{place % 6}"
            for kind, vector in (
                ("parameter", 1 + place % 90),
                ("activation", 1 + (place * 3) % 70),
                ("temporary", 1 + place % 110),
            ):
                number = len(columns["id"])
                row = {
                    "id": number,
                    "name": f"{layer}/{kind}",
                    "layer": layer,
                    "direction": "forward",
                    "kind": kind,
                    "dtype": "float32",
                    "bytes": int(sums[vector]),
                    "always_live": kind == "parameter",
                    "ipu": ipu,
                    "bytes_index": vector,
                    "tiles": tiles,
                }
                for name, form in SCHEMA["variables"].items():
                    columns[name].append(row.get(name, "" if form == "U" else 0))
                if kind == "activation":
                    spans.append((number, place * per, (2 * count - 1 - place) * per))
                elif kind == "temporary":
                    spans += [
                        (number, place * per, place * per + 2),
                        (number, (count + place) * per, (count + place) * per + 2),
                    ]
    intervals = dict(
        zip(("variable", "first", "last"), (np.array(part) for part in zip(*spans, strict=True)), strict=True)
    )
    return {
        name: np.array(values, dtype=object if SCHEMA["variables"][name] == "U" else None)
        for name, values in columns.items()
    }, intervals


def _memory(vectors: Any, variables: Any, intervals: Any, timeline: Any, ipus: int) -> tuple[Any, Any, Any]:
    tiles, length = vectors.shape[1], len(timeline["step"]) // ipus
    always, peak, where = (np.zeros((ipus, tiles), dtype=np.int64) for _ in range(3))
    liveness: dict[str, list[Any]] = {name: [] for name in SCHEMA["liveness"]}
    for ipu in range(ipus):
        mine = (variables["ipu"] == ipu) & variables["always_live"].astype(bool)
        always[ipu] = vectors[variables["bytes_index"][mine].astype(int)].sum(axis=0) + 40_000
        change = np.zeros((length + 1, tiles), dtype=np.int64)
        for variable, first, last in zip(*intervals.values(), strict=True):
            if variables["ipu"][variable] == ipu:
                change[first] += vectors[variables["bytes_index"][variable]]
                change[last + 1] -= vectors[variables["bytes_index"][variable]]
        live = np.cumsum(change[:-1], axis=0)
        peak[ipu], where[ipu] = live.max(axis=0), live.argmax(axis=0)
        worst = (always[ipu] + live).argmax(axis=1)
        liveness["ipu"] += [ipu] * length
        liveness["position"] += range(length)
        liveness["step"] += timeline["step"][ipu * length : (ipu + 1) * length].tolist()
        liveness["always_live_bytes"] += [int(always[ipu].sum())] * length
        liveness["live_bytes"] += live.sum(axis=1).tolist()
        liveness["worst_tile"] += worst.tolist()
        liveness["worst_tile_bytes"] += (always[ipu] + live)[np.arange(length), worst].tolist()
    used = always + peak
    ipu, tile = divmod(int(used.argmax()), tiles)
    verdict = {
        "fits": bool(used.max() <= 638_976),
        "max_tile_bytes": int(used.max()),
        "peak": {
            "ipu": ipu,
            "tile": tile,
            "step": int(timeline["step"][ipu * length + where[ipu, tile]]),
            "bytes": int(used.max()),
        },
    }
    arrays = {
        "per_tile": vectors,
        "always_live": always,
        "live_peak": peak,
        "live_peak_position": where,
        "allocated_as": np.tile(np.arange(tiles), (ipus, 1)),
        "total_with_gaps": used,
        "placement_numbers": np.zeros(0, dtype=np.int64),
        **{f"category.{name}": np.zeros((ipus, tiles), dtype=np.int64) for name in FOOTPRINT_CATEGORIES},
    }
    arrays["category.vertex_code"] += 40_000
    return arrays, liveness, verdict


def _trace(rows: Any, count: int, micro_batches: int, ipus: int) -> dict[str, Any]:
    per = 3 * count * len(CAUSES)
    once = 2 * count * len(CAUSES)
    bodies = {f"pass{ipu}": ["sequence", "", [["step", ipu * per + k] for k in range(once)]] for ipu in range(ipus)}
    calls = [["call", f"pass{ipu}", f"IPU {ipu}", ipu, None, "", None] for ipu in range(ipus)]
    updates = [["step", ipu * per + once + k] for ipu in range(ipus) for k in range(per - once)]
    return {
        "entry": ["sequence", "train", [["repeat", "micro_batches", micro_batches, ["sequence", "", calls]], *updates]],
        "functions": bodies,
    }


def _meta(ipus: int, tiles: int, total: int, verdict: Any, trace: Any) -> dict[str, Any]:
    return {
        "name": "made-up deep network",
        "mode": "training",
        "batch_size": 4,
        "samples_per_call": 64,
        "engine_version": "hand",
        "format_version": 1,
        "ipus": ipus,
        "replicas": 1,
        "total_cycles": total,
        "target": {
            "name": "ipu2",
            "architecture": "ipu2",
            "tiles_per_ipu": tiles,
            "bytes_per_tile": 638_976,
            "non_interleaved_bytes": 212_992,
            "interleaved_bytes": 425_984,
            "clock_hz": 1.33e9,
            "exchange_bytes_per_cycle": 4,
            "peak_flops_per_second": 62.5e12,
            "host_bytes_per_second": 8.0e9,
            "what_if": [],
        },
        "config": {},
        "config_changed": {},
        "assumptions": [],
        "warnings": [],
        "formulas": FORMULAS,
        "category_formulas": {},
        "typical_errors": {},
        "pipeline": {},
        "passes": [],
        "verdict": verdict,
        "trace": trace,
    }
