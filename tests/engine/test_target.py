"""What-if machines: every field takes what it can be, and names what it cannot."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.engine.target import MOST_TILES, MemoryMap, Target, target, targets
from workbench.errors import InputError

MK2 = target("ipu2")
FIELDS = {each.name: each for each in dataclasses.fields(Target)}
NUMBERS = [name for name, each in FIELDS.items() if each.type in ("int", "float")]
OTHERS = sorted({*FIELDS} - {*NUMBERS, "architecture"})  # which is no change of a machine


@pytest.mark.parametrize("name", NUMBERS)
@given(value=st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=3), st.none()))
def test_a_number_is_in_its_range_or_refused(name: str, value: Any) -> None:
    least = FIELDS[name].metadata.get("least", 1 if FIELDS[name].type == "int" else 5e-324)
    kinds = int if FIELDS[name].type == "int" else (int, float)
    most = FIELDS[name].metadata.get("most", 1 << 40 if FIELDS[name].type == "int" else 1e18)
    if isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value) and least <= value <= most:
        found = getattr(MK2.replace(**{name: value}), name)
        assert found == (value if FIELDS[name].type == "int" else float(value))
        assert type(found).__name__ == FIELDS[name].type
        return
    with pytest.raises(InputError) as caught:
        MK2.replace(**{name: value})
    assert caught.value.what == f"{name} is {value!r}"


@pytest.mark.parametrize("name", NUMBERS)
def test_its_own_value_is_allowed_and_numpys_too(name: str) -> None:
    for machine in targets.values():
        own = getattr(machine, name)
        kind = np.int64 if isinstance(own, int) else np.float64
        assert getattr(machine.replace(**{name: kind(own)}), name) == own


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("value", [3, None, "", [], {}, (1,)])
def test_texts_and_records_are_of_their_kind(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} is "):
        MK2.replace(**{name: value})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"tile_count": 3}, "a target has no field 'tile_count' to change. Expected: one of: bytes_per_tile, name,"),
        ({"architecture": "ipu1"}, "a target has no field 'architecture' to change."),
        ({"bytes_per_tile": 0}, "bytes_per_tile is 0. Expected: a whole number of at least 2 and at most 4294967296."),
        ({"bytes_per_tile": "1 MiB"}, "bytes_per_tile is '1 MiB'."),
        ({"bytes_per_tile": 1e6}, "bytes_per_tile is 1000000.0."),
        ({"bytes_per_tile": 1024, "memory": MK2.memory}, "bytes_per_tile and memory are both given."),
        ({"memory": MemoryMap(non_interleaved_bytes=-1, interleaved_bytes=4)}, "memory.non_interleaved_bytes is -1."),
        ({"memory": MemoryMap(non_interleaved_bytes=0, interleaved_bytes=0)}, "memory has no bytes."),
        ({"tiles_per_ipu": MOST_TILES + 1}, "tiles_per_ipu is 65537. Expected: a whole number of at least 1 and"),
        ({"link_efficiency": 1.5}, "link_efficiency is 1.5. Expected: a number from more than 0 to 1."),
        ({"clock_hz": 0}, "clock_hz is 0. Expected: a number from more than 0 to 1e+18."),
    ],
)
def test_errors_of_a_change(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        MK2.replace(**changes)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("tiles", [-1, 1473, 1.5, "4", True, [4]])
def test_errors_of_a_number_of_tiles(tiles: Any) -> None:
    with pytest.raises(InputError, match=r"^tiles_per_ipu of ipu2 is .* at least 0 and at most 1472\.$"):
        wb.target("ipu2", tiles_per_ipu=tiles)


@pytest.mark.parametrize("name", ["ipu3", 3, None, ["ipu2"]])
def test_errors_of_a_name(name: Any) -> None:
    with pytest.raises(InputError, match=r"^unknown target .* one of: ipu1, ipu2, bow, ipu21\."):
        wb.target(name)


def test_no_number_of_tiles_is_all_of_them() -> None:
    assert wb.target("ipu2") == wb.target("ipu2", tiles_per_ipu=0) == wb.target("ipu2", tiles_per_ipu=np.int64(1472))
