"""The plan of one matmul or convolution: what is multiplied, how it is cut over tiles, and the modelled cost of that.

Encoding. A problem is a loop nest over axes named by role and number: `g` groups, `b` batch (rows of a matmul), `f`
output field, `k` kernel, `c` input channels, `o` output channels. Every multiply-accumulate is one point of the nest. A
plan cuts axes into parts; a tile has one part of each axis. Field and kernel axis i together say which input
positions are read: `FieldAxis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as default
from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.engine.cost import Cost

Pass = Literal["forward", "backward", "weight_update"]
Kind = Literal["matmul", "convolution"]
Vertex = Literal["amp", "hmac", "vmac", "outer_product", "slic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAxis:
    """One spatial axis: output o and kernel k read input (o * stride + k * kernel_dilation - pad_low) / in_dilation.

    Where that is no whole number or lies outside `in_size` elements, a zero is read and nothing is multiplied.
    """

    in_size: int
    out_size: int
    kernel: int
    stride: int = 1
    in_dilation: int = 1
    kernel_dilation: int = 1
    pad_low: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether output position i reads just input position i, so that the axis is one more batch axis."""
        steps = (self.kernel, self.stride, self.in_dilation, self.in_size - self.out_size + 1)
        return steps == (1, 1, 1, 1) and self.pad_low == 0

    @property
    def is_spread(self) -> bool:
        """Whether each input position makes one output and the outputs between are zero: a batch axis, spread later."""
        last = (self.in_size - 1) * self.in_dilation + self.pad_low
        return self.kernel == self.stride == 1 and self.pad_low >= 0 and last < self.out_size

    @property
    def active_step(self) -> int:
        """Of this many neighbouring outputs one is reached by a kernel position, as the rest meet dilation zeros."""
        return int(self.in_dilation // np.gcd(self.stride, self.in_dilation))

    def reads(self, outputs: IntArray, kernels: IntArray) -> IntArray:
        """Input position of every (output, kernel) pair, -1 for a zero: int64[outputs, kernels]."""
        at = outputs[:, None] * self.stride + kernels[None, :] * self.kernel_dilation - self.pad_low
        inside = (at >= 0) & (at % self.in_dilation == 0) & (at // self.in_dilation < self.in_size)
        return np.where(inside, at // self.in_dilation, -1)

    def macs(self) -> int:
        """Pairs of output and kernel position that multiply something."""
        return int((self.reads(np.arange(self.out_size), np.arange(self.kernel)) >= 0).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProblem:
    """What is multiplied. Sizes of the axes of each role; a matmul has no field. Types are `half` or `float`.

    `direction` is what the layer does with it: the forward result, the gradient of its input, or of its weights (then
    batch and channels have changed roles: the batch is summed over and the kernel's extent is the output's field).
    """

    kind: Kind
    direction: Pass
    in_type: str
    partials_type: str
    out_type: str
    groups: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    field: tuple[FieldAxis, ...] = ()
    in_chans: tuple[int, ...] = ()
    out_chans: tuple[int, ...] = ()
    result_elements: int = 0  # of the whole result, if zeros are put between the outputs afterwards

    def sizes(self) -> dict[str, int]:
        """Size of every axis of the loop nest."""
        named = {
            "g": self.groups,
            "b": self.batch,
            "f": tuple(axis.out_size for axis in self.field),
            "k": tuple(axis.kernel for axis in self.field),
            "c": self.in_chans,
            "o": self.out_chans,
        }
        return {f"{role}{index}": size for role, sizes in named.items() for index, size in enumerate(sizes)}

    def macs(self) -> int:
        """Multiply-accumulates, those with padding and dilation zeros left out."""
        dense = prod(self.groups) * prod(self.batch) * prod(self.in_chans) * prod(self.out_chans)
        return dense * prod(axis.macs() for axis in self.field)

    def __str__(self) -> str:
        shown = [f"{role}={'x'.join(map(str, sizes)) or 1}" for role, sizes in self._roles()]
        types = f"{self.in_type} partials {self.partials_type} out {self.out_type}"
        return f"{self.kind} {self.direction} {types} {' '.join(shown)}"

    def _roles(self) -> list[tuple[str, tuple[object, ...]]]:
        roles: list[tuple[str, tuple[object, ...]]] = [
            ("groups", self.groups),
            ("batch", self.batch),
            ("field", tuple(axis.out_size for axis in self.field)),
            ("kernel", tuple(axis.kernel for axis in self.field)),
            ("in", self.in_chans),
            ("out", self.out_chans),
        ]
        return [(name, sizes) for name, sizes in roles if sizes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How a tile multiplies: the vertex, blocks of input and output channels it takes, and the type it adds up in.

    For the matrix unit (`amp`): `units` convolution units, and `filter_height` kernel rows side by side when there are
    fewer input channels than the unit is deep.
    """

    vertex: Vertex
    in_block: int = 1
    out_block: int = 1
    group_block: int = 1
    units: int = 0
    filter_height: int = 1
    partials_type: str = "float"

    def __str__(self) -> str:
        unit = f" {self.units} units" if self.units else ""
        height = f" height {self.filter_height}" if self.filter_height > 1 else ""
        return f"{self.vertex}{unit} {self.in_block}x{self.out_block}{height}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AxisCuts:
    """One axis cut into parts: part i has elements lo[i] to hi[i]; parts may be empty at the end."""

    size: int
    lo: IntArray
    hi: IntArray

    @property
    def lengths(self) -> IntArray:
        """Elements of each part."""
        return self.hi - self.lo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvPlan:
    """How a problem is cut. `splits` gives the parts of every axis in tile order: the last varies fastest.

    `swapped`: the right operand is the one that streams through the unit and the left one is held as weights.
    `expanded`: field axes whose kernel positions are laid out as input channels beforehand. `serial_in`, `serial_out`:
    steps in which input and output channels are worked off one after the other. `stages`: partials left after each
    intermediate stage of the reduction. `transforms`: what is rearranged on tiles before or after. `pads`: operands are
    only to have their channels filled up, and are copied in whole blocks. `fills`: weights are used as they lie, but
    for the last block of outputs, which is filled up. `paired`: neighbours need the same inputs and share their
    exchange bus. `wide_load`: the unit loads weights 16 bytes a cycle. `cost` is in cycles, of the whole operation;
    `temporary_bytes` on the fullest tile; `bound_bytes` what it had to fit (or 0).
    """

    problem: ConvProblem
    method: Method
    splits: tuple[tuple[str, int], ...]
    grains: tuple[tuple[str, int], ...]
    swapped: bool = False
    expanded: tuple[int, ...] = ()
    serial_in: int = 1
    serial_out: int = 1
    stages: tuple[int, ...] = ()
    transforms: tuple[str, ...] = ()
    pads: bool = False
    fills: bool = False
    paired: bool = False
    wide_load: bool = False
    cost: Cost = default(default_factory=Cost)
    temporary_bytes: int = 0
    bound_bytes: int = 0
    warning: str = ""

    @property
    def total_cycles(self) -> int:
        """The modelled cycles of the whole operation."""
        return self.cost.value

    @property
    def tiles(self) -> int:
        """Tiles that compute."""
        return prod(parts for _, parts in self.splits)

    def parts(self, axis: str) -> int:
        """Parts of an axis."""
        return dict(self.splits).get(axis, 1)

    def __str__(self) -> str:
        cut = " ".join(f"{axis}/{parts}" for axis, parts in self.splits if parts > 1) or "one tile"
        serial = f" serial in {self.serial_in} out {self.serial_out}" if self.serial_in * self.serial_out > 1 else ""
        marks = "".join(
            [
                " swapped" if self.swapped else "",
                f" kernel of field {','.join(map(str, self.expanded))} as channels" if self.expanded else "",
                f" reduce by way of {','.join(map(str, self.stages))}" if self.stages else "",
                f" rearranges {', '.join(self.transforms)}" if self.transforms else "",
                " fills weights" if self.fills else "",
            ]
        )
        terms = ", ".join(f"{part.name} {part.value}" for part in self.cost.terms if part.value)
        warning = f"; {self.warning}" if self.warning else ""
        return (
            f"{self.method} on {self.tiles} tiles: {cut}{serial}{marks}; {self.total_cycles} cycles ({terms}); "
            f"{self.temporary_bytes} B temporary{warning}"
        )


@lru_cache(maxsize=8192)
def axis_cuts(size: int, parts: int, grain: int = 1) -> AxisCuts:
    """Parts of ceil(grains / parts) whole grains each, the last ones smaller or empty, as PopLibs cuts.

    Source: poplibs@7eac0f26 lib/poplin/ConvUtilInternal.cpp (partitions are rounded up).
    """
    grains = -(-size // grain)
    bounds = np.minimum(np.arange(parts + 1, dtype=np.int64) * -(-grains // parts) * grain, size)
    return AxisCuts(size=size, lo=frozen(bounds[:-1]), hi=frozen(bounds[1:]))
