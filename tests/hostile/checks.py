"""What results are held against: NumPy's arithmetic over what a profile stores, or the numbers of a model in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.hostile import checks_of_tf, things
from tests.hostile.in_numpy import IN_NUMPY, computed
from workbench.engine.options import attributes

Check = Callable[[Any, str, Any, Any], None]  # of the call, the argument, the value given and the result


def same_numbers(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, "float64"), np.asarray(wanted, "float64"), rtol=2e-5, atol=1e-6)


def loss_in_numpy(x: Any, y: Any) -> float:
    """The mean squared error of `things.model()` as its weights are now."""
    first, bias, last, end = (np.asarray(each, "float64") for each in things.model().get_weights())
    return float(np.mean((np.maximum(x @ first + bias, 0) @ last + end - y) ** 2))


def trained_as_in_numpy(call: Any, argument: str, value: Any, executable: Any) -> None:
    """The loss of a step is that of the model in NumPy; so many samples as the arguments say."""
    request = executable.request
    steps = request.gradient_accumulation_steps
    samples = (request.batch_size or 2) * request.replicas * (steps if executable.graph.mode == "training" else 1)
    x = np.linspace(-1, 1, samples * 4, dtype="float32").reshape(samples, 4)
    y = np.linspace(1, -1, samples * 2, dtype="float32").reshape(samples, 2)
    wanted = loss_in_numpy(x, y)
    same_numbers(executable.run(x, y)["loss"], wanted)


def adds_up(profile: Any) -> None:
    """Bytes of tiles are the sums of their categories, cycles of an IPU those of its causes."""
    tiles = profile.tiles
    categories = tiles[list(profile.memory_categories)].to_numpy()
    same_numbers(tiles["total_bytes"], np.sum(categories, axis=1))
    causes = profile.cycle_breakdown
    each = np.bincount(causes["ipu"], weights=causes["cycles"], minlength=profile.ipus)
    same_numbers(each, np.full(profile.ipus, profile.total_cycles))


def window_in_numpy(call: Any, argument: str, value: Any, found: Any) -> None:
    """The blocks of a window are those of the whole that overlap it, chosen with NumPy."""
    given = {"ipu": None, "cycles_from": None, "cycles_to": None, "max_rows": 10_000, argument: value}
    whole = things.profile().blocks(max_rows=10**6)
    first = -np.inf if given["cycles_from"] is None else float(given["cycles_from"])
    last = np.inf if given["cycles_to"] is None else float(given["cycles_to"])
    start, end = whole["cycles_from"].to_numpy(), whole["cycles_to"].to_numpy()
    here = (start < last) & (end > first)
    if given["ipu"] is not None:
        here &= whole["ipu"].to_numpy() == given["ipu"]
    wanted = whole[here].head(min(int(given["max_rows"]), len(whole)))
    np.testing.assert_array_equal(found["cycles_from"].to_numpy(), wanted["cycles_from"].to_numpy())
    np.testing.assert_array_equal(found["step"].to_numpy(), wanted["step"].to_numpy())


def live_in_numpy(call: Any, argument: str, value: Any, found: Any) -> None:
    """Bytes that are live at a step, without those of variables that other steps need: at most all there are."""
    profile = things.profile()
    variables = profile.tables["variables"]
    rows = np.array([int(np.flatnonzero(variables["name"] == name)[0]) for name in found["name"]], dtype=np.int64)
    assert np.all(found["bytes"].to_numpy() <= variables["bytes"][rows])
    assert found["bytes"].is_monotonic_decreasing or found["always_live"].any()


def window_of_trace(call: Any, argument: str, value: Any, found: Any) -> None:
    """Rectangles lie in time as they say, and none of a lane overlaps the next."""
    begin, end = found["cycles_from"].to_numpy(), found["cycles_to"].to_numpy()
    assert np.all(begin <= end)
    if "lane" in found:
        for lane in np.unique(found["lane"]):
            here = found["lane"].to_numpy() == lane
            assert np.all(np.diff(begin[here]) >= 0)
            assert np.all(end[here][:-1] <= begin[here][1:])


def spent_in_numpy(call: Any, argument: str, value: Any, found: Any) -> None:
    """Cycles of the causes of an IPU fill the window, whatever it is."""
    first, last = clipped(argument, value, things.profile().pipeline.span)
    each = np.bincount(found["ipu"], weights=found["cycles"], minlength=2) if len(found) else np.zeros(2)
    same_numbers(each, np.full(2, max(0, last - first)))


def proportions_in_numpy(call: Any, argument: str, value: Any, found: Any) -> None:
    first, last = clipped(argument, value, (0, things.profile().total_cycles))
    assert np.sum([*found.values(), 0]) == max(0, last - first)


def clipped(argument: str, value: Any, otherwise: tuple[int, int]) -> tuple[int, int]:
    """The ends of a window as given, inside the call; otherwise these."""
    given = {"cycles_from": otherwise[0], "cycles_to": otherwise[1]}
    if argument in given and value is not None:
        given[argument] = int(np.clip(float(value), 0, things.profile().total_cycles))
    return given["cycles_from"], given["cycles_to"]


def field_in_numpy(call: Any, argument: str, value: Any, machine: Any) -> None:
    """A field is the number that was given."""
    if value is not None and not isinstance(value, str):
        same_numbers(getattr(machine, argument), value)
    changed = machine.bytes_per_tile * machine.tiles_per_ipu
    same_numbers(changed, np.prod([machine.memory.total_bytes, machine.tiles_per_ipu], dtype=np.float64))


def memory_in_numpy(call: Any, argument: str, value: Any, found: Any) -> None:
    same_numbers(found.total, np.sum(list(found.by_category.values()), axis=0))


def profile_adds_up(call: Any, argument: str, value: Any, found: Any) -> None:
    adds_up(found)


def each_adds_up(call: Any, argument: str, value: Any, found: Any) -> None:
    for profile in found.profiles:
        adds_up(profile)


def rows_add_up(call: Any, argument: str, value: Any, found: Any) -> None:
    for place, row in enumerate(found.rows):
        if not row.problem:
            adds_up(found.profile(place))


def split_adds_up(call: Any, argument: str, value: Any, found: Any) -> None:
    adds_up(found.profile)


def as_numpy_computes(call: Any, argument: str, value: Any, found: Any) -> None:
    """The numbers are those of NumPy, in 32 bits, and so is the shape."""
    wanted = computed(call.name, call.given(argument, value))
    assert np.shape(found) == wanted.shape
    with np.errstate(all="ignore"):
        narrow = wanted.astype("float32").astype("float64") if wanted.dtype.kind == "f" else wanted.astype("float64")
    np.testing.assert_allclose(np.asarray(found, "float64"), narrow, rtol=2e-4, atol=1e-5)


def option_as_set(call: Any, argument: str, value: Any, frozen: Any) -> None:
    """A compile is given the number, the text or the choice that was set."""
    found = frozen.get(call.name.removeprefix("IPUConfig."))
    if isinstance(value, int | float):
        same_numbers(found, value)
    elif value:
        assert found == value or isinstance(value, dict | list)


CHECKS: Mapping[str, Check] = {
    **dict.fromkeys([f"IPUConfig.{each.name}" for each in attributes()], option_as_set),
    **dict.fromkeys(IN_NUMPY, as_numpy_computes),
    **checks_of_tf.CHECKS,
    "wb.compile": trained_as_in_numpy,
    "wb.profile": profile_adds_up,
    "wb.compare_schedules": each_adds_up,
    "wb.sweep": rows_add_up,
    "wb.search": rows_add_up,
    "wb.autosplit": split_adds_up,
    "Profile.blocks": window_in_numpy,
    "Profile.live_variables": live_in_numpy,
    "Trace.window": window_of_trace,
    "Trace.tiles": window_of_trace,
    "Trace.proportions": proportions_in_numpy,
    "Pipeline.spent": spent_in_numpy,
    "Target.replace": field_in_numpy,
    "Memory.of": memory_in_numpy,
    "Memory.from_profile": memory_in_numpy,
}
