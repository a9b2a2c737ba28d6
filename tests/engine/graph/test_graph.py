"""The rules of a graph's encoding, and that a function known to keep them is not looked at again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.engine.graph import Function, Graph, Input, Node, Output, Value, verify_graph
from workbench.engine.graph.origin import Origin
from workbench.errors import VerificationError


def function(name: str, *, calls: tuple[str, ...] = (), broken: bool = False) -> Function:
    x, y = Value(0, (2,), "float32"), Value(1, (2,), "float32")
    operand = Value(7, (2,), "float32") if broken else x
    return Function(name, (x,), (y,), (Node("neg", (operand,), (y,), (), Origin(), calls),))


def graph_of(*functions: Function) -> Graph:
    held = {each.name: each for each in functions}
    return Graph(held, "main", (Input(name="x", role="input"),), (Output(name="y"),))


def test_a_value_is_defined_before_it_is_used() -> None:
    with pytest.raises(VerificationError, match="before it is defined"):
        verify_graph(graph_of(function("main", broken=True)))


def test_only_functions_that_changed_are_looked_at() -> None:
    main, bad = function("main"), function("body", broken=True)
    known = graph_of(main, bad)
    verify_graph(replace(known, name="same functions"), known=known)
    with pytest.raises(VerificationError, match="@body"):
        verify_graph(graph_of(main, function("body", broken=True)), known=known)


def test_a_function_that_is_gone_makes_all_be_looked_at() -> None:
    main, body = function("main", calls=("body",)), function("body")
    known = verify_graph(graph_of(main, body))
    with pytest.raises(VerificationError, match="calls unknown @body"):
        verify_graph(graph_of(main), known=known)
