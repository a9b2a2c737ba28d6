"""What sweeps gain and cost: two workers against one process, and many points of small models.

Each figure is taken in a fresh process with every cache off; ratios are of two runs in one process. Ends with 1 when a
budget is missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from harness import Budgets, Figures, main

BUDGETS: Budgets = (
    ("unrelated_speedup", "", None, "24 unrelated points: one process over two warm workers; the goal is 1.6"),
    ("unrelated_over_one", "", 1 / 1.6, "the same, two workers over one process"),
    ("same_model_over_one", "", 1.05, "12 options of one model as the sweep decides, over one process"),
    ("thousand_seconds", "s", 90, "1,000 points over options of one MLP on two workers, traced once"),
    ("hundred_seconds", "s", 60, "100 MLPs of different sizes on two workers"),
    ("overhead_share", "", 0.05, "an executor of one process over the same jobs run in it: what handing out costs"),
)
ROUNDS = 9  # of the two runs whose ratio is the overhead: of one pair it varies by more than it is
SHARE = "matmuls.poplar_options.availableMemoryProportion"


def unrelated() -> list[dict[str, Any]]:
    """24 sizes of a model that take about half a second each."""
    return [{"hidden": 64 + 8 * place, "batch_size": 4 + place % 3} for place in range(24)]


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def here(work: Callable[[], Any]) -> float:
    """Seconds with all points in this process."""
    from workbench.sweeps import run

    workers, run.workers = run.workers, lambda: 1
    try:
        return seconds_of(work)
    finally:
        run.workers = workers


def warm(executor: Any) -> Any:
    """An executor whose workers have imported the engine."""
    import workbench as wb

    wb.sweep("mlp", {"hidden": [16, 24, 32, 40]}, mode="training", executor=executor)
    return executor


def measure_unrelated() -> Figures:
    """24 points that share nothing: in this process, and on two warm workers, and on one."""
    import workbench as wb
    from workbench.sweeps.run import processes

    def sweep(**more: Any) -> Any:
        return wb.sweep("cnn", unrelated(), mode="training", **more)

    wb.sweep("cnn", unrelated()[:1], mode="training")
    alone = here(sweep)
    executor = warm(processes(2))
    both = seconds_of(lambda: sweep(executor=executor))
    return {"unrelated_speedup": alone / both, "unrelated_over_one": both / alone}


def measure_same_model() -> Figures:
    """12 options of one model: what one compile leaves to the next makes one process quick."""
    import workbench as wb

    shares = [0.3 + 0.02 * place for place in range(12)]

    def sweep() -> Any:
        return wb.sweep("resnet50", {SHARE: shares}, mode="training", batch_size=4, optimizer="sgd")

    alone, decided = here(sweep), seconds_of(sweep)
    return {"same_model_over_one": decided / alone}


def measure_thousand() -> Figures:
    """1,000 shares of memory of one MLP."""
    import workbench as wb

    shares = [place / 1000 for place in range(1, 1001)]
    return {"thousand_seconds": seconds_of(lambda: wb.sweep("mlp", {SHARE: shares}, mode="training", batch_size=8))}


def measure_hundred() -> Figures:
    """100 sizes of an MLP, each traced for itself."""
    import workbench as wb

    sizes = [32 + 4 * place for place in range(100)]
    return {"hundred_seconds": seconds_of(lambda: wb.sweep("mlp", {"hidden": sizes}, mode="training", batch_size=8))}


def measure_overhead() -> Figures:
    """The same 12 jobs: handed out to a process, and run in it; in turns, and the median of the ratios."""
    from workbench.executable import make_request
    from workbench.executable.compile import needed_ipus, traced_graph
    from workbench.sweeps.jobs import Job, run_jobs
    from workbench.sweeps.run import Runner, processes

    requests = [make_request("cnn", mode="training", batch_size=8, loss=None)] * 12
    _, graph = traced_graph(requests[0], None)
    jobs = [
        Job(number=n, graph=graph, options=each.options, target=each.target, ipus=needed_ipus(each, graph))
        for n, each in enumerate(requests)
    ]
    executor = processes(1)
    list(Runner(executor=executor).run([[jobs[0]]], lambda: 1))
    ratios = []
    for _ in range(ROUNDS):
        inside = sum(done.seconds for done in executor.submit(_each_alone, jobs).result())
        outside = seconds_of(lambda: list(Runner(executor=executor).run([[job] for job in jobs], lambda: len(jobs))))
        ratios.append(outside / inside)
    assert run_jobs(jobs[:1])[0].profile
    return {"overhead_share": statistics.median(ratios) - 1}


def _each_alone(jobs: Any) -> Any:
    from workbench.sweeps.jobs import run_jobs

    return [done for job in jobs for done in run_jobs([job])]


MEASUREMENTS = {
    "unrelated": measure_unrelated,
    "same_model": measure_same_model,
    "thousand": measure_thousand,
    "hundred": measure_hundred,
    "overhead": measure_overhead,
}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS))
