"""Comparison: what was added, removed and changed, and every sign flipped when the arguments are swapped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import InputError
from workbench.profiler.advice.compare import TABLES, compare
from workbench.profiler.profile import Profile

FITS, OVER, PIPELINE = handmade_profile(), handmade_profile(fits=False), handmade_pipeline()
SWAPPED = {"added": "removed", "removed": "added", "changed": "changed"}


@pytest.mark.parametrize("other", [OVER, PIPELINE])
def test_swapping_flips_every_sign(other: Profile) -> None:
    there, back = compare(FITS, other), compare(other, FITS)
    assert (there.headlines["change"] == -back.headlines["change"]).all()
    for name in TABLES:
        one, two = there.table(name), back.table(name)
        keys = [column for column in one.columns if column in ("name", "ipu", "layer")]
        one, two = one.set_index(keys).sort_index(), two.set_index(keys).sort_index()
        assert one.index.equals(two.index)
        for column in one.columns:
            if column.endswith(" change"):
                assert (one[column] == -two[column]).all()
        assert one["status"].map(SWAPPED).tolist() == two["status"].tolist()
    assert len(there.added) == len(back.removed)


def test_the_same_profile_has_no_changes() -> None:
    same = compare(FITS, handmade_profile())
    assert all(same.table(name).empty for name in TABLES)
    assert same.options.empty
    assert (same.headlines["change"] == 0).all()


def test_numbers_of_a_comparison() -> None:
    found = compare(FITS, OVER, PIPELINE)
    rows = found.headlines.set_index(["quantity", "profile"])["change"]
    # Tiles of 16,384 and 6,000 B.
    assert rows["margin_bytes", 1] == 6_000 - 16_384
    assert rows["total_cycles", 2] == PIPELINE.total_cycles - FITS.total_cycles
    assert found.options.to_numpy().tolist() == [
        ["target", 1, "ipu2, 16 tiles, bytes_per_tile=16384", "ipu2, 16 tiles, bytes_per_tile=6000"],
        ["auto_select_ipus", 2, 1, 2],
    ]
    kernel = found.removed.set_index("name").loc["dense_1/kernel"]
    assert (kernel["bytes before"], kernel["bytes after"], kernel["bytes change"]) == (32_000, 0, -32_000)
    assert found.table("variables")["profile"].unique().tolist() == [2]


def test_what_no_layer_takes_is_named_in_the_text_and_stays_nameless_in_the_table() -> None:
    found = compare(FITS, PIPELINE)
    (change,) = found.table("layers").set_index("layer").loc[[""], "cycles change"]
    (line,) = [line for line in found.to_text().splitlines() if line.startswith("no layer ")]
    assert str(change) in line.split()


def test_less_is_written_with_a_minus_sign_as_on_the_page() -> None:
    half = replace(FITS, meta={**FITS.meta, "total_cycles": FITS.total_cycles // 2})
    # 11,880 cycles less 5,940.
    assert ", \u22125.94 k cycles, " in compare(FITS, half).sentence
    assert ", +5.94 k cycles, " in compare(half, FITS).sentence


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match=r"^compare was given 1 profile\. Expected: two or more profiles\.$"):
        compare(FITS)
    with pytest.raises(InputError, match=r"^argument 1 of compare is of type int: 3\. Expected: a profile\."):
        compare(FITS, 3)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"^no table 'tiles' to compare\. Expected: one of: variables, operators, layers\.$"
    ):
        compare(FITS, OVER).table("tiles")


def test_a_sentence_says_what_becomes_of_fitting_and_tells_programs_of_one_name_apart() -> None:
    name = FITS.name
    assert OVER.name == name
    for profiles, ending in (
        ((FITS, FITS), "fits, as before"),
        ((FITS, OVER), "does not fit, which it did before"),
        ((OVER, FITS), "fits, which it did not before"),
        ((OVER, OVER), "does not fit, as before"),
    ):
        sentence = compare(*profiles).sentence
        assert sentence.startswith(f"1: {name} against 0: {name}, modelled: worst tile ")
        assert sentence.endswith(f", {ending}")


def test_labels_are_what_profiles_are_called() -> None:
    found = compare(FITS, OVER, labels=["as it was", "with <b> halves"])
    assert found.sentence.startswith("with <b> halves against as it was, modelled: worst tile ")
    assert set(found.headlines["name"]) == {"with <b> halves"}
    assert found.data["profiles"] == ["as it was", "with <b> halves"]
    assert (found.numbered[0], compare(FITS, OVER).numbered[0]) == ("as it was", f"0: {FITS.name}")
    assert "filled: with &lt;b&gt; halves, after; line: as it was, before" in found.svg()
    assert [line.name for line in found.figure().data] == ["as it was", "with <b> halves"]


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", " "], "ab", ["a", 2], 7, {"a": 1, "b": 2}])
def test_labels_are_one_text_for_each(labels: object) -> None:
    with pytest.raises(InputError, match="labels is "):
        compare(FITS, OVER, labels=labels)  # type: ignore[arg-type]


def test_differences_within_the_typical_error_are_said_to_be() -> None:
    """Cycles are typically 15 % off in these, memory 5 %: 10 % fewer cycles may be none, 10 % less memory not."""
    verdict = {**FITS.meta["verdict"], "max_tile_bytes": FITS.max_tile_bytes * 9 // 10}
    less = replace(FITS, meta={**FITS.meta, "total_cycles": FITS.total_cycles * 9 // 10, "verdict": verdict})
    found = compare(FITS, less)
    told = re.search(r"worst tile (.*?), (.*?), fits", found.sentence)
    assert told is not None
    assert "within" not in told[1]
    assert told[2] == "\u22121.19 k cycles (within the typical error of 15.0 %)"
    assert found.to_text().endswith("\n".join(found.errors))
    assert found.errors[1].startswith("Error  cycles of a whole program: typical error 15.0 % (")
