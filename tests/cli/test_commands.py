"""The command line: conditions, options files, sources and exit codes."""

from __future__ import annotations

import errno
import inspect
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_profile
from workbench import cli
from workbench.cli import commands
from workbench.cli.commands import outcome_of, write_junit
from workbench.cli.conditions import Gate
from workbench.cli.given import assign_options, axis, grid, load_source, read_options, settings, sized
from workbench.cli.outcome import FITS
from workbench.cli.parser import parser
from workbench.cli.terminal import told
from workbench.errors import InputError, OptionError
from workbench.executable.request import AS_TEXT, VARIED
from workbench.ipu.config import IPUConfig, SchedulingAlgorithm, StochasticRoundingBehaviour


def here(words: list[str]) -> int:
    """The exit code of a command that this process runs, and what it says."""
    return told(outcome_of(parser().parse_args(words)))


@pytest.mark.parametrize(
    ("text", "before", "after", "holds"),
    [
        ("peak>+2%", 100, 103, True),
        ("peak>+2%", 100, 102, False),
        ("peak>2%", 0, 1, True),
        ("peak>2%", 0, 0, False),
        ("margin<-10", 50, 39, True),
        ("margin<-10", 50, 40, False),
        ("cycles > 1000", 0, 1001, True),
        ("margin<-5%", -100, -106, True),
    ],
)
def test_gate(text: str, before: float, after: float, holds: bool) -> None:
    assert Gate.parse(text).holds(before, after) is holds


def test_gate_prints_what_it_reads() -> None:
    assert str(Gate.parse(" peak > 2.5 %")) == "peak>+2.5%"
    assert Gate.parse("peak>1%").change(0, 5) == math.inf


@pytest.mark.parametrize("text", ["peak", "peak>=2", "tiles>2", "peak>two"])
def test_gate_names_the_metrics(text: str) -> None:
    with pytest.raises(InputError, match=r"^cannot read the condition '.*metrics: peak, max_tile, margin, cycles"):
        Gate.parse(text)


def test_a_gate_tells_every_digit_and_the_unit() -> None:
    """One cycle in 7,990,123: with six digits both values would read the same."""
    gate = Gate.parse("cycles>0")
    assert gate.holds(7_990_122, 7_990_123)
    assert gate.told(7_990_122, 7_990_123) == "cycles>+0 (7,990,122 to 7,990,123 cycles)"
    assert str(Gate.parse("margin<-1234567")) == "margin<-1234567"


@pytest.mark.parametrize("module", ["workbench", "workbench.cli"])
def test_the_command_is_a_module_too(module: str) -> None:
    process = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.startswith("usage: workbench ")
    assert "Ends with 0 when the model fits" in process.stdout


def test_source_is_a_name_or_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source_for_cli.py").write_text("def build():\n    return 3\n")
    monkeypatch.chdir(tmp_path)
    assert load_source("resnet50") == "resnet50"
    assert load_source("source_for_cli:build")() == 3
    told = r"^module 'source_for_cli' has no 'built'\. Expected: one of: build\. .* did you mean 'build'\?"
    with pytest.raises(InputError, match=told):
        load_source("source_for_cli:built")
    with pytest.raises(InputError, match=r"^no module 'no_such_module'"):
        load_source("no_such_module:build")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", '{"auto_select_ipus": 2, "matmuls.poplar_options": {"availableMemoryProportion": "0.3"}}'),
        ("c.toml", 'auto_select_ipus = 2\n[matmuls.poplar_options]\navailableMemoryProportion = "0.3"\n'),
    ],
)
def test_options_from_a_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    config = IPUConfig()
    assign_options(config, read_options(tmp_path / name))
    assert config.auto_select_ipus == 2
    assert config.matmuls.poplar_options == {"availableMemoryProportion": "0.3"}


@pytest.mark.parametrize("said", ["SHORTEST_PATH", SchedulingAlgorithm.SHORTEST_PATH.value])
def test_a_file_names_a_member_of_an_enumeration(said: object) -> None:
    config = IPUConfig()
    assign_options(config, {"scheduling.algorithm": said})
    assert config.scheduling.algorithm is SchedulingAlgorithm.SHORTEST_PATH


@pytest.mark.parametrize("said", ["SHORTEST", 99, [1], 1.5, None])
def test_what_is_no_member_of_an_enumeration_is_refused(said: object) -> None:
    config = IPUConfig()
    with pytest.raises(OptionError, match=r"^scheduling\.algorithm was set to "):
        assign_options(config, {"scheduling.algorithm": said})
    assert config.to_dict() == IPUConfig().to_dict()


def test_a_saved_configuration_is_a_file_of_options(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved = IPUConfig()
    saved.auto_select_ipus = 2
    saved.scheduling.algorithm = SchedulingAlgorithm.CLUSTERING
    saved.floating_point_behaviour.esr = StochasticRoundingBehaviour.ON
    (tmp_path / "c.json").write_text(saved.to_json())
    config = IPUConfig()
    assign_options(config, read_options(tmp_path / "c.json"))
    assert config.to_dict() == saved.to_dict()
    assert not caplog.records, "nobody set the deprecated options that a saved configuration holds too"
    assign_options(config, {"optimizations.enable_fast_math": True})
    assert "deprecated" in caplog.text


def test_an_axis_given_twice_is_refused() -> None:
    assert grid(["batch_size=1,2", "mode=training"]) == {"batch_size": [1, 2], "mode": ["training"]}
    with pytest.raises(InputError, match=r"^the axis 'batch_size' is given twice\. To mend it: give its values in one"):
        grid(["batch_size=1,2", "batch_size=4"])


def test_unknown_option_and_unreadable_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^no option 'matmuls\.speed'\. Expected: .*'speed' is not"):
        assign_options(IPUConfig(), {"matmuls": {"speed": 1}})
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(InputError, match="cannot read"):
        read_options(tmp_path / "c.json")
    with pytest.raises(InputError, match=r"a \.json or \.toml file"):
        read_options(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "options",
    [
        {"__class__.freeze": 1},
        {"__class__": {"freeze": 1}},
        {"__class__": 1},
        {"freeze": 1},
        {"_values": {"auto_select_ipus": 2}},
        {"_values.auto_select_ipus": 2},
        {"_metadata": {}},
        {"matmuls.__class__.__init__": 1},
        {"matmuls._values.poplar_options": {}},
        {"matmuls.__dict__": {}},
        {"__setattr__": 1},
        {"configure_ipu_system": 1},
        {"auto_select_ipus.real": 1},
        {"matmuls.poplar_options.clear": 1},
        {"": 1},
        {".": 1},
        {"matmuls.": 1},
    ],
    ids=str,
)
def test_only_declared_options_are_set(options: dict[str, Any]) -> None:
    config, freeze = IPUConfig(), IPUConfig.freeze
    before = config.to_dict()
    with pytest.raises(OptionError, match=r"^no option "):
        assign_options(config, options)
    assert config.to_dict() == before
    assert IPUConfig.freeze is freeze


class FakeProfile(SimpleNamespace):
    def to_html(self, path: Path) -> None:
        path.write_text("page")

    def __str__(self) -> str:
        return "verdict"


def fake_profile(*, fits: bool, peak_bytes: int = 100) -> FakeProfile:
    return FakeProfile(
        fits=fits,
        peak=SimpleNamespace(ipu=0, tile=3, step=7, bytes=peak_bytes),
        max_tile_bytes=120,
        margin_bytes=10,
        total_cycles=1330,
        seconds=1e-6,
        samples_per_second=4e6,
        assumptions=("loss",),
    )


@pytest.fixture
def fake_api(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands for the calls of a notebook; asked for anything not set here, it fails."""
    api = SimpleNamespace()
    monkeypatch.setattr(commands, "notebook_calls", lambda: api)
    return api


@pytest.mark.parametrize(("fits", "code"), [(True, 0), (False, 1)])
def test_profile_exit_code_is_the_verdict(
    fits: bool, code: int, fake_api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}
    fake_api.profile = lambda source, **options: asked.update(options, source=source) or fake_profile(fits=fits)
    page = tmp_path / "p.html"
    assert here(["profile", "mlp", "--batch-size", "4", "--mode", "training", "--html", str(page)]) == code
    assert asked == {"source": "mlp", "batch_size": 4, "mode": "training"}
    assert (capsys.readouterr().out, page.read_text()) == ("verdict\n", "page")


def test_what_a_call_takes_a_command_takes_too(fake_api: Any) -> None:
    asked: dict[str, Any] = {}
    fake_api.profile = lambda source, **options: asked.update(options, source=source) or fake_profile(fits=True)
    words = ["--precision", "float16", "--target", "bow", "--set", "replicas=2", "--set", "stages=[0,1]"]
    assert here(["profile", "mlp", *words, "--set", "optimizer=adam", "--set", "hidden=32"]) == 0
    size = dict(asked.pop("source").size)
    assert size == {**dict(wb.ready("mlp").size), "hidden": 32}
    chosen = {"precision": "float16", "target": "bow", "replicas": 2, "stages": [0, 1], "optimizer": "adam"}
    assert asked == chosen


def test_every_argument_of_a_compile_can_be_given_or_is_refused_with_the_way() -> None:
    """All but the source, which is the command's own argument, what has an option, and what no text can be."""
    assert {*VARIED, "source", "progress"} == set(inspect.signature(wb.compile).parameters)
    takes = set(inspect.signature(wb.compile).parameters) - {"source", "batch_size", "mode", "precision", "target"}
    for name in takes:
        if name in ("config", "inputs", "progress"):
            with pytest.raises(InputError, match=rf"--set cannot give {name}\. To mend it: "):
                settings([f"{name}=1"], [])
        else:
            assert sized(print, settings([f"{name}=1"], []), AS_TEXT) is print


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "hiden=32"], "hiden is no argument of wb.compile. Expected: one of: mode, "),
        (["--set", "hiden=32"], "did you mean 'hidden'?"),
        (["--set", "replicas"], "cannot read 'replicas' behind --set. Expected: NAME=VALUE, as in replicas=2"),
        (["--set", "replicas=1", "--set", "replicas=2"], "replicas is given twice"),
        (["--batch-size", "2", "--set", "batch_size=2"], "batch_size is given twice"),
    ],
)
def test_what_is_set_in_vain_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert here(["profile", "mlp", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_size_that_an_axis_varies_cannot_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert here(["sweep", "mlp", "--axis", "hidden=8,16", "--set", "hidden=32"]) == 2
    assert "hidden is given twice" in capsys.readouterr().err


def test_profile_as_json(fake_api: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fake_api.profile = lambda *unused, **also: fake_profile(fits=True)
    assert here(["profile", "mlp", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["peak"] == {"ipu": 0, "tile": 3, "step": 7, "bytes": 100}
    assert (printed["cycles"], printed["assumptions"]) == (1330, ["loss"])


def test_compare_fails_on_a_condition(fake_api: Any, capsys: pytest.CaptureFixture[str]) -> None:
    profiles = {"a": fake_profile(fits=True), "b": fake_profile(fits=True, peak_bytes=103)}
    fake_api.load_profile = lambda path: profiles[str(path)]
    fake_api.compare = lambda *given: f"{len(given)} profiles"
    assert here(["compare", "a", "b", "--fail-if", "peak>+3%"]) == 0
    assert here(["compare", "a", "b", "--fail-if", "peak>+2%", "--fail-if", "cycles>0"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "2 profiles\n2 profiles\n"
    assert captured.err == "failed: peak>+2% (100 to 103 bytes)\n"


EXITING = {
    "at the top": "import sys\nsys.exit({code})\n",
    "in the builder": "import sys\n\ndef model():\n    sys.exit({code})\n",
    "when called": "class Model:\n    def __call__(self):\n        raise SystemExit({code})\n\nmodel = Model()\n",
}


@pytest.mark.parametrize("code", ["0", "", "1", "'done'", "None"])
@pytest.mark.parametrize("place", EXITING)
def test_a_model_that_exits_is_no_verdict(
    code: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"exiting_{abs(hash((code, place)))}"
    (tmp_path / f"{name}.py").write_text(EXITING[place].format(code=code))
    monkeypatch.chdir(tmp_path)
    assert here(["profile", f"{name}:model", "--batch-size", "2"]) == 2
    assert capsys.readouterr().err.startswith("workbench: the model's own code ended with exit(")


def test_so_it_is_for_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "exiting.py").write_text(EXITING["at the top"].format(code=0))
    command = [sys.executable, "-m", "workbench.cli", "profile", "exiting:model"]
    settings = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    assert subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, timeout=120).returncode == 2


def test_misuse_is_two_and_a_defect_three(fake_api: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fake_api.profile = lambda *unused, **also: 1 / 0
    assert here(["profile", "no_such_module:build"]) == 2
    assert capsys.readouterr().err.startswith("workbench: no module 'no_such_module'")
    assert here(["profile", "mlp"]) == 3
    with pytest.raises(SystemExit) as stop:
        here(["profile"])
    assert stop.value.code == 2


OF_ONE_BATCH = """
def build():
    import keras
    x = keras.Input((32,), batch_size=8)
    return keras.Model(x, keras.layers.Dense(8)(x))
"""


def test_what_mends_it_is_spelled_as_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sized.py").write_text(OF_ONE_BATCH)
    (tmp_path / "unsized.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert here(["profile", "unsized:build"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("To mend it: pass --batch-size.")
    assert here(["profile", "sized:build", "--batch-size", "4"]) == 2
    assert "To mend it: pass --batch-size 8, or build the model without a batch size." in capsys.readouterr().err


OWN = {
    "builder": ("def model():\n    raise ValueError('no such file of mine')\n", "ValueError", 2),
    "library": ("def model():\n    import keras\n    return keras.layers.Dense({}['units'])\n", "KeyError", 3),
    "keras": (
        "import keras\n\ndef model():\n    return keras.Sequential([keras.Input((4,)), keras.layers.Reshape((3,))])\n",
        "ValueError",
        4,
    ),
    "traced": (
        "import keras\n\nclass Mine(keras.layers.Layer):\n    def call(self, x):\n        raise OSError('mine')\n"
        "\ndef model():\n    return keras.Sequential([keras.Input((4,), batch_size=2), Mine()])\n",
        "OSError",
        5,
    ),
}


@pytest.mark.parametrize("way", OWN)
def test_an_error_of_the_models_own_code_is_told_once_and_no_defect_of_ours(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, kind, line = OWN[way]
    (tmp_path / f"raising_{way}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert here(["profile", f"raising_{way}:model", "--batch-size", "2"]) == 2
    told = capsys.readouterr().err
    last = told.rstrip().splitlines()[-1]
    assert last.startswith(
        f"workbench: the code of 'raising_{way}:model' raised {kind} (raising_{way}.py, line {line}): "
    )
    assert told.count("Traceback") == 1
    assert "During handling" not in told
    assert str(Path(cli.__file__).parents[1]) not in told  # from its own first line on


def test_a_disk_that_is_full_is_no_defect(
    fake_api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*unused: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fake_api.profile = lambda *unused, **also: handmade_profile()
    monkeypatch.setattr("workbench.base.files.os.fsync", full)
    page = tmp_path / "p.html"
    assert here(["profile", "mlp", "--html", str(page)]) == 2
    told = f"workbench: {str(page)!r} cannot be written to its end: No space left on device\n"
    assert capsys.readouterr().err == told
    assert os.listdir(tmp_path) == []


def test_what_the_workbench_raises_for_a_model_is_a_defect(
    fake_api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model's code that calls the workbench, and the workbench that raises at once, both end with a frame of ours."""
    ours: dict[str, Any] = {}
    exec(compile("def broken():\n    return {}['x']\n", str(Path(cli.__file__).parents[1] / "broken.py"), "exec"), ours)
    (tmp_path / "calling.py").write_text("def model(broken):\n    return broken()\n")
    monkeypatch.chdir(tmp_path)
    for calls in (lambda model: model(ours["broken"]), lambda model: ours["broken"]()):
        fake_api.profile = lambda model, calls=calls, **unused: calls(model)
        assert here(["profile", "calling:model"]) == 3
        assert capsys.readouterr().err.rstrip().endswith("KeyError: 'x'")


MODULE = """
def build():
    import keras
    layers = [keras.layers.Dense(32, name=f"d{place}") for place in range(4)]
    return keras.Sequential([keras.Input((32,)), *layers])
"""


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("autosplit", ["--ipus", "2", "--mode", "training"], "2 stages, cut after"),
        ("diagnose", ["--mode", "training"], "It fits"),
        ("sweep", ["--axis", "mode=training,inference"], "2 points, in this process: 2 fit"),
        ("plan", ["--system", "pod4", "--global-batch", "32", "--compiles", "4"], "samples/s, modelled"),
    ],
)
def test_decisions_end_with_the_verdict(
    command: str, more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = f"decided_by_{command}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    report = tmp_path / "verdict.xml"
    sys.path.insert(0, str(tmp_path))
    try:
        asked = [command, f"{module}:build", "--batch-size", "8", "--junit", str(report), *more]
        assert here(asked) == FITS
        assert said in capsys.readouterr().out
        assert 'failures="0"' in report.read_text()
        assert here([*asked, "--json"]) == FITS
        assert isinstance(json.loads(capsys.readouterr().out), dict)
    finally:
        sys.path.remove(str(tmp_path))


def test_an_axis_is_a_name_and_values() -> None:
    assert axis("batch_size=1,2") == ("batch_size", [1, 2])
    assert axis("mode=training, inference") == ("mode", ["training", "inference"])
    assert axis('stages=[["a"], ["b"]]') == ("stages", [["a"], ["b"]])
    for wrong in ("batch_size", "=3", "batch_size="):
        with pytest.raises(InputError, match="cannot read the axis"):
            axis(wrong)


def test_junit_of_what_does_not_fit_fails_and_escapes(tmp_path: Path) -> None:
    write_junit(tmp_path / "v.xml", "autosplit <b>", 'over "by" \x1b[1m & more', False)
    text = (tmp_path / "v.xml").read_text()
    assert 'failures="1"' in text
    assert "&lt;b&gt;" in text
    assert "\x1b" not in text
