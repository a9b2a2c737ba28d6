"""What the benchmarks share: figures taken in fresh processes with every cache off, and their table."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
GIB = 2**30
MB = 10**6
SCALE = {"GiB": GIB, "MB": MB, "s": 1, "": 1}
CACHES_OFF = {"WORKBENCH_CACHE": "off", "JAX_ENABLE_COMPILATION_CACHE": "false", "KERAS_BACKEND": "jax"}

Figures: TypeAlias = dict[str, float]
# Figure, its unit, its budget (None: shown only), and what it is.
Budgets: TypeAlias = Sequence[tuple[str, str, float | None, str]]


def in_fresh_process(measurement: str) -> Figures:
    """The figures of one measurement, taken by a new interpreter that runs the same benchmark with caches off."""
    command = [sys.executable, sys.argv[0], "--measure", measurement]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {**CACHES_OFF, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def report(budgets: Budgets, runs: Sequence[Figures]) -> bool:
    """Print the median and range of each figure beside its budget; return whether all budgets are kept."""
    kept = True
    for name, unit, budget, meaning in budgets:
        values = [run[name] / SCALE[unit] for run in runs if name in run]
        if not values:
            continue
        median = statistics.median(values)
        verdict = ""
        if budget is not None:
            within = median <= budget / SCALE[unit]
            kept = kept and within
            verdict = f"{'within' if within else 'OVER'} {budget / SCALE[unit]:g} {unit}".strip()
        spread = f"{min(values):.3g} to {max(values):.3g}"
        print(f"{name:<26} {median:10.3g} {unit:<3} ({spread:>18})  {verdict:<14} {meaning}")
    return kept


def main(
    doc: str | None,
    measurements: Mapping[str, Callable[[], Figures]],
    budgets: Budgets,
    *,
    usual: Sequence[str] = (),
    processes: int = 1,
) -> int:
    """Take the `usual` measurements (default: all) in fresh processes, or one of all in this process."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--processes", type=int, default=processes, help="fresh processes per measurement")
    parser.add_argument("--measure", choices=measurements, help="take one measurement here and print it as JSON")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measurements[arguments.measure]()))
        return 0
    wanted = usual or list(measurements)
    runs = [in_fresh_process(name) for name in wanted for _ in range(arguments.processes)]
    return 0 if report(budgets, runs) else 1
