"""What each command does, in the process it runs in: from its arguments to its outcome."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from workbench.base.files import refuse_no_file, whole_file
from workbench.base.text import shown
from workbench.cli.conditions import METRICS, Gate, facts
from workbench.cli.given import ModelError, assign_options, grid, load_source, read_options, settings, sized
from workbench.cli.outcome import DEFECT, DOES_NOT_FIT, FITS, INTERRUPTED, MISUSE, Outcome
from workbench.cli.own_code import of_the_model
from workbench.cli.terminal import complaint, hint
from workbench.errors import InputError, WorkbenchError

_SPELLED = ("batch_size", "mode", "precision", "target")  # arguments of a compile that are options of a command too


def outcome_of(arguments: argparse.Namespace) -> Outcome:
    """Run one command here and now; whatever happens, it has an outcome."""
    try:
        outcome: Outcome = arguments.run(arguments)
    except ModelError as error:
        return Outcome(code=MISUSE, complaint=f"{error.trace}{complaint(error)}")
    except WorkbenchError as error:
        return Outcome(code=MISUSE, complaint=complaint(spelled(str(error), arguments)))
    except SystemExit as error:  # of the model's module or builder: whatever it says, there was no verdict
        ended = f"the model's own code ended with exit({error.code!r}), before a verdict"
        return Outcome(code=MISUSE, complaint=complaint(ended))
    except KeyboardInterrupt:
        return Outcome(code=INTERRUPTED)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in _paths_written(arguments):
            told = f"{error.filename!r} cannot be written to its end: {error.strerror}"
            return Outcome(code=MISUSE, complaint=complaint(told))
        own = of_the_model(error, getattr(arguments, "model", ""))
        if own is not None:
            return Outcome(code=MISUSE, complaint=f"{own.trace}{complaint(own)}")
        return Outcome(code=DEFECT, complaint=traceback.format_exc().rstrip())
    return outcome


def spelled(text: str, arguments: argparse.Namespace) -> str:
    """What mends an error, as this command spells it: `--batch-size 8` for `batch_size=8`."""
    told, mend, todo = text.partition("To mend it: ")
    for name in (each for each in _SPELLED if each in vars(arguments)):
        option = f"--{name.replace('_', '-')}"
        todo = re.sub(rf"\bleave {name} out", f"leave {option} out", todo)
        todo = re.sub(rf"\b{name}=('?)(\w+)\1", rf"{option} \2", todo).replace(f"{name}=", option)
    return f"{told}{mend}{todo}"


def notebook_calls() -> Any:
    """`workbench.api`, imported at the first call so that `--help` and `lab` answer at once."""
    return importlib.import_module("workbench.api")


def run_lab(arguments: argparse.Namespace) -> Outcome:
    """`workbench lab`."""
    from workbench import lab

    refuse_one_for_two(arguments)
    try:
        lab.lab(arguments.notebook, arguments.html, headless=True if arguments.headless else None)
    except lab.NotebookError as error:
        return Outcome(code=DEFECT, complaint=f"workbench: {error}")
    return Outcome(code=FITS)


def run_profile(arguments: argparse.Namespace) -> Outcome:
    """`workbench profile`: 0 when the model fits, 1 when it does not."""
    refuse_no_files(arguments)
    given, source = asked(arguments)
    profile = notebook_calls().profile(source, **given)
    if arguments.html:
        profile.to_html(arguments.html)
    if arguments.save:
        profile.save(arguments.save)
    if arguments.junit:
        write_junit(arguments.junit, f"profile {arguments.model}", profile.summary.sentence, profile.fits)
    result = json.dumps(facts(profile), indent=2, default=int) if arguments.json else str(profile)
    return Outcome(code=FITS if profile.fits else DOES_NOT_FIT, result=result)


def run_diagnose(arguments: argparse.Namespace) -> Outcome:
    """`workbench diagnose`: 0 when the model fits as it is or with the best fix, 1 when nothing makes it fit."""
    refuse_no_files(arguments)
    given, source = asked(arguments)
    api = notebook_calls()
    executable = api.compile(source, **given)
    diagnosis = api.diagnose(
        executable,
        keep_numbers=arguments.keep_numbers,
        ipus=arguments.ipus,
        compiles=arguments.compiles,
        seconds=arguments.seconds,
    )
    fits = executable.profile.fits or bool(diagnosis.fixes and diagnosis.fixes[0].fits)
    return ended(arguments, diagnosis, fits)


def run_autosplit(arguments: argparse.Namespace) -> Outcome:
    """`workbench autosplit`: 0 when the split found fits, 1 when none does."""
    refuse_no_files(arguments)
    given, source = asked(arguments)
    split = notebook_calls().autosplit(source, arguments.ipus, compiles=arguments.compiles, **given)
    return ended(arguments, split, split.fits)


def run_plan(arguments: argparse.Namespace) -> Outcome:
    """`workbench plan`: 0 when something fits the system, 1 when nothing does."""
    refuse_no_files(arguments)
    given, source = asked(arguments)
    plan = notebook_calls().plan(
        source,
        system=arguments.system,
        global_batch=arguments.global_batch,
        compiles=arguments.compiles,
        **given,
    )
    return ended(arguments, plan, plan.fits)


def run_sweep(arguments: argparse.Namespace) -> Outcome:
    """`workbench sweep`: 0 when a point fits, 1 when none does."""
    from workbench.profiler.export.csv import as_csv

    refuse_no_files(arguments)
    axes = grid(arguments.axis)
    given, source = asked(arguments, axes)
    sweep = notebook_calls().sweep(
        source,
        axes,
        folder=arguments.folder,
        progress=hint,
        **given,
    )
    if arguments.csv:
        with whole_file(arguments.csv, text=True) as file:
            file.write(as_csv(sweep.to_pandas()))
    return ended(arguments, sweep, sweep.best is not None)


def run_compare(arguments: argparse.Namespace) -> Outcome:
    """`workbench compare`: 1 when a `--fail-if` condition holds."""
    refuse_no_files(arguments)
    gates = [Gate.parse(text) for text in arguments.fail_if]
    api = notebook_calls()
    try:
        before, after = api.load_profile(arguments.before), api.load_profile(arguments.after)
    except FileNotFoundError as error:
        raise InputError(str(error), expected="a file that profile.save(path) wrote") from None
    comparison = api.compare(before, after)
    result = json.dumps(comparison.data, indent=2, default=int) if arguments.json else str(comparison)
    changed = [(gate, METRICS[gate.metric](before), METRICS[gate.metric](after)) for gate in gates]
    failed = [f"failed: {gate.told(old, new)}" for gate, old, new in changed if gate.holds(old, new)]
    if arguments.junit:
        write_junit(arguments.junit, "compare", "; ".join([*failed, comparison.sentence]), not failed)
    return Outcome(code=DOES_NOT_FIT if failed else FITS, result=result, complaint="\n".join(failed))


_READ, _WRITTEN = ("config", "before", "after", "notebook"), ("html", "save", "csv", "junit")
_IN_HELP = {"before": "A", "after": "B"}


def refuse_no_files(arguments: argparse.Namespace) -> None:
    """An `InputError` for a place where no file can be written, before an hour of compiling."""
    for path in _paths_written(arguments):
        refuse_no_file(path)
    refuse_one_for_two(arguments)


def _paths_written(arguments: argparse.Namespace) -> list[str]:
    """The files that a command was asked to write."""
    found = (getattr(arguments, name, None) for name in _WRITTEN)
    return [str(path) for path in found if path is not None]


def refuse_one_for_two(arguments: argparse.Namespace) -> None:
    """An `InputError` for a file that is to be written and has another argument too, which would be written over."""
    named: dict[str, str] = {}
    for name in (*_READ, *_WRITTEN):
        path = getattr(arguments, name, None)
        if path is None:
            continue
        told, place = _IN_HELP.get(name, f"--{name}"), os.path.realpath(path)
        if name in _WRITTEN and place in named:
            raise InputError(f"{told} and {named[place]} are both {str(path)!r}", expected="a file for each")
        named[place] = told


def asked(arguments: argparse.Namespace, varied: Collection[str] = ()) -> tuple[dict[str, Any], Any]:
    """What a command gives `wb.compile`: what was named or set, and a configuration; and the source, in its sizes.

    Errors: `InputError` for a name that is given twice, among those that are `varied`, too.
    """
    own = {name: getattr(arguments, name, None) for name in _SPELLED}
    found: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
    more = settings(arguments.set, [*found, *varied])
    if arguments.config:
        found["config"] = importlib.import_module("workbench.ipu.config").IPUConfig()
        assign_options(found["config"], read_options(arguments.config))
    source = load_source(arguments.model)
    if more:
        source = sized(source, more, importlib.import_module("workbench.executable.request").AS_TEXT)
    return {**found, **more}, source


def ended(arguments: argparse.Namespace, report: Any, fits: bool) -> Outcome:
    """The outcome of a report; the JUnit file that was asked for is written."""
    if arguments.junit:
        write_junit(arguments.junit, f"{arguments.command} {arguments.model}", report.sentence, fits)
    result = json.dumps(report.data, indent=2, default=int) if arguments.json else str(report)
    return Outcome(code=FITS if fits else DOES_NOT_FIT, result=result)


def write_junit(path: Path, name: str, sentence: str, fits: bool) -> None:
    """A JUnit file of one test case, which fails where nothing fits, or where a condition holds."""
    suite = ElementTree.Element("testsuite", name="workbench", tests="1", failures=str(int(not fits)))
    case = ElementTree.SubElement(suite, "testcase", classname="workbench", name=shown(name))
    if not fits:
        ElementTree.SubElement(case, "failure", message=shown(sentence))
    ElementTree.SubElement(case, "system-out").text = shown(sentence)
    with whole_file(path) as file:
        file.write(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n")
