"""Which results are the same on every replica, followed through a traced program; the others are marked not to round.

The rules are those of the driver's analysis: what a feed gives or a replica's number says differs, what is reduced or
gathered over all replicas is the same, and everything else is the same where all it reads is; a loop or a branch that
replicas take differently makes nothing alike (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/
tools/replica_identical_dataflow_analysis.cc, passes/add_stochastic_rounding_options.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend
from jax.extend.core import ClosedJaxpr, Literal

from workbench.engine.frontends.describe.name_stack import attribute_scope, attributes_of
from workbench.engine.frontends.numbers.numeric_sites import NEVER, ROUNDING
from workbench.engine.frontends.trace.body import Converter, open_program
from workbench.engine.frontends.trace.flatten import INLINED
from workbench.engine.frontends.trace.jaxpr import new_converter
from workbench.engine.graph.primitives import primitive

Flags = list[bool]  # of each value: whether it differs between replicas


def only_identical_rounds(compute: Callable[..., Any], axes: Any) -> Callable[..., Any]:
    """`compute` of one replica, its results that differ marked; `axes` are None for what all replicas share."""
    differs = [axis is not None for axis in jax.tree_util.tree_leaves(axes, is_leaf=lambda axis: axis is None)]

    def marked(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        structure: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            results, kept = jax.tree_util.tree_flatten(compute(*jax.tree_util.tree_unflatten(tree, values)))
            structure.append(kept)
            return list(results)

        closed = jax.make_jaxpr(flat)(*leaves)
        made, _ = _Marking(new_converter(None)).program(closed, differs)
        results = jax.extend.core.jaxpr_as_fun(made)(*leaves)
        return jax.tree_util.tree_unflatten(structure[0], results)

    return marked


class _Marking:
    """Follows flags through programs and rewrites their equations."""

    def __init__(self, converter: Converter) -> None:
        self.converter = converter

    def program(self, program: Any, given: Sequence[bool]) -> tuple[Any, Flags]:
        """A program, closed or not, with what differs in it marked; and which of its results differ."""
        jaxpr, _ = open_program(program)
        env: dict[Any, bool] = dict.fromkeys(jaxpr.constvars, False)
        env.update(zip(jaxpr.invars, given, strict=True))

        def read(atom: Any) -> bool:
            return not isinstance(atom, Literal) and env[atom]

        equations = []
        for eqn in jaxpr.eqns:
            made, results = self.equation(eqn, [read(atom) for atom in eqn.invars])
            equations.append(made)
            env.update(zip(eqn.outvars, results, strict=True))
        made = jaxpr.replace(eqns=equations)
        differs = [read(atom) for atom in jaxpr.outvars]
        return (program.replace(jaxpr=made) if isinstance(program, ClosedJaxpr) else made), differs

    def equation(self, eqn: Any, given: Flags) -> tuple[Any, Flags]:
        """An equation, and which of its results differ; one that says itself how it rounds stays as it is."""
        name, count = eqn.primitive.name, len(eqn.outvars)
        if attributes_of(self.converter.read_stack(eqn)).get(ROUNDING):
            return eqn, self.flags(eqn, given)
        body = {"scan": self.scan, "while": self.loop, "cond": self.branch}.get(name)
        if body is not None:
            return body(eqn, given)
        if name in INLINED and INLINED[name] in eqn.params:
            made, results = self.program(eqn.params[INLINED[name]], given)
            return eqn.replace(params={**eqn.params, INLINED[name]: made}), results
        differs = any(self.flags(eqn, given))
        # A reduction over replicas rounds on none: its seeds would part ways.
        return (_unrounded(eqn) if differs or primitive(name).alike else eqn), [differs] * count

    def flags(self, eqn: Any, given: Flags) -> Flags:
        """Which results of an equation differ, by its operands and what it does."""
        name = eqn.primitive.name
        if primitive(name).alike and eqn.params.get("axis_index_groups") is None:
            return [False] * len(eqn.outvars)
        return [primitive(name).differs or bool(eqn.effects) or any(given)] * len(eqn.outvars)

    def scan(self, eqn: Any, given: Flags) -> tuple[Any, Flags]:
        """A counted loop: what it carries differs if it does after any turn."""
        first, carried = eqn.params["num_consts"], eqn.params["num_carry"]
        carry = given[first : first + carried]
        while True:
            made, results = self.program(eqn.params["jaxpr"], [*given[:first], *carry, *given[first + carried :]])
            if results[:carried] == carry:
                return eqn.replace(params={**eqn.params, "jaxpr": made}), results
            carry = [before or after for before, after in zip(carry, results[:carried], strict=True)]

    def loop(self, eqn: Any, given: Flags) -> tuple[Any, Flags]:
        """A loop until a condition fails: where replicas turn a different number of times, nothing is alike."""
        params = eqn.params
        split, first = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        carry = given[first:]
        while True:
            test, (again,) = self.program(params["cond_jaxpr"], [*given[:split], *carry])
            inside = [True] * (first - split) if again else given[split:first]
            made, results = self.program(params["body_jaxpr"], [*inside, *([True] * len(carry) if again else carry)])
            after = [again or before or one for before, one in zip(carry, results, strict=True)]
            if after == carry:
                return eqn.replace(params={**params, "cond_jaxpr": test, "body_jaxpr": made}), after
            carry = after

    def branch(self, eqn: Any, given: Flags) -> tuple[Any, Flags]:
        """One of several: alike where replicas take the same and it is alike in all."""
        apart, *operands = given
        made = [self.program(each, [apart or flag for flag in operands]) for each in eqn.params["branches"]]
        branches = tuple(program for program, _ in made)
        flags = [apart or any(each) for each in zip(*(results for _, results in made), strict=True)]
        return eqn.replace(params={**eqn.params, "branches": branches}), flags


def _unrounded(eqn: Any) -> Any:
    source = eqn.source_info
    stack = source.name_stack.extend(attribute_scope(ROUNDING, NEVER))
    return eqn.replace(source_info=source.replace(name_stack=stack))


__all__ = ["only_identical_rounds"]
