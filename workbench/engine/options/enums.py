"""The enumerations an option can take, with the numbers the SDK stores in a saved configuration."""

# Members and numbers: graphcore/tensorflow@0062ad12 compiler/plugin/poplar/driver/config.proto and
# threestate.proto@eafb977e; members added later follow those of the API reference.

from __future__ import annotations

from enum import Enum


class SelectionOrder(Enum):
    """In which order the IPUs of a system become the shards of a program.

    A Pod is a ladder: even IPUs up one side, odd ones up the other, IPU-Links along both sides and on every rung.

    - `AUTO`: the best order for the program; here `SNAKE`, in which neighbouring shards always share a link.
    - `ZIGZAG`: by number, so that every second step has to cross a rung and climb.
    - `SNAKE`: each shard is linked to the one before it.
    - `HOOF`: up one side and down the other, so that the last shard is linked to the first as well.
    """

    AUTO = 0
    ZIGZAG = 1
    SNAKE = 2
    HOOF = 3

    def order(self, ipus: int) -> tuple[int, ...]:
        """The IPU of each shard, for `ipus` IPUs on one ladder. `SNAKE` of 4: (0, 1, 3, 2); `HOOF`: (0, 2, 3, 1)."""
        if self is SelectionOrder.ZIGZAG:
            return tuple(range(ipus))
        if self is SelectionOrder.HOOF:
            down = range(ipus - 1 if ipus % 2 == 0 else ipus - 2, 0, -2)
            return (*range(0, ipus, 2), *down)
        rungs = (range(first, min(first + 2, ipus)) for first in range(0, ipus, 2))
        return tuple(ipu for number, rung in enumerate(rungs) for ipu in (reversed(rung) if number % 2 else rung))


class ExecutionProfileType(Enum):
    """How much of the trace is kept.

    `NO_PROFILE`: nothing. `DEVICE_PROFILE`: what the whole device does. `IPU_PROFILE`: each IPU. `TILE_PROFILE`: each
    tile.
    """

    NO_PROFILE = 0
    DEVICE_PROFILE = 1
    IPU_PROFILE = 2
    TILE_PROFILE = 3


class DeviceConnectionType(Enum):
    """When a program takes hold of its IPUs.

    `ALWAYS`: when the system is configured. `ON_DEMAND`: when the program first runs. `PRE_COMPILE`: never; programs
    are compiled, and what would run on an IPU gives zeros. `NEVER`: never; programs can only be compiled.
    """

    ALWAYS = 0
    ON_DEMAND = 1
    PRE_COMPILE = 3
    NEVER = 2


class MergeRemoteBuffersBehaviour(Enum):
    """Whether remote buffers of one shape become one: `NO_MERGING`, `MERGE`, or `IF_BENEFICIAL` for shared code."""

    NO_MERGING = 0
    MERGE = 1
    IF_BENEFICIAL = 2


class SchedulingAlgorithm(Enum):
    """How the order of operations is found.

    `CHOOSE_BEST`: several ways are tried and the lowest predicted peak wins; predicted from whole buffers, as the
    driver does, so that another may have the lower fullest tile. `CLUSTERING`: groups of operations are moved together.
    `POST_ORDER`: the graph walked from its results. `LOOK_AHEAD`: a bounded search past stretches of high liveness.
    `SHORTEST_PATH`: what is nearest to the result first.
    """

    CHOOSE_BEST = 0
    CLUSTERING = 1
    POST_ORDER = 2
    LOOK_AHEAD = 3
    SHORTEST_PATH = 4


class StochasticRoundingBehaviour(Enum):
    """Whether half-precision results are rounded up or down at random, in proportion to their distance.

    `OFF`: to the nearest. `ON`: at random. `REPLICA_IDENTICAL_ONLY`: at random only where every replica computes the
    same.
    """

    OFF = 0
    ON = 1
    REPLICA_IDENTICAL_ONLY = 2
