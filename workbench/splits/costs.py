"""What each layer of a pipelined program costs, as its profile tells it, and what other stages would cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from workbench.base.arrays import FloatArray
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.profiler.profile import Profile

WORKING = ("compute", "exchange", "sync", "host", "collective")  # causes of a stage's own cycles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageCosts:
    """Costs by layer, in the order of the chain, measured under one split; `of` adds them up for another.

    Cycles are those of one call (a weight update, or an inference batch). Bytes are those of a stage's fullest tile,
    of which each of its layers has a share: `fixed` (state, accumulators, code and one micro-batch of residuals) and
    `stash` (for each further micro-batch that is kept). `work` is what the dearest operator needs besides: of a
    stage the largest counts. `inputs` is what a stage that starts at a layer keeps of what it receives, a micro-batch;
    `depth` how many micro-batches each stage keeps. `copy` is cycles of what crosses the cut behind a layer.
    """

    names: tuple[str, ...]
    forward: FloatArray
    backward: FloatArray
    update: FloatArray
    copy: FloatArray
    fixed: FloatArray
    stash: FloatArray
    work: FloatArray
    inputs: FloatArray
    depth: tuple[int, ...]

    @property
    def cycles(self) -> FloatArray:
        """Of a layer in all directions."""
        return self.forward + self.backward + self.update

    def stage_cycles(self) -> FloatArray:
        """`[first, end]`: busy cycles of a stage of the layers first to end - 1; infinite where there are none."""
        count, before = len(self.names), np.append(0.0, self.copy[:-1])
        running = np.append(0.0, np.cumsum(self.cycles))
        found = running[None, :] - running[:count, None] + before[:, None] + np.append(0.0, self.copy)[None, :]
        return _where_any(found)

    def stage_bytes(self, stage: int) -> FloatArray:
        """`[first, end]`: bytes of the fullest tile if this stage, counted from 0, had the layers first to end - 1."""
        count, depth = len(self.names), self.depth[stage]
        running = np.append(0.0, np.cumsum(self.fixed + depth * self.stash))
        work = np.zeros((count, count + 1))
        for first in range(count):
            work[first, first + 1 :] = np.maximum.accumulate(self.work[first:])
        found = running[None, :] - running[:count, None] + work + depth * self.inputs[:, None]
        return _where_any(found)


def _where_any(found: FloatArray) -> FloatArray:
    """Infinite where a stage would have no layer."""
    count = len(found)
    return np.where(np.arange(count + 1)[None, :] > np.arange(count)[:, None], found, np.inf)


def costs_of(
    profile: Profile, names: Sequence[str], stages: Sequence[int], crossing_bytes: Sequence[int]
) -> StageCosts:
    """The costs by layer of a profile whose layer `names[i]` is on stage `stages[i]`.

    `crossing_bytes` of one micro-batch behind each layer. What is of no layer counts to the last layer of its stage.
    The bytes of a stage as measured are what its fullest tile takes: where the parts add up to less or more, the
    rest is shared by them.
    """
    measured = _Measured.of(profile, names, stages)
    crossing = np.asarray(crossing_bytes, float)
    inputs = np.append(0.0, crossing[:-1]) / measured.tiles
    forward, backward, update = measured.cycles()
    raw = StageCosts(
        names=tuple(names),
        forward=forward,
        backward=backward,
        update=update,
        copy=crossing * _copy_cycles_per_byte(profile, stages, crossing),
        work=measured.work(),
        inputs=inputs * measured.recomputed,
        **measured.live(),
    )
    return _adding_up(raw, profile, stages, measured.ipus)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """A profile, read layer by layer of the chain."""

    profile: Profile
    place: dict[str, int]
    stages: tuple[int, ...]  # of the layers
    ipus: tuple[int, ...]  # of the stages
    tiles: int
    recomputed: bool

    @classmethod
    def of(cls, profile: Profile, names: Sequence[str], stages: Sequence[int]) -> _Measured:
        ipus = tuple(int(ipu) for ipu in profile.stages.sort_values("stage")["ipu"])
        return cls(
            profile=profile,
            place={name: number for number, name in enumerate(names)},
            stages=tuple(stages),
            ipus=ipus,
            tiles=int(profile.target["tiles_per_ipu"]),
            recomputed=bool((profile.steps["direction"] == "recompute").any()),
        )

    def at(self, layer: str, ipu: int) -> int:
        """The place in the chain of a layer's path."""
        return self.place.get(layer.split("/", 1)[0], self._on(ipu)[-1])

    def _fed(self, layer: str, ipu: int) -> int:
        """Where a copy from or to the host counts: what no layer names feeds a stage, or is of the last one's loss."""
        return self.at(layer, ipu) if layer or ipu == self.ipus[-1] else self._on(ipu)[0]

    def cycles(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Forward, backward and again, update."""
        steps = self.profile.steps
        steps = steps[steps["cause"].isin(WORKING) & steps["ipu"].isin(self.ipus) & (steps["total_cycles"] > 0)]
        found = {name: np.zeros(len(self.place)) for name in ("forward", "backward", "update")}
        told = steps.assign(host=steps["cause"] == "host")
        groups = told.groupby(["layer", "direction", "ipu", "host"], sort=False)["total_cycles"].sum()
        for key, cycles in groups.items():
            layer, direction, ipu, host = cast("tuple[str, str, int, bool]", key)
            kind = direction if direction in ("forward", "update") else "backward"
            place = self._fed(str(layer), int(ipu)) if host else self.at(str(layer), int(ipu))
            found[kind][place] += cycles
        return found["forward"], found["backward"], found["update"]

    def work(self) -> FloatArray:
        """Bytes on a tile of a layer's dearest operator: its temporaries, or its largest gradient."""
        found = np.zeros(len(self.place))
        steps, operators, variables = self.profile.steps, self.profile.operators, self.profile.variables
        ipus = dict(zip(steps["operator"], steps["ipu"], strict=True))
        for name, layer, temporary in zip(
            operators["name"], operators["layer"], operators["temporary_bytes"], strict=True
        ):
            _raise(found, self.at(layer, max(0, int(ipus.get(name, self.ipus[0])))), temporary)
        gradients = variables[(variables["kind"] == "gradient") & ~variables["always_live"]]
        for layer, ipu, size in zip(gradients["layer"], gradients["ipu"], gradients["bytes"], strict=True):
            _raise(found, self.at(layer, max(0, int(ipu))), size / self.tiles)
        return found

    def live(self) -> dict[str, Any]:
        """`fixed`, `stash` and `depth`: what is live when a stage's backward pass begins, and its code."""
        fixed, stash = np.zeros(len(self.place)), np.zeros(len(self.place))
        depth = [0] * len(self.ipus)
        for ipu in dict.fromkeys(self.ipus):
            self._add(self.profile.live_variables(self._turn(self.ipus.index(ipu)), ipu=ipu), ipu, fixed, stash, depth)
        fixed, stash = fixed / self.tiles + self._code(), stash / self.tiles
        return {"fixed": fixed, "stash": stash * (not self.recomputed), "depth": tuple(depth)}

    def _add(self, live: pd.DataFrame, ipu: int, fixed: FloatArray, stash: FloatArray, depth: list[int]) -> None:
        """Add the live bytes of an IPU by layer, and how many micro-batches its stages keep."""
        rows: list[Any] = list(live.itertuples(index=False))
        for row in rows:
            place, kept = self.at(str(row.layer), ipu), row.kind == "stash" and str(row.name).endswith("/stash")
            if kept:
                one = _elements(str(row.shape)) * ITEMSIZE_BYTES[str(row.dtype)]
                stage = self.stages[place]
                depth[stage] = max(depth[stage], round(row.bytes / one))
                stash[place] += one
            else:
                fixed[place] += row.bytes
                stash[place] += row.bytes * (row.kind == "activation")

    def _code(self) -> FloatArray:
        """Code and vertex state on a tile, the mean of its IPU, shared by layers as their operators' code."""
        layers = self.profile.operators.groupby("layer", sort=False)["code_bytes"].sum()
        share = np.zeros(len(self.place))
        for layer, size in layers.items():
            share[self.at(str(layer), self.ipus[-1])] += size
        tiles = self.profile.arrays["always_live"].mean(axis=1)
        variables = self.profile.variables
        state = variables[variables["always_live"]].groupby("ipu")["bytes"].sum().to_dict()
        for ipu in dict.fromkeys(self.ipus):
            own = self._on(ipu)
            total = share[own].sum()
            share[own] *= max(0.0, tiles[ipu] - state.get(ipu, 0) / self.tiles) / total if total else 0.0
        return share

    def _on(self, ipu: int) -> list[int]:
        """The layers of an IPU, in order."""
        return _places(self.stages, self.ipus, ipu)

    def _turn(self, stage: int) -> int:
        """The step at which a stage's backward pass begins; without one, its last step."""
        steps = self.profile.steps
        own = steps[steps["stage"] == stage]
        back = own[own["direction"] == "backward"]
        return int(back["id"].min() if len(back) else own["id"].max())


def _elements(shape: str) -> int:
    """Elements of a shape as tables write it, `"(2, 64)"`."""
    return math.prod(int(size) for size in shape.strip("()").split(",") if size.strip())


def _raise(found: FloatArray, place: int, value: float) -> None:
    found[place] = max(found[place], float(value))


def _copy_cycles_per_byte(profile: Profile, stages: Sequence[int], crossing: FloatArray) -> float:
    """Of a micro-batch's bytes over a cut, for one of its two stages, all micro-batches of the call."""
    cuts = [place for place in range(len(stages) - 1) if stages[place] != stages[place + 1]]
    bytes_seen = 2 * float(crossing[cuts].sum())
    causes = profile.cycle_breakdown
    return float(causes["cycles"][causes["cause"] == "inter_ipu"].sum()) / bytes_seen if bytes_seen else 0.0


def _adding_up(raw: StageCosts, profile: Profile, stages: Sequence[int], ipus: Sequence[int]) -> StageCosts:
    """The costs whose stages, cut as they were measured, take what their fullest tiles take."""
    fixed, placed = raw.fixed.copy(), profile.arrays["total_with_gaps"].max(axis=1)
    for ipu in dict.fromkeys(ipus):
        own = _places(stages, ipus, ipu)
        told = sum(_told(raw, stages, stage) for stage, at in enumerate(ipus) if at == ipu)
        share = raw.fixed[own] / raw.fixed[own].sum() if raw.fixed[own].sum() else 1 / len(own)
        fixed[own] += (float(placed[ipu]) - told) * share
    return dataclasses.replace(raw, fixed=fixed)


def _told(raw: StageCosts, stages: Sequence[int], stage: int) -> float:
    """Bytes of a stage as the costs have it."""
    own = [place for place, number in enumerate(stages) if number == stage]
    return float(raw.stage_bytes(stage)[own[0], own[-1] + 1])


def _places(stages: Sequence[int], ipus: Sequence[int], ipu: int) -> list[int]:
    """The layers whose stage is on an IPU."""
    return [place for place, stage in enumerate(stages) if ipus[stage] == ipu]
