"""As fast as a thought: every figure a row, most of them ratios of two things that one process does.

    python benchmarks/as_thought.py --rows proportion_none schedules

A ratio says the same on a slow machine and on a busy one; so our own phases are set against XLA's compile of
ResNet-50's training step, or against the first compile of the same model. Each row is taken in fresh processes with
every cache off; shown is the median beside its goal. Ends with 1 when a goal is missed. Ours against ours is
processor time, ours against XLA's is time on the clock, since XLA compiles on all cores.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from against import CUTS, adam, beside_seconds, own_seconds, spent
from harness import GIB, MB, SCALE, Figures, in_fresh_process
from resnet50_compile import compile_with_xla, peak_bytes

PROPORTION = "convolutions.poplar_options.availableMemoryProportion"
LAYERS = 64  # and as many IPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement with the goal of each of its figures; None: shown only. `unit` is of all."""

    measure: Callable[[], Figures]
    goals: dict[str, float | None]
    unit: str = ""


@dataclass(slots=True)
class Spell:
    """Seconds of processor time and on the clock."""

    cpu: float = 0.0
    clock: float = 0.0


@contextmanager
def timed(*, tidy: bool = True) -> Iterator[Spell]:
    """What happens inside, garbage collected before if `tidy`."""
    if tidy:
        gc.collect()
    spell, cpu, clock = Spell(), spent(), time.perf_counter()
    yield spell
    spell.cpu, spell.clock = spent() - cpu, time.perf_counter() - clock


def after_trace(request: Any, like: Any = None) -> tuple[Any, Spell]:
    """A compile, and what it took after the trace; its processor time has what was planned during the trace."""
    from workbench.executable import compile_request

    begun: list[tuple[float, float]] = []

    def listen(phase: str) -> None:
        if phase != "trace" and not begun:
            begun.append((own_seconds(), time.perf_counter()))

    gc.collect()
    planned = beside_seconds()
    executable = compile_request(request, listen, like=like)
    cpu, clock = begun[0] if begun else (own_seconds(), time.perf_counter())
    cpu = own_seconds() - cpu + beside_seconds() - planned
    return executable, Spell(cpu, time.perf_counter() - clock)


def resnet(**given: Any) -> Any:
    """The request of ResNet-50's training step."""
    from workbench.executable import make_request

    return make_request("resnet50", **{"batch_size": 4, "mode": "training", "optimizer": "sgd", **given})


def resnet_within(proportion: float) -> Any:
    """The same with an `availableMemoryProportion`."""
    return resnet().replace(options={PROPORTION: proportion})


def xla_seconds() -> float:
    """XLA's compile of ResNet-50's training step, on the clock."""
    return compile_with_xla()["xla_seconds"]


def resnet50() -> Figures:
    """Our phases of ResNet-50's training step, over XLA's compile of it."""
    import workbench as wb

    assert wb
    import keras

    _, ours = after_trace(resnet(optimizer=keras.optimizers.SGD(0.01, momentum=0.9)))
    return {"over_xla": ours.clock / xla_seconds()}


def verdict() -> Figures:
    """From the import to the printed verdict, over XLA's compile of the same step."""
    with timed() as ours:
        import workbench as wb

        print(wb.profile("resnet50", batch_size=4, mode="training").summary, file=sys.stderr)
    return {"over_xla": ours.clock / xla_seconds()}


def verdict_of_another() -> Figures:
    """The same of a ResNet-50 of other sizes, of which nothing can be known beforehand; and how far it is beyond that
    of the usual one, which a process of its own takes before this one has loaded anything, so that both begin alike.
    """
    usual = in_fresh_process("verdict")["over_xla"]
    with timed() as ours:
        import workbench as wb

        model = wb.ready("resnet50", image_size=208, classes=900)
        print(wb.profile(model, batch_size=4, mode="training").summary, file=sys.stderr)
    ratio = ours.clock / compile_with_xla(208, 900)["xla_seconds"]
    return {"beyond_usual": ratio - usual, "over_xla": ratio}


def changed_plans(before: Any, after: Any) -> int:
    """Rows of `operators` with another plan."""
    one, other = (each.profile.operators["plan"].astype(str).to_numpy() for each in (before, after))
    return int((one != other).sum())


def proportions(proportion: float, least: int, most: int) -> Callable[[], Figures]:
    """Our phases with another proportion, over those with 0.3; so many rows have another plan then."""

    def measure() -> Figures:
        first, of_first = after_trace(resnet_within(0.3))
        again, of_again = after_trace(resnet_within(proportion), like=first)
        changed = changed_plans(first, again)
        if not least <= changed <= most:
            raise SystemExit(f"{changed} plans changed to {proportion}, not {least} to {most}: choose another number")
        return {"again_over_first": of_again.cpu / of_first.cpu, "plans_changed": changed}

    return measure


def batch() -> Figures:
    """Our phases at batch 5 after batch 4, over those of the first."""
    first, of_first = after_trace(resnet())
    _, of_again = after_trace(resnet(batch_size=5), like=first)
    return {"again_over_first": of_again.cpu / of_first.cpu}


def small_network() -> Any:
    """A small convolutional network, as one tries options on."""
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def small_option() -> Figures:
    """A small network again with an option that changes its plans, and its profile: the middle of several."""
    import workbench as wb
    from workbench.executable import compile_request, make_request

    assert wb
    request = make_request(small_network(), batch_size=32, mode="training")
    executable = compile_request(request)
    assert executable.profile.total_cycles
    taken = []
    for options in (*({PROPORTION: 0.05 * step} for step in (1, 2, 3, 5, 7)), {"matmuls.clear_pass_type": True}):
        with timed() as again:
            executable = compile_request(request.replace(options=options), like=executable)
            assert executable.profile.total_cycles
        taken.append(again.cpu)
    return {"middle": statistics.median(taken), "longest": max(taken)}


def schedules() -> Figures:
    """Six schedules of BERT-Base on 4 IPUs beyond the first profile, over that profile (trace included)."""
    from workbench.executable import Executable, compile_request, make_request
    from workbench.executable.pipelines import in_even_stages
    from workbench.profiler.advice.schedules import compare_schedules

    request = in_even_stages(make_request("bert-base", mode="training", batch_size=1, optimizer=adam()), 4)
    taken: list[float] = []

    def profiled(*arguments: Any) -> Executable:
        with timed(tidy=False) as spell:  # what collects would count as the table's
            executable = compile_request(*arguments)
            assert executable.profile.meta["pipeline"]["stages"] == 4
        taken.append(spell.cpu)
        return executable

    with timed() as whole:
        compared = compare_schedules(request, profiled)
        assert "<img" in compared._repr_mimebundle_()["text/html"]
    first = taken[0]
    beyond, table = (whole.cpu - first) / first, (whole.cpu - sum(taken)) / first
    return {"beyond_over_first": beyond, "compiles_over_first": beyond - table, "table_over_first": table}


def notebook() -> Figures:
    """With the cache on, as in a notebook: BERT-Base on 4 IPUs under another schedule with its profile, and back to the
    schedule before, over the first with its profile (trace included)."""
    from workbench.executable import cache, compile_request, make_request
    from workbench.executable.pipelines import in_even_stages

    request = in_even_stages(make_request("bert-base", mode="training", batch_size=1, optimizer=adam()), 4)
    other = request.replace(options={"pipeline.schedule": "Interleaved"})
    executable, taken = None, []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_CACHE"] = folder
        for wanted in (request, other, request):
            with timed() as spell:
                executable = compile_request(wanted, like=executable)
                assert executable.profile.total_cycles
            taken.append(spell.cpu)
        cache.written()
        os.environ["WORKBENCH_CACHE"] = "off"
    return {"another_over_first": taken[1] / taken[0], "back_over_first": taken[2] / taken[0]}


def bert_large_request() -> Any:
    """BERT-Large's training step in 16 stages."""
    from workbench.executable import make_request

    asked = {"mode": "training", "batch_size": 1, "stages": CUTS, "gradient_accumulation_steps": 64}
    return make_request("bert-large", optimizer=adam(), **asked)


def bert_large() -> Figures:
    """BERT-Large on 16 IPUs after its trace, over XLA's compile of ResNet-50's step."""
    _, ours = after_trace(bert_large_request())
    return {"over_xla": ours.clock / xla_seconds()}


def transformer(layers: int, ipus: int, micro_batches: int = 0) -> Any:
    """A Transformer in as many even stages as IPUs; micro-batches are two for each if none are given."""
    import workbench as wb
    from workbench.executable import make_request

    wb.ipu.devices.use("pod64")
    model = wb.ready("bert-base", layers=layers, hidden=256, heads=4, sequence_length=64)
    request = make_request(model, mode="training", batch_size=1, optimizer=adam())
    if ipus == 1:
        return request
    last = [layers * (number + 1) // ipus - 1 for number in range(ipus - 1)]
    steps = micro_batches or 2 * ipus
    return request.replace(stages=[f"encoder_{number}" for number in last], gradient_accumulation_steps=steps)


def pod() -> Figures:
    """64 layers on 64 IPUs: compile (after the trace), profile, three views, each over XLA's compile."""
    import workbench as wb

    executable, compiled = after_trace(transformer(LAYERS, LAYERS))
    with timed() as profiled:
        profile = executable.profile
        assert profile.total_cycles
    with timed() as seen:
        for name in ("summary", "memory", "trace"):
            assert wb.views(profile, name) is not None
    xla = xla_seconds()
    found = {"compile": compiled, "profile": profiled, "three_views": seen}
    return {f"{name}_over_xla": spell.clock / xla for name, spell in found.items()}


def memory_resnet() -> Figures:
    """Most memory of a cold process with ResNet-50's compile and verdict."""
    import workbench as wb

    print(wb.profile("resnet50", batch_size=4, mode="training").summary, file=sys.stderr)
    return {"peak_bytes": peak_bytes()}


def memory_bert() -> Figures:
    """Most memory of BERT-Large on 16 IPUs beyond what the process had after the trace."""
    from workbench.executable import compile_request

    before: list[float] = []

    def listen(phase: str) -> None:
        if phase != "trace" and not before:
            before.append(peak_bytes())

    assert compile_request(bert_large_request(), listen).profile.total_cycles
    return {"beyond_trace_bytes": peak_bytes() - before[0]}


def stored() -> Figures:
    """BERT-Base's profile in a file, and a process that has imported all loads it and draws its first picture."""
    import workbench as wb

    profile = wb.profile("bert-base", mode="training", batch_size=1, optimizer=adam())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bert.wbp"
        profile.save(path)
        size = float(path.stat().st_size)
        wb.load_profile(path).memory.svg()  # modules and fonts, once
        with timed() as opened:
            assert "<svg" in str(wb.load_profile(path).memory.svg())
    return {"size_bytes": size / MB, "load_seconds": opened.cpu}


def kept() -> Figures:
    """Memory of a process after 200 different compiles, over that after 20."""
    from workbench.executable import compile_request, make_request

    request, executable, after = make_request("mlp", batch_size=8, mode="training"), None, {}
    for number in range(1, 201):
        executable = compile_request(request.replace(batch_size=8 + number), like=executable)
        assert executable.profile.total_cycles
        if number in (20, 200):
            gc.collect()
            after[number] = resident_bytes()
    return {"after_200_over_20": after[200] / after[20]}


def resident_bytes() -> float:
    """Memory this process has now (Linux); elsewhere the most it had."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return peak_bytes()
    return int(status.read_text().split()[1]) * resource.getpagesize()


def growth(name: str, values: Sequence[int], request_of: Callable[[int], Any]) -> Callable[[], Figures]:
    """Phases after the trace at each value, over those at the first; `worst_step` is the highest power between two."""

    def measure() -> Figures:
        after_trace(request_of(values[0]))  # what is done once in a process
        taken = [after_trace(request_of(value))[1].cpu for value in values]
        pairs = list(zip(values, taken, strict=True))
        (least, shortest), (most, longest) = pairs[0], pairs[-1]
        power = math.log(longest / shortest) / math.log(most / least)
        return {"power": power} | {f"{name}_{value}": seconds / taken[0] for value, seconds in pairs[1:]}

    return measure


def on_tiles(tiles: int) -> Any:
    """ResNet-50's inference on so many tiles of a chip."""
    request = resnet(mode="inference", optimizer=None)
    return request.replace(target=replace(request.target, tiles_per_ipu=tiles))


LIMITS = {"power": 1.05}
ROWS: dict[str, Row] = {
    "resnet50": Row(measure=resnet50, goals={"over_xla": 0.35}),
    "verdict": Row(measure=verdict, goals={"over_xla": 0.90}),
    "verdict_of_another": Row(measure=verdict_of_another, goals={"beyond_usual": 0.05, "over_xla": None}),
    "proportion_none": Row(measure=proportions(0.25, 0, 0), goals={"again_over_first": 0.12, "plans_changed": None}),
    "proportion_some": Row(measure=proportions(0.1, 15, 60), goals={"again_over_first": 0.35, "plans_changed": None}),
    "proportion_many": Row(
        measure=proportions(0.05, 100, 220), goals={"again_over_first": 0.85, "plans_changed": None}
    ),
    "batch": Row(measure=batch, goals={"again_over_first": 0.85}),
    "small_option": Row(measure=small_option, goals={"middle": 0.15, "longest": None}, unit="s"),
    "schedules": Row(
        measure=schedules,
        goals={"beyond_over_first": 0.6, "compiles_over_first": None, "table_over_first": None},
    ),
    "notebook": Row(measure=notebook, goals={"another_over_first": 0.2, "back_over_first": 0.02}),
    "bert_large": Row(measure=bert_large, goals={"over_xla": 1.2}),
    "pod": Row(measure=pod, goals={"compile_over_xla": 1.5, "profile_over_xla": 0.3, "three_views_over_xla": 0.2}),
    "memory_resnet": Row(measure=memory_resnet, goals={"peak_bytes": 0.5 * GIB}, unit="GiB"),
    "memory_bert": Row(measure=memory_bert, goals={"beyond_trace_bytes": 0.4 * GIB}, unit="GiB"),
    "stored": Row(measure=stored, goals={"size_bytes": 0.5, "load_seconds": 0.25}),
    "kept": Row(measure=kept, goals={"after_200_over_20": 1.5}),
    "layers": Row(measure=growth("layers", (4, 16, 48, 96), lambda count: transformer(count, 1)), goals=LIMITS),
    "tiles": Row(measure=growth("tiles", (8, 64, 368, 1472), on_tiles), goals=LIMITS),
    "ipus": Row(measure=growth("ipus", (2, 8, 16, 64), lambda count: transformer(count, count)), goals=LIMITS),
    "micro_batches": Row(
        measure=growth("micro_batches", (16, 64, 512), lambda count: transformer(8, 8, count)),
        goals={"power": 0.05},
    ),
}


def shown(name: str, row: Row, runs: list[Figures]) -> bool:
    """Print each figure of a row beside its goal; return whether all are met."""
    kept_all = True
    for figure in runs[0]:
        values, goal = sorted(run[figure] for run in runs), row.goals.get(figure)
        scale = SCALE[row.unit]
        middle, spread = statistics.median(values) / scale, f"({values[0] / scale:.3g} to {values[-1] / scale:.3g})"
        verdict = ""
        if goal is not None:
            met = middle <= goal / scale
            kept_all, verdict = kept_all and met, f"{'within' if met else 'OVER'} {goal / scale:g} {row.unit}".strip()
        print(f"{name:<18} {figure:<20} {middle:9.3g} {row.unit:<3} {spread:>18}  {verdict}", flush=True)
    return kept_all


def main() -> int:
    """Take the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="row", help=", ".join(ROWS))
    parser.add_argument("--processes", type=int, default=3, help="fresh processes per row")
    parser.add_argument("--measure", choices=ROWS, help="take one row here and print it as JSON")
    asked = parser.parse_args()
    if asked.measure:
        os.environ.setdefault("PYTHONHASHSEED", "0")
        print(json.dumps(ROWS[asked.measure].measure()))
        return 0
    met = [shown(name, ROWS[name], [in_fresh_process(name) for _ in range(asked.processes)]) for name in asked.rows]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
