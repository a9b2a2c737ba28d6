"""`tensorflow.python.ipu.dataset_extractor`: elements of datasets and values of variables in files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.ipu._feeds import elements_of, to_arrays, types_of
from workbench.ipu._files import tensors as _binary
from workbench.tf import _graph
from workbench.tf._graph import Operation
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.control import as_tensor

LOGGER = logging.getLogger("workbench.ipu")
_TYPES = ("float32", "float16", "int32")


def export_elements(dataset: Any, num_elements: int, filename: str | Path, feed_name: str) -> list[Path]:
    """Write the first elements of a dataset, one file for each tensor of an element; the files written.

    One tensor alone goes to `filename` itself, several to `name.0.bin`, `name.1.bin` and so on.
    Errors: `InputError` for fewer elements than asked for, and for elements that differ in shape.
    """
    whole("num_elements", num_elements)
    columns: list[list[np.ndarray[Any, Any]]] = []
    types: list[Any] = []
    for count, raw in enumerate(elements_of(dataset)):
        if count == num_elements:
            break
        element = to_arrays(raw)
        types = types or types_of(element)
        if types_of(element) != types:
            raise InputError(f"element {count} of the dataset has another shape or type than the first")
        columns.append(jax.tree_util.tree_leaves(element))
    if len(columns) < num_elements:
        raise InputError(
            f"the dataset has {things_text(len(columns), 'element')}",
            expected=f"{num_elements}",
            todo="ask for fewer, or repeat it",
        )
    several = len(types) > 1
    written = []
    for number, column in enumerate(zip(*columns, strict=True)):
        target = _binary.numbered(filename, number) if several else Path(filename)
        name = f"{feed_name or 'infeed'}.{number}"
        values = np.stack([_storable(each) for each in column])
        _binary.write(target, "feed", [_binary.Stored(name=name, values=values, elements=len(column))])
        written.append(target)
    return written


def _storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers as the IPU has them; a type a feed cannot have is an `InputError`."""
    if array.dtype.kind in "iu" or array.dtype == bool:
        array = array.astype(np.int32)
    if str(array.dtype) not in _TYPES:
        raise InputError(f"a feed holds {array.dtype}", expected=", ".join(_TYPES))
    return array


@checked
def dataset_extractor(
    dataset: Any, num_elements: int, filename: str | Path, feed_name: str, print_stats: bool = True
) -> Operation:
    """The operation that writes elements of a dataset to a file; see `utils.export_dataset_to_file`."""
    whole("num_elements", num_elements)
    elements_of(dataset)  # what is no dataset is told here

    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        written = export_elements(dataset, num_elements, filename, feed_name)
        if print_stats:
            LOGGER.info("%d elements written to %s", num_elements, ", ".join(each.name for each in written))
        return ()

    with _graph.scoped(device="cpu", after=()):
        return Operation("DatasetExtractor", (), (), compute)


def refuse_metadata(name: str, metadata: Any) -> None:
    """An `InputError` for metadata of an SDK's executable, which nothing here reads."""
    if metadata is not None:
        raise InputError(
            f"{name} is {short(metadata)}", expected="None: variables are written under names of their own"
        )


@checked
def get_variable_handles(variables: Sequence[Any]) -> list[str]:
    """The names variables have in files."""
    odd = [each for each in variables if not isinstance(each, Variable)]
    if odd:
        raise InputError(f"variables hold {short(odd[0])}", expected="variables of the graph")
    return [variable.handle for variable in variables]


@checked
def export_variables(
    variables: Sequence[Any], names: Sequence[str], filename: str | Path, metadata: Any = None, print_stats: bool = True
) -> Operation:
    """The operation that writes values of variables or tensors to a file, under these names.

    `metadata`: None; the SDK's, which says how an executable calls them, is not read here.
    """
    refuse_metadata("metadata", metadata)
    odd = [each for each in variables if not isinstance(each, Variable | _graph.Tensor)]
    if odd:
        raise InputError(f"variables hold {short(odd[0])}", expected="variables or tensors of the graph")
    found = [as_tensor(each) for each in variables]
    if len(names) != len(found):
        raise InputError(
            f"{things_text(len(names), 'name')} {'was' if len(names) == 1 else 'were'} given for "
            f"{things_text(len(found), 'variable')}"
        )

    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        stored = [
            _binary.Stored(name=name.removesuffix(":0"), values=np.asarray(value))
            for name, value in zip(names, values, strict=True)
        ]
        _binary.write(filename, "variables", stored)
        if print_stats:
            LOGGER.info("%d variables written to %s", len(stored), filename)
        return ()

    with _graph.scoped(device="cpu"):
        return Operation("ExportVariables", found, (), compute)


@checked
def import_variables(
    variables: Sequence[Any],
    filenames: Sequence[str | Path],
    is_input: bool = True,
    strict: bool = True,
    print_stats: bool = True,
) -> list[Any]:
    """Operations that set variables to the values in files.

    `strict`: the files hold these variables and no others. `is_input` is the SDK's; variables are both here.
    """
    values: dict[str, np.ndarray[Any, Any]] = {}
    for filename in filenames:
        values |= _binary.read(filename)
    names = get_variable_handles(variables)
    missing = [name for name in names if name not in values]
    extra = [name for name in values if name not in names] if strict else []
    if missing or extra:
        several = ((missing, "variable", "in no file"), (extra, "tensor", "no variable here"))
        told = [_told(found, thing, what) for found, thing, what in several if found]
        raise InputError("; ".join(told), todo="" if missing else "pass strict=False to leave them out")
    if print_stats:
        LOGGER.info("%d variables read from %s", len(names), ", ".join(map(str, filenames)))
    return [variable.assign(values[name]) for variable, name in zip(variables, names, strict=True)]


def _told(names: Sequence[str], thing: str, what: str) -> str:
    of_files = " of the files" if thing == "tensor" else ""
    return (
        f"{things_text(len(names), thing)}{of_files} {'is' if len(names) == 1 else 'are'} {what} ({', '.join(names)})"
    )


__all__ = ["dataset_extractor", "export_variables", "get_variable_handles", "import_variables"]
