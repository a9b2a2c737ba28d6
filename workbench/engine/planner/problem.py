"""What is multiplied: a loop nest (`ConvProblem`), and from a node of the graph to it and to its operands' axes.

Encoding. A problem is a loop nest over axes named by role and number: `g` groups, `b` batch (rows of a matmul), `f`
output field, `k` kernel, `c` input channels, `o` output channels. Every multiply-accumulate is one point of the nest.
Field and kernel axis i together say which input positions are read: `FieldAxis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.dtypes import DTYPE_WORDS, ITEMSIZE_BYTES
from workbench.engine.graph import Node
from workbench.engine.remembered import remembered

Labels = tuple[str, ...]
Pass = Literal["forward", "backward", "weight_update"]
Kind = Literal["matmul", "convolution"]


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

    def is_foreign(self, swapped: bool) -> bool:
        """Whether operands and result are not in the layout of their kind: a matmul's is the swapped one."""
        return swapped != (self.kind == "matmul")

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


def swapped_problem(problem: ConvProblem) -> ConvProblem:
    """Rows and output channels with their roles exchanged; only for a problem without fields."""
    return replace(problem, batch=problem.out_chans, out_chans=problem.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """The axes that make up each operand, outermost first.

    `i` is an input field, read by field axis and kernel axis of its number. Channels or groups that lie together in
    every operand are one axis; axes of size 1 are left out.
    """

    left: Labels
    right: Labels
    out: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is planned for a node: its problem and its operands' axes.

    `spread`: zeros put around and between the outputs to make the result, (low, high, between) for each of its axes.
    """

    problem: ConvProblem
    operands: Operands
    spread: tuple[tuple[int, int, int], ...] = ()


def type_word(dtype: str) -> str:
    """The type the unit multiplies in: two bytes or fewer as half, wider as float."""
    return "half" if ITEMSIZE_BYTES[dtype] <= 2 else "float"


def problem_of(node: Node, partials_type: str, *, quarters: bool = False) -> Planned:
    """The problem of a `dot_general` or `conv_general_dilated` node, partials added in `partials_type`.

    `quarters`: whether the unit multiplies 8-bit floats as they are; else they are halves to it.
    """
    in_type = type_word(node.operands[0].dtype)
    if quarters and all(DTYPE_WORDS[value.dtype] == "quarter" for value in node.operands[:2]):
        in_type = "quarter"
    types = (in_type, type_word(node.results[0].dtype))
    key = (node.operands[0].shape, node.operands[1].shape, node.results[0].shape, node.attrs)
    backward = node.origin.direction == "backward"
    if node.op == "dot_general":
        return _dot(key[0], key[1], node.attrs, backward, *types, partials_type)
    return _convolution(key[0], key[1], key[2], node.attrs, backward, *types, partials_type)


def _partials(in_type: str, partials_type: str) -> str:
    if in_type == "float":
        return in_type
    return "half" if in_type == "quarter" else partials_type


@remembered(4096)
def _dot(
    left: tuple[int, ...],
    right: tuple[int, ...],
    attrs: tuple[tuple[str, object], ...],
    backward: bool,
    in_type: str,
    out_type: str,
    partials_type: str,
) -> Planned:
    numbers: dict[str, tuple[int, ...]] = dict(attrs)  # type: ignore[arg-type]
    names_left = ["" for _ in left]
    names_right = ["" for _ in right]
    sizes: dict[str, int] = {}
    for role, own, other in (("g", "lhs_batch", "rhs_batch"), ("c", "lhs_contract", "rhs_contract")):
        for index, (a, b) in enumerate(zip(numbers[own], numbers[other], strict=True)):
            names_left[a] = names_right[b] = f"{role}{index}"
            sizes[f"{role}{index}"] = left[a]
    _name_free(names_left, left, "b", sizes)
    _name_free(names_right, right, "o", sizes)
    groups = [f"g{index}" for index in range(len(numbers["lhs_batch"]))]
    out = groups + [name for name in names_left if name[0] == "b"] + [name for name in names_right if name[0] == "o"]
    last = max((axis for axis, size in enumerate(left) if size > 1), default=0)
    updates = backward and last not in numbers["lhs_contract"]
    direction: Pass = "weight_update" if updates else "backward" if backward else "forward"
    types = (in_type, out_type, _partials(in_type, partials_type))
    return _planned("matmul", direction, types, [names_left, names_right, out], sizes)


def _name_free(names: list[str], shape: Sequence[int], role: str, sizes: dict[str, int]) -> None:
    count = 0
    for axis, name in enumerate(names):
        if not name:
            names[axis] = f"{role}{count}"
            sizes[names[axis]] = shape[axis]
            count += 1


@remembered(4096)
def _convolution(
    left: tuple[int, ...],
    right: tuple[int, ...],
    out: tuple[int, ...],
    attrs: tuple[tuple[str, object], ...],
    backward: bool,
    in_type: str,
    out_type: str,
    partials_type: str,
) -> Planned:
    numbers: dict[str, tuple[int, ...]] = dict(attrs)  # type: ignore[arg-type]
    left_spec, right_spec, out_spec = (numbers[name] for name in ("lhs_spec", "rhs_spec", "out_spec"))
    fields = _fields(left, right, out, numbers)
    counts: dict[str, int] = dict(attrs)  # type: ignore[arg-type]
    by_batch = counts.get("batch_group_count", 1)
    groups = max(by_batch, counts.get("feature_group_count", 1))
    sizes = {
        "g0": groups,
        "b0": left[left_spec[0]] // by_batch,
        "c0": right[right_spec[1]],
        "o0": out[out_spec[1]] // groups,
        **{f"f{index}": axis.out_size for index, axis in enumerate(fields)},
        **{f"k{index}": axis.kernel for index, axis in enumerate(fields)},
        **{f"i{index}": axis.in_size for index, axis in enumerate(fields)},
    }
    grouped_batch, grouped_chans = (["g0", "b0"], ["c0"]) if by_batch > 1 else (["b0"], ["g0", "c0"])
    inputs = _physical(left_spec, grouped_batch, grouped_chans, "i")
    weights = _physical(right_spec, ["g0", "o0"], ["c0"], "k")
    result = _physical(out_spec, ["b0"], ["g0", "o0"], "f")
    direction: Pass = "forward" if not backward else "weight_update" if left_spec[0] != 0 else "backward"
    types = (in_type, out_type, _partials(in_type, partials_type))
    made = _planned("convolution", direction, types, [inputs, weights, result], sizes, fields)
    spread = _spread(fields, out_spec)
    if not any(any(around) for around in spread):
        return made
    return replace(made, problem=replace(made.problem, result_elements=prod(out)), spread=spread)


def _spread(fields: list[FieldAxis], out_spec: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Zeros before, behind and between the outputs along each axis of the result.

    Source: poplibs@7eac0f26 lib/poplin/ConvPlan.cpp (dilatePostConv).
    """
    around = [(0, 0, 0)] * len(out_spec)
    for axis, place in zip(fields, out_spec[2:], strict=True):
        if axis.is_spread and _all_batch(fields):
            last = (axis.in_size - 1) * axis.in_dilation + axis.pad_low
            around[place] = (axis.pad_low, axis.out_size - 1 - last, axis.in_dilation - 1)
    return tuple(around)


def _all_batch(fields: Sequence[FieldAxis]) -> bool:
    """Whether no axis needs its neighbours; only then are outputs computed apart from the zeros between them."""
    return all(axis.is_plain or axis.is_spread for axis in fields)


def _fields(
    left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...], numbers: dict[str, tuple[int, ...]]
) -> list[FieldAxis]:
    found = []
    padding: Sequence[tuple[int, int]] = numbers["padding"]  # type: ignore[assignment]
    for index in range(len(out) - 2):
        found.append(
            FieldAxis(
                in_size=left[numbers["lhs_spec"][2 + index]],
                out_size=out[numbers["out_spec"][2 + index]],
                kernel=right[numbers["rhs_spec"][2 + index]],
                stride=numbers["window_strides"][index],
                in_dilation=numbers["lhs_dilation"][index],
                kernel_dilation=numbers["rhs_dilation"][index],
                pad_low=padding[index][0],
            )
        )
    return found


def _physical(spec: Sequence[int], first: list[str], second: list[str], field: str) -> list[str]:
    """Axis names in the operand's own order: spec gives the places of first (batch, out), second (channels), fields."""
    where: dict[int, list[str]] = {spec[0]: first, spec[1]: second}
    for index, axis in enumerate(spec[2:]):
        where[axis] = [f"{field}{index}"]
    return [name for axis in sorted(where) for name in where[axis]]


def _planned(
    kind: Kind,
    direction: Pass,
    types: tuple[str, str, str],
    operands: list[list[str]],
    sizes: dict[str, int],
    all_fields: Sequence[FieldAxis] = (),
) -> Planned:
    fields = dict(enumerate(all_fields))
    for index, axis in enumerate(all_fields):
        if axis.is_plain or (axis.is_spread and _all_batch(all_fields)):
            # One input position for each output and nothing between: a batch axis by another name.
            del fields[index]
            name = f"b{index + 1}"
            sizes[name] = axis.in_size
            operands = [[name if label in (f"i{index}", f"f{index}") else label for label in side] for side in operands]
            operands = [[label for label in side if label != f"k{index}"] for side in operands]
    kept = [[label for label in side if sizes[label] != 1 or label[0] in "ifk"] for side in operands]
    _merge(kept, sizes, "go" if direction == "weight_update" else "gco")
    renamed = _renumber(kept, sizes, fields)
    problem = ConvProblem(
        kind=kind,
        direction=direction,
        in_type=types[0],
        out_type=types[1],
        partials_type=types[2],
        groups=_role("g", sizes),
        batch=_role("b", sizes),
        field=tuple(fields[index] for index in sorted(fields)),
        in_chans=_role("c", sizes),
        out_chans=_role("o", sizes),
    )
    return Planned(problem=problem, operands=Operands(left=renamed[0], right=renamed[1], out=renamed[2]))


def _merge(operands: list[list[str]], sizes: dict[str, int], roles: str) -> None:
    """Join axes of one of `roles` that follow each other in every operand that has either.

    Batch axes stay apart, and so do the channels that are batch axes in the forward pass: cuts then follow the axes of
    the values, and neighbouring operators can be cut alike.
    """
    merged = True
    while merged:
        merged = False
        for first, second in [pair for side in operands for pair in pairwise(side)]:
            if first[0] == second[0] and first[0] in roles and _together(operands, first, second):
                sizes[first] *= sizes.pop(second)
                for side in operands:
                    if second in side:
                        side.remove(second)
                merged = True
                break


def _together(operands: list[list[str]], first: str, second: str) -> bool:
    for side in operands:
        if (first in side) != (second in side):
            return False
        if first in side and side.index(second) != side.index(first) + 1:
            return False
    return True


def _renumber(operands: list[list[str]], sizes: dict[str, int], fields: dict[int, FieldAxis]) -> list[Labels]:
    """Number the axes of each role from 0 in order of appearance; forget what no operand has."""
    names: dict[str, str] = {}
    for number, index in enumerate(sorted(fields)):
        names.update({f"{role}{index}": f"{role}{number}" for role in "ifk"})
    for label in [label for side in operands for label in side]:
        if label not in names:
            names[label] = f"{label[0]}{sum(known[0] == label[0] for known in names)}"
    found = {new: sizes[old] for old, new in names.items()}
    sizes.clear()
    sizes.update(found)
    return [tuple(names[label] for label in side) for side in operands]


def _role(role: str, sizes: dict[str, int]) -> tuple[int, ...]:
    named = sorted((label for label in sizes if label[0] == role), key=lambda label: int(label[1:]))
    return tuple(sizes[label] for label in named)


def shape_of(labels: Labels, problem: ConvProblem) -> tuple[int, ...]:
    """Sizes of an operand's axes; their product is the operand's size."""
    sizes = problem.sizes()
    return tuple(problem.field[int(label[1:])].in_size if label[0] == "i" else sizes[label] for label in labels)


def elements_of(labels: Labels, problem: ConvProblem) -> int:
    """Elements of an operand."""
    return prod(shape_of(labels, problem))
