"""This checkout against another one, such as a worktree of the commit before: processor time of the same compiles.

    python benchmarks/against.py /path/to/other --pairs 9

Both take each figure in fresh processes with every cache off, in pairs: one after the other, in turns who is first.
What is shown is the median of the pairs' ratios, so that a machine that is busy for a while counts for both. Only
public names are used: the other checkout's modules may lie elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import CACHES_OFF

ROOT = Path(__file__).parents[1]
CUTS = [f"encoder_{layer}" for layer in (0, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21)]  # 16 stages of 24 layers


def own_seconds() -> float:
    """Seconds of processor time, the user's and the system's, of this process and all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def beside_seconds() -> float:
    """Seconds of processor time of who plans beside this process, as far as it has said."""
    module = sys.modules.get("workbench.engine.planner.beside.second")  # not in every checkout
    return module.SECOND.seconds if module else 0.0


def spent() -> float:
    """Seconds of processor time of this process and of who plans beside it."""
    return own_seconds() + beside_seconds()


def phases(*arguments: Any, **options: Any) -> float:
    """Processor time of a compile and its profile, from the end of the trace on, and what was planned during that."""
    import workbench as wb

    begun: list[float] = []

    def listen(phase: str) -> None:
        if phase != "trace" and not begun:
            begun.append(own_seconds())

    planned = beside_seconds()
    executable = wb.compile(*arguments, mode="training", progress=listen, **options)
    assert executable.profile.total_cycles > 0
    return own_seconds() - begun[0] + beside_seconds() - planned


def adam() -> Any:
    import workbench as wb  # before Keras: it sets the backend

    assert wb
    import keras

    return keras.optimizers.Adam(1e-4)


def resnet50() -> float:
    """ResNet-50's training step: our phases"""
    return phases("resnet50", batch_size=4, optimizer="sgd")


def bert_large() -> float:
    """BERT-Large on 16 IPUs: our phases"""
    return phases("bert-large", batch_size=1, optimizer=adam(), stages=CUTS, gradient_accumulation_steps=64)


def schedules() -> float:
    """six schedules of BERT-Base on 4 IPUs"""
    import workbench as wb

    start, optimizer = spent(), adam()
    assert len(wb.compare_schedules("bert-base", 4, batch_size=1, optimizer=optimizer).to_pandas()) == 6
    return spent() - start


def cold_start() -> float:
    """a fresh process to the verdict of an MLP"""
    import workbench as wb

    print(wb.profile("mlp", batch_size=32, mode="training").summary, file=sys.stderr)
    return spent()


FIGURES: dict[str, Callable[[], float]] = {
    "cold_start": cold_start,
    "resnet50": resnet50,
    "schedules": schedules,
    "bert_large": bert_large,
}


def in_checkout(name: str, checkout: Path) -> float:
    """Seconds of a figure in a fresh process that imports a checkout's own `workbench`."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", name]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {**CACHES_OFF, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed in {checkout}:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if not Path(found["package"]).is_relative_to(checkout):
        raise SystemExit(f"{name} was taken of {found['package']}, which is not in {checkout}")
    return float(found["seconds"])


def pairs(name: str, here: Path, there: Path, count: int) -> Iterator[tuple[float, float]]:
    """Seconds here and there; a first pair, in which modules are compiled to bytecode, is not given out."""
    for number in range(count + 1):
        order = (here, there) if number % 2 else (there, here)
        seconds = {checkout: in_checkout(name, checkout) for checkout in order}
        if number:
            yield seconds[here], seconds[there]


def line(name: str, found: list[tuple[float, float]]) -> str:
    """The median ratio of a figure, the range of its ratios, and both medians."""
    ratios = [one / other for one, other in found]
    here, there = (statistics.median(each) for each in zip(*found, strict=True))
    spread = f"({min(ratios):.3f} to {max(ratios):.3f})"
    times = f"{here:7.2f} s, there {there:7.2f} s"
    return f"{name:<12} {statistics.median(ratios):6.3f} {spread:>18}  {times}  {FIGURES[name].__doc__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", help="folder of the other checkout")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of processes per figure")
    parser.add_argument(
        "--figures", nargs="+", choices=FIGURES, default=list(FIGURES), metavar="figure", help=", ".join(FIGURES)
    )
    parser.add_argument("--measure", choices=FIGURES, help="take one figure here and print it as JSON")
    asked = parser.parse_args()
    if asked.measure:
        seconds = FIGURES[asked.measure]()
        print(json.dumps({"seconds": seconds, "package": sys.modules["workbench"].__file__}))
        return
    there = asked.checkout.resolve() if asked.checkout else None
    if there is None or not (there / "workbench").is_dir():
        parser.error("give the folder of the other checkout, which holds `workbench`")
    for name in asked.figures:
        print(line(name, list(pairs(name, ROOT, there, asked.pairs))), flush=True)


if __name__ == "__main__":
    main()
