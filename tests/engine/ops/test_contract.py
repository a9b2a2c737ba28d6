"""What every operator family must do: compile for every target, place its results, conserve bytes, count operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engine.ops.lowered import exposed
from tests.engine.ops.sampled import Sample
from tests.engine.samples import collected, place
from workbench.engine import ops
from workbench.engine.program import DoExchange
from workbench.engine.target import targets

FAMILIES = ops.load()
SAMPLES: dict[str, Sample] = collected("ops")


def test_every_family_has_a_sample() -> None:
    missing = [name for name in FAMILIES if name not in SAMPLES]
    told = [f"give {name!r} a sample in {place('ops', type(FAMILIES.get(name)))}" for name in missing]
    assert told == []
    assert sorted(SAMPLES) == sorted(FAMILIES)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_sample_is_lowered_by_its_family(name: str) -> None:
    graph = SAMPLES[name]().graph
    assert name in {ops.family_of(node).name for node in graph.body.nodes}


@pytest.mark.parametrize("kind", sorted(targets))
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_compiles_for_every_target(name: str, kind: str) -> None:
    for tiles in (1, 3, 8):
        case = SAMPLES[name](kind=kind, tiles=tiles)
        results = [value.size_bytes for value in case.graph.body.results]
        assert case.streamed() == results
        assert exposed(case) == []
        assert case.trace.total_cycles > 0


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_what_is_received_was_sent_or_multicast(name: str) -> None:
    for step in SAMPLES[name](tiles=8).lowered.program.steps:
        if isinstance(step, DoExchange):
            exchange = step.exchange
            assert exchange.multicast_extra_bytes >= 0
            assert int(exchange.sent_bytes.sum()) > 0
            senders = int((exchange.sent_bytes > 0).sum())
            assert exchange.multicast_extra_bytes <= (8 - 1) * int(exchange.sent_bytes.sum()), senders


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_operations_are_counted_and_the_model_is_named(name: str) -> None:
    case = SAMPLES[name]()
    for row in case.lowered.operators:
        assert isinstance(row.flops, int)
        assert row.flops >= 0
        assert row.modelled is (name != "generic")
    assert bool(case.lowered.unmodelled) is (name == "generic")


def test_operator_table(golden: Callable[[str, str], None]) -> None:
    families = ops.load()
    rows = sorted(
        f"{op:24} {family.name:20} {'modelled' if family.modelled else 'generic rule'}"
        for family in families.values()
        for op in family.ops
    )
    golden("operators.txt", "\n".join(rows))
