"""What a program from a file may do: take and give what its signature says, and call only what our own programs call.

XLA runs a custom call by its name; some names run a function at an address that the file gives. So the module is read
before anything runs it, every operation in it is looked at, and only the names below pass: those that JAX 0.10 writes
for linear algebra on a CPU (jax.export: names with a promise to stay). XLA knows them through its typed interface
alone, which checks what they are given. What talks to the host (infeed, outfeed, send, recv) passes not at all: a saved
program gets its feeds as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import chlo, sdy, stablehlo

_LAPACK = (
    *("potrf", "geqrf", "geqp3", "orgqr", "ungqr", "gesdd", "gesvd", "syevd", "heevd", "getrf", "trsm"),
    *("geev", "gees", "gehrd", "gtsv", "sytrd", "hetrd"),
)
CALLED = frozenset(f"lapack_{kind}{name}_ffi" for kind in "sdcz" for name in _LAPACK) | {"ApproxTopK"}
_HOST = frozenset(f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv"))
_DIALECTS = ("stablehlo.", "chlo.", "func.", "builtin.module")
_ELEMENTS = {
    **{"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{"complex<f32>": "complex64", "complex<f64>": "complex128"},
}

Types = list[tuple[tuple[int, ...], str]]


def check_program(module: bytes, signature: Mapping[str, Any]) -> None:
    """A `ValueError` for a module that is none, that is of another signature, or that calls what ours do not."""
    context = ir.Context()
    context.enable_multithreading(False)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    with context:
        whole = stablehlo.deserialize_portable_artifact(context, module)
        for operation in _operations(whole):
            _check_operation(operation)
        _check_types(whole, signature)


def _operations(module: Any) -> Iterator[Any]:
    found: list[Any] = []

    def see(operation: Any) -> Any:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(see)
    return iter(found)


def _check_operation(operation: Any) -> None:
    name = str(operation.name)
    if name in _HOST or not name.startswith(_DIALECTS):
        raise ValueError(f"its program has the operation {name!r}, which none of ours has")
    if name == "stablehlo.custom_call":
        called = ir.StringAttr(operation.attributes["call_target_name"]).value
        if called not in CALLED:
            raise ValueError(f"its program calls {called!r}, which none of ours calls")


def _check_types(module: Any, signature: Mapping[str, Any]) -> None:
    main = [each for each in module.body.operations if _named(each) == "main"]
    if len(main) != 1:
        raise ValueError("its program has no function 'main'")
    kind = ir.FunctionType(ir.TypeAttr(main[0].operation.attributes["function_type"]).value)
    takes, gives = types_of(signature["takes"]), types_of(signature["gives"])
    read = [takes[place] for place in _places(signature["read"], len(takes))]
    if [_type(each) for each in kind.inputs] != read or [_type(each) for each in kind.results] != gives:
        raise ValueError("its program takes or gives other arrays than its signature says")


def _named(operation: Any) -> str:
    attributes = operation.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""


def _type(kind: Any) -> tuple[tuple[int, ...], str]:
    tensor = ir.RankedTensorType(kind)
    if not tensor.has_static_shape:
        raise ValueError("its program has arrays of unknown sizes")
    return tuple(tensor.shape), _ELEMENTS.get(str(tensor.element_type), str(tensor.element_type))


def types_of(told: Any) -> Types:
    """Shapes and types as a file tells them, each checked."""
    if not isinstance(told, list):
        raise ValueError("its signature is none")
    found = []
    for each in told:
        shape, dtype = each
        if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63 for size in shape):
            raise ValueError(f"its signature has an array of shape {shape}")
        found.append((tuple(shape), str(jnp.dtype(dtype))))
    return found


def _places(told: Any, count: int) -> list[int]:
    if not isinstance(told, list) or not all(isinstance(place, int) and 0 <= place < count for place in told):
        raise ValueError("its signature reads arguments that there are not")
    return list(told)


__all__ = ["CALLED", "check_program", "types_of"]
