"""The classes of value that every argument is given: each a name and what makes a fresh value of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hostile.things import profile, small_executable
from workbench.engine.target import target
from workbench.ipu.config import IPUConfig


class Theirs(Exception):
    """What code of somebody else's raises; it comes to who called us as it is."""


class Stranger:
    """An object of somebody else's, of a class that nobody can call."""

    def __init__(self, *arguments: Any) -> None:
        if arguments:
            raise Theirs("it takes nothing")

    def __repr__(self) -> str:
        return "a stranger"


def theirs(*arguments: Any, **named: Any) -> Any:
    """A function of somebody else's."""
    raise Theirs("it does nothing")


def _itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


CLASSES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "negative": lambda: -1,
    "zero": lambda: 0,
    "past 64 bits": lambda: 2**63,
    "10**18": lambda: 10**18,
    "float": lambda: 1.5,
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "numpy scalar": lambda: np.int64(2),
    "numpy array": lambda: np.array([[1.5, -2.0], [0.25, 3.0]], "float32"),
    "numpy objects": lambda: np.array(["a", None], object),
    "empty text": lambda: "",
    "controls": lambda: "\x1b[2J\x00\r\nnosuch",
    "markup": lambda: "<img src=x onerror=alert(1)>",
    "parent": lambda: "../../nosuch",
    "turned": lambda: "no\u202esuch",
    "half a character": lambda: "nosuch\udc80",
    "bytes": lambda: b"nosuch",
    "empty list": list,
    "nested list": lambda: [[1, [2, "nosuch"]], []],
    "in itself": _itself,
    "dict": lambda: {"nosuch": 1},
    "set": lambda: {-7},
    "callable": lambda: theirs,
    "class": lambda: Stranger,
    "stranger": Stranger,
    "profile": profile,
    "executable": small_executable,
    "target": lambda: target("ipu2", tiles_per_ipu=4),
    "config": IPUConfig,
    "device path": lambda: "/dev/full",
}
