"""The `workbench` command, for terminals and for pipelines that read exit codes."""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from workbench.base.files import whole_file
from workbench.base.text import shown
from workbench.errors import InputError, OptionValueError, WorkbenchError

FITS, DOES_NOT_FIT, MISUSE, DEFECT = 0, 1, 2, 3

# What `--json` prints and `--fail-if` compares: a name, and how a profile gives it.
METRICS: dict[str, Callable[[Any], float]] = {
    "peak": lambda profile: profile.peak.bytes,
    "max_tile": lambda profile: profile.max_tile_bytes,
    "margin": lambda profile: profile.margin_bytes,
    "cycles": lambda profile: profile.total_cycles,
    "seconds": lambda profile: profile.seconds,
    "samples_per_second": lambda profile: profile.samples_per_second,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition on the change of one metric between two profiles, as in `peak>+2%` or `cycles>1000`.

    `limit` is in the metric's own unit (bytes, cycles, seconds, samples per second), or in percent when `relative`.
    """

    metric: str
    above: bool
    limit: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read `METRIC>LIMIT` or `METRIC<LIMIT`; a limit may carry a sign and end in %."""
        match = re.fullmatch(r"\s*(\w+)\s*([<>])\s*([+-]?\d+(?:\.\d+)?)\s*(%?)\s*", text)
        if match is None or match[1] not in METRICS:
            raise InputError(
                f"cannot read the condition {text!r}",
                expected=f"METRIC>LIMIT or METRIC<LIMIT, as in 'peak>+2%'; metrics: {', '.join(METRICS)}",
            )
        return cls(metric=match[1], above=match[2] == ">", limit=float(match[3]), relative=bool(match[4]))

    def change(self, before: float, after: float) -> float:
        """The change the limit speaks about, in percent or in the metric's unit."""
        if not self.relative:
            return after - before
        if before == 0:
            return math.copysign(math.inf, after) if after else 0.0
        return (after - before) / abs(before) * 100

    def holds(self, before: float, after: float) -> bool:
        """Whether the condition is met, so that the command must fail."""
        change = self.change(before, after)
        return change > self.limit if self.above else change < self.limit

    def __str__(self) -> str:
        return f"{self.metric}{'>' if self.above else '<'}{self.limit:+g}{'%' if self.relative else ''}"


def load_source(text: str) -> Any:
    """`MODULE:NAME` is that object of an importable module, the current folder included; else a ready model's name."""
    if ":" not in text:
        return text
    module_name, _, name = text.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise InputError(f"no module {module_name!r}", expected="MODULE:NAME, importable from here") from None
    if not hasattr(module, name):
        public = ", ".join(each for each in vars(module) if not each.startswith("_")) or "nothing"
        raise InputError(f"module {module_name!r} has no {name!r}", expected=f"one of: {public}")
    return getattr(module, name)


def read_options(path: Path) -> dict[str, Any]:
    """The options in a JSON or TOML file, nested or under dotted names."""
    readers: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": tomllib.loads}
    reader = readers.get(path.suffix)
    if reader is None:
        raise InputError(f"cannot read {str(path)!r} as a configuration", expected="a .json or .toml file")
    try:
        options = reader(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from None
    if not isinstance(options, dict):
        raise InputError(f"{str(path)!r} holds {type(options).__name__}", expected="a table of options")
    return options


def assign_options(config: Any, options: dict[str, Any], prefix: str = "") -> None:
    """Set each option on the configuration, declared ones only; a table under a category is descended into."""
    for name, value in options.items():
        dotted = prefix + name
        try:
            config.get_attribute_metadata(dotted)
        except OptionValueError as error:
            raise OptionValueError(f"no option {dotted!r}", expected=f"an IPUConfig option; {error}") from None
        *path, last = dotted.split(".")
        owner = functools.reduce(getattr, path, config)
        is_category = hasattr(getattr(owner, last), "get_attribute_metadata")
        if is_category and isinstance(value, dict):
            assign_options(config, value, f"{dotted}.")
        else:
            setattr(owner, last, value)


def facts(profile: Any) -> dict[str, Any]:
    """The verdict as plain data, for `--json`."""
    peak = {name: getattr(profile.peak, name) for name in ("ipu", "tile", "step", "bytes")}
    numbers = {name: read(profile) for name, read in METRICS.items() if name != "peak"}
    return {"fits": profile.fits, "peak": peak, **numbers, "assumptions": list(profile.assumptions)}


def notebook_calls() -> Any:
    """`workbench.api`, imported at the first call so that `--help` and `lab` answer at once."""
    return importlib.import_module("workbench.api")


def run_lab(arguments: argparse.Namespace) -> int:
    """`workbench lab`."""
    from workbench import lab

    try:
        lab.lab(arguments.notebook, arguments.html, headless=True if arguments.headless else None)
    except lab.NotebookError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return DEFECT
    return FITS


def run_profile(arguments: argparse.Namespace) -> int:
    """`workbench profile`: 0 when the model fits, 1 when it does not."""
    given = asked(arguments)
    profile = notebook_calls().profile(load_source(arguments.model), **given)
    if arguments.html:
        profile.to_html(arguments.html)
    if arguments.save:
        profile.save(arguments.save)
    if arguments.junit:
        write_junit(arguments.junit, f"profile {arguments.model}", profile.summary.sentence, profile.fits)
    print(json.dumps(facts(profile), indent=2, default=int) if arguments.json else str(profile))
    return FITS if profile.fits else DOES_NOT_FIT


def run_diagnose(arguments: argparse.Namespace) -> int:
    """`workbench diagnose`: 0 when the model fits as it is or with the best fix, 1 when nothing makes it fit."""
    api = notebook_calls()
    executable = api.compile(load_source(arguments.model), **asked(arguments))
    diagnosis = api.diagnose(
        executable,
        keep_numbers=arguments.keep_numbers,
        ipus=arguments.ipus,
        compiles=arguments.compiles,
        seconds=arguments.seconds,
    )
    fits = executable.profile.fits or bool(diagnosis.fixes and diagnosis.fixes[0].fits)
    return ended(arguments, diagnosis, fits)


def run_autosplit(arguments: argparse.Namespace) -> int:
    """`workbench autosplit`: 0 when the split found fits, 1 when none does."""
    api = notebook_calls()
    split = api.autosplit(load_source(arguments.model), arguments.ipus, compiles=arguments.compiles, **asked(arguments))
    return ended(arguments, split, split.fits)


def run_plan(arguments: argparse.Namespace) -> int:
    """`workbench plan`: 0 when something fits the system, 1 when nothing does."""
    plan = notebook_calls().plan(
        load_source(arguments.model),
        system=arguments.system,
        global_batch=arguments.global_batch,
        compiles=arguments.compiles,
        **asked(arguments),
    )
    return ended(arguments, plan, plan.fits)


def run_sweep(arguments: argparse.Namespace) -> int:
    """`workbench sweep`: 0 when a point fits, 1 when none does."""
    from workbench.profiler.export.csv import as_csv

    grid = dict(axis(text) for text in arguments.axis)
    sweep = notebook_calls().sweep(
        load_source(arguments.model),
        grid,
        folder=arguments.folder,
        progress=lambda text: print(text, file=sys.stderr),
        **asked(arguments),
    )
    if arguments.csv:
        with whole_file(arguments.csv, text=True) as file:
            file.write(as_csv(sweep.to_pandas()))
    return ended(arguments, sweep, sweep.best is not None)


def axis(text: str) -> tuple[str, list[Any]]:
    """Read `NAME=VALUE,VALUE`; values are JSON where they can be, else texts; a list in brackets is JSON as a whole."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise InputError(f"cannot read the axis {text!r}", expected="NAME=VALUE,VALUE, as in batch_size=1,2,4")
    if values.lstrip().startswith("["):
        found = value_of(values)
        return name.strip(), found if isinstance(found, list) else [found]
    return name.strip(), [value_of(each) for each in values.split(",")]


def value_of(text: str) -> Any:
    """The JSON value, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a command gives `wb.compile`: those of its own options that were named, and a configuration."""
    found: dict[str, Any] = {"batch_size": arguments.batch_size, "mode": getattr(arguments, "mode", None)}
    if arguments.config:
        found["config"] = importlib.import_module("workbench.ipu.config").IPUConfig()
        assign_options(found["config"], read_options(arguments.config))
    return {name: value for name, value in found.items() if value is not None}


def ended(arguments: argparse.Namespace, report: Any, fits: bool) -> int:
    """Print a report, write the JUnit file that was asked for, and give the exit code."""
    if arguments.junit:
        write_junit(arguments.junit, f"{arguments.command} {arguments.model}", report.sentence, fits)
    print(json.dumps(report.data, indent=2, default=int) if arguments.json else str(report))
    return FITS if fits else DOES_NOT_FIT


def write_junit(path: Path, name: str, sentence: str, fits: bool) -> None:
    """A JUnit file of one test case, which fails where nothing fits, or where a condition holds."""
    suite = ElementTree.Element("testsuite", name="workbench", tests="1", failures=str(int(not fits)))
    case = ElementTree.SubElement(suite, "testcase", classname="workbench", name=shown(name))
    if not fits:
        ElementTree.SubElement(case, "failure", message=shown(sentence))
    ElementTree.SubElement(case, "system-out").text = shown(sentence)
    with whole_file(path, text=True) as file:
        file.write(ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n")


def run_compare(arguments: argparse.Namespace) -> int:
    """`workbench compare`: 1 when a `--fail-if` condition holds."""
    gates = [Gate.parse(text) for text in arguments.fail_if]
    api = notebook_calls()
    before, after = api.load_profile(arguments.before), api.load_profile(arguments.after)
    comparison = api.compare(before, after)
    print(json.dumps(comparison.data, indent=2, default=int) if arguments.json else str(comparison))
    failed, said = 0, []
    for gate in gates:
        values = METRICS[gate.metric](before), METRICS[gate.metric](after)
        if gate.holds(*values):
            failed = 1
            said.append(f"failed: {gate} ({values[0]:g} to {values[1]:g})")
            print(said[-1], file=sys.stderr)
    if arguments.junit:
        write_junit(arguments.junit, "compare", "; ".join([*said, comparison.sentence]), not failed)
    return failed


def add_model(command: argparse.ArgumentParser, *, junit: bool = False, mode: bool = True) -> None:
    """The arguments of all commands that compile a model."""
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
    top = argparse.ArgumentParser(prog="workbench", description="See how a model meets the IPU.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="open the first notebook; without a terminal, run it and write its HTML")
    lab.add_argument("--notebook", type=Path, help="another notebook than notebooks/00-first-look.ipynb")
    lab.add_argument("--html", type=Path, default=Path("build/first-look.html"), help="where the headless run writes")
    lab.add_argument("--headless", action="store_true", help="run it as without a terminal")
    lab.set_defaults(run=run_lab)

    profile = commands.add_parser("profile", help="compile a model and print the verdict; exits 1 if it does not fit")
    add_model(profile, junit=True)
    profile.add_argument("--html", type=Path, help="write the report to this file")
    profile.add_argument("--save", type=Path, help="write the profile to this file, as compare reads it")
    profile.set_defaults(run=run_profile)

    diagnose = commands.add_parser("diagnose", help="what makes a model fit or faster, each fix compiled")
    add_model(diagnose, junit=True)
    diagnose.add_argument(
        "--keep-numbers", choices=("exact", "reassociated", "any"), default="any", help="what a fix may do to numbers"
    )
    diagnose.add_argument("--ipus", type=int, help="the most IPUs of a fix")
    diagnose.add_argument("--compiles", type=int, help="the most compiles, 24 unless told")
    diagnose.add_argument("--seconds", type=float, help="begin no further compile after so long")
    diagnose.set_defaults(run=run_diagnose, command="diagnose")

    split = commands.add_parser("autosplit", help="pipeline stages by measured costs, compiled")
    add_model(split, junit=True)
    split.add_argument("--ipus", type=int, required=True, help="stages, one on each IPU")
    split.add_argument("--compiles", type=int, default=8, help="at most so many (default 8)")
    split.set_defaults(run=run_autosplit, command="autosplit")

    sweep = commands.add_parser("sweep", help="a model at every point of a grid, a row for each")
    add_model(sweep, junit=True)
    sweep.add_argument("--axis", action="append", required=True, metavar="NAME=VALUE,VALUE", help="as batch_size=1,2,4")
    sweep.add_argument("--folder", type=Path, help="keep profiles here, and go on from what is there")
    sweep.add_argument("--csv", type=Path, help="write the table to this file")
    sweep.set_defaults(run=run_sweep, command="sweep")

    plan = commands.add_parser("plan", help="stages, replicas and micro-batches for a whole system, compiled")
    add_model(plan, junit=True, mode=False)
    plan.add_argument("--system", help="a system by name, as pod16 (the default)")
    plan.add_argument("--global-batch", type=int, required=True, help="samples of a weight update")
    plan.add_argument("--compiles", type=int, default=40, help="at most so many (default 40)")
    plan.set_defaults(run=run_plan, command="plan")

    compare = commands.add_parser("compare", help="what changed from one saved profile to another")
    compare.add_argument("before", type=Path, metavar="A")
    compare.add_argument("after", type=Path, metavar="B")
    compare.add_argument("--fail-if", action="append", default=[], metavar="CONDITION", help="as in 'peak>+2%%'")
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")
    compare.add_argument("--junit", type=Path, help="write whether a condition holds to this file as a JUnit test case")
    compare.set_defaults(run=run_compare)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 fits, 1 does not, 2 misuse, 3 a defect of the workbench."""
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return MISUSE
    except SystemExit as error:  # of the model's module or builder: whatever it says, there was no verdict
        print(f"workbench: the model's own code ended with exit({error.code!r}), before a verdict", file=sys.stderr)
        return MISUSE
    except Exception:
        traceback.print_exc()
        return DEFECT
    return code


if __name__ == "__main__":
    sys.exit(main())
