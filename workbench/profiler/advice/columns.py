"""How long the columns of a pipeline last under another schedule, from what each stage takes for a micro-batch."""

from __future__ import annotations

import numpy as np

from workbench.profiler.profile import Profile

# Columns between two micro-batches that enter, where each stage has an IPU of its own and training runs backward too.
APART = {"Grouped": 1, "Interleaved": 2}
MEASURED = 100_000  # blocks at most, of which those of a stage and a direction take as long as each other


def columns_cycles(profile: Profile, schedule: str, micro_batches: int) -> int:
    """Cycles of all columns under a schedule of `APART`, each as long as its slowest stage; without copies and update.

    Every stage of the training step has an IPU of its own. 0 where the profile has no stages.
    """
    blocks = profile.pipeline.blocks(max_rows=MEASURED)
    if blocks.empty:
        return 0
    took = (blocks["cycles_to"] - blocks["cycles_from"]).groupby([blocks["stage"], blocks["direction"]]).mean()
    stages, apart = int(blocks["stage"].max()) + 1, APART[schedule]
    entered = apart * np.arange(micro_batches)
    working = np.zeros((stages, apart * (micro_batches - 1) + 2 * stages))
    for stage in range(stages):
        back = 2 * stages - 1 - stage
        for direction, column in (("forward", stage), ("recompute", back - 1), ("backward", back)):
            working[stage, column + entered] += took.get((stage, direction), 0)
    return round(float(working.max(axis=0).sum()))


__all__ = ["columns_cycles"]
