"""Steps are alike by their vertices and per-tile bytes, not by what they are called or where they run."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.small_programs import Builder
from workbench.engine.program import OnTileExecute
from workbench.engine.program.alike import StepsAlike


def test_names_variables_and_ipus_make_no_difference() -> None:
    b = Builder(ipus=2)
    compute, moved, barrier = b.compute({0: 5, 1: 7}), b.exchange(b.exchanged([8], [0, 8], [1, 1])), b.sync()
    others = [
        replace(step, id=90 + number, name="other", ipu=1) for number, step in enumerate((compute, moved, barrier))
    ]
    first, second = StepsAlike([compute, moved, barrier]), StepsAlike(others)
    assert first == second
    assert hash(first) == hash(second)
    assert first.are_told


def test_other_vertices_bytes_and_orders_do() -> None:
    b = Builder()
    compute, moved = b.compute({0: 5}), b.exchange(b.exchanged([8], [0, 8], [1, 1]))
    assert isinstance(compute, OnTileExecute)
    assert StepsAlike([compute]) != StepsAlike([b.compute({0: 6})])
    assert StepsAlike([moved]) != StepsAlike([b.exchange(b.exchanged([12], [0, 12], [1, 1]))])
    assert StepsAlike([compute, moved]) != StepsAlike([moved, compute])
    assert StepsAlike([b.sync()]) != StepsAlike([b.sync("external")])


def test_a_copy_from_the_host_is_alike_to_itself_alone() -> None:
    b = Builder()
    first, second = b.stream(8, "to_device"), b.stream(8, "to_device")
    assert StepsAlike([first]) == StepsAlike([first])
    assert StepsAlike([first]) != StepsAlike([second])
    assert not StepsAlike([first]).are_told
