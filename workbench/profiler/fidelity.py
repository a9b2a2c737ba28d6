"""How far modelled numbers usually are from measured ones, by kind of number: the summary of the fidelity table."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

# Kinds without measurements of their own, and the total they are part of.
PART_OF = {"exchange": "cycles", "sync": "cycles", "host": "cycles", "inter_ipu": "cycles", "code": "memory"}
PATH = Path(__file__).with_name("fidelity.json")


@lru_cache(maxsize=1)
def _read() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(PATH.read_text())
    return found


def typical_errors() -> dict[str, dict[str, Any]]:
    """Kind of number -> `typical` (a fraction), `cases` (how many it was taken over) and `groups` of the table.

    A kind that nothing measures alone has the typical error of the total it is part of.
    """
    found = {kind: dict(known) for kind, known in _read().items()}
    return found | {kind: dict(found[whole]) for kind, whole in PART_OF.items() if whole in found and kind not in found}
