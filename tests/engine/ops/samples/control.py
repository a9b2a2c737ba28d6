"""Samples of the operators of `ops/control.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.lowered import F32, body
from tests.engine.ops.sampled import I32, VECTOR, Sample, sample


def _loop(op: str, **attributes: Any) -> Sample:
    adds = body("adds", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), results=(2,))
    return sample(op, [VECTOR, VECTOR], [VECTOR], bodies=(adds,), times=3, **attributes)


def _scan() -> Sample:
    step = body("step", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), ("neg", (2,), VECTOR), results=(2, 3))
    types = [VECTOR, ((7, 30), F32)]
    return sample("scan", types, types, bodies=(step,), times=7, num_carry=1, num_consts=0, reverse=False)


def _while() -> Sample:
    test = body("test", [VECTOR], ("reduce_sum", (0,), ((), F32), {"axes": (0,)}), results=(1,))
    step = body("double", [VECTOR], ("add", (0, 0), VECTOR), results=(1,))
    return sample("while", [VECTOR], [VECTOR], bodies=(test, step), cond_consts=0, body_consts=0)


def _cond() -> Sample:
    arms = [body(f"arm{op}", [VECTOR], (op, (0,), VECTOR), results=(1,)) for op in ("neg", "exp")]
    return sample("cond", [((), I32), VECTOR], [VECTOR], bodies=tuple(arms))


SAMPLES: dict[str, Sample] = {
    "scan": _scan(),
    "while": _while(),
    "cond": _cond(),
    "call": _loop("call"),
}
