"""How far modelled numbers usually are from measured ones: by kind of number, by group of cases, the worst cases."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Kinds without measurements of their own, and the total they are part of.
PART_OF = {"exchange": "cycles", "sync": "cycles", "host": "cycles", "inter_ipu": "cycles", "code": "memory"}
PATH = Path(__file__).with_name("fidelity.json")


@lru_cache(maxsize=1)
def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def typical_errors() -> dict[str, dict[str, Any]]:
    """Kind of number -> `typical` (a fraction), `cases` (how many it was taken over) and `groups` of the table.

    A kind that nothing measures alone has the typical error of the total it is part of.
    """
    found = {kind: dict(known) for kind, known in _read()["kinds"].items()}
    return found | {kind: dict(found[whole]) for kind, whole in PART_OF.items() if whole in found and kind not in found}


def fidelity_table() -> pd.DataFrame:
    """A row per group of published numbers, as `make fidelity` last found them.

    `cases` there are, `run` by the engine, `exact` and `within` the band that their source states; `median_factor` and
    `p90_factor` are exp of the median and of the 90th percentile of |ln(modelled / published)|, NaN without a ratio.
    """
    import pandas as pd

    rows = []
    for group, line in _read()["groups"].items():
        counts = {name: line[name] for name in ("cases", "run", "exact", "within")}
        rows.append(
            {
                "group": group,
                **counts,
                "median_factor": _factor(line["median"]),
                "p90_factor": _factor(line["p90"]),
                "worst": line["worst"],
            }
        )
    return pd.DataFrame(rows)


def worst_cases() -> pd.DataFrame:
    """The cases that are furthest off, worst first: `case`, `group`, `factor` (of modelled over published, or back)."""
    import pandas as pd

    return pd.DataFrame(_read()["worst"])


def _factor(error: float | None) -> float:
    return math.nan if error is None else round(math.exp(error), 3)
