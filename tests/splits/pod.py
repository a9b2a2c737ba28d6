"""`python -m tests.splits.pod`: a plan of BERT-Large's pre-training on a Pod16, beside the shipped configuration.

Both have the shipped optimizer, precision, global batch, micro-batch, shares of memory, recomputation and checkpoints;
the plan finds stages, replicas, accumulation, schedule and what is offloaded. The shipped shares of memory are one for
each of four IPUs: other numbers of stages are refused, and the row says so. --show prints the stored row.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.splits.write import SHIPPED, measured, published_cut, shipped, shipped_arguments

TABLE = Path(__file__).parent / "pod.json"
SYSTEM = "bow-pod16"
COMPILES = 16
GIVEN = ("optimizer", "precision", "config", "batch_size", "recomputation_checkpoints")


def stored() -> dict[str, Any]:
    """The committed row."""
    row: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return row


def global_batch() -> int:
    """Samples of a weight update as shipped."""
    case = shipped()
    return int(case["micro_batch_size"] * case["gradient_accumulation"] * case["replication_factor"])


def asked() -> dict[str, Any]:
    """What is given to the plan and to a compile of it alike."""
    arguments = shipped_arguments()
    arguments["config"].allow_recompute = arguments["recomputation"]
    return {name: arguments[name] for name in GIVEN}


def compiled(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a compile with the arguments of a plan says."""
    import workbench as wb

    return measured(wb.profile("bert-large", **{"mode": "training", "target": "bow", **asked(), **arguments}))


def as_shipped() -> dict[str, Any]:
    """What a compile of the shipped configuration says."""
    import workbench as wb

    return measured(wb.profile("bert-large", stages=published_cut(), **shipped_arguments()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the stored row")
    if not parser.parse_args().show:
        import workbench as wb

        plan = wb.plan(
            "bert-large", global_batch=global_batch(), system=SYSTEM, compiles=COMPILES, progress=print, **asked()
        )
        best = plan.best.profile
        row = {
            "source": SHIPPED,
            **plan.data,
            "best": None if best is None else measured(best),
            "shipped": as_shipped(),
        }
        TABLE.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(stored(), indent=1))


if __name__ == "__main__":
    main()
