"""The executed program as a tree with durations, from which windows of time are unrolled when asked for.

`tree` is the control tree and its parser, `builder` gives it durations, `executions` and `levels` are the blocks of
pipelines, `counting` says how many a window has, `branches` is the tree as one looks into it. Imports what a profile
stores. Tests: tests/profiler/timeline.
"""

from workbench.profiler.timeline.builder import timeline_of
from workbench.profiler.timeline.counting import MOST_ROWS, BlockCounts, blocks, told_cut
from workbench.profiler.timeline.timeline import (
    BLOCK_COLUMNS,
    Block,
    Enclosing,
    Later,
    TimedNode,
    Timeline,
    block_rows,
    called,
    enclosing_of,
    entered,
    plain_calls,
    renamed,
)

__all__ = [
    "BLOCK_COLUMNS",
    "MOST_ROWS",
    "Block",
    "BlockCounts",
    "Enclosing",
    "Later",
    "TimedNode",
    "Timeline",
    "block_rows",
    "blocks",
    "called",
    "enclosing_of",
    "entered",
    "plain_calls",
    "renamed",
    "timeline_of",
    "told_cut",
]
