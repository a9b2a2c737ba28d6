"""The table of primitives: what kinds hold, what the table does not know, and what families make of it."""

from __future__ import annotations

import pytest

from workbench.engine import ops
from workbench.engine.graph import Node
from workbench.engine.graph.primitives import PRIMITIVES, Kind, kind, names, primitive
from workbench.engine.ops import pointwise


def test_what_the_table_does_not_know_is_of_no_kind_and_has_no_trait() -> None:
    assert kind(Node("hypot_of_mine", (), ())) is Kind.OTHER
    assert not primitive("hypot_of_mine").exact


def test_names_have_all_the_traits() -> None:
    assert names(Kind.REDUCTION, exact=True) == {"reduce_max", "reduce_min"}
    assert names(Kind.REDUCTION, Kind.PRODUCT, rounds_once=True) == {
        "reduce_sum",
        "dot_general",
        "conv_general_dilated",
    }
    assert names(reshapes=True) == {"reshape", "squeeze", "expand_dims"}


def test_every_pointwise_primitive_has_its_operation_of_poplibs() -> None:
    tables = (pointwise.UNARY, pointwise.BINARY, pointwise.COMPARE, pointwise.OTHER, pointwise.COMPOSED)
    assert {name for table in tables for name in table} == names(Kind.POINTWISE)


@pytest.mark.parametrize("name", sorted(names(Kind.POINTWISE, Kind.REDUCTION, Kind.PRODUCT, Kind.FREE)))
def test_a_family_stands_behind_every_primitive_of_these_kinds(name: str) -> None:
    assert any(name in family.ops for _, family in ops.load().items())


def test_rounding_and_exactness_exclude_each_other() -> None:
    assert not [row.name for row in PRIMITIVES.values() if row.exact and (row.rounds_once or row.has_pole)]
