"""Names and values of the arguments of `wb.compile`, read as they are meant: what is of no use is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.base.text import meant, short
from workbench.base.whole import MOST_TURNS, count, whole
from workbench.errors import InputError

MODES = ("training", "inference")


def checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each as a plain value of its kind. Errors: `InputError` that names argument and value."""
    return {name: _READ[name](name, value) if name in _READ else value for name, value in arguments.items()}


def _mode(name: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value in MODES):
        return value
    raise InputError(f"mode is {value!r}", expected="'training', 'inference' or None")


def _whole(name: str, value: Any) -> int:
    return count(name, value)


def _whole_or_none(name: str, value: Any) -> int | None:
    return None if value is None else _whole(name, value)


def _several(name: str, value: Any, example: str) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {value!r}", expected="a list", todo=f"write {name}={example}")
    return list(value)


def _stages(name: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str) and value == "auto":
        raise InputError(
            f"{name} is 'auto', which wb.compile, wb.profile and wb.compare_schedules find",
            expected="a list",
            todo=f"give {name}=wb.autosplit(model, ipus, ...)",
        )
    example = f"[{value!r}]" if isinstance(value, str) else "[0, 0, 1], a stage for each layer"
    if isinstance(value, int) and not isinstance(value, bool):
        example += f", or {name}=wb.autosplit(model, {value})"
    held = getattr(value, "stages", None)  # those of a split
    found = _several(name, held if isinstance(held, list | tuple) else value, example)
    try:
        return [each if isinstance(each, str | bool) else count("a stage", each, least=0) for each in found]
    except InputError as error:
        todo = f"write {name}=[0, 0, 1], a stage for each layer, or the names of the layers to cut after"
        raise InputError(error.what, expected=error.expected, todo=todo) from None


def several_inputs(value: Any) -> tuple[Any, ...]:
    """The arguments of a JAX function, or the example a model is given, from a list of them; None are none."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InputError(
            f"inputs is {short(value)}",
            expected="a tuple of arrays or of types, as wb.compile takes them behind the source",
            todo="write inputs=(x,), or inputs=(x, y) for a function of two",
        )
    return tuple(value)


def _devices(name: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(count(f"an IPU in {name}", each, least=0) for each in _several(name, value, "[0, 1]"))


def _texts(name: str, value: Any) -> tuple[str, ...]:
    found = () if value is None else (value,) if isinstance(value, str) else _several(name, value, "('dense',)")
    for each in found:
        if not isinstance(each, str):
            raise InputError(f"{name} names {each!r}", expected="names or patterns of layers")
    return tuple(found)


def _counts(name: str, value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise InputError(
            f"trip_counts is {value!r}", expected="a count for each name of a loop", todo="write {'while_body': 10}"
        )
    return {each: whole(f"trip_counts[{each!r}]", count, most=MOST_TURNS) for each, count in value.items()}


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "mode": _mode,
    "batch_size": _whole_or_none,
    "replicas": _whole,
    "gradient_accumulation_steps": _whole_or_none,
    "stages": _stages,
    "device_mapping": _devices,
    "recomputation_checkpoints": _texts,
    "trip_counts": _counts,
}

# Values that ask for nothing, where None is not the only one.
_NOTHING: Mapping[str, tuple[Any, ...]] = {
    "gradient_accumulation_steps": (None, 1),
    "replicas": (None, 1),
    "recomputation": (None, False),
    "recomputation_checkpoints": (None, (), []),
    "offload": (None, (), [], ""),
    "trip_counts": (None, {}),
    "inputs": ((),),
}


def given(arguments: Mapping[str, Any]) -> frozenset[str]:
    """The arguments that ask for something."""
    return frozenset(name for name, value in arguments.items() if not _asks_nothing(name, value))


def _asks_nothing(name: str, value: Any) -> bool:
    nothing = _NOTHING.get(name, (None,))
    return any(value is each or (type(value) is type(each) and value == each) for each in nothing)


BY_PLACE = "give arrays by place: {call}(function, x, y) in the function's order, or {call}(model, x) as an example"


_ON_IPUS = "set config.auto_select_ipus to their number, and give config= and stages='auto'"

# Arguments that other calls and libraries have: what to do here.
WAYS: Mapping[str, str] = {
    **dict.fromkeys(("ipus", "num_ipus", "n_ipus"), _ON_IPUS),
    **dict.fromkeys(("dtype", "policy"), "give precision='float16', or a model that is built in the type"),
    **dict.fromkeys(("tiles", "num_tiles", "tiles_per_ipu"), "give target=wb.target('ipu2', tiles_per_ipu=64)"),
    **dict.fromkeys(("micro_batches", "micro_batch_count"), "give gradient_accumulation_steps=, the number of them"),
    **dict.fromkeys(("options", "ipu_config"), "set options on an ipu.config.IPUConfig and give it as config="),
}


def check_names(call: str, names: Collection[str], known: Sequence[str], otherwise: str = "leave it out") -> None:
    """Every argument by name is one of a call's; `otherwise` says what to do about a name that is close to none."""
    for name in names:
        if name in known:
            continue
        raise InputError(
            f"{call} has no argument {name!r}",
            expected=f"any of: {', '.join(known)}",
            todo=WAYS.get(name) or (WAYS["options"] if "option" in name else meant(name, known)) or otherwise,
        )


__all__ = ["BY_PLACE", "WAYS", "check_names", "checked", "given", "several_inputs"]
