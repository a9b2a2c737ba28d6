"""`%workbench` and `%%ipu_profile` in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from workbench.errors import InputError
from workbench.magics import given
from workbench.profiler.profile import Profile
from workbench.widgets.app.app import App


@pytest.fixture
def shell() -> Iterator[Any]:
    """A shell with the extension, and nothing left of it afterwards."""
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "workbench")
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_is_run_and_its_last_value_profiled(shell: Any) -> None:
    shell.user_ns["size"] = 4
    cell = "import workbench as wb\nmodel = wb.ready('mlp', hidden=32)\nmodel\n"
    found = shell.run_cell_magic("ipu_profile", "-o kept batch_size=size mode=training", cell)
    assert isinstance(found, Profile)
    assert (found.meta["batch_size"], found.meta["mode"]) == (4, "training")
    assert shell.user_ns["kept"] is found
    assert str(shell.user_ns["model"]).startswith("mlp(")  # what the cell made is the notebook's


def test_the_app_opens_with_a_model_or_without(shell: Any) -> None:
    shell.user_ns["mine"] = "cnn"
    assert isinstance(shell.run_line_magic("workbench", ""), App)
    for line, name in (("mine", "cnn"), ("bert-base", "bert-base")):
        assert shell.run_line_magic("workbench", line).picker.choice().name == name


def test_arguments_are_literals_names_or_words(shell: Any) -> None:
    shell.user_ns["cuts"] = ["a"]
    name, found = given(shell, "-o p batch_size=8 stages=cuts mode=inference replicas=2 recomputation=True")
    assert name == "p"
    assert found == {
        "batch_size": 8,
        "stages": ["a"],
        "mode": "inference",
        "replicas": 2,
        "recomputation": True,
    }


@pytest.mark.parametrize("line", ["batch_size", "=3", "-o", "-o 3", "batch_size= 3", "a.b=3"])
def test_what_is_no_argument_is_named(shell: Any, line: str) -> None:
    with pytest.raises(InputError, match="ipu_profile was given"):
        given(shell, line)


def test_a_cell_without_a_value_and_one_that_fails(shell: Any) -> None:
    with pytest.raises(InputError, match="ends without a value"):
        shell.run_cell_magic("ipu_profile", "", "a = 1\n")
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("ipu_profile", "", "1 / 0\n")
    with pytest.raises(InputError, match="was given"):
        shell.run_line_magic("workbench", "__import__('os').getcwd()")
