"""Frames of a program as they are sent: what every tile holds, computes, sends and receives at places of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.whole import whole
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.profiler.reports.playback import Playback

BLOCK = 64  # positions that are sent at once


def whole_numbers(values: IntArray) -> tuple[str, Any]:
    """A column of whole numbers in as few bytes as they need."""
    return ("i4" if np.abs(values).max(initial=0) < 2**31 else "f8"), values


def frames(report: Playback, places: Sequence[int]) -> dict[str, tuple[str, Any]]:
    """The frames at rising positions as columns: of each its `place` and the numbers of four vectors.

    `live` is the difference to the frame before, of the first the whole. A vector is its runs of equal tiles: number v
    has those from `runs[v]` to `runs[v + 1]`, each `ends` in front of that tile and has one of `values`.
    """
    rows = report.step_rows[np.asarray(places, dtype=np.int64)]
    vectors = report.profile.arrays["per_tile"]
    live = report.live_at(places)
    found = _Runs()
    columns: dict[str, tuple[str, Any]] = {
        "place": ("i4", list(places)),
        "live": ("i4", [found.number(each) for each in np.diff(live, axis=0, prepend=0)]),
        **{
            name: ("i4", [found.number(vectors[each]) for each in index[rows]])
            for name, index in report.vectors.items()
        },
    }
    return columns | found.columns()


class _Runs:
    """Vectors kept once each, as runs of equal tiles."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ends: list[IntArray] = []
        self._values: list[IntArray] = []

    def number(self, vector: IntArray) -> int:
        """The number of a vector, kept if it is new."""
        content = vector.tobytes()
        found = self._numbers.get(content)
        if found is None:
            found = self._numbers[content] = len(self._ends)
            ends = np.append(np.flatnonzero(np.diff(vector)) + 1, len(vector))
            self._ends.append(ends)
            self._values.append(vector[ends - 1])
        return found

    def columns(self) -> dict[str, tuple[str, Any]]:
        """What `frames` sends of them."""
        runs = np.concatenate([[0], np.cumsum([len(each) for each in self._ends])])
        values = np.concatenate([*self._values, np.zeros(0, dtype=np.int64)])
        ends = np.concatenate([*self._ends, np.zeros(0, dtype=np.int64)])
        return {"runs": ("i4", runs), "ends": ("i4", ends), "values": whole_numbers(values)}


def block_of(report: Playback, number: int) -> range:
    """The positions of a block."""
    return range(min(number * BLOCK, len(report.steps)), min((number + 1) * BLOCK, len(report.steps)))


def block_number(report: Playback, asked: Any) -> int | None:
    """The number of a block that a page asks for; None where there is no such block."""
    try:
        return whole("block", asked, least=0, most=max(0, len(report.steps) - 1) // BLOCK)
    except InputError:
        return None


def spread(report: Playback, most: int) -> list[int]:
    """Positions spread over the program, that of the report among them."""
    count = len(report.steps)
    places = np.linspace(0, max(0, count - 1), max(1, min(most - 1, count))).round().astype(int).tolist()
    return sorted({*places, report.position}) if count else []


def program(report: Playback, places: Sequence[int]) -> tuple[dict[str, Any], dict[str, tuple[str, Any]]]:
    """What a page needs to walk a program frame by frame: about it as JSON, and the frames at rising positions with
    the step of each."""
    live = report.profile.liveness_view.of(ipu=report.ipu)
    about = {
        "ipu": report.ipu,
        "positions": len(report.steps),
        "position": report.position,
        "fullest_bytes": int(live.worst_tile_bytes.max(initial=0)),
        "names": [str(report.there.name[place]) for place in places],
    }
    return about, {**frames(report, places), "step": ("i4", report.steps[np.asarray(places, dtype=np.int64)])}
