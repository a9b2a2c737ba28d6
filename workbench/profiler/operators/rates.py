"""The type that an operator computes in, and the peak rate of products in each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.base.dtypes import DTYPE_WORDS
from workbench.profiler.operators.callers import StepsByCaller
from workbench.profiler.schema import Column, Table

QUARTERS = tuple(name for name, word in DTYPE_WORDS.items() if word == "quarter")
HALVES = tuple(name for name, word in DTYPE_WORDS.items() if word == "half")
FLOATS = tuple(name for name, word in DTYPE_WORDS.items() if word == "float")


def peaks(target: Mapping[str, Any]) -> dict[str, float]:
    """FLOP/s of products of one IPU by type, modelled as the target's, the highest first.

    A float32 unit does one multiply-accumulate a cycle, a float16 unit four, a float8 unit eight. "float8" only where
    the target has such units: elsewhere they are float16 to the unit that multiplies them.
    """
    half, of_half = float(target["peak_flops_per_second"]), target.get("conv_units_half_partials", 0)
    if not of_half:  # made by hand, or by a machine that does not say its units
        return {"float16": half, "float32": half / 4}
    quarters, floats = (float(target.get(f"conv_units_{name}", 0)) / of_half for name in ("quarter", "float"))
    found = {"float8": half * quarters * 8 / 4, "float16": half, "float32": half * (floats or 1.0) / 4}
    return {name: peak for name, peak in found.items() if peak}


def types_of(
    names: Sequence[str], known: StepsByCaller, tables: Mapping[str, Table], target: Mapping[str, Any]
) -> list[str]:
    """Of each operator the type whose peak bounds it: float32, unless a step of it touches what is narrower; float8
    where the target has a peak of it and the floats that come into the operator are all of 8 bits; "" of what touches
    no floats."""
    ids, accesses, has_quarters = known.steps["id"], tables["accesses"], "float8" in peaks(target)
    dtypes = dict(zip(tables["variables"]["id"].tolist(), tables["variables"]["dtype"].tolist(), strict=True))
    dtype = np.array([dtypes[each] for each in accesses["variable"].tolist()], dtype=object)
    narrow, floats = (
        np.isin(ids, accesses["step"][np.isin(dtype, kinds)])[known.row]
        for kinds in ([*HALVES, *QUARTERS], [*HALVES, *QUARTERS, *FLOATS])
    )
    found = []
    for name in names:
        places = known.of_operator(name)
        kind = "float16" if narrow[places].any() else "float32" if floats[places].any() else ""
        if kind == "float16" and has_quarters:
            here = np.isin(accesses["step"], ids[known.row[places]])
            coming = here & ~np.isin(accesses["variable"], accesses["variable"][here & accesses["write"]])
            came = set(dtype[coming].tolist())
            kind = "float8" if came & set(QUARTERS) and not came & {*HALVES, *FLOATS} else kind
        found.append(kind)
    return found


def utilisation(operators: Table, types: Sequence[str], target: Mapping[str, Any]) -> Column:
    """The `flops` of operators by what their `cycles` allow at the peak of their type; 0 without cycles or a type."""
    known = {"": 0.0, **peaks(target)}
    allowed = operators["cycles"] / float(target["clock_hz"]) * np.array([known[name] for name in types], np.float64)
    found: Column = np.divide(operators["flops"], allowed, out=np.zeros(len(allowed)), where=allowed > 0)
    return found


def measured(
    operators: pd.DataFrame, known: StepsByCaller, tables: Mapping[str, Table], target: Mapping[str, Any]
) -> pd.DataFrame:
    """The rows of a profile with their `type`, and the utilisation of its peak: earlier files hold that of float16 for
    all."""
    types = types_of(operators["name"].tolist(), known, tables, target)
    found = operators.assign(utilisation=utilisation(tables["operators"], types, target))
    found.insert(found.columns.tolist().index("utilisation") + 1, "type", np.array(types, dtype=object))
    return found
