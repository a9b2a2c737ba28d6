"""Stages of models whose layers share variables: where cuts may be, and which stage lies on the first IPU too."""

from __future__ import annotations

import functools
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.engine.frontends.staging.chain import LayerChain, chain_of
from workbench.engine.frontends.staging.stages import evenly
from workbench.splits.by_hand import ByHand
from workbench.splits.costs import StageCosts
from workbench.splits.layout import Layout
from workbench.splits.search import best_cuts
from workbench.splits.split import Split, busy_cycles, stage_bytes


def chain(layers: int, *shared: tuple[int, int]) -> LayerChain:
    return LayerChain(
        names=tuple(f"l{place}" for place in range(layers)), crossing_bytes=(0,) * layers, shared=tuple(shared)
    )


def costs(layers: int, cycles: list[float], stages: int) -> StageCosts:
    zero = np.zeros(layers)
    return StageCosts(
        names=chain(layers).names,
        forward=np.array(cycles),
        backward=zero,
        update=zero,
        copy=zero,
        fixed=np.ones(layers),
        stash=zero,
        work=zero,
        inputs=zero,
        depth=(1,) * stages,
    )


def test_a_chain_that_shares_nothing_is_cut_anywhere() -> None:
    plain = Layout.of(chain(9), 3)
    assert (plain.devices, plain.stages, plain.whole((3, 6))) == ((), 3, (3, 6))
    assert [sum(cut <= place for cut in plain.even()) for place in range(9)] == evenly(9, 3)


def test_both_ends_that_share_a_variable_are_on_the_first_ipu() -> None:
    tied = Layout.of(chain(10, (0, 8)), 3)
    assert tied.devices == (0, 1, 2, 0)
    assert tied.stages == 4
    assert tied.even() == (3, 6)  # of the eight layers before the tail
    assert tied.whole((3, 6)) == (3, 6, 8)
    assert tied.searched((3, 6, 8)) == (3, 6)
    cycles, needs = tied.tables(costs(10, [1.0] * 10, 4))
    assert cycles[0][0, 2] == 2 + 2  # the tail's two layers besides
    assert cycles[1][2, 5] == 3
    assert needs[0][0, 2] == 4
    assert tied.by_stage((7, 8, 9)) == (7, 8, 9, 7)


def test_neighbours_that_share_a_variable_are_not_parted() -> None:
    glued = Layout.of(chain(10, (4, 5)), 2)
    assert glued.devices == ()
    assert glued.even() in ((4,), (6,))
    assert glued.near((4,)) == [(3,)]
    assert Layout.of(chain(4, (0, 3), (1, 3)), 2).head == 1  # the first stage has both that share with the last


def test_an_own_mapping_and_what_cannot_be_laid_out_stay_as_they_are() -> None:
    assert Layout.of(chain(10, (0, 8)), 3, mapped=True).devices == ()
    assert Layout.of(chain(4, (0, 1), (1, 2), (2, 3)), 4).devices == ()


@given(st.data())
def test_equal_to_trying_every_cut(data: st.DataObject) -> None:
    layers, ipus = data.draw(st.integers(5, 12)), data.draw(st.integers(2, 3))
    first = data.draw(st.integers(0, 1))
    last = data.draw(st.integers(max(first + layers // ipus, ipus + first), layers - 1))
    tied = Layout.of(chain(layers, (first, last)), ipus)
    each = data.draw(st.lists(st.integers(1, 20).map(float), min_size=layers, max_size=layers))
    known = costs(layers, each, ipus + 1)

    def slowest(cuts: tuple[int, ...]) -> float:
        bounds = (0, *cuts, last)
        spent = [sum(each[a:b]) for a, b in pairwise(bounds)]
        return max(spent[0] + sum(each[last:]), *spent[1:])

    found = best_cuts(*tied.tables(known), np.inf)
    assert found[0] > first
    assert slowest(found) == min(slowest(cuts) for cuts in combinations(range(first + 1, last), ipus - 1))


def tied(between: int = 5) -> Any:
    """A chain, dear at its beginning, whose last product is by the first layer's table."""
    import keras

    class Scores(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self, table: Any, **options: Any) -> None:
            super().__init__(**options)
            self.table = table

        def call(self, x: Any) -> Any:
            return keras.ops.matmul(x, keras.ops.transpose(self.table.embeddings))

    words = keras.Input((4,), dtype="int32")
    table = keras.layers.Embedding(32, 16, name="table")
    x = table(words)
    for place in range(between):
        x = keras.layers.Dense(16 if place else 256, "relu", name=f"d{place}")(x)
    return keras.Model(words, Scores(table, name="scores")(x))


@functools.cache
def found() -> Split:
    target = wb.target("ipu2", tiles_per_ipu=4)
    return wb.autosplit(tied, 2, batch_size=4, mode="training", target=target, compiles=3)


def test_the_chain_knows_who_shares() -> None:
    assert chain_of(tied).shared == ((0, 6),)
    assert chain_of("gpt2").shared == ((0, 15),)
    assert chain_of("bert-base").shared == ()


def test_a_tied_table_is_split_and_compiled() -> None:
    split = found()
    assert split.device_mapping == [0, 1, 0]
    assert split.table["ipu"].tolist() == [0, 1, 0]
    assert split.stages[-1] == 2
    assert split.profile.ipus == 2
    assert len(split.attempts) > 1
    assert max(busy_cycles(split.profile)) <= max(busy_cycles(split.attempts[0].profile))
    assert "device_mapping=[0, 1, 0]" in split.code


def test_what_a_tied_split_is_expected_to_take_is_near() -> None:
    """Of an IPU with two stages both rows say what the IPU takes."""
    for attempt in found().attempts[1:]:
        assert attempt.expected_cycles == pytest.approx(busy_cycles(attempt.profile), rel=0.15)
        assert attempt.expected_bytes == pytest.approx(stage_bytes(attempt.profile), rel=0.3)


def test_the_split_and_its_arguments_compile_to_the_same_program() -> None:
    split = found()
    told: dict[str, Any] = {"batch_size": 4, "mode": "training", "target": wb.target("ipu2", tiles_per_ipu=4)}
    for arguments in ({"stages": split}, split.arguments):
        again = wb.compile(tied, gradient_accumulation_steps=24, **told, **arguments)
        assert again.profile.total_cycles == split.profile.total_cycles
    assert ByHand.of(again) is None  # one of its IPUs has two stages


def test_more_ipus_than_layers_beside_a_tied_table_are_told_how_many_do() -> None:
    """The table and what scores by it are on the first IPU, and each of the layers between them is on one at most."""
    target = wb.target("ipu2", tiles_per_ipu=4)
    asked: dict[str, Any] = {"batch_size": 4, "mode": "training", "target": target, "compiles": 1}
    with pytest.raises(wb.InputError) as raised:
        wb.autosplit(functools.partial(tied, 2), 4, **asked)
    assert str(raised.value) == (
        "no split over 4 IPUs compiles: layers that share a variable have to be on one, 'table' and 'scores', which "
        "leaves too few places to cut. Expected: at most 3 IPUs. To mend it: split it over 3."
    )
    assert wb.autosplit(functools.partial(tied, 2), 3, **asked).device_mapping == [0, 1, 2, 0]
    with pytest.raises(wb.InputError, match=r"at most 1 IPU\. To mend it: compile it without stages for one IPU\.$"):
        wb.autosplit(functools.partial(tied, 0), 2, **asked)
