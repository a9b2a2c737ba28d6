"""Misuse of every command is told in one line and ends with 2, before anything is compiled that need not be."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.profiler.handmade import handmade_profile
from workbench.cli.commands import outcome_of
from workbench.cli.given import read_options
from workbench.cli.parser import parser

MODULES = {
    "sound": "import keras\n\ndef build():\n    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])\n",
    "broken": "import nosuch_of_mine\n",
    "number": "build = 3\n",
}
MODEL = "sound_for_misuse:build"
COMMANDS = {
    "profile": [MODEL, "--batch-size", "2"],
    "diagnose": [MODEL, "--batch-size", "2"],
    "autosplit": [MODEL, "--batch-size", "2", "--ipus", "2"],
    "sweep": [MODEL, "--axis", "batch_size=1,2"],
    "plan": [MODEL, "--batch-size", "2", "--global-batch", "4", "--system", "pod4"],
    "compare": ["whole.wbprofile", "whole.wbprofile"],
    "lab": ["--headless", "--notebook", "lesson.ipynb"],
}
COMPILING = [name for name, words in COMMANDS.items() if MODEL in words]
NESTED = "[" * 100_000 + "]" * 100_000


def with_model(model: str) -> dict[str, list[str]]:
    return {name: [model if word == MODEL else word for word in COMMANDS[name]] for name in COMPILING}


def with_words(*more: str, commands: list[str] = COMPILING) -> dict[str, list[str]]:
    return {name: [*COMMANDS[name], *more] for name in commands}


JUNIT = ["diagnose", "autosplit", "sweep", "plan"]
NO_FILES = ("nofolder/out", "folder", "pipe", "/dev/null", "n" * 300)
MISUSES: dict[str, dict[str, list[str]]] = {
    "unknown option": with_words("--nosuch", commands=list(COMMANDS)),
    "one word more": with_words("more", commands=list(COMMANDS)),
    "no model": {name: [word for word in COMMANDS[name] if word != MODEL] for name in COMPILING},
    "no module": with_model("nosuch_of_mine:build"),
    "no name": with_model("sound_for_misuse:nosuch"),
    "no identifier": with_model("models/mine.py:build"),
    "a long name": with_model("n" * 20_000 + ":build"),
    "control letters": with_model("\x1b[31m\n:build"),
    "half a letter": with_model("\udcff:build"),
    "no ready model": with_model("resnet5000"),
    "nothing as a model": with_model(""),
    "no whole number": with_words("--batch-size", "two"),
    "a number of many digits": with_words("--batch-size", "9" * 5_000),
    **{f"config {name}": with_words("--config", name) for name in ("nosuch.json", "c.yaml", "c.json/x.json")},
    **{f"config {name}": with_words("--config", f"{name}.json") for name in ("nested", "half", "list", "fifo", "raw")},
    **{f"config {name}": with_words("--config", f"{name}.json") for name in ("unknown", "reaching", "kind", "long")},
    **{f"config {name}": with_words("--config", f"{name}.json") for name in ("twice", "dotted")},
    "config toml": with_words("--config", "nested.toml"),
    **{f"html {path}": with_words("--html", path, commands=["profile"]) for path in NO_FILES},
    **{f"junit {path}": with_words("--junit", path, commands=JUNIT) for path in NO_FILES},
    **{f"csv {path}": with_words("--csv", path, commands=["sweep"]) for path in NO_FILES},
    "axis without values": with_words("--axis", "mode", commands=["sweep"]),
    "axis nested": with_words("--axis", f"mode={NESTED}", commands=["sweep"]),
    "folder is a file": with_words("--folder", "half.json", commands=["sweep"]),
    "condition": with_words("--fail-if", "nosuch>1", commands=["compare"]),
    "missing profile": {"compare": ["whole.wbprofile", "nosuch.wbprofile"]},
    "foreign profile": {"compare": ["half.json", "whole.wbprofile"]},
    "profile is a pipe": {"compare": ["pipe", "whole.wbprofile"]},
    "profile is a folder": {"compare": ["folder", "whole.wbprofile"]},
    "profile with a long name": {"compare": ["n" * 5_000, "whole.wbprofile"]},
    "missing notebook": {"lab": ["--headless", "--notebook", "nosuch.ipynb"]},
    **{
        f"no notebook {name}": {"lab": ["--headless", "--notebook", name]}
        for name in ("half.json", "nested.json", "folder", "pipe", "raw.json")
    },
    **{f"page {path}": with_words("--html", path, commands=["lab"]) for path in NO_FILES[1:]},
}
# What the calls behind a command refuse: one of each, since these load the frameworks.
ASKED: dict[str, list[str]] = {
    "batch of none": ["profile", MODEL, "--batch-size", "0"],
    "batch beyond everything": ["diagnose", MODEL, "--batch-size", "9" * 30],
    "no IPUs": ["autosplit", MODEL, "--batch-size", "2", "--ipus", "0"],
    "no compiles": ["autosplit", MODEL, "--batch-size", "2", "--ipus", "2", "--compiles", "0"],
    "no system": ["plan", MODEL, "--batch-size", "2", "--global-batch", "4", "--system", "nosuch"],
    "no samples": ["plan", MODEL, "--batch-size", "2", "--global-batch", "0"],
    "no axis of that name": ["sweep", MODEL, "--axis", "nosuch=1"],
    "no model in it": ["profile", "number_for_misuse:build"],
}
ROWS = [(misuse, command) for misuse, commands in MISUSES.items() for command in commands]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("misuse")
    for name, text in MODULES.items():
        (folder / f"{name}_for_misuse.py").write_text(text)
    nested, options = '{"a": ' * 20_000 + "1" + "}" * 20_000, {"unknown": '{"matmuls": {"speed": 1}}'}
    options |= {"half": "{", "list": "[1]", "nested": nested, "reaching": '{"__class__.freeze": 1}'}
    options |= {"twice": '{"auto_select_ipus": 1, "auto_select_ipus": 1}'}
    options |= {"dotted": '{"ipu_model.tiles_per_ipu": 64, "ipu_model": {"tiles_per_ipu": 64}}'}
    options |= {"kind": '{"auto_select_ipus": "many"}', "long": f'{{"{"n" * 20_000}": 1}}'}
    for name, text in options.items():
        (folder / f"{name}.json").write_text(text)
    (folder / "nested.toml").write_text(f"a = {NESTED}")
    (folder / "raw.json").write_bytes(b"\xff\xfe\x00")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "fifo.json")
    handmade_profile().save(folder / "whole.wbprofile")
    nbformat.write(nbformat.v4.new_notebook(), folder / "lesson.ipynb")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def ended(words: list[str]) -> tuple[int, str]:
    """The exit code of a command and all it says on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            options = parser().parse_args(words)
        except SystemExit as left:
            return int(left.code or 0), said.getvalue()
        outcome = outcome_of(options)
    assert not outcome.result
    return outcome.code, said.getvalue() + outcome.complaint + "\n"


def assert_misuse(words: list[str]) -> None:
    code, said = ended(words)
    assert code == 2, said
    assert said.startswith("workbench")
    assert said.endswith("\n")
    assert said[:-1].isprintable(), "it is one line, and nothing in it moves a cursor"
    assert 10 < len(said) < 3_000


def files_in(folder: Path) -> list[str]:
    """What lies in a folder but for what Python keeps of a module that it compiled."""
    return sorted(set(os.listdir(folder)) - {"__pycache__"})


def commands_of() -> set[str]:
    """Those that the help lists."""
    return set(re.findall(r"^ {4}([a-z]+)(?:  |$)", parser().format_help(), re.MULTILINE))


def test_every_command_is_misused() -> None:
    assert {command for _, command in ROWS} == commands_of() == set(COMMANDS)


@pytest.mark.parametrize(("misuse", "command"), ROWS, ids=lambda text: text[:40])
def test_misuse(misuse: str, command: str, place: Path) -> None:
    before = files_in(place)
    assert_misuse([command, *MISUSES[misuse][command]])
    assert files_in(place) == before


@pytest.mark.parametrize("misuse", ASKED)
def test_what_the_calls_refuse(misuse: str, place: Path) -> None:
    assert_misuse(ASKED[misuse])


def test_no_command_at_all() -> None:
    for words in ([], ["nosuch"]):
        code, said = ended(words)
        assert (code, said.count("\n")) == (2, 1)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    written = re.search(r'^version = "(.*)"$', (Path(__file__).parents[2] / "pyproject.toml").read_text(), re.MULTILINE)
    with pytest.raises(SystemExit) as stop:
        parser().parse_args(["--version"])
    assert written is not None
    assert (stop.value.code, capsys.readouterr().out) == (0, f"workbench {written[1]}\n")


def test_a_module_that_raises_is_told_with_where(place: Path) -> None:
    code, said = ended(["profile", "broken_for_misuse:build"])
    assert code == 2
    assert 'broken_for_misuse.py", line 1' in said
    assert said.endswith("raised ModuleNotFoundError: No module named 'nosuch_of_mine'.\n")


TOLD: dict[str, tuple[list[str], str]] = {
    "a near command": (["profil", "mlp"], "did you mean 'profile'? (workbench --help lists what there is)"),
    "a near option": (
        ["profile", "mlp", "--batchsize", "4"],
        "workbench profile: unrecognized arguments: --batchsize 4; did you mean '--batch-size'? "
        "(workbench profile --help lists what there is)",
    ),
    "a near choice": (["diagnose", "mlp", "--keep-numbers", "exac"], "did you mean 'exact'?"),
    "no whole number": (["profile", "mlp", "--batch-size", "2.5"], "--batch-size: '2.5' is no whole number"),
    "no seconds": (["diagnose", "mlp", "--seconds", "soon"], "--seconds: 'soon' is no number of seconds"),
    "a page of no name": (["profile", "mlp", "--html", ""], "argument --html: '' is no path"),
    "a folder of no name": (["sweep", "mlp", "--axis", "mode=1", "--folder", ""], "argument --folder: '' is no path"),
    "one file for two": (["profile", "mlp", "--html", "a", "--save", "./a"], "--save and --html are both 'a'."),
    "the table over": (
        ["sweep", "mlp", "--axis", "mode=1", "--csv", "a", "--junit", "a"],
        "--junit and --csv are both",
    ),
    "over the options": (
        ["plan", "mlp", "--global-batch", "4", "--config", "half.json", "--junit", "half.json"],
        "--junit and --config are both 'half.json'. Expected: a file for each.",
    ),
    "over the profile": (
        ["compare", "half.json", "whole.wbprofile", "--junit", "whole.wbprofile"],
        "--junit and B are both 'whole.wbprofile'.",
    ),
    "over the notebook": (
        ["lab", "--headless", "--notebook", "lesson.ipynb", "--html", "lesson.ipynb"],
        "--html and --notebook are both 'lesson.ipynb'.",
    ),
    "options twice": (["profile", "mlp", "--config", "twice.json"], "'twice.json': 'auto_select_ipus' is given twice."),
    "options in two ways": (["profile", "mlp", "--config", "dotted.json"], "ipu_model.tiles_per_ipu is given twice."),
    "no options": (["profile", "mlp", "--config", "nosuch.json"], "cannot read 'nosuch.json': No such file or direct"),
    "a list of options": (["profile", "mlp", "--config", "list.json"], "'list.json' holds [1]. Expected: a table"),
    "a near builder": (["profile", "sound_for_misuse:built"], "To mend it: did you mean 'build'?"),
    "a file for a module": (["profile", "mine.py:build"], "To mend it: leave .py out: mine:NAME."),
    "two of an axis": (["sweep", "mlp", "--axis", "mode=1", "--axis", "mode=2"], "give its values in one --axis."),
}


@pytest.mark.parametrize("misuse", TOLD)
def test_what_was_wrong_is_told(place: Path, misuse: str) -> None:
    words, told = TOLD[misuse]
    before = {name: (place / name).read_bytes() for name in ("whole.wbprofile", "half.json", "lesson.ipynb")}
    code, said = ended(words)
    assert code == 2
    assert told in said
    assert {name: (place / name).read_bytes() for name in before} == before


def test_an_argument_that_is_to_be_left_out_is_spelled_as_the_command_does(place: Path) -> None:
    code, said = ended(["sweep", "mlp", "--axis", "batch_size=1,2", "--batch-size", "4"])
    assert code == 2
    assert said.endswith("To mend it: leave --batch-size out.\n")


def test_the_ending_of_a_file_of_options_may_be_large(tmp_path: Path) -> None:
    (tmp_path / "MINE.JSON").write_text('{"auto_select_ipus": 2}')
    assert read_options(tmp_path / "MINE.JSON") == {"auto_select_ipus": 2}
