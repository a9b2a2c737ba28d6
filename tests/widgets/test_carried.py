"""What is chosen in one profile, found again in another."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.widgets.carried import carried


def test_a_profile_like_it_gives_back_what_was_chosen() -> None:
    one, other = handmade_profile(), handmade_profile()
    timeline = one.tables["timeline"]
    for variable in one.tables["variables"]["id"]:
        assert carried({"variable": int(variable)}, one, other) == {"variable": int(variable)}
    for step in one.tables["steps"]["id"]:
        found = carried({"step": int(step), "position": 99}, one, other)
        places = np.flatnonzero(timeline["step"] == step)
        at = {"position": int(timeline["position"][places[0]])} if len(places) else {}
        assert found == {"step": int(step), **at}
    assert carried({"ipu": 0, "tile": 5, "layer": "dense_1"}, one, other) == {"ipu": 0, "tile": 5, "layer": "dense_1"}


def test_what_is_not_there_is_left() -> None:
    one, pipeline = handmade_profile(), handmade_pipeline()
    wide = {"ipu": 1, "micro_batch": 2, "layer": "no such layer", "tile": 10_000, "variable": 10_000, "step": 10_000}
    assert carried(wide, pipeline, one) == {}
    assert carried(wide, one, pipeline) == {"ipu": 1, "micro_batch": 2}
    assert carried({}, one, pipeline) == {}


def test_a_thing_is_found_by_its_name_and_not_by_its_number() -> None:
    """The other profile numbers its rows from behind and has not the last of them."""
    one = handmade_profile()
    for table in ("variables", "steps"):
        columns = one.tables[table]
        turned = {key: values[:-1] for key, values in columns.items()} | {"id": columns["id"][::-1][:-1]}
        other = dataclasses.replace(one, tables={**one.tables, table: turned})
        field = table[:-1]
        found = [carried({field: int(number)}, one, other).get(field) for number in columns["id"]]
        assert found == [*columns["id"][::-1][:-1].tolist(), None]
