"""Parameters of JAX primitives as plain attributes: dimension numbers become flat tuples with clear names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.engine.cost import Plain
from workbench.engine.graph.primitives import Kind, names

Params = Mapping[str, Any]

# Where arrays live and how XLA should treat them says nothing about the operation.
_SILENT = frozenset(
    {
        "sharding",
        "out_sharding",
        "mesh",
        "ctx_mesh",
        "out_type",
        "donated_invars",
        "in_shardings",
        "out_shardings",
        "in_layouts",
        "out_layouts",
        "keep_unused",
        "inline",
        "compiler_options_kvs",
        "weak_type",
        "debug_info",
        "preferred_element_type",
        "jvp_jaxpr_fun",
        "jvp_jaxpr_thunk",
        "fwd_jaxpr_thunk",
        "bwd",
        "accuracy",
        "linear",
        "unroll",
        "_split_transpose",
        "policy",
        "prevent_cse",
        "symbolic_zeros",
        "num_consts",
        "out_dtype",
        "precision",
    }
)


def plain(value: Any) -> Plain:
    """Any primitive parameter as plain data: enums and dtypes by name, arrays as nested tuples."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if hasattr(value, "_asdict"):
        return tuple((name, plain(item)) for name, item in value._asdict().items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if isinstance(value, Mapping):
        return tuple((str(key), plain(item)) for key, item in value.items())
    return _named(value)


def _named(value: Any) -> str:
    if isinstance(value, (np.dtype, type)) or hasattr(value, "itemsize"):
        return dtype_name(np.dtype(value) if isinstance(value, type) and issubclass(value, np.generic) else value)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return str(name).lower() if name else str(value)


def _dot_general(params: Params) -> dict[str, Any]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return {
        "lhs_contract": lhs_contract,
        "rhs_contract": rhs_contract,
        "lhs_batch": lhs_batch,
        "rhs_batch": rhs_batch,
    }


def _convolution(params: Params) -> dict[str, Any]:
    numbers = params["dimension_numbers"]
    rest = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count", "batch_group_count")
    return {
        "lhs_spec": numbers.lhs_spec,
        "rhs_spec": numbers.rhs_spec,
        "out_spec": numbers.out_spec,
        **{name: params[name] for name in rest},
    }


def _gather(params: Params) -> dict[str, Any]:
    numbers = params["dimension_numbers"]._asdict()
    return {**numbers, "slice_sizes": params["slice_sizes"], "mode": params["mode"]}


def _scatter(params: Params) -> dict[str, Any]:
    names = ("mode", "indices_are_sorted", "unique_indices")
    return {**params["dimension_numbers"]._asdict(), **{name: params[name] for name in names}}


def _window(params: Params) -> dict[str, Any]:
    return {name: value for name, value in params.items() if not hasattr(value, "eqns")}


def _select_and_scatter_add(params: Params) -> dict[str, Any]:
    return {**params, "select_prim": params["select_prim"].name}


def _random_bits(params: Params) -> dict[str, Any]:
    return {"bit_width": params["bit_width"], "shape": params["shape"]}


def _pad(params: Params) -> dict[str, Any]:
    low, high, interior = zip(*params["padding_config"], strict=True) if params["padding_config"] else ((), (), ())
    return {"low": low, "high": high, "interior": interior}


_SPECIAL: Mapping[str, Callable[[Params], dict[str, Any]]] = {
    "dot_general": _dot_general,
    "conv_general_dilated": _convolution,
    "gather": _gather,
    **dict.fromkeys(names(Kind.SCATTER), _scatter),
    "select_and_scatter_add": _select_and_scatter_add,
    "select_and_gather_add": _select_and_scatter_add,
    "reduce_window": _window,
    "random_bits": _random_bits,
    "random_wrap": lambda params: {},
    "random_unwrap": lambda params: {},
    "pad": _pad,
}


def is_program(value: Any) -> bool:
    """Whether a parameter holds another jaxpr (or several)."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(is_program(item) for item in value)
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def plain_attributes(primitive: str, params: Params) -> tuple[tuple[str, Plain], ...]:
    """Attributes of a node, sorted by name; jaxprs, shardings and functions are left out."""
    special = _SPECIAL.get(primitive)
    chosen = special(params) if special is not None else params
    return tuple(
        sorted(
            (name, plain(value))
            for name, value in chosen.items()
            if value is not None and name not in _SILENT and not callable(value) and not is_program(value)
        )
    )
