"""What a profile holds besides tables and arrays: machine, options, verdict, formulas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.engine.cost import formulas
from workbench.engine.graph.execution import CALLS, RETURNED, SAMPLES, execution_of
from workbench.engine.program import OnTileExecute
from workbench.engine.target import Target
from workbench.profiler.schema import FORMAT_VERSION, plain

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled

ENGINE_VERSION = "0.1.0"


def _target(target: Target) -> dict[str, Any]:
    found = {field.name: getattr(target, field.name) for field in dataclasses.fields(target)}
    plain = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    return {
        **plain,
        "bytes_per_tile": target.bytes_per_tile,
        "non_interleaved_bytes": target.memory.non_interleaved_bytes,
        "interleaved_bytes": target.memory.interleaved_bytes,
        "executable_bytes": target.memory.executable_bytes,
        "data_apart": target.memory.data_apart,
        "peak_flops_per_second": target.peak_flops_per_second,
        "what_if": list(target.what_if),
    }


def _verdict(compiled: Compiled, positions: Any) -> dict[str, Any]:
    worst = compiled.allocation.worst
    steps, used = compiled.liveness.timelines[worst.ipu], worst.total_with_gaps_bytes
    step = int(steps[positions[worst.ipu, worst.tile]]) if len(steps) else -1
    return {
        "fits": compiled.allocation.fits,
        "max_tile_bytes": used,
        "peak": {"ipu": worst.ipu, "tile": worst.tile, "step": step, "bytes": used},
    }


def _formulas(compiled: Compiled, named: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Formulas in use by id, and by category of the footprint its formula and inputs (those that are one number)."""
    categories: dict[str, Any] = {}
    footprint = compiled.footprint
    for name, values in footprint.categories.items():
        place = np.unravel_index(int(values.argmax()), values.shape)
        parts = footprint.cost(name, int(place[0]), int(place[1])).terms
        if parts:
            inputs = footprint.inputs.get(name, {})
            fixed = {key: value for key, value in inputs.items() if not isinstance(value, np.ndarray)}
            categories[name] = {"formula": parts[0].formula, "inputs": fixed}
    used = {*named, *(found["formula"] for found in categories.values())}
    keys = ("text", "source", "unit", "error_kind")
    known = {name: {key: getattr(formulas.get(name), key) for key in keys} for name in sorted(used)}
    return known, categories


def unmodelled_of(compiled: Compiled) -> list[str]:
    """A warning of each primitive that has no model of its own."""
    names = sorted({primitive for primitive, _ in compiled.lowered.unmodelled} if compiled.lowered else ())
    return [f"{name} has no model of its own and goes by the generic rule" for name in names]


def asked_of(compiled: Compiled) -> dict[str, Any]:
    """With which options a program was made, how, and what was assumed."""
    return {
        "config": plain(dict(compiled.options)),
        "config_changed": plain(dict(compiled.options.changed)),
        "passes": [dataclasses.asdict(phase) for phase in compiled.phases],
        "assumptions": list(compiled.graph.assumptions),
    }


def meta_of(compiled: Compiled, named: Iterable[str], positions: Any) -> dict[str, Any]:
    """The meta of a profile but its control tree; `named` are the formulas of its terms, `positions` of the peaks."""
    graph, program = compiled.graph, compiled.program
    replicas = int(str(graph.meta.get("replicas", 1)))
    accumulation = int(str(graph.meta.get("gradient_accumulation_steps", program.pipeline.get("micro_batches", 1))))
    trained = graph.batch_size * accumulation * execution_of(graph).updates * replicas
    samples = graph.meta.get(SAMPLES, 0 if graph.mode == "function" else trained)
    known, categories = _formulas(compiled, named)
    compute = [step.compute_set for step in program.steps if isinstance(step, OnTileExecute)]
    vertices = sum(group.count * len(group.tiles) for found in compute for group in found.groups)
    return {
        "name": program.name,
        **{name: getattr(graph, name) for name in ("mode", "batch_size")},
        "samples_per_call": int(str(samples)),
        "engine_version": ENGINE_VERSION,
        "format_version": FORMAT_VERSION,
        "made_by_hand": compiled.lowered is None,
        "ipus": program.ipus,
        "replicas": replicas,
        **{name: graph.meta[name] for name in (CALLS, RETURNED) if name in graph.meta},
        "remote_buffers": [plain(dataclasses.asdict(buffer)) for buffer in program.remote_buffers],
        "total_cycles": compiled.trace.total_cycles,
        **asked_of(compiled),
        "target": _target(program.target),
        "warnings": unmodelled_of(compiled),
        "formulas": known,
        "category_formulas": categories,
        "pipeline": plain(dict(program.pipeline)),
        "program": {"vertices": vertices, "functions": len(program.functions)},
        "verdict": _verdict(compiled, positions),
    }
