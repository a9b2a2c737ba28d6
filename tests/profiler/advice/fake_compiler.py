"""A compiler that answers by a rule, for a diagnosis to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import workbench as wb
from tests.profiler.builder import TILES, Builder, spread
from workbench.profiler.profile import Profile

LIMIT = 10_000
NOW_CYCLES = 12_000
AMP = "matmuls.poplar_options.availableMemoryProportion"
PARTIALS = "matmuls.poplar_options.partialsType"


def profile_of(used: int, cycles: int, *, batch: int = 16, samples: int = 16, half: bool = True) -> Profile:
    """A matmul's training step that uses so many bytes of a 10,000-byte tile and takes so many cycles."""
    build = Builder("a step", bytes_per_tile=LIMIT)
    for name, kind, size in (("kernel", "parameter", 800), ("out", "activation", 3_200), ("sums", "temporary", 2_000)):
        lives = [] if kind == "parameter" else [(0, 1)]
        shape = f"({batch}, {size // batch})" if kind == "activation" else f"({size},)"
        vector = spread(size * TILES)
        build.variable(name, kind, vector, lives=lives, shape=shape, dtype="float16" if half and lives else "float32")
    if half:
        build.variable("partials", "temporary", spread(1_000 * TILES), lives=[(0, 1)])
    build.step("OnTileExecute", "matmul", 100)
    build.step("OnTileExecute", "grad", 100)
    build.timeline = [{"ipu": 0, "position": step, "step": step} for step in (0, 1)]
    steps = ["sequence", "step", [["step", 0], ["step", 1]]]
    build.meta.update(total_cycles=cycles, samples_per_call=samples, batch_size=batch)
    profile = build.profile(
        {"entry": steps, "functions": {}},
        cycle_breakdown=[{"ipu": 0, "cause": "compute", "cycles": 200}],
        operators=[_matmul()],
    )
    verdict = {**profile.meta["verdict"], "fits": used <= LIMIT, "max_tile_bytes": used}
    return replace(profile, meta={**profile.meta, "verdict": verdict, "config": {AMP: 0.6, PARTIALS: "float"}})


def _matmul() -> dict[str, Any]:
    numbers = dict.fromkeys(("flops", "cycles", "utilisation", "code_bytes", "temporary_bytes", "plan_cycles"), 1)
    return {"name": "m", "layer": "", "direction": "forward", "op": "matmul", "plan": "", "body": "", **numbers}


@dataclass(frozen=True, kw_only=True)
class FakeOptions:
    changed: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class FakeRequest:
    """Keeps what it was asked to change."""

    source: Any = "mlp"
    inputs: tuple[Any, ...] = ()
    options: FakeOptions = FakeOptions()
    target: Any = field(default_factory=lambda: wb.target("ipu2"))
    target_text: str = ""
    mode: str = "training"
    batch_size: int = 16
    optimizer: Any = None
    loss: Any = None
    precision: str | None = None
    stages: Any = None
    replicas: int = 1
    gradient_accumulation_steps: int = 1
    asked: Mapping[str, Any] = field(default_factory=dict)

    def replace(self, options: Mapping[str, Any], **arguments: Any) -> FakeRequest:
        return replace(self, asked={**options, **arguments})


@dataclass(frozen=True, kw_only=True)
class FakeExecutable:
    request: FakeRequest
    profile: Profile


class FakeCompiler:
    """Answers each candidate with (bytes, cycles of a call) by a rule; remembers what was asked."""

    def __init__(self, rule: Callable[[Mapping[str, Any]], tuple[int, int]]) -> None:
        self.rule = rule
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, request: FakeRequest, progress: Any = None, like: Any = None) -> FakeExecutable:
        self.asked.append(request.asked)
        if progress is not None:
            progress("lower")
        used, cycles = self.rule(request.asked)
        return FakeExecutable(request=request, profile=profile_of(used, cycles))


def over(used: int = 12_000, **more: Any) -> FakeExecutable:
    return FakeExecutable(request=FakeRequest(), profile=profile_of(used, NOW_CYCLES, **more))


def by_lever(asked: Mapping[str, Any]) -> tuple[int, int]:
    """Proportions save 5,000 B times what they drop; half partials 1,500 B; each halving of the batch 1,000 B."""
    used, cycles = 12_000, NOW_CYCLES
    if AMP in asked:
        used -= round(5_000 * (0.6 - asked[AMP]))
        cycles += 4_000 if asked[AMP] > 0.1 else 6_000
    if asked.get(PARTIALS) == "half":
        used -= 1_500
        cycles -= 2_000
    used -= {16: 0, 8: 1_000, 4: 2_000, 2: 3_000, 1: 3_000}[asked.get("batch_size", 16)]
    return used, cycles + 1_600 * (asked.get("gradient_accumulation_steps", 1) - 1)
