"""The page about continuous integration: its files and commands, run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from workbench.cli import main
from workbench.cli.parser import parser

PAGE = (Path(__file__).parents[1] / "docs" / "continuous_integration.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_its_commands_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (source,), (options,) = blocks("python"), blocks("json")
    (tmp_path / "mymodels.py").write_text(source, encoding="utf-8")
    (tmp_path / "ipu.json").write_text(options, encoding="utf-8")
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert [command[1] for command in commands] == ["profile", "compare", "diagnose", "sweep"]
    for command in commands:
        assert main(command[1:]) == 0, capsys.readouterr()
        if command[1] == "profile":
            shutil.copy("after.wbprofile", "before.wbprofile")
    for name in ("fits.xml", "gate.xml", "sweep.xml"):
        suite = ElementTree.parse(tmp_path / name).getroot()
        assert suite.get("failures") == "0"
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").count("\n") == 3


def test_a_gate_that_holds_fails_its_test_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, size in (("before", 8), ("after", 64)):
        assert main(["profile", "mlp", "--batch-size", str(size), "--save", f"{name}.wbprofile"]) == 0
    assert main(["compare", "before.wbprofile", "after.wbprofile", "--fail-if", "peak>+2%", "--junit", "g.xml"]) == 1
    suite = ElementTree.parse(tmp_path / "g.xml").getroot()
    assert suite.get("failures") == "1"
    assert "peak>+2%" in str(suite.find("testcase/failure").get("message"))  # type: ignore[union-attr]


def test_its_workflow_names_commands_and_options_that_there_are() -> None:
    (workflow,) = blocks("yaml")
    lines = re.findall(r"run: (workbench .*)$", workflow, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert parser().parse_args(shlex.split(line)[1:])
