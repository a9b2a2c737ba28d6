"""A search that begins with the cut of a problem alike finds what one finds that knows of none, and looks at less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.planner import search as search_module
from workbench.engine.planner.alike import FARTHEST, Cut, cut_of_one_alike, note_cut
from workbench.engine.planner.problem import ConvProblem, FieldAxis
from workbench.engine.planner.search import Choice, Settings, search, searches_of
from workbench.engine.planner.variant import tables_of, variants_of
from workbench.engine.target import Target, target

SIZES = st.sampled_from([1, 3, 8, 16, 17, 40, 64, 100, 128])


def convolution(batch: int, chans: int, size: int = 14, kernel: int = 3, dtype: str = "half") -> ConvProblem:
    axis = FieldAxis(in_size=size, out_size=size, kernel=kernel, pad_low=kernel // 2)
    return ConvProblem(
        kind="convolution",
        direction="forward",
        in_type=dtype,
        partials_type=dtype,
        out_type=dtype,
        batch=(batch,),
        field=(axis, axis),
        in_chans=(chans,),
        out_chans=(chans,),
    )


@contextmanager
def knowing_of_none() -> Iterator[None]:
    """No problem is alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "cut_of_one_alike", lambda *asked: None)
        yield


def searched(problem: ConvProblem, machine: Target, settings: Settings) -> Choice:
    """What a search finds that has nothing left of another bound."""
    searches_of.cache_clear()
    return search(problem, machine, settings)[0]


@given(
    st.sampled_from(["matmul", "forward", "backward", "weight_update"]),
    st.lists(SIZES, min_size=3, max_size=3),
    st.sampled_from([(4, 5), (4, 8), (8, 4), (5, 4), (16, 17), (1, 2)]),
    st.sampled_from(["half", "float"]),
    st.integers(1, 64),
    st.sampled_from([0.6, 0.2, 0.05, 0.02, 0.01, 0.001]),
)
def test_a_cut_of_a_problem_alike_changes_no_choice(
    kind: str, sizes: list[int], batches: tuple[int, int], dtype: str, tiles: int, proportion: float
) -> None:
    before, after = batches
    made = convolution(before, sizes[0], dtype=dtype)
    if kind == "matmul":
        made = replace(made, kind="matmul", field=(), batch=(before, sizes[2]), out_chans=(sizes[1],))
    else:
        made = replace(made, direction=kind, out_chans=(sizes[1],))  # type: ignore[arg-type]
    other = replace(made, batch=(after, *made.batch[1:]))
    machine, settings = target("ipu2", tiles_per_ipu=tiles), Settings(proportion=proportion)
    with knowing_of_none():
        alone = searched(other, machine, settings)
    searched(made, machine, settings)
    assert cut_of_one_alike(other, (machine, replace(settings, proportion=0.0))) is not None
    assert searched(other, machine, settings) == alone


def test_fewer_cuts_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    floors = search_module.floor_cycles

    def counted(*asked: Any) -> Any:
        found = floors(*asked)
        looked.append(getattr(found, "size", 1))
        return found

    monkeypatch.setattr(search_module, "floor_cycles", counted)
    machine, settings = target("ipu2", tiles_per_ipu=256), Settings()
    with knowing_of_none():
        alone = searched(convolution(5, 128), machine, settings)
    without, looked[:] = sum(looked), []
    searched(convolution(4, 128), machine, settings)
    looked.clear()
    assert searched(convolution(5, 128), machine, settings) == alone
    assert 0 < sum(looked) < without / 2


def test_the_nearest_is_taken_and_none_that_is_far() -> None:
    variant = variants_of(convolution(4, 64), target("ipu2"))[0]

    def cut(rows: int) -> Cut:
        return Cut.of(variant, [0] * len(tables_of(variant)), 1, rows)

    rest = ("another target",)
    note_cut(convolution(4, 64), rest, cut(1))
    note_cut(convolution(6, 64), rest, cut(2))
    assert cut_of_one_alike(convolution(7, 64), rest) == cut(2)
    assert cut_of_one_alike(convolution(3, 64), rest) == cut(1)
    assert FARTHEST == 1.0
    assert cut_of_one_alike(convolution(12, 64), rest) == cut(2)  # twice as many
    assert cut_of_one_alike(convolution(13, 64), rest) is None
    assert cut_of_one_alike(convolution(4, 64, dtype="float"), rest) is None
    assert cut_of_one_alike(convolution(4, 64), ("a third",)) is None


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 128), st.integers(0, 10**6))
def test_no_role_has_more_parts_than_it_had(before: int, after: int, chans: int, pick: int) -> None:
    machine = target("ipu2", tiles_per_ipu=1472)
    for old, new in zip(
        variants_of(convolution(before, chans), machine), variants_of(convolution(after, chans), machine), strict=False
    ):
        tables = tables_of(old)
        rows = [pick % len(table) for table in tables]
        cut = Cut.of(old, rows, 1, 1)
        if cut.is_of(new):
            found = [int(table.product[row]) for table, row in zip(tables_of(new), cut.rows(new), strict=True)]
            held = [int(table.product[row]) for table, row in zip(tables, rows, strict=True)]
            assert all(one <= other for one, other in zip(found, held, strict=True))
    assert before != after or list(cut.rows(old)) == rows
