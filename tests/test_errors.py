"""Errors of ours travel: between processes and in copies they keep their kind, their text and their fields."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench
from workbench.errors import WorkbenchError

_ROOT = Path(workbench.__path__[0])
for _found in sorted(_ROOT.rglob("*.py")):  # by files: `workbench.tf.keras` leads on to Keras' own
    _parts = _found.relative_to(_ROOT.parent).with_suffix("").parts
    import_module(".".join(_parts[:-1] if _parts[-1] == "__init__" else _parts))


def kinds(base: type[WorkbenchError] = WorkbenchError) -> Iterator[type[WorkbenchError]]:
    """Every class of ours, whoever defines it."""
    yield base
    for each in base.__subclasses__():
        yield from kinds(each)


KINDS = sorted({each for each in kinds() if each.__module__.startswith("workbench.")}, key=lambda each: each.__name__)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**70), 2**70),
    "str": st.text(max_size=20),
}


def arguments_of(kind: type[WorkbenchError]) -> st.SearchStrategy[dict[str, Any]]:
    """What the constructor of a kind asks for, from its signature; a new kind of argument has no strategy and fails."""
    parameters = list(inspect.signature(kind).parameters.values())
    return st.fixed_dictionaries({each.name: VALUES[str(each.annotation)] for each in parameters})


COPIES: dict[str, Callable[[Any], Any]] = {
    **{
        f"pickle {number}": lambda error, number=number: pickle.loads(pickle.dumps(error, number))
        for number in range(6)
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def test_all_are_here() -> None:
    names = {each.__name__ for each in KINDS}
    assert {"InputError", "OutOfMemoryError", "FeedError", "NotOnIpuError", "NotebookError", "OptionTypeError"} <= names


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_copy_is_the_same_error(kind: type[WorkbenchError], data: st.DataObject) -> None:
    error = kind(**data.draw(arguments_of(kind)))
    error.add_note("a note")
    for name, copied in COPIES.items():
        found = copied(error)
        assert type(found) is kind, name
        assert (str(found), found.args, found.__dict__) == (str(error), error.args, error.__dict__), name
        assert found.__notes__ == ["a note"]


def raised(kind: type[WorkbenchError], arguments: dict[str, Any]) -> None:
    raise kind(**arguments)


def compiled_and_run(_: int) -> Any:
    import workbench as wb

    target = wb.target("ipu2", tiles_per_ipu=1).replace(bytes_per_tile=2048)
    import jax
    import numpy as np

    kind = jax.ShapeDtypeStruct((64, 64), "float32")
    return wb.compile(lambda x: x @ x, kind, target=target).run(np.zeros((64, 64), "float32"))


EXAMPLES = {"int": 7, "str": "a text"}


def test_a_pool_of_processes_gives_every_kind_back() -> None:
    """A pool waits for ever for a result that cannot be read."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for kind in KINDS:
            parameters = inspect.signature(kind).parameters.values()
            arguments = {each.name: EXAMPLES[str(each.annotation)] for each in parameters}
            with pytest.raises(kind) as caught:
                pool.apply_async(raised, (kind, arguments)).get(timeout=60)
            assert str(caught.value) == str(kind(**arguments))
        with pytest.raises(workbench.OutOfMemoryError) as full:
            pool.apply_async(compiled_and_run, (0,)).get(timeout=120)
        assert full.value.bytes_available == 2048
        assert full.value.bytes_used > 2048


def test_sentences_end_once() -> None:
    asked = WorkbenchError("x is 3.", expected="2", todo="is it y?")
    assert str(asked) == "x is 3. Expected: 2. To mend it: is it y?"
