"""The command line: one subcommand for each function of `commands.py`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from workbench.cli import commands as does
from workbench.cli.outcome import MISUSE
from workbench.cli.terminal import one_line


class Parser(argparse.ArgumentParser):
    """A parser that tells misuse in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it and leave with code 2."""
        self.exit(MISUSE, f"{self.prog}: {one_line(message)} ({self.prog} --help lists what there is)\n")


def add_model(command: argparse.ArgumentParser, *, junit: bool = False, mode: bool = True) -> None:
    """The arguments of all commands that compile a model."""
    command.set_defaults(compiles_a_model=True)
    command.add_argument("model", metavar="MODULE:NAME|READY", help="a model or its builder, or a ready model's name")
    command.add_argument("--config", type=Path, help="IPUConfig options, a .json or .toml file")
    command.add_argument("--batch-size", type=int, help="samples one pass of the compiled body sees, per replica")
    if mode:
        command.add_argument("--mode", choices=("training", "inference"))
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    if junit:
        command.add_argument("--junit", type=Path, help="write the verdict to this file as a JUnit test case")


def parser() -> argparse.ArgumentParser:
    """The command line, one subcommand per function above."""
    top = Parser(prog="workbench", description="See how a model meets the IPU.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="open the first notebook; without a terminal, run it and write its HTML")
    lab.add_argument("--notebook", type=Path, help="another notebook than notebooks/00-first-look.ipynb")
    lab.add_argument("--html", type=Path, default=Path("build/first-look.html"), help="where the headless run writes")
    lab.add_argument("--headless", action="store_true", help="run it as without a terminal")
    lab.set_defaults(run=does.run_lab, compiles_a_model=False)

    profile = commands.add_parser("profile", help="compile a model and print the verdict; exits 1 if it does not fit")
    add_model(profile, junit=True)
    profile.add_argument("--html", type=Path, help="write the report to this file")
    profile.add_argument("--save", type=Path, help="write the profile to this file, as compare reads it")
    profile.set_defaults(run=does.run_profile)

    diagnose = commands.add_parser("diagnose", help="what makes a model fit or faster, each fix compiled")
    add_model(diagnose, junit=True)
    diagnose.add_argument(
        "--keep-numbers", choices=("exact", "reassociated", "any"), default="any", help="what a fix may do to numbers"
    )
    diagnose.add_argument("--ipus", type=int, help="the most IPUs of a fix")
    diagnose.add_argument("--compiles", type=int, help="the most compiles, 24 unless told")
    diagnose.add_argument("--seconds", type=float, help="begin no further compile after so long")
    diagnose.set_defaults(run=does.run_diagnose, command="diagnose")

    split = commands.add_parser("autosplit", help="pipeline stages by measured costs, compiled")
    add_model(split, junit=True)
    split.add_argument("--ipus", type=int, required=True, help="stages, one on each IPU")
    split.add_argument("--compiles", type=int, default=8, help="at most so many (default 8)")
    split.set_defaults(run=does.run_autosplit, command="autosplit")

    sweep = commands.add_parser("sweep", help="a model at every point of a grid, a row for each")
    add_model(sweep, junit=True)
    sweep.add_argument("--axis", action="append", required=True, metavar="NAME=VALUE,VALUE", help="as batch_size=1,2,4")
    sweep.add_argument("--folder", type=Path, help="keep profiles here, and go on from what is there")
    sweep.add_argument("--csv", type=Path, help="write the table to this file")
    sweep.set_defaults(run=does.run_sweep, command="sweep")

    plan = commands.add_parser("plan", help="stages, replicas and micro-batches for a whole system, compiled")
    add_model(plan, junit=True, mode=False)
    plan.add_argument("--system", help="a system by name, as pod16 (the default)")
    plan.add_argument("--global-batch", type=int, required=True, help="samples of a weight update")
    plan.add_argument("--compiles", type=int, default=40, help="at most so many (default 40)")
    plan.set_defaults(run=does.run_plan, command="plan")

    compare = commands.add_parser("compare", help="what changed from one saved profile to another")
    compare.add_argument("before", type=Path, metavar="A")
    compare.add_argument("after", type=Path, metavar="B")
    compare.add_argument("--fail-if", action="append", default=[], metavar="CONDITION", help="as in 'peak>+2%%'")
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")
    compare.add_argument("--junit", type=Path, help="write whether a condition holds to this file as a JUnit test case")
    compare.set_defaults(run=does.run_compare, compiles_a_model=False)
    return top
