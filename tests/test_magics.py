"""`%workbench` and `%%ipu_profile` in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from workbench.base.checked import called
from workbench.errors import InputError, VerificationError
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


@pytest.mark.parametrize("end", ["", ";", "\n\n"])
def test_the_cell_shows_its_profile_and_not_its_value_too(
    shell: Any, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"%%ipu_profile -o kept batch_size=2\nword = 'mlp'\nword{end}")
    assert isinstance(shell.user_ns["kept"], Profile)
    said = capsys.readouterr().out
    assert "Fits: " in said
    assert "'mlp'" not in said
    assert shell.run_cell("3 + 4").result == 7
    assert "7" in capsys.readouterr().out, "cells after it show theirs again"


def test_a_failing_cell_leaves_the_notebook_showing_values(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(shell.run_cell("%%ipu_profile batch_size=2\n1 / 0").error_in_exec, ZeroDivisionError)
    assert isinstance(shell.run_cell("%%ipu_profile batch_size=2\nx = 1").error_in_exec, InputError)
    capsys.readouterr()
    shell.run_cell("3 + 4")
    assert "7" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "name", "word"), [("line", "workbench", "ready"), ("cell", "ipu_profile", "-o NAME")])
def test_a_question_mark_tells_what_a_magic_takes(shell: Any, kind: str, name: str, word: str) -> None:
    assert word in shell.find_magic(name, kind).__doc__


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


@pytest.mark.parametrize("line", ["batch_size", "=3", "-o", "-o 3", "batch_size= 3", "a.b=3", "-o class"])
def test_what_is_no_argument_is_named(shell: Any, line: str) -> None:
    with pytest.raises(InputError, match="ipu_profile was given"):
        given(shell, line)


@pytest.mark.parametrize(
    ("line", "told"), [("-o a -o b", "-o twice"), ("replicas=1 batch_size=2 replicas=2", "replicas twice")]
)
def test_what_is_given_twice_is_refused(shell: Any, line: str, told: str) -> None:
    with pytest.raises(InputError, match=f"ipu_profile was given {told}"):
        given(shell, line)


@pytest.mark.parametrize(("line", "told"), [("batchsize=2", r"did you mean 'batch_size'\?"), ("source=mine", "")])
def test_an_argument_that_there_is_not_is_told_before_the_cell_runs(shell: Any, line: str, told: str) -> None:
    with pytest.raises(InputError, match=rf"^%%ipu_profile has no argument .*{told}"):
        shell.run_cell_magic("ipu_profile", line, "ran = True\n'mlp'\n")
    assert "ran" not in shell.user_ns


def test_a_name_in_quotes_is_told_without(shell: Any) -> None:
    with pytest.raises(InputError, match=r"To mend it: leave the quotes out: %workbench bert-base\."):
        shell.run_line_magic("workbench", "'bert-base'")


def test_a_cell_without_a_value_and_one_that_fails(shell: Any) -> None:
    with pytest.raises(InputError, match="ends without a value"):
        shell.run_cell_magic("ipu_profile", "", "a = 1\n")
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("ipu_profile", "", "1 / 0\n")
    with pytest.raises(InputError, match="was given"):
        shell.run_line_magic("workbench", "__import__('os').getcwd()")


def traceback_of(shell: Any, capsys: pytest.CaptureFixture[str], cell: str) -> str:
    capsys.readouterr()
    shell.run_line_magic("colors", "nocolor")
    shell.run_cell(cell)
    return capsys.readouterr().out


LAYER = """
import keras
import workbench as wb
class Mine(keras.layers.Layer):
    def call(self, x):
        return x + wb.tiles.Graph("ipu9", tiles=4)  # no such target
inputs = keras.Input((8,))
wb.compile(lambda: keras.Model(inputs, Mine()(inputs)), batch_size=2)
"""


def test_an_error_shows_the_lines_of_the_user_and_none_of_ours(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = traceback_of(shell, capsys, "import workbench as wb\nwb.compile('mlp')  # of no batch size")
    assert "# of no batch size" in text
    assert "To mend it: pass batch_size=" in text
    assert "workbench/" not in text


def test_the_lines_of_a_layer_that_we_call_are_shown(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = traceback_of(shell, capsys, LAYER)
    assert "# no such target" in text
    assert "wb.compile(lambda: " in text
    assert "workbench/" not in text


def test_verbose_shows_every_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic("xmode", "Verbose")
    try:
        text = traceback_of(shell, capsys, "import workbench as wb\nwb.compile('mlp')")
    finally:
        shell.run_line_magic("xmode", "Context")
    assert "workbench/api.py" in text


def test_a_defect_of_ours_shows_where_it_is(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns["call"] = called
    shell.user_ns["defect"] = VerificationError("a stage lost a byte")
    cell = "def fail():\n    raise defect\ncall('fail', fail)"
    assert "workbench/base/checked.py" in traceback_of(shell, capsys, cell)
