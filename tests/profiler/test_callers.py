"""What a shared body does is told for those who call it, by every table and report alike and to the cycle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.profiler.agreement import disagreements
from tests.profiler.callers import Truth, truth_of
from tests.profiler.shared_programs import SIZE, Drawn, functions, tile_programs
from workbench.profiler.advice.compare import compare
from workbench.profiler.collect import collect
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile, save_profile
from workbench.widgets.kit.detail import Detail, Window

WAYS = ("forward", "recompute", "backward", "update")
WHERE = ["layer", "direction"]


def plain(sums: Mapping[Any, Any] | pd.Series) -> dict[Any, int]:
    """What is not zero."""
    return {key: int(value) for key, value in dict(sums).items() if value}


def wrong(profile: Profile, truth: Truth) -> Iterator[str]:
    """The tables and reports that tell another layer's, direction's, operator's or line's cycles."""
    for what, found, known in (*tables(profile, truth), *reports(profile, truth)):
        if plain(found) != plain(known):
            yield f"{what}: {plain(found)}, but {plain(known)}"


def tables(profile: Profile, truth: Truth) -> Iterator[tuple[str, Any, Any]]:
    steps, operators = profile.steps, profile.operators
    yield "steps", steps.groupby(WHERE)["total_cycles"].sum(), truth.layers
    yield "operators of steps", steps.groupby("operator")["total_cycles"].sum(), truth.operators
    named = {name: cycles for name, cycles in truth.operators.items() if name}
    yield "operators", operators.set_index("name")["cycles"], named
    yield "explained", {name: profile.explain(operator=name).value for name in operators["name"]}, named
    yield "rows of a step", steps.groupby("id").size(), steps.groupby("id")["callers"].first()
    yield "total", {"": steps["total_cycles"].sum()}, {"": truth.total}
    rows = profile.blocks(max_rows=10**6).drop_duplicates(["step", "cycles_from"])
    yield (
        "blocks",
        (rows["cycles_to"] - rows["cycles_from"]).groupby([rows["layer"], rows["direction"]]).sum(),
        (truth.layers),
    )
    received = profile.tables["steps"]["bytes_received"] * profile.tables["steps"]["times"]
    yield "bytes", {"": (steps["bytes_received"] * steps["times"]).sum()}, {"": received.sum()}


def reports(profile: Profile, truth: Truth) -> Iterator[tuple[str, Any, Any]]:
    layers = profile.operations.layers.set_index("layer")
    by_layer: Counter[str] = Counter()
    for (layer, _), cycles in truth.layers.items():
        by_layer[layer] += cycles
    yield "layers", layers["cycles"], by_layer
    told = {(layer, way): row[f"{way}_cycles"] for layer, row in layers.iterrows() for way in WAYS}
    yield "layers by direction", told, truth.layers
    yield "source", profile.source.lines.set_index("source")["cycles"], {k: v for k, v in truth.sources.items() if k}
    traced: Counter[tuple[str, str]] = Counter()
    for ipu in range(profile.ipus):
        window = profile.trace.window(ipu, max_rects=10**6)
        for row in window[window["lane"] == "phase"].itertuples():
            traced[row.layer, row.direction] += row.cycles_to - row.cycles_from
    everywhere = by_ipu(profile)
    yield "trace", traced, everywhere
    drawn: Counter[tuple[str, str]] = Counter()
    for ipu in range(profile.ipus):
        window = Window(first=0, last=profile.total_cycles, bins=1, least=0)
        for start, end, layer, direction in Detail(profile).lane(ipu, window).layers:
            drawn[layer, direction] += int(end - start)
    yield "lanes", drawn, everywhere
    yield from along(profile, truth)
    empty = wb.profile(wb.tiles.Graph("ipu2", tiles=4).sequence())
    change = compare(empty, profile).table("layers").set_index("layer")["cycles change"]
    yield "compare", change, by_layer


def by_ipu(profile: Profile) -> Mapping[Any, int]:
    """The steps of each IPU they occupy."""
    steps = profile.steps
    ends = np.where((steps["to_ipu"] < 0) | (steps["to_ipu"] == steps["ipu"]), 1, 2)
    return plain((steps["total_cycles"] * ends).groupby([steps["layer"], steps["direction"]]).sum())


def along(profile: Profile, truth: Truth) -> Iterator[tuple[str, Any, Any]]:
    """Layers at the positions of each IPU's program."""
    for ipu, layers in truth.positions.items():
        shown = profile.liveness_view.of(ipu=ipu).there.layer.tolist()
        yield f"positions of IPU {ipu}", Counter(enumerate(shown)), Counter(enumerate(layers))


def files(profile: Profile, folder: Path, truth: Truth) -> Iterator[tuple[str, Any, Any]]:
    """What other tools read."""
    profile.to_csv(folder / "csv")
    steps = pd.read_csv(folder / "csv" / "steps.csv", keep_default_na=False)
    yield "steps.csv", steps.groupby(WHERE)["total_cycles"].sum(), truth.layers
    profile.to_chrome_trace(folder / "trace.json")
    events = [each for each in json.loads((folder / "trace.json").read_text())["traceEvents"] if each["ph"] == "X"]
    found: Counter[tuple[str, str]] = Counter()
    for event in events:
        found[event["args"]["layer"], event["args"]["direction"]] += event["dur"]
    yield "chrome trace", found, by_ipu(profile)
    again = load_profile(save_profile(profile, folder / "p.wbprofile"))
    yield "stored steps", again.steps.groupby(WHERE)["total_cycles"].sum(), truth.layers
    yield "stored operators", again.operators.set_index("name")["cycles"], profile.operators.set_index("name")["cycles"]


@given(drawn=tile_programs())
def test_every_table_and_report_credits_the_caller(drawn: Drawn) -> None:
    truth = truth_of(drawn.compiled, drawn.operators)
    assert list(wrong(collect(drawn.compiled), truth)) == []


@settings(max_examples=10)
@given(drawn=tile_programs())
def test_so_do_files(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> None:
    profile, truth = collect(drawn.compiled), truth_of(drawn.compiled, drawn.operators)
    for what, found, known in files(profile, tmp_path_factory.mktemp("files"), truth):
        assert plain(found) == plain(known), what


def cut(node: Any, length: int) -> Any:
    """The control tree as files of a version before have it: calls of at most so many entries."""
    if isinstance(node, dict):
        return {name: cut(each, length) for name, each in node.items()}
    if not isinstance(node, list):
        return node
    return node[:length] if node[:1] == ["call"] else [cut(each, length) for each in node]


@settings(max_examples=10)
@given(drawn=tile_programs(), length=st.sampled_from([8, 9]))
def test_files_of_versions_before_say_less(drawn: Drawn, length: int) -> None:
    """Without lines, those that the body was lowered for stay; without operators, tables have them as stored."""
    profile, truth = collect(drawn.compiled), truth_of(drawn.compiled, drawn.operators)
    older = replace(profile, meta={**profile.meta, "trace": cut(profile.meta["trace"], length)})
    told = [call for call in drawn.operators if not call.startswith("small/")]
    if length == 9 or len(told) == len(drawn.operators):  # no call is for no layer
        assert plain(older.steps.groupby(WHERE)["total_cycles"].sum()) == plain(truth.layers)
    if length == 9:
        assert plain(older.steps.groupby("operator")["total_cycles"].sum()) == plain(truth.operators)
    shared = older.steps["parent"].str.startswith("shared")
    own = older.tables["steps"]["source"][older.steps_by_caller.row]
    assert (older.steps["source"] == own)[shared].all()
    for name, cycles in plain(older.operators.set_index("name")["cycles"]).items():
        assert older.explain(operator=name).value == cycles


@settings(max_examples=6)
@given(function=functions(), training=st.booleans())
def test_models_that_repeat_blocks(function: Any, training: bool) -> None:
    """Blocks under layers, under none, in loops and branches; gradients of them too."""
    import jax

    traced = jax.grad(lambda x, w: function(x, w).sum(), argnums=1) if training else function
    inputs = (np.ones((8, SIZE), np.float32), np.ones((SIZE, SIZE), np.float32))
    executable = wb.compile(traced, *inputs, target=wb.target("ipu2", tiles_per_ipu=4))
    holds(executable)


def dense(name: str, units: int = 16) -> Any:
    import keras

    return keras.layers.Dense(units, "tanh", name=name)


def norm(name: str) -> Any:
    import keras

    return keras.layers.LayerNormalization(name=name)


def last_line(function: Any) -> str:
    return f"test_callers.py:{max(number for *_, number in function.__code__.co_lines() if number)}"


def pipeline(draw: Any) -> tuple[Any, dict[str, str]]:
    """A pipeline that trains, and the line at which each of its layers was made."""
    import keras

    names = [f"{draw(st.sampled_from(['x', 'y']))}_{number}" for number in range(draw(st.integers(4, 7)))]
    kinds = [draw(st.sampled_from([dense, dense, norm])) for _ in names]

    def build() -> Any:
        made = [kind(name) for name, kind in zip(names, kinds, strict=True)]
        return keras.Sequential([keras.Input((16,)), *made, dense("out", 4)])

    cut = draw(st.integers(1, len(names) - 1))
    options = {
        "stages": [int(number >= cut) for number in range(len(names) + 1)],
        "pipeline_schedule": draw(st.sampled_from(["Grouped", "Interleaved", "Sequential"])),
        "recomputation": draw(st.booleans()),
        "gradient_accumulation_steps": draw(st.sampled_from([4, 8])),
    }
    target = wb.target("ipu2", tiles_per_ipu=4)
    executable = wb.compile(build, batch_size=2, mode="training", optimizer="sgd", loss="mse", target=target, **options)
    return executable, {"out": last_line(dense)} | dict(zip(names, map(last_line, kinds), strict=True))


@settings(max_examples=3)
@given(data=st.data())
def test_pipelines_that_compute_again(data: st.DataObject) -> None:
    holds(*pipeline(data.draw))


def holds(executable: Any, made: Mapping[str, str] | None = None) -> None:
    """All agree with the tree of the program; the operators of parts are matched by the word they are named for."""
    compiled, profile = executable.compiled, executable.profile
    truth = truth_of(compiled, made=made)
    steps = profile.steps
    truth.operators = Counter(plain(steps.groupby("operator")["total_cycles"].sum()))
    assert list(wrong(profile, truth)) == []
    assert disagreements(profile) == []
    rows = profile.operators.set_index("name")
    for step in steps[steps["parent"].str.startswith("shared") & (steps["operator"] != "")].itertuples():
        _, _, part = step.parent.partition("/")
        word = step.operator.rpartition("/")[2].partition(":")[0]
        assert part.partition("/")[0].partition("_")[2] in ("", word)
        assert tuple(rows.loc[step.operator, WHERE]) == (step.layer, step.direction)
