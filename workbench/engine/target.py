"""The machine: every hardware number the engine uses, beside its source. A number found elsewhere is a defect."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.base.checked import bound
from workbench.base.text import meant, short
from workbench.base.whole import whole
from workbench.errors import InputError

# Sources named below:
# HC33     Hot Chips 33, HC2021.Graphcore.SimonKnowles.v04
# PLIBS    graphcore/poplibs@7eac0f26
# STACK    osmarks/ipu-stack@ce7c7e94 (third party, measured on a C600)
# TFDOC    graphcore/tensorflow r1.15/sdk-release-1.4, plugin/poplar/docs/logging.rst

# Of what-if machines. A field is at least 1, or above 0, unless its declaration says otherwise.
MOST_TILES = 1 << 16  # forty times an IPU's; each of a program's thousands of vectors has a number for each
MOST = 1 << 40  # of any number: products of three of them and the cycles of a program stay below 2**63


def _or_0(default: float) -> Any:
    """A field with this default that may be 0."""
    return field(default=default, metadata={"least": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    """Regions of one tile's memory, in bytes: region 0 holds code and data, region 1 is interleaved data."""

    non_interleaved_bytes: int
    interleaved_bytes: int
    element_bytes: int = 16 * 1024  # STACK ipu-target memory.rs: 16 KiB elements
    executable_bytes: int = 0  # bytes at the start from which instructions can be fetched
    data_apart: bool = False  # where there is room, data begin at the element behind the code

    @property
    def total_bytes(self) -> int:
        """Bytes of one tile."""
        return self.non_interleaved_bytes + self.interleaved_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSizes:
    """Bytes of what a compiled program needs on a tile beside its variables and codelets."""

    control_base_bytes: int = 600  # derived: TFDOC's adder has 700 B of control code a tile; about eight runs less
    control_bytes_per_run: int = 12  # derived: three instructions of 4 B: load an address, run or call, branch back
    control_bytes_per_sync: int = 4  # derived: one instruction
    exchange_bytes_per_exchange: int = 12  # derived: TFDOC's adder, 50 B a tile for four exchanges
    vertex_counter_bytes: int = 4  # TFDOC: instrumentation results, 4,876 B of 1,219 vertices; tutorial 4: 66.0 kB
    # graphcore/examples tut4_profiling, picture of the program tree: a run begins with two copies of a word, from and
    # to the host, and the broadcast of the first, the number of the program to run, to all tiles
    control_copies: int = 2
    control_exchanges: int = 1
    host_exchange_bytes_per_copy: int = 58  # derived: TFDOC's adder, 289 B a tile for these two, seed, inputs, results
    host_packet_payload_bytes: int = 1024  # poplibs@7eac0f26 lib/popops/HostSliceTensor.cpp: packetSizeInBytes
    host_packet_header_bytes: int = 8  # not sourced; the adder's headers are 10,512 B over all tiles


class Machine(NamedTuple):
    """What the cycles of a codelet depend on beside its own arguments."""

    workers: int
    data_path_bytes: int


class Rates(NamedTuple):
    """What a plan weighs compute and exchange by."""

    machine: Machine
    exchange_bytes_per_cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of IPU. Frozen; `replace` makes a what-if machine, whose name says so.

    Bandwidths are bytes per cycle and tile unless the name says otherwise.
    """

    name: str
    architecture: str  # poplar architecture string
    tiles_per_ipu: int = field(metadata={"most": MOST_TILES})
    clock_hz: float
    memory: MemoryMap
    physical_tiles_per_ipu: int
    workers_per_tile: int = 6  # HC33: six hardware worker contexts
    data_path_bytes: int = 8  # PLIBS Target::getDataPathWidth() == 64 bits
    exchange_bytes_per_cycle: int = 4  # PLIBS Target::getExchangeBytesPerCycle()
    tiles_per_exchange_bus: int = 2  # PLIBS lib/popops/ExchangeEstimator.cpp: pairs share a bus, 8 B/cycle together
    memcpy_bytes_per_cycle: int = 8  # PLIBS Target::getMemcpyBytesPerCycle()
    memcpy_call_cycles: int = _or_0(288)  # STACK: local copy call of its six workers, measured on C600
    # derived, middle: the stages Saghetti0 names for ipu1 are 8 + 17 + 9 + 2 = 36 to 8 + 19 + 9 + 7 + 2 = 45
    exchange_latency_cycles: int = _or_0(40)
    exchange_words_per_instruction: int = 64  # STACK: a send covers at most 64 words
    exchange_instruction_bytes: int = _or_0(4)  # STACK: exchange instructions are 4 bytes
    exchange_events_per_fragment: int = _or_0(3)  # STACK: about three control events per fragment
    internal_sync_cycles: int = _or_0(83)  # HALO cases on the Mk1 IPU Model: 3,328 cycles over 40 supersteps
    global_sync_cycles: int = _or_0(600)  # STACK reading Target::getGlobalSyncCycles()
    # derived, middle: 329 - 203 - 45 = 81 of TS-ADD on hardware, 290 - 167 - 45 = 78 of platformxlab/elk
    launch_cycles: int = _or_0(80)
    conv_units_half_input: int = 8  # PLIBS poplinCycleEstimators.cpp:1164-1196; half inputs, float partials
    conv_units_half_partials: int = 16  # the same table: half inputs, half partials (Mk2 and later)
    conv_units_float: int = 16  # the same table: float inputs and partials
    # PLIBS lib/poplin/codelets (QUARTER, HALF, 16, 8): 8-bit floats with half partials, of C600 alone; 0: no such unit
    conv_units_quarter: int = _or_0(0)
    conv_weight_load_bytes_per_cycle: int = 8  # PLIBS: charged unless use128BitConvUnitLoad
    weights_per_conv_unit_bytes: int = 32  # PLIBS Target::getWeightsPerConvUnit: 32 quarter, 16 half, 8 float
    host_bytes_per_second: float = 7.98e9  # tutorial 6 on the IPU Model: 40 MB in 6,663,550 cycles at 1.33 GHz
    host_copy_bytes_per_second: float = 12.8e9  # not measured: one channel of DDR4-3200, read and written
    link_bytes_per_second: float = 17179869184.0  # PLIBS lib/poplibs_test/Util.cpp:360-430: 128 Gib/s per link
    link_efficiency: float = field(default=0.85, metadata={"most": 1.0})  # the same place
    links_inside_pair: int = 4  # the same place: four links join the two IPUs of a pair
    links_between_neighbours: int = 2  # the same place: two links up, two down, two across
    link_hop_seconds: float = _or_0(15e-9)  # PLIBS lib/poplibs_test/Util.cpp:432: 15 ns a hop
    remote_buffer_bytes_per_second: float = 8.0e9  # not sourced; a parameter, bounded by PCIe Gen4 x8 (16 GB/s)
    # TFDOC: six workers' 512 B (what PopART and PopLibs' tools ask of target.workerStackSizeInBytes) and a supervisor's
    # 96 B on Mk1. Not sourced for Mk2: the published reports of Mk2 are of programs without code and stack.
    stack_bytes: int = _or_0(3168)
    code: CodeSizes = CodeSizes()
    ipus_limit: int = 64  # IPU-Links of a Pod64 join 64 IPUs in one domain (Graphcore's product pages)
    what_if: tuple[str, ...] = ()

    @property
    def bytes_per_tile(self) -> int:
        """Memory of one tile in bytes."""
        return self.memory.total_bytes

    @property
    def machine(self) -> Machine:
        """What codelets are told of it."""
        return Machine(workers=self.workers_per_tile, data_path_bytes=self.data_path_bytes)

    @property
    def rates(self) -> Rates:
        """What plans of families are told of it."""
        return Rates(machine=self.machine, exchange_bytes_per_cycle=self.exchange_bytes_per_cycle)

    @property
    def peak_flops_per_second(self) -> float:
        """Peak float16 rate of one IPU: two operations per multiply-accumulate, half partials."""
        macs_per_cycle = self.conv_units_half_partials * 4
        return 2.0 * macs_per_cycle * self.tiles_per_ipu * self.clock_hz

    def replace(self, **changes: Any) -> Target:
        """A what-if machine: the same target with fields changed (`bytes_per_tile` scales both regions).

        Errors: `InputError` for a field it does not have, and a value of another kind or outside its range.
        """
        bytes_per_tile = changes.pop("bytes_per_tile", None)
        declared = {each.name: each for each in dataclasses.fields(self)}
        for name in changes:
            if name not in declared or name == "architecture":  # a word for the machine, on which nothing depends
                known = ["bytes_per_tile", *(each for each in declared if each != "architecture")]
                raise InputError(
                    f"a target has no field {name!r} to change",
                    expected=f"one of: {', '.join(known)}",
                    todo=meant(name, known),
                )
        changes = {name: _checked(declared[name], value) for name, value in changes.items()}
        if bytes_per_tile is not None:
            if "memory" in changes:
                raise InputError("bytes_per_tile and memory are both given", expected="one of them")
            bytes_per_tile = whole("bytes_per_tile", bytes_per_tile, least=2, most=2**32)
            changes["memory"] = _scaled_memory(self.memory, bytes_per_tile)
            changes.setdefault("what_if", (*self.what_if, f"bytes_per_tile={bytes_per_tile}"))
        marks = tuple(f"{name}={value}" for name, value in changes.items() if name not in ("memory", "what_if"))
        changes["what_if"] = (*changes.get("what_if", self.what_if), *marks)
        return dataclasses.replace(self, **changes)

    def __str__(self) -> str:
        marks = f" what-if {', '.join(self.what_if)}" if self.what_if else ""
        size = f"{self.tiles_per_ipu} tiles, {self.bytes_per_tile} B a tile, {self.clock_hz:.4g} Hz"
        return f"{self.name} ({size}){marks}"


def _real(name: str, value: Any, least: float, most: float) -> float:
    """A finite number above 0, or from the least that is allowed."""
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (least <= number <= most and (number > 0 or least == 0)):
        low = "0" if least == 0 else "more than 0"
        raise InputError(f"{name} is {value!r}", expected=f"a number from {low} to {most:g}")
    return number


def _checked(declared: dataclasses.Field[Any], value: Any) -> Any:
    """A value of a field as a plain one of its type and in its range."""
    name, bounds = declared.name, declared.metadata
    if declared.type == "int":
        return whole(name, value, least=bounds.get("least", 1), most=bounds.get("most", MOST))
    if declared.type == "float":
        return _real(name, value, 0.0 if "least" in bounds else 5e-324, bounds.get("most", 1e18))
    if (record := _RECORDS.get(str(declared.type))) is not None:
        return _checked_record(name, value, record)
    if declared.type == "str":
        is_right, kind = isinstance(value, str) and bool(value), "a text"
    else:
        is_right, kind = isinstance(value, tuple) and all(isinstance(each, str) for each in value), "texts in a tuple"
    if not is_right:
        raise InputError(f"{name} is {value!r}", expected=kind)
    return value


def _checked_record(name: str, value: Any, kind: type[Any]) -> Any:
    """A record of sizes, none of them negative."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {value!r}", expected=f"a {kind.__name__}")
    for each in dataclasses.fields(kind):
        if each.type == "int":
            whole(f"{name}.{each.name}", getattr(value, each.name), least=0, most=2**32)
    if isinstance(value, MemoryMap) and not value.total_bytes:
        raise InputError(f"{name} has no bytes", expected="a tile with memory")
    return value


_RECORDS: Mapping[str, type[Any]] = {"MemoryMap": MemoryMap, "CodeSizes": CodeSizes}


def _scaled_memory(memory: MemoryMap, bytes_per_tile: int) -> MemoryMap:
    first = bytes_per_tile * memory.non_interleaved_bytes // memory.total_bytes
    return dataclasses.replace(
        memory,
        non_interleaved_bytes=first,
        interleaved_bytes=bytes_per_tile - first,
        executable_bytes=first,
    )


# TFDOC: 122,880 B not interleaved + 131,072 B interleaved usable; the tile holds 262,144 B (8,192 B reserved).
# Its adder's tiles reach 19,612 B on average: an element of 16 KiB for 1,179 B of code, then 3,224 B of all else. Not
# sourced for Mk2.
_MK1_MEMORY = MemoryMap(
    non_interleaved_bytes=131_072, interleaved_bytes=131_072, executable_bytes=131_072, data_apart=True
)
# STACK ipu-target memory.rs: 0x4C000-0x80000 executable, 0x80000-0xE8000 interleaved; 638,976 B in all.
_MK2_MEMORY = MemoryMap(non_interleaved_bytes=212_992, interleaved_bytes=425_984, executable_bytes=212_992)

_IPU2 = Target(
    name="ipu2",
    architecture="ipu2",
    tiles_per_ipu=1472,  # HC33
    physical_tiles_per_ipu=1472,
    clock_hz=1.33e9,  # examples v3.4.1 tutorial 6: 6,681,766 cycles in 5,023.9 us
    memory=_MK2_MEMORY,
)

targets: Mapping[str, Target] = {
    "ipu1": Target(
        name="ipu1",
        architecture="ipu1",
        tiles_per_ipu=1216,  # HC33
        physical_tiles_per_ipu=1280,
        clock_hz=1.6e9,  # TFDOC sample
        memory=_MK1_MEMORY,
        conv_units_half_partials=8,  # PLIBS: Mk1 has no 16-unit half mode
        conv_units_float=8,  # PLIBS: float on Mk1 uses 8 units
    ),
    "ipu2": _IPU2,
    "bow": dataclasses.replace(_IPU2, name="bow", clock_hz=1.85e9),  # gc-info: clock 1,850.0 MHz
    "ipu21": dataclasses.replace(
        _IPU2,
        name="ipu21",
        architecture="ipu21",
        clock_hz=1.5e9,  # STACK default clock of the C600
        conv_units_quarter=16,
    ),
}


@bound
def target(name: str = "ipu2", *, tiles_per_ipu: int | None = None) -> Target:
    """The target of this name, with fewer tiles if asked (1 to all of them; 0 or None: all)."""
    if not isinstance(name, str) or name not in targets:
        raise InputError(
            f"unknown target {short(name)}", expected=f"one of: {', '.join(targets)}", todo=meant(name, targets)
        )
    found = targets[name]
    if tiles_per_ipu is None:
        return found
    tiles = whole(f"tiles_per_ipu of {name}", tiles_per_ipu, least=0, most=found.physical_tiles_per_ipu)
    return found if tiles in (0, found.tiles_per_ipu) else dataclasses.replace(found, tiles_per_ipu=tiles)
