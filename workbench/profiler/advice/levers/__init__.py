"""Levers against too much memory or time: rules that read a profile and propose changes, each with an estimate.

`change` is what is proposed, `situation` what a rule sees; every other module holds the levers of one kind. An estimate
starts from the variables live on the fullest tile at its peak and takes away what the change frees there; it only says
what to compile first. Imports what a profile stores. Tests: tests/profiler/advice.
"""

from workbench.profiler.advice.levers import batch, keeping, numbers, order, plans
from workbench.profiler.advice.levers.change import LEVELS, SAME, Change, joined
from workbench.profiler.advice.levers.plans import LOWER_PROPORTIONS
from workbench.profiler.advice.levers.registry import LEVERS, Lever
from workbench.profiler.advice.levers.situation import Situation

# Of all levers, those that change what is learned come in only by name, or where nothing else fits.
LAST = ("fewer_slots",)

__all__ = [
    "LAST",
    "LEVELS",
    "LEVERS",
    "LOWER_PROPORTIONS",
    "SAME",
    "Change",
    "Lever",
    "Situation",
    "batch",
    "joined",
    "keeping",
    "numbers",
    "order",
    "plans",
]
