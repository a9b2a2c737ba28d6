"""A verdict is what the compiling process wrote down; however else it ends, the exit code is not 0."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workbench.cli.outcome import Outcome

ROOT = Path(__file__).parents[2]
WORDS = {
    "profile": [],
    "diagnose": [],
    "autosplit": ["--ipus", "2"],
    "sweep": ["--axis", "batch_size=1,2"],
    "plan": ["--global-batch", "4"],
}


def settings(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "jax", **more}


def command(name: str, source: str) -> list[str]:
    return [sys.executable, "-m", "workbench.cli", name, source, "--batch-size", "2", *WORDS[name]]


def ended(folder: Path, text: str, *more: str, name: str = "profile", **also: Any) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(text)
    words = [*command(name, "mine:model"), *more]
    also = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": settings(), **also}
    return subprocess.run(words, cwd=folder, text=True, timeout=120, **also)


ENDINGS = {
    "os._exit": "import os\nos._exit(0)",
    "sys.exit": "import sys\nsys.exit(0)",
    "exit": "raise SystemExit",
    "a thread": "import os, threading, time\nthreading.Thread(target=os._exit, args=(0,)).start()\ntime.sleep(60)",
    "at exit, after an error": "import atexit, os\natexit.register(os._exit, 0)\n1 / 0",
    "another program": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'pass'])",
    "a forked half": "import os\nif os.fork():\n    os._exit(0)\nos._exit(0)",
    "a signal": "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: os._exit(0))\n"
    "os.kill(os.getpid(), signal.SIGUSR1)",
    "what is printed": "import os\nprint('Fits', flush=True)\nos._exit(0)",
    "an end of its kind": "class Ended(BaseException): pass\nraise Ended",
}


@pytest.mark.parametrize("way", ENDINGS)
def test_an_end_without_a_verdict_is_not_zero(way: str, tmp_path: Path) -> None:
    done = ended(tmp_path, ENDINGS[way])
    assert done.returncode in (2, 3)
    assert done.stderr.strip()
    if way != "an end of its kind":  # that is shown with where it comes from
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("workbench: ")


@pytest.mark.parametrize("name", WORDS)
def test_so_it_is_for_every_command(name: str, tmp_path: Path) -> None:
    done = ended(tmp_path, ENDINGS["os._exit"], name=name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "workbench: the code of 'mine:model' ended its process with exit code 0, before a verdict\n"


def test_a_process_that_was_killed_is_told_by_its_signal(tmp_path: Path) -> None:
    done = ended(tmp_path, "import os\nos.kill(os.getpid(), 9)")
    assert done.returncode == 3
    assert done.stderr == (
        "workbench: the process that compiled 'mine:model' was ended by SIGKILL, before a verdict; "
        "look whether this machine ran out of memory\n"
    )


MODEL = """
import atexit, os
os.closerange(3, 1024)
atexit.register(os._exit, {code})

def model():
    import keras
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense({units})])
"""


@pytest.mark.parametrize(("units", "code"), [(4, 0), (100_000_000, 1)])
def test_a_verdict_stands_however_its_process_ends(units: int, code: int, tmp_path: Path) -> None:
    """Its module closes every file as a daemon does, and ends the process with the other code when all is done."""
    done = ended(tmp_path, MODEL.format(units=units, code=1 - code), "--json", "--mode", "inference")
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["fits"] is (code == 0)


def test_a_builder_that_exits_gives_no_verdict(tmp_path: Path) -> None:
    done = ended(tmp_path, "import os\ndef model():\n    os._exit(0)")
    assert done.returncode == 2
    assert "before a verdict" in done.stderr


def test_what_is_in_the_file_is_an_outcome_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    Outcome(code=1, result="µ \udcff", complaint="c").write(path)
    assert Outcome.read(path) == Outcome(code=1, result="µ \udcff", complaint="c")
    for text in ("", "{}", '{"code": 0, "more": 1}', '{"code": 7}', "[0]", "0"):
        path.write_text(text)
        assert Outcome.read(path) is None
    assert Outcome.read(tmp_path / "nosuch") is None


SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n"


def started(folder: Path, text: str) -> subprocess.Popen[str]:
    (folder / "mine.py").write_text(text)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = command("profile", "mine:model")
    process = subprocess.Popen(words, cwd=folder, text=True, env=settings(), start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert process.stdout.readline() == "begun\n"
    return process  # type: ignore[no-any-return]


def gone(group: int) -> bool:
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
        (signal.SIGTERM, False, 143),
        (signal.SIGHUP, False, 129),
    ],
    ids=["Ctrl-C", "SIGINT", "SIGTERM", "SIGHUP"],
)
@pytest.mark.usefixtures("as_from_a_terminal")
def test_who_asks_it_to_end_ends_both_without_a_word(number: int, to_all: bool, code: int, tmp_path: Path) -> None:
    process = started(tmp_path, SLOW)
    os.killpg(process.pid, number) if to_all else process.send_signal(number)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == code
    assert gone(process.pid)


INTERRUPTED_AT = """
import os, signal, sys

class At:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, At())
"""


@pytest.mark.usefixtures("as_from_a_terminal")
@pytest.mark.parametrize(
    "name", ["workbench.cli.main", "workbench.cli.judged", "workbench.cli.parser", "workbench.cli.terminal"]
)
def test_ctrl_c_before_all_is_imported_is_quiet_too(name: str, tmp_path: Path) -> None:
    (tmp_path / "workbench.py").write_text(
        INTERRUPTED_AT.format(name=name)
        + "del sys.path[0]\nfrom workbench.cli import main\nsys.exit(main(['profile', 'mine:model']))"
    )
    words = [sys.executable, str(tmp_path / "workbench.py")]
    process = subprocess.run(words, env=settings(), capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")


@pytest.mark.usefixtures("as_from_a_terminal")
def test_ctrl_c_while_the_module_begins_is_quiet_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_AT.format(name="workbench.cli.main"))
    place = f"{tmp_path}{os.pathsep}{ROOT}"
    words = [sys.executable, "-m", "workbench", "profile", "mine:model"]
    process = subprocess.run(words, env=settings(PYTHONPATH=place), capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")


@pytest.mark.usefixtures("as_from_a_terminal")
def test_who_imports_the_command_hears_of_ctrl_c_itself(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(
        INTERRUPTED_AT.format(name="workbench.cli.main")
        + "try:\n    import workbench.cli\nexcept KeyboardInterrupt:\n    print('heard')"
    )
    process = subprocess.run(
        [sys.executable, str(tmp_path / "other.py")], env=settings(), capture_output=True, text=True, timeout=60
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "heard\n", "")
