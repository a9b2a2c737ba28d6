"""Tips advise what applies to the program, and name a region of memory that is full."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
import workbench.ipu
from tests.profiler.handmade import handmade_profile
from workbench.profiler.advice.levers import LEVERS, Situation
from workbench.profiler.advice.regions import full_region
from workbench.profiler.advice.tips import cycle_tips, hand_made_advice, mapping_advice, memory_tips
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile

GROUPED = "the Grouped schedule has passes of one direction beside each other, which wait less"
CATEGORIES = ("temporary", "optimizer", "stash", "activation", "internal_exchange_code", "vertex_code")


def told(meta: Mapping[str, Any], config: Mapping[str, Any], operators: tuple[str, ...], dtype: str) -> Profile:
    """The profile of a model of two layers, as if it were of another mode, batch, configuration and operators."""
    profile = handmade_profile()
    table = profile.tables["operators"]
    count = len(table["op"])
    names = [operators[place % len(operators)] for place in range(count)] if operators else []
    kept = {name: values[: len(names)] for name, values in table.items()}
    kept["op"] = type(table["op"])(shape=(len(names),), dtype=table["op"].dtype)
    kept["op"][:] = names
    variables = dict(profile.tables["variables"])
    variables["dtype"] = variables["dtype"].copy()
    variables["dtype"][:] = dtype
    merged = {**profile.meta, **meta, "config": {**profile.meta["config"], **config}}
    tables = {**profile.tables, "operators": kept, "variables": variables}
    return Profile(meta=merged, tables=tables, arrays=profile.arrays)


@given(
    mode=st.sampled_from(["training", "inference", "function"]),
    batch=st.integers(1, 4),
    recompute=st.booleans(),
    proportion=st.sampled_from([0.6, 0.05]),
    operators=st.sampled_from([(), ("add",), ("dot_general", "add")]),
    dtype=st.sampled_from(["float32", "float16"]),
)
def test_tips_advise_only_what_applies(
    mode: str, batch: int, recompute: bool, proportion: float, operators: tuple[str, ...], dtype: str
) -> None:
    shares = {f"{group}.poplar_options.availableMemoryProportion": proportion for group in ("matmuls", "convolutions")}
    profile = told({"mode": mode, "batch_size": batch}, {"allow_recompute": recompute, **shares}, operators, dtype)
    memory = " ".join(memory_tips(profile, dict.fromkeys(CATEGORIES, 16_384)))
    assert all(what in memory for what in ("temporaries", "optimizer state", "activations", "vertex code"))
    assert "availableMemoryProportion" not in memory  # no product writes what is live at the peak
    assert ("recomputation from recomputation_checkpoints" in memory) == (mode == "training" and not recompute)
    assert ("optimizer, or offloading" in memory) == (mode == "training")
    assert ("micro-batch" in memory) == (mode == "training" and batch > 1)
    assert ("batch" in memory) == (mode != "function" and batch > 1)
    assert ("fewer distinct exchanges" in memory) == (not operators)
    cycles = " ".join(cycle_tips(profile))
    assert "exchange takes" in cycles
    assert ("half precision" in cycles) == (bool(operators) and mode != "function" and dtype == "float32")
    assert ("vertices lie where their data are" in cycles) == (not operators)


@pytest.mark.parametrize(("interleaved", "full"), [(True, True), (False, False)])
def test_a_full_region_is_named(interleaved: bool, full: bool) -> None:
    """Two arrays that fit a tile together, but not its upper region, where alone interleaved data may lie."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    first, second = (
        g.variable(name, (size,), interleaved=interleaved).map_linearly(tiles=1)
        for name, size in (("first", 70_000), ("second", 50_000))
    )
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, writes=[first, second])
    profile = wb.profile(g.sequence(step))
    assert profile.fits == (not full)
    found = full_region(profile)
    if not full:
        assert found is None
        return
    assert found is not None
    assert (found.name, found.size_bytes, found.missing_bytes) == ("interleaved", 425_984, 200_000)
    said = "its interleaved memory (416.0 KiB) is full: 195.3 KiB that must lie there have no place, though "
    assert said in profile.summary.verdict
    assert profile.insights.tips[0].startswith(f"on tile 0 {said}")
    problem = wb.OutOfMemoryError(tile=0, step=1, bytes_used=2, bytes_available=1, region=str(found))
    assert said in str(problem)


def test_no_region_is_blamed_where_all_are_full() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    wide = g.variable("wide", (90_000,), interleaved=True).map_linearly(tiles=1)
    rest = g.variable("rest", (90_000,)).map_linearly(tiles=1)
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, writes=[wide, rest])
    profile = wb.profile(g.sequence(step))
    assert not profile.fits
    assert full_region(profile) is None


@pytest.mark.parametrize("tiles", [1, 4])
def test_a_program_made_by_hand_is_told_which_variables_make_room(tiles: int) -> None:
    """Three of 480, 320 and 160 kB on a tile: its memory is named variable by variable, by the error and diagnose."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    parts = [
        g.variable(name, (size * tiles,)).map_linearly(tiles=tiles, grain=size)
        for name, size in (("low", 40_000), ("high", 120_000), ("mid", 80_000))
    ]
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, reads=[part[:100] for part in parts], writes=[])
    executable = wb.compile(g.sequence(*map(g.host_copy, parts), step))
    with pytest.raises(wb.OutOfMemoryError) as caught:
        executable.run()
    lie = f"there, on {tiles} of 4 tiles)"
    named = f"high (468.8 KiB {lie}, mid (312.5 KiB {lie}, low (156.2 KiB {lie}"
    advice = "map the largest variables of tile 0 over more tiles" if tiles < 4 else "declare smaller variables"
    for said in (str(caught.value), wb.diagnose(executable).sentence, wb.diagnose(executable.profile).sentence):
        assert f"{advice}, or write in place or a part after the other; the largest on tile 0" in said
        assert named in said
    assert "wb.diagnose" not in str(caught.value)


def test_what_a_model_is_told_is_left_to_diagnose() -> None:
    profile = told({"mode": "training", "batch_size": 2}, {}, ("add",), "float32")
    assert hand_made_advice(profile) == ""


def test_a_piece_that_is_longer_than_every_gap_is_named() -> None:
    """Of 638,976 bytes of a tile the two long pieces and a short one take 500,000, but only one of the long ones goes
    into each region, and 244,000 bytes are more than the 212,992 of the lower one.
    """
    g = wb.tiles.Graph("ipu2", tiles=1)
    parts = [
        g.variable(name, (size,), interleaved=name == "short").map_linearly(tiles=1)
        for name, size in (("first", 61_000), ("second", 61_000), ("short", 3_000))
    ]
    step = g.compute_set("step")
    step.vertex("stub", tile=0, cycles=100, reads=parts, writes=[])
    profile = wb.profile(g.sequence(*map(g.host_copy, parts), step))
    assert not profile.fits
    (told,) = [tip for tip in profile.insights.tips if "gaps" in tip]
    assert ": second, 238.3 KiB in one piece, is longer than the longest, " in told
    longest = max(end - start for start, end in profile.xray.gaps)
    assert told.endswith(f"{longest / 1024:.1f} KiB")
    assert longest < 244_000


def tips_on(profile: Profile, what: str) -> list[str]:
    """What is advised in the tips that name something; "" where nothing is."""
    parted = [re.split(r" % of (?:the tile|all cycles)(?:: |$)", tip) for tip in profile.insights.tips]
    return [parts[1] for parts in parted if what in parts[0]]


def product(proportion: float) -> Profile:
    """A product of 512 x 512 matrices, 3 MiB in all, on eight tiles."""
    operands = np.ones((2, 512, 512), np.float32)
    config = wb.ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.matmuls.poplar_options = {"availableMemoryProportion": str(proportion)}
    target = wb.target("ipu2", tiles_per_ipu=8)
    return wb.compile(lambda a, b: a @ b, *operands, target=target, config=config).profile


def test_a_lower_share_is_advised_where_the_plan_keeps_to_its_own() -> None:
    """At 0.6 of a tile the plan takes less than that, and at 0.3 less again. At 0.1 it finds none within the share."""
    known = {share: product(share) for share in (0.6, 0.3, 0.1)}
    assert tips_on(known[0.6], "temporaries") == ["a lower availableMemoryProportion makes them smaller"]
    taken = {share: int(profile.operators["temporary_bytes"].max()) for share, profile in known.items()}
    assert taken[0.3] < taken[0.6] <= 0.6 * 638_976
    assert taken[0.1] > 0.1 * 638_976
    assert tips_on(known[0.1], "temporaries") == [""]


def pooled(batch: int) -> Profile:
    """A training step in which the gradient of a pool over the batch holds more than its products do."""

    def build() -> Any:
        pool = keras.layers.MaxPooling2D(name="pool")
        return keras.Sequential([keras.Input((64, 64, 16)), keras.layers.Conv2D(16, 1, name="conv"), pool])

    return wb.compile(build, batch_size=batch, mode="training", target=wb.target("ipu2", tiles_per_ipu=8)).profile


def test_fewer_samples_are_advised_where_what_is_written_for_each_fills_the_tile() -> None:
    whole, half = pooled(8), pooled(4)
    assert tips_on(whole, "temporaries") == ["a smaller micro-batch makes them smaller"]
    sizes = [profile.insights.peak_categories["temporary"] for profile in (whole, half)]
    assert sizes[1] < sizes[0]


def network(
    optimizer: str, offload: tuple[str, ...] = (), steps: int = 4, tiles: int = 16, **arguments: Any
) -> Profile:
    """Four layers of 512 x 512 weights, 4 MiB, on 16 tiles unless more are said."""

    def build() -> Any:
        return keras.Sequential([keras.Input((512,)), *[keras.layers.Dense(512, name=f"d{n}") for n in range(4)]])

    target = wb.target("ipu2", tiles_per_ipu=tiles)
    more: dict[str, Any] = {
        "gradient_accumulation_steps": steps,
        **({"offload": offload} if offload else {}),
        **arguments,
    }
    return wb.compile(build, batch_size=16, mode="training", optimizer=optimizer, target=target, **more).profile


def test_accumulators_of_gradients_are_no_state_of_the_optimizer() -> None:
    """Plain gradient descent has no state: to offload it is refused, and what fills the tile are accumulators."""
    plain = network("sgd")
    assert tips_on(plain, "optimizer state") == []
    advice = "offloading gradient_accumulation_buffers keeps them on the tiles only where they are used"
    assert tips_on(plain, "gradient accumulators") == [advice]
    with pytest.raises(wb.errors.InputError, match="there is none of them"):
        network("sgd", ("optimizer_state",))
    away = network("sgd", ("gradient_accumulation_buffers",))
    assert away.max_tile_bytes < plain.max_tile_bytes
    assert away.peak.step != plain.peak.step  # the update's, which reads all of them
    assert tips_on(away, "gradient accumulators") == [""]


def test_state_and_accumulators_sum_to_their_category() -> None:
    """Adam keeps two numbers a weight, and the accumulator is a third: 2 MiB and 1 MiB a layer over all tiles."""
    profile = network("adam")
    tips = [tip.partition(": ") for tip in profile.insights.tips]
    said = [tip[0].split(" on tile")[0] for tip in tips if "state" in tip[0] or "accumulators" in tip[0]]
    assert [text.split(" of ")[1] for text in said] == ["optimizer state", "gradient accumulators"]
    sizes = [float(text.split(" KiB")[0]) for text in said]
    assert sum(sizes) == pytest.approx(profile.insights.peak_categories["optimizer"] / 1024, abs=0.1)
    assert sizes[0] == pytest.approx(2 * sizes[1], rel=0.01)


def test_copies_of_what_is_offloaded_are_shorter_where_less_is() -> None:
    near, far = network("adam"), network("adam", ("optimizer_state",))
    assert tips_on(far, "host") == ["most of it moves what is offloaded, and what stays on the tiles takes none"]
    assert tips_on(near, "host") == []


def fed(steps: int, **options: Any) -> Profile:
    """Much comes from the host, and little is done with it."""
    config = wb.ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.optimizations.prefetch_data_streams = options.pop("prefetch", True)
    config.io_tiles.num_io_tiles = count = options.pop("io_tiles", 0)
    config.io_tiles.place_ops_on_io_tiles = count > 0
    target = wb.target("ipu2", tiles_per_ipu=128)
    more: dict[str, Any] = {
        "batch_size": 64,
        "mode": "training",
        "gradient_accumulation_steps": steps,
        "target": target,
    }
    layers = [keras.layers.Dense(64, name="wide"), keras.layers.Dense(8, name="out")]
    return wb.compile(
        lambda: keras.Sequential([keras.Input((2048,)), *layers]), config=config, **more, **options
    ).profile


def host_cycles(profile: Profile) -> int:
    return int(profile.cycle_breakdown.set_index("cause")["cycles"]["host"])


def test_what_shortens_the_copies_of_the_host_is_measured() -> None:
    whole = fed(8)
    assert tips_on(whole, "host") == ["it is shorter with tiles for the host (io_tiles) or half precision"]
    assert tips_on(fed(1), "host") == ["it is shorter with half precision"]
    assert tips_on(fed(1, prefetch=False), "host") == ["it is shorter with prefetching or half precision"]
    assert host_cycles(fed(8, io_tiles=32)) < host_cycles(whole)
    assert host_cycles(fed(8, precision="float16")) < 0.6 * host_cycles(whole)
    assert host_cycles(fed(1, prefetch=False)) > host_cycles(fed(1))


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
def test_tiles_for_the_host_are_tried_where_the_schedule_takes_them(schedule: str) -> None:
    pipelined: dict[str, Any] = {"steps": 8, "stages": [0, 0, 1, 1], "pipeline_schedule": schedule}
    changes, reason = LEVERS.get("io_tiles").propose(Situation(profile=network("sgd", tiles=128, **pipelined)))
    assert bool(changes) == (schedule == "Grouped")
    assert reason == ("" if changes else f"under the {schedule} schedule no stage computes beside their copies")


def test_stages_of_the_grouped_schedule_wait_less_for_each_other() -> None:
    """Of the Interleaved one a forward pass stands beside a backward pass, which takes twice as long."""
    shares = {}
    for schedule in ("Interleaved", "Grouped"):
        profile = network("sgd", steps=8, stages=[0, 0, 1, 1], pipeline_schedule=schedule)
        spent = profile.cycle_breakdown.groupby("cause")["cycles"].sum()
        shares[schedule] = spent["idle_wait_stage"] / spent.sum()
        advice = tips_on(profile, "waits for a stage")
        assert advice == ([] if schedule == "Grouped" else [GROUPED])
    assert shares["Grouped"] < shares["Interleaved"] / 2


@pytest.mark.parametrize(("stages", "less"), [([0, 0, 1, 1], True), ([0, 1, 1, 2], True), ([0, 1, 1, 1], False)])
def test_the_grouped_schedule_is_advised_where_it_takes_less(stages: list[int], less: bool) -> None:
    """A stage that is slower than the other in both directions is what every column of either schedule waits for, and
    the Grouped one has a longer start and end besides."""
    cycles, advice = {}, []
    for schedule in ("Interleaved", "Grouped"):
        profile = network("sgd", steps=12, stages=stages, pipeline_schedule=schedule)
        cycles[schedule] = profile.total_cycles
        advice += tips_on(profile, "waits for a stage") if schedule == "Interleaved" else []
    assert (cycles["Grouped"] < cycles["Interleaved"]) == less
    assert advice == [GROUPED if less else "a more even split of the layers over the stages shortens it"]


@pytest.mark.parametrize("steps", [4, 8])
def test_tiles_for_the_host_are_tried_where_micro_batches_leave_some_to_copy_beside(steps: int) -> None:
    """Two stages take four micro-batches a round, and copies beside compute two more than that."""
    pipelined: dict[str, Any] = {"tiles": 128, "stages": [0, 0, 1, 1], "pipeline_schedule": "Grouped"}
    whole = network("sgd", steps=steps, **pipelined)
    changes, reason = LEVERS.get("io_tiles").propose(Situation(profile=whole))
    assert bool(changes) == (steps == 8)
    assert reason == ("" if changes else "stages that copy beside compute need more than the 4 micro-batches")
    config = workbench.ipu.config.IPUConfig()
    config.io_tiles.num_io_tiles, config.io_tiles.place_ops_on_io_tiles = 32, True
    if changes:
        assert network("sgd", steps=steps, config=config, **pipelined).config["io_tiles.num_io_tiles"] == 32
    else:
        with pytest.raises(wb.errors.InputError, match="Expected: at least 6"):
            network("sgd", steps=steps, config=config, **pipelined)


def test_tiles_are_numbered_and_counted_as_elsewhere() -> None:
    """All is on the tile beyond the first thousand of 1,472."""
    g = wb.tiles.Graph("ipu2")
    x = g.variable("x", (200_000,)).map({1_200: slice(0, 200_000)})
    profile = wb.profile(g.sequence(g.host_copy(x)))
    (named,) = re.findall(r"the largest on tile .*", hand_made_advice(profile))
    assert named == "the largest on tile 1,200 at step 1: x (781.2 KiB there, on 1 of 1,472 tiles)"


def test_what_has_no_operators_is_not_taken_for_made_by_hand(tmp_path: Path) -> None:
    """A function that returns what it is given lowers no operator either: it has no variable to map, nor a vertex."""
    machine = wb.target("ipu2", tiles_per_ipu=8)
    rows = np.ones((8 * 1_000, 100), np.float32)  # 400 kB on each tile, and again where it leaves
    profile = wb.profile(lambda rows: rows, rows, target=machine)
    found = wb.diagnose(profile)
    told = [str(each) for each in found.skipped if "the program has no operators: it moves data alone" in str(each)]
    assert len(told) == 3  # outlining, scheduler, io_tiles
    assert "by hand" not in found.to_text()
    assert hand_made_advice(profile) == "" == mapping_advice(profile)
    assert not any("fewer and larger copies" in tip for tip in profile.insights.tips)
    profile.save(tmp_path / "moves.wbprofile")
    assert not Situation(profile=load_profile(tmp_path / "moves.wbprofile")).made_by_hand


def test_a_profile_without_the_mark_goes_by_its_operators() -> None:
    """Those of versions before do not say whether they were made by hand."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    profile = wb.profile(g.sequence(g.host_copy(g.variable("x", (64,)).map_linearly())))
    assert profile.meta["made_by_hand"] is True
    unmarked = {name: value for name, value in profile.meta.items() if name != "made_by_hand"}
    assert Situation(profile=replace(profile, meta=unmarked)).made_by_hand
    assert not Situation(profile=handmade_profile()).made_by_hand  # it has operators
