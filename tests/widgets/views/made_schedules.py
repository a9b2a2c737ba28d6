"""A comparison of schedules whose profiles no compiler made: two of four stages, and one that was refused."""

from __future__ import annotations

from tests.profiler.scheduled import scheduled_profile
from workbench.profiler.advice.schedules import ScheduleComparison, Trial

PROBLEM = "no <b>place</b> for it"


def compared() -> ScheduleComparison:
    """Grouped, interleaved with recomputation; sequential did not compile."""
    profiles = (scheduled_profile("Grouped", 4, 8), scheduled_profile("Interleaved", 4, 8, recompute=200))
    trials = (
        Trial(schedule="Grouped", recomputation=False, executable=profiles[0]),
        Trial(schedule="Sequential", recomputation=False, problem=PROBLEM),
        Trial(schedule="Interleaved", recomputation=True, executable=profiles[1]),
    )
    return ScheduleComparison(profiles=profiles, trials=trials)
