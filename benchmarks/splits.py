"""What the search of cuts takes: BERT-Large over 8 IPUs, from a profile of even stages to the next cuts to compile.

The profile is made before and is not counted: its layers' costs are read from it, and the best cuts searched by them.
Processor time of the process. Ends with 1 when a budget is missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from harness import Budgets, Figures, main

BUDGETS: Budgets = (
    ("search_seconds", "s", 5, "the best of all cuts and those beside them, the costs of layers known"),
    ("costs_seconds", "s", None, "reading what the layers cost from the profile"),
)
MODEL, IPUS, ROUNDS = "bert-large", 8, 5


def processor_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure_search() -> Figures:
    """From costs of layers to cuts, and from a profile to these costs."""
    import workbench as wb
    from workbench.engine.frontends.staging.chain import chain_of
    from workbench.splits.costs import StageCosts, costs_of
    from workbench.splits.layout import Layout
    from workbench.splits.search import best_cuts
    from workbench.splits.split import stages_of

    chain = chain_of(MODEL)
    layout = Layout.of(chain, IPUS)
    stages = stages_of(layout.whole(layout.even()), len(chain.names))
    profile = wb.profile(
        MODEL,
        stages=stages,
        mode="training",
        batch_size=1,
        precision="float16",
        gradient_accumulation_steps=8 * IPUS,
        target="bow",
    )

    def costs() -> StageCosts:
        return costs_of(profile, chain.names, stages, chain.crossing_bytes)

    read = processor_seconds(costs)
    known = costs()
    capacity = float(profile.target["bytes_per_tile"])

    def search() -> None:
        layout.near(best_cuts(*layout.tables(known), capacity))

    return {
        "search_seconds": statistics.median(processor_seconds(search) for _ in range(ROUNDS)),
        "costs_seconds": read,
    }


if __name__ == "__main__":
    sys.exit(main(__doc__, {"search": measure_search}, BUDGETS))
