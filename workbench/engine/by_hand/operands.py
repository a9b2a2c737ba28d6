"""The tensors of a vertex written by hand held to what its codelet goes through: their elements and their types."""

from __future__ import annotations

from collections.abc import Mapping as Named
from typing import Any

import numpy as np

from workbench.base.checked import as_annotated
from workbench.base.dtypes import HAND_WORDS
from workbench.base.text import short
from workbench.engine import vertices
from workbench.engine.by_hand.tensor import Tensor
from workbench.engine.target import Machine
from workbench.engine.vertices.operands import BOOLEAN, IN_TYPES, OUT_TYPES
from workbench.errors import InputError, WorkbenchError


def check_cost(codelet: vertices.Codelet, arguments: dict[str, Any], machine: Machine) -> dict[str, Any]:
    """The arguments as the codelet takes them; an `InputError` where its cycles, state or code do not follow."""
    read = as_annotated(codelet.name, codelet.cycles, arguments)
    try:
        given = codelet.inputs(machine, read)
        found = [function(**given) for function in (codelet.cycles, codelet.state_bytes, codelet.code_bytes)]
        found.append(vertices.cycles(machine, codelet.name, **read))
        codelet.operands(read)
    except WorkbenchError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        told = ", ".join(f"{key}={short(value)}" for key, value in arguments.items())
        raise InputError(
            f"{codelet.name} has no cost with {told or 'no arguments'}: {error}", expected=codelet.formula
        ) from None
    if min(found) < 0:
        told = ", ".join(f"{key}={short(value)}" for key, value in arguments.items())
        raise InputError(f"{codelet.name} has no cost with {told}", expected="sizes that are not negative")
    return read


def check_operands(
    codelet: vertices.Codelet, arguments: Named[str, Any], reads: Named[str, Tensor], writes: Named[str, Tensor]
) -> None:
    """Errors: a field of more or fewer elements than the vertex goes through, or of a type that it has no code for."""
    _check_sizes(codelet, arguments, reads, writes)
    _check_types(codelet, arguments, reads, writes)


def _check_sizes(
    codelet: vertices.Codelet, arguments: Named[str, Any], reads: Named[str, Tensor], writes: Named[str, Tensor]
) -> None:
    sizes = codelet.operands(arguments)
    if sizes is None:
        return
    unit = "B" if sizes.in_bytes else "elements"
    for fields, allowed, verb in ((reads, sizes.read, "reads"), (writes, sizes.written, "writes")):
        for key, tensor in fields.items():
            width = np.dtype(tensor.dtype).itemsize if sizes.in_bytes else 1
            if (fields is writes and key in reads) or allowed is None or tensor.elements * width in allowed:
                continue
            told = ", ".join(f"{name}={short(value)}" for name, value in arguments.items())
            raise InputError(
                f"{codelet.name} {verb} {key} of {tensor.elements * width} {unit} ({tensor}), with {told}",
                expected=f"{' or '.join(str(size) for size in sorted(allowed))} {unit}",
                todo=f"pass the part of {tensor.variable.name} that the vertex goes through",
            )


def _check_types(
    codelet: vertices.Codelet, arguments: Named[str, Any], reads: Named[str, Tensor], writes: Named[str, Tensor]
) -> None:
    read, written = ({str(arguments[key]) for key in keys if arguments.get(key)} for keys in (IN_TYPES, OUT_TYPES))
    result = {"bool"} if arguments.get("op") in BOOLEAN else set()
    both = read | set(codelet.also_types)
    for fields, named, more in ((reads, read, set()), (writes, written or read, result)):
        for key, tensor in fields.items():
            word, allowed = HAND_WORDS[tensor.dtype], named | set(codelet.also_types) | more
            if named and word not in (allowed | both if key in reads and key in writes else allowed):
                told = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if "type" in name)
                raise InputError(
                    f"{codelet.name} is given {key} of type {word!r} ({tensor}), with {told}",
                    expected=f"one of: {', '.join(sorted(allowed))}",
                    todo=f"declare {tensor.variable.name} of that type, or cast it with popops::Cast1D first",
                )
