"""Vertices written by hand: which fields are read and written, and the codelet's arguments that follow from them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping as Named
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.base.dtypes import HAND_WORDS
from workbench.base.identity import each_once
from workbench.base.text import short
from workbench.engine import vertices
from workbench.engine.by_hand.operands import check_cost, check_operands
from workbench.engine.by_hand.tensor import Tensor
from workbench.engine.cost import Inputs, inputs_of
from workbench.engine.target import Machine
from workbench.errors import InputError

_SETTINGS: Named[str, tuple[str, ...]] = {"popops::Fill": ("value",), "poplar::Memset": ("value",)}
_IN_TYPES = ("type", "in_type", "from_type", "a_type", "index_type", "key_type")
_OUT_TYPES = ("to_type", "out_type", "output_type")
_COUNTS = ("n", "num_elems", "elements", "size")
_BLOCKS = ("columns", "b_slice_len", "indices", "batch", "histogram_count")  # sizes of tensors or of their dimensions
_REGIONS = ("offsets", "num_sub_elements", "num_base_elements")  # so many regions of region_size are a block


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Vertex:
    """One vertex on a tile: its class, the codelet's arguments, and its tensors by field.

    `settings` are values that change results but not the cost (the value of a fill).
    """

    vertex: str
    tile: int
    arguments: Inputs
    reads: tuple[tuple[str, Tensor], ...]
    writes: tuple[tuple[str, Tensor], ...]
    settings: Inputs = ()


def make_vertex(
    name: str,
    tile: int,
    fields: Named[str, Any],
    reads: tuple[Tensor, ...],
    writes: tuple[Tensor, ...] | None,
    machine: Machine,
) -> Vertex:
    """A vertex from its fields: tensors become edges, the rest and what follows from the tensors arguments.

    Errors: unknown vertices, operations and arguments, arguments that nothing tells or that contradict the tensors, and
    fields none of which is written where `writes` does not say so.
    """
    codelet = _codelet(name)
    tensors = {key: value for key, value in fields.items() if isinstance(value, Tensor)}
    known = _SETTINGS.get(name, ())
    settings = {key: _number(name, key, value, tensors) for key, value in fields.items() if key in known}
    given = {key: value for key, value in fields.items() if key not in tensors and key not in known}
    read, written = _edges(name, tensors)
    if tensors and not written and writes is None:
        raise InputError(
            f"{name} writes none of its fields ({', '.join(tensors)})",
            expected="a field whose name begins with 'out', is 'dst' or ends in 'Out'; or one that is 'inOut'",
            todo="name the field of its result out=, or list what it writes as writes=, () for nothing",
        )
    arguments = _arguments(name, codelet, given, read, written)
    _check_given(name, given, each_once((*read.values(), *written.values(), *reads, *(writes or ()))))
    arguments = check_cost(codelet, arguments, machine)  # where the vertex is written
    check_operands(codelet, arguments, read, written)
    return Vertex(
        vertex=name,
        tile=int(tile),
        arguments=inputs_of(arguments),
        reads=(*read.items(), *(("", part) for part in reads)),
        writes=(*written.items(), *(("", part) for part in writes or ())),
        settings=inputs_of(settings),
    )


def _number(name: str, key: str, value: Any, tensors: Named[str, Tensor]) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float):
        raise InputError(f"{name} is given {key}={short(value)}", expected="a number")
    for tensor in tensors.values():
        if not_held(np.asarray(_of_type(tensor.dtype, plain)), tensor.dtype) is not None:
            raise InputError(f"{name} is given {key}={short(value)}", expected=f"a number that {tensor.dtype} holds")
    return value


def _of_type(dtype: str, value: bool | int | float) -> bool | int | float:
    """A number as one of the type's kind where it is one: 2.0 is a whole number, 1 is yes."""
    if dtype == "bool":
        return bool(value) if value in (0, 1) else value
    if np.dtype(dtype).kind == "f":
        return float(value) if abs(value) < 2**1_000 else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def not_held(array: npt.NDArray[Any], dtype: str) -> str | None:
    """What of an array a type does not hold: its kind, or the first number out of range; None where all are held.

    Floats are rounded; a finite one that would be infinite is not held. Of whole numbers none comes as another.
    """
    held = np.dtype(dtype)
    if held.kind == "b" or array.dtype.kind == "b":
        return None if np.can_cast(array.dtype, held, "same_kind") else str(array.dtype)
    if array.dtype.kind not in "iuf" or (held.kind in "iu" and array.dtype.kind == "f"):
        return str(array.dtype)
    if held.kind == "f":
        with np.errstate(over="ignore"):
            outside = np.isfinite(array) & np.isinf(array.astype(held))
    else:
        outside = (array > np.iinfo(held).max) | (array < np.iinfo(held).min)
    return str(array[outside].flat[0]) if outside.any() else None


def _codelet(name: str) -> vertices.Codelet:
    known = vertices.load()
    if name not in known:
        near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
        raise InputError(
            f"unknown vertex {name!r}",
            expected="one of: " + ", ".join(near) if near else "a vertex of the libraries",
            todo="workbench.tiles.vertex_names() lists them all",
        )
    return known.get(name)


def _edges(name: str, tensors: Named[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    in_place = name.lower().endswith("inplace") or "ScaledAdd" in name or "ScaledSubtract" in name
    reads, writes = {}, {}
    for place, (key, tensor) in enumerate(tensors.items()):
        both = "inout" in key.lower() or key.endswith("Out") or (in_place and place == 0)
        only_written = not both and (key.lower().startswith("out") or key == "dst")
        if not only_written:
            reads[key] = tensor
        if both or only_written:
            writes[key] = tensor
    return reads, writes


@lru_cache(maxsize=1024)
def _parameters(name: str) -> tuple[tuple[str, bool], ...] | None:
    """(name, required) of a codelet's arguments; None when they are free."""
    codelet = vertices.find(name)
    every = inspect.signature(codelet.cycles).parameters.values()
    found = [parameter for parameter in every if parameter.name not in codelet.of_machine]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found):
        return None
    return tuple((parameter.name, parameter.default is parameter.empty) for parameter in found)


def _arguments(
    name: str,
    codelet: vertices.Codelet,
    given: dict[str, Any],
    reads: Named[str, Tensor],
    writes: Named[str, Tensor],
) -> dict[str, Any]:
    parameters = _parameters(codelet.name)
    if parameters is None:
        return given
    names = [parameter for parameter, _ in parameters]
    unknown = [key for key in given if key not in names]
    if unknown:
        raise InputError(f"{name} has no argument {unknown[0]!r}", expected=f"one of: {', '.join(names)}, or a tensor")
    found = {**_deduced(names, tuple(reads.values()), tuple(writes.values())), **given}
    if "b_type" not in names and "scale_type" in found and all(tensor.elements > 1 for tensor in reads.values()):
        found |= {"scale_type": given.get("scale_type", found.get("type"))}  # no scale is read
    for key in _COUNTS if "rows" in given else ("rows",) if any(key in given for key in _COUNTS) else ():
        if key not in given:
            found.pop(key, None)  # the elements of one row, or of each
    _check_one_size(name, [key for key in _COUNTS if key in found and key not in given], reads, writes)
    missing = [key for key, required in parameters if required and key not in found]
    if missing:
        raise InputError(
            f"{name} on tensors {', '.join([*reads, *writes]) or 'none'} does not know its {missing[0]!r}",
            expected=f"the arguments {', '.join(names)}",
            todo=f"pass it as {missing[0]}=",
        )
    return {key: found[key] for key in names if key in found}


def _deduced(names: list[str], reads: tuple[Tensor, ...], writes: tuple[Tensor, ...]) -> dict[str, Any]:
    both = (*reads, *writes)
    if not both:
        return {}
    main = (*writes, *reads)[0]
    first, second = both[0], both[min(1, len(reads) - 1) if reads else 0]
    found: dict[str, Any] = dict.fromkeys(_IN_TYPES, HAND_WORDS[first.dtype])
    found |= dict.fromkeys(_OUT_TYPES, HAND_WORDS[main.dtype])
    scale = next((tensor for tensor in reads[1:] if tensor.elements == 1), second)
    found |= {"b_type": HAND_WORDS[second.dtype], "scale_type": HAND_WORDS[scale.dtype]}
    found |= dict.fromkeys(_COUNTS, main.elements)
    found["bytes"] = main.elements * np.dtype(main.dtype).itemsize
    if "n" not in names and not {"columns", "cols"} & set(names):
        found["rows"] = (main.elements,) if len(main.shape) < 2 else (main.shape[-1],) * prod(main.shape[:-1])
    return {key: value for key, value in found.items() if key in names}


def _check_one_size(name: str, deduced: Sequence[str], reads: Named[str, Tensor], writes: Named[str, Tensor]) -> None:
    """A size follows from the tensors where what is written is as large as something that is read."""
    if not deduced or not reads or not writes:
        return
    main = next(iter(writes.values()))
    if all(tensor.elements != main.elements for tensor in reads.values()):
        sizes = ", ".join(f"{key} {tensor.elements}" for key, tensor in {**reads, **writes}.items())
        raise InputError(
            f"{name} reads and writes different numbers of elements: {sizes}",
            expected=f"as many of both, or {deduced[0]}=",
            todo=f"pass parts of one size, or say how many it goes through as {deduced[0]}=",
        )


def _check_given(name: str, given: Named[str, Any], tensors: Sequence[Tensor]) -> None:
    """What is given of sizes and types is that of some tensor: a cost is that of what a vertex touches.

    A size is the elements of a tensor, or of a block of its dimensions.
    """
    sizes = {size for tensor in tensors for size in _blocks(tensor.shape)}
    sizes_bytes = {size * np.dtype(tensor.dtype).itemsize for tensor in tensors for size in _blocks(tensor.shape)}
    words = {HAND_WORDS[tensor.dtype] for tensor in tensors}
    columns = given.get("columns", 1)
    told: Any
    known: set[Any]
    for key, value in given.items() if tensors else ():
        if key in (*_COUNTS, *_BLOCKS):
            told, known = value, sizes
        elif key == "region_size":
            told, known = value, sizes | ({1} if all(len(tensor.shape) < 2 for tensor in tensors) else set())
        elif key in _REGIONS:
            told, known = value * given.get("region_size", 1), sizes
        elif key == "rows":
            told, known = (sum(value) if isinstance(value, tuple | list) else value * columns), sizes
        elif key == "bytes":
            told, known = value, sizes_bytes
        elif key in (*_IN_TYPES, *_OUT_TYPES):
            told, known = value, words
        else:
            continue
        if told not in known:
            shapes = ", ".join(f"{tensor.variable.name} {tensor.dtype}{list(tensor.shape)}" for tensor in tensors)
            raise InputError(
                f"{name} is given {key}={value!r}, which contradicts its tensors: {shapes}",
                expected=f"one of: {', '.join(map(str, sorted(known)))}",
                todo=f"leave {key}= out if it follows from the tensors, or pass the part that the vertex is to touch",
            )


def _blocks(shape: Sequence[int]) -> set[int]:
    """The elements of a shape, and of every run of its dimensions."""
    return {prod(shape[start:stop]) for start in range(len(shape)) for stop in range(start + 1, len(shape) + 1)} or {1}
