"""The command line: one subcommand for each function of `commands.py`."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from workbench.base.text import meant, short
from workbench.cli import commands as does
from workbench.cli.conditions import UNITS
from workbench.cli.outcome import MISUSE
from workbench.cli.terminal import one_line

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
ENDINGS = (
    "Ends with 0 when the model fits, as it is or as the command found it, 1 when it does not or a --fail-if holds, "
    "2 when asked wrongly or when the model's own code raised, 3 for a defect of the workbench."
)


class Parser(argparse.ArgumentParser):
    """A parser that tells misuse in one line."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments; what is left over is told by the command it was given to."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            found.command_parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Say it, with the name that was meant, and leave with code 2."""
        near = self._near(message)
        hint = f"; {near}" if near else ""
        self.exit(MISUSE, f"{self.prog}: {one_line(message)}{hint} ({self.prog} --help lists what there is)\n")

    def _near(self, message: str) -> str:
        """What argparse does not ask: an option, a command or a choice that is close to the one that was given."""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            return meant(choice[1], re.findall(r"[\w-]+", choice[2]))
        option = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        return meant(option[1], re.findall(r"--[\w-]+", self.format_usage())) if option is not None else ""


def add_model(command: argparse.ArgumentParser, *, mode: bool = True) -> None:
    """The arguments of all commands that compile a model."""
    command.set_defaults(compiles_a_model=True)
    command.add_argument("model", metavar="MODULE:NAME|READY", help="a model or its builder, or a ready model's name")
    add_file(command, "--config", "IPUConfig options by dotted name, JSON or TOML")
    add_count(command, "--batch-size", "samples of one micro-batch of one replica")
    if mode:
        command.add_argument(
            "--mode", choices=("training", "inference"), help="default: training where the model has an optimizer"
        )
    command.add_argument("--precision", metavar="TYPE", help="float32, float16 or a Keras policy, as mixed_float16")
    command.add_argument("--target", metavar="NAME", help="the chip, as ipu1, ipu2 (the default) or bow")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of wb.compile, as replicas=2 or stages=[0,1], or a ready model's size; a value is JSON "
        "where it can be; once for each",
    )
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    add_file(command, "--junit", "write the verdict to this file as a JUnit test case")


def add_file(command: argparse.ArgumentParser, name: str, text: str, default: Path | None = None) -> None:
    """An option that takes the path of a file."""
    command.add_argument(name, type=path_of, metavar="FILE", default=default, help=text)


def add_count(command: argparse.ArgumentParser, name: str, text: str, **more: Any) -> None:
    """An option that takes a whole number."""
    command.add_argument(name, type=whole_of, metavar="N", help=text, **more)


def path_of(text: str) -> Path:
    """The path of a file or folder; that of no letters is none, and would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("'' is no path")
    return Path(text)


def whole_of(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{short(text)} is no whole number") from None


def seconds_of(text: str) -> float:
    """A number of seconds."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{short(text)} is no number of seconds") from None


def add_lab(commands: Commands) -> None:
    """`workbench lab`."""
    lab = commands.add_parser("lab", help="open the first notebook; without a terminal, run it and write its HTML")
    add_file(lab, "--notebook", "another notebook than notebooks/00-first-look.ipynb")
    add_file(lab, "--html", "what a headless run writes (default build/first-look.html)", Path("build/first-look.html"))
    lab.add_argument("--headless", action="store_true", help="run it as without a terminal")
    lab.set_defaults(run=does.run_lab, compiles_a_model=False)


def add_profile(commands: Commands) -> None:
    """`workbench profile`."""
    profile = commands.add_parser("profile", help="compile a model and print the verdict; exits 1 if it does not fit")
    add_model(profile)
    add_file(profile, "--html", "write the report to this file")
    add_file(profile, "--save", "write the profile to this file, as compare reads it")
    profile.set_defaults(run=does.run_profile)


def add_diagnose(commands: Commands) -> None:
    """`workbench diagnose`."""
    diagnose = commands.add_parser("diagnose", help="what makes a model fit or faster, each fix compiled")
    add_model(diagnose)
    diagnose.add_argument(
        "--keep-numbers", choices=("exact", "reassociated", "any"), default="any", help="what a fix may do to numbers"
    )
    add_count(diagnose, "--ipus", "the most IPUs of a fix")
    add_count(diagnose, "--compiles", "the most compiles (default 24)")
    diagnose.add_argument(
        "--seconds", type=seconds_of, metavar="S", help="begin no further compile after so many seconds"
    )
    diagnose.set_defaults(run=does.run_diagnose, command="diagnose")


def add_autosplit(commands: Commands) -> None:
    """`workbench autosplit`."""
    split = commands.add_parser("autosplit", help="pipeline stages by measured costs, compiled")
    add_model(split)
    add_count(split, "--ipus", "stages, one on each IPU", required=True)
    add_count(split, "--compiles", "the most compiles (default 8)", default=8)
    split.set_defaults(run=does.run_autosplit, command="autosplit")


def add_sweep(commands: Commands) -> None:
    """`workbench sweep`."""
    sweep = commands.add_parser("sweep", help="a model at every point of a grid, a row for each")
    add_model(sweep)
    sweep.add_argument(
        "--axis",
        action="append",
        required=True,
        metavar="NAME=VALUE,VALUE",
        help="an argument of wb.compile, an option or a size, as batch_size=1,2,4; once for each axis",
    )
    sweep.add_argument(
        "--folder", type=path_of, metavar="FOLDER", help="keep profiles here, and go on from what is there"
    )
    add_file(sweep, "--csv", "write the table to this file")
    sweep.set_defaults(run=does.run_sweep, command="sweep")


def add_plan(commands: Commands) -> None:
    """`workbench plan`."""
    plan = commands.add_parser("plan", help="stages, replicas and micro-batches for a whole system, compiled")
    add_model(plan, mode=False)
    plan.add_argument("--system", metavar="NAME", help="a system by name, as pod16 (the default)")
    add_count(plan, "--global-batch", "samples of a weight update", required=True)
    add_count(plan, "--compiles", "the most compiles (default 40)", default=40)
    plan.set_defaults(run=does.run_plan, command="plan")


def add_compare(commands: Commands) -> None:
    """`workbench compare`."""
    compare = commands.add_parser("compare", help="what changed from one saved profile to another")
    compare.add_argument("before", type=path_of, metavar="A", help="the earlier profile, as --save wrote it")
    compare.add_argument("after", type=path_of, metavar="B", help="the later one")
    compare.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help="a change of a metric that ends with 1, as 'peak>+2%%' or 'margin<-1024'; metrics: "
        + ", ".join(f"{name} ({unit})" for name, unit in UNITS.items()),
    )
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")
    add_file(compare, "--junit", "write whether a condition holds to this file as a JUnit test case")
    compare.set_defaults(run=does.run_compare, compiles_a_model=False)


def _version() -> str:
    return str(importlib.import_module("workbench").__version__)  # the package that runs, installed or not


def parser() -> argparse.ArgumentParser:
    """The command line, one subcommand for each function above."""
    top = Parser(prog="workbench", description="See how a model meets the IPU.", epilog=ENDINGS)
    top.add_argument("--version", action="version", version=f"workbench {_version()}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_lab, add_profile, add_diagnose, add_autosplit, add_sweep, add_plan, add_compare):
        add(commands)
    top.set_defaults(command_parser=top)
    for command in commands.choices.values():
        command.set_defaults(command_parser=command)
    return top
