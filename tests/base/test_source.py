"""The user's lines: which one is on the way, what stands there, and where layers were made."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import keras
import pytest

from workbench.base.source.lines import LONGEST_LINE, calling_line, file_and_number, is_library, line_name, texts
from workbench.base.source.made_at import made_at

HERE = Path(__file__).name


def run(path: Path, text: str) -> dict[str, Any]:
    """The names of a file of the user, run."""
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    names: dict[str, Any] = {"calling_line": calling_line}
    exec(compile(text, str(path), "exec"), names)
    return names


def test_the_innermost_line_of_the_user_is_found(tmp_path: Path) -> None:
    names = run(tmp_path / "mine.py", "def ask():\n    return calling_line(through_own=True)\nfound = ask()\n")
    assert names["found"] == "mine.py:2"
    assert is_library("<frozen importlib>")
    assert is_library(linecache.__file__)
    assert not is_library(str(tmp_path / "mine.py"))


def test_a_line_is_a_file_and_a_number() -> None:
    assert file_and_number("a:b.py:12") == ("a:b.py", 12)
    assert file_and_number("nowhere") == ("nowhere", 0)
    assert file_and_number("a.py:") == ("a.py:", 0)
    assert file_and_number("a.py:-3") == ("a.py:-3", 0)


def test_texts_stand_around_lines_in_stretches(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    content = [f"line_{number}\tof many" for number in range(1, 201)]
    content[99] = "x" * 1_000
    content[119] = "control \x1b[31m and \u202e turned"
    run(path, "0\n")
    path.write_text("\n".join(content), encoding="utf-8")
    linecache.checkcache(str(path))
    lines = [line_name(str(path), number) for number in (3, 30, 120)]
    found = texts([*lines, "unknown.py:4"])
    assert list(found) == ["long.py"]
    assert found["long.py"]["name"] == "long.py"
    (first, head), (second, tail) = found["long.py"]["stretches"]
    assert (first, len(head)) == (1, 50)  # those of lines 3 and 30 meet
    assert (second, len(tail)) == (100, 41)
    assert head[2] == "line_3  of many"
    assert len(tail[0]) == LONGEST_LINE
    assert tail[20] == "control \\x1b[31m and \\u202e turned"


def test_files_of_one_name_and_files_that_are_gone_have_no_text(tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "twin.py").write_text("one\ntwo\n", encoding="utf-8")
    lines = [line_name(str(tmp_path / folder / "twin.py"), number) for number, folder in enumerate("ab", 1)]
    assert texts(lines) == {"twin.py": {"name": "twin.py", "stretches": []}}
    gone = line_name(str(tmp_path / "gone.py"), 2)
    assert texts([gone]) == {"gone.py": {"name": "gone.py", "stretches": []}}


def test_layers_know_their_lines_until_they_are_gone(tmp_path: Path) -> None:
    several = "more = [\n    keras.layers.Dense(\n        5)\n    for _ in range(2)]\n"
    text = f"import keras\none = keras.layers.Dense(4)\n{several}"
    names = run(tmp_path / "model.py", text)
    assert made_at(names["one"]) == "model.py:2"
    assert {made_at(layer) for layer in names["more"]} == {"model.py:4"}
    one = weakref.ref(names["one"])
    names.clear()
    gc.collect()
    assert one() is None  # to know its line keeps no layer


def test_what_cannot_be_hashed_is_a_layer_too() -> None:
    class Equal(keras.layers.Layer):  # type: ignore[misc]
        def __eq__(self, other: object) -> bool:
            return True

    one = Equal()
    other = keras.layers.Dense(2)
    assert made_at(one).startswith(f"{HERE}:")
    assert made_at(one) != made_at(other)
    assert made_at(object()) == ""


@pytest.mark.parametrize("order", ["import keras, workbench", "import workbench, keras", "import workbench.tf, keras"])
def test_whichever_is_loaded_first(order: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"import os\nos.environ['KERAS_BACKEND'] = 'jax'\n{order}\nlayer = keras.layers.Dense(3)\n"
        "from workbench.base.source.made_at import made_at\nprint(made_at(layer), keras.__spec__.name)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip().splitlines()[-1:] == ["script.py:4 keras"], done.stderr
