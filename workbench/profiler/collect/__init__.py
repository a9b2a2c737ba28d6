"""From the results of the engine to a profile: the one reader of engine types.

`collect` makes the profile, `numbered` those of its columns that are made when they are asked for, `meta` what is no
table; `asked` answers later what a profile does not hold. Tests: tests/profiler/test_collect.py.
"""

from workbench.profiler.collect.asked import evaluated, exchange_parts, placer
from workbench.profiler.collect.collect import collect, collect_again

__all__ = ["collect", "collect_again", "evaluated", "exchange_parts", "placer"]
