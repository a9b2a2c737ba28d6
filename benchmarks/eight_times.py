"""Shipped configurations at eight times their micro-batch: at most one in five may fit.

Micro-batches were chosen as large as would fit, so a model of memory that lets eight times as much fit counts too
little. The demonstration of a tiny model is left out. Ends with 1 when more fit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import Budgets, Figures, main

TIMES = 8
BUDGETS: Budgets = (("share_that_fits", "", 0.2, f"of the configurations, at {TIMES} times the micro-batch"),)


def measure() -> Figures:
    """The share of the configurations that fit."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.fidelity.data import configurations
    from tests.fidelity.family_configurations import enlarged

    found = [row for row in configurations() if "tiny" not in row.name]
    fits = [enlarged(row.case, TIMES)["fits"] for row in found]
    for row, each in zip(found, fits, strict=True):
        print(f"{row.name}: {'fits' if each else 'does not fit'}", file=sys.stderr)
    return {"share_that_fits": sum(fits) / len(fits)}


MEASUREMENTS = {"configurations": measure}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS))
