"""What every operator family must do: compile for every target, place its results, conserve bytes, count operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.ops.lowered import F32, Case, body, exposed, single
from workbench.engine import ops
from workbench.engine.program import DoExchange
from workbench.engine.target import targets

I32, U32, BOOL = "int32", "uint32", "bool"
WINDOW: dict[str, Any] = {
    "window_dimensions": (1, 2, 2, 1),
    "window_strides": (1, 2, 2, 1),
    "padding": ((0, 0),) * 4,
}
IMAGE, POOLED = ((2, 6, 6, 4), F32), ((2, 3, 3, 4), F32)
ROWS: dict[str, Any] = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "slice_sizes": (1, 6),
    "operand_batching_dims": (),
    "start_indices_batching_dims": (),
}
UPDATES: dict[str, Any] = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "operand_batching_dims": (),
    "scatter_indices_batching_dims": (),
}
TABLE, INDICES, TAKEN = ((20, 6), F32), ((5, 1), I32), ((5, 6), F32)
VECTOR = ((30,), F32)
MATRIX = ((12, 10), F32)

Sample = Callable[..., Case]


def sample(op: str, operands: Any, results: Any, **attributes: Any) -> Sample:
    return lambda **where: single(op, operands, results, **where, **attributes)


def _loop(op: str, **attributes: Any) -> Sample:
    adds = body("adds", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), results=(2,))
    return sample(op, [VECTOR, VECTOR], [VECTOR], bodies=(adds,), times=3, **attributes)


def _scan() -> Sample:
    step = body("step", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), ("neg", (2,), VECTOR), results=(2, 3))
    types = [VECTOR, ((7, 30), F32)]
    return sample("scan", types, types, bodies=(step,), times=7, num_carry=1, num_consts=0, reverse=False)


def _while() -> Sample:
    test = body("test", [VECTOR], ("reduce_sum", (0,), ((), F32), {"axes": (0,)}), results=(1,))
    step = body("double", [VECTOR], ("add", (0, 0), VECTOR), results=(1,))
    return sample("while", [VECTOR], [VECTOR], bodies=(test, step), cond_consts=0, body_consts=0)


def _cond() -> Sample:
    arms = [body(f"arm{op}", [VECTOR], (op, (0,), VECTOR), results=(1,)) for op in ("neg", "exp")]
    return sample("cond", [((), I32), VECTOR], [VECTOR], bodies=tuple(arms))


def _substitution() -> Sample:
    step = body("step", [((2, 2), F32), ((2, 3), F32)], ("div", (1, 1), ((2, 3), F32)), results=(2,))
    return sample("substitution", [((2, 2), F32), ((2, 3), F32)], [((2, 3), F32)], bodies=(step,))


def _region() -> Sample:
    """An inline body shares the caller's values, so it is written with them."""
    from tests.engine.ops.lowered import compiled
    from workbench.engine.graph import Function, GraphBuilder

    def run(**where: Any) -> Case:
        builder = GraphBuilder("main")
        source = builder.param(*MATRIX)
        total = builder.node("reduce_sum", (source,), (((12,), F32),), axes=(1,))
        inner = builder.nodes.pop()
        builder.node("region", (source,), (), calls=("inside",), kind="norm")
        region = builder.nodes.pop()
        builder.nodes.append(type(region)("region", (source,), total, region.attrs, region.origin, ("inside",)))
        return compiled(builder, total, bodies=(Function("inside", (source,), total, (inner,)),), **where)

    return run


def _loaded(last: str = "") -> Sample:
    """A variable of streaming memory is read; its next value goes back there."""
    from tests.engine.ops.lowered import compiled
    from workbench.engine.graph import GraphBuilder

    def run(**where: Any) -> Case:
        builder = GraphBuilder("main")
        held = builder.param(*MATRIX)
        described = {"key": "here", "name": "held", "remote": True, "shards": 1}
        builder.node("remote_load", (held,), (), **described)
        new = builder.node("neg", (held,), (MATRIX,))
        read = builder.node("exp", (held,), (MATRIX,))
        if last:
            builder.node(last, new, (), **described)
        return compiled(builder, read, roles=["optimizer"], **where)

    return run


SAMPLES: dict[str, Sample] = {
    "all_gather": sample("all_gather", [MATRIX], [((1, 12, 10), F32)]),
    "all_reduce": sample("psum", [MATRIX], [MATRIX]),
    "all_to_all": sample("all_to_all", [MATRIX], [MATRIX]),
    "any_reduce": sample("reduce_xor", [((12, 10), I32)], [((12,), I32)], axes=(1,)),
    "arg_reduce": sample("argmax", [MATRIX], [((12,), I32)], axes=(1,), index_dtype=I32),
    "broadcast": sample("broadcast_in_dim", [((10,), F32)], [MATRIX], broadcast_dimensions=(1,), shape=(12, 10)),
    "call": _loop("call"),
    "cholesky": sample("cholesky", [((3, 4, 4), F32)], [((3, 4, 4), F32)]),
    "cond": _cond(),
    "constants": sample("constant", [], [((), F32)], value=1.0),
    "convolution": sample(
        "conv_general_dilated",
        [((1, 6, 6, 4), F32), ((3, 3, 4, 8), F32)],
        [((1, 4, 4, 8), F32)],
        lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2), window_strides=(1, 1),
        padding=((0, 0), (0, 0)), lhs_dilation=(1, 1), rhs_dilation=(1, 1), feature_group_count=1,
        batch_group_count=1,
    ),
    "dynamic_slice": sample("dynamic_slice", [TABLE, ((), I32), ((), I32)], [((3, 6), F32)], slice_sizes=(3, 6)),
    "dynamic_update": sample("dynamic_update_slice", [TABLE, ((3, 6), F32), ((), I32), ((), I32)], [TABLE]),
    "elementwise": sample("add", [MATRIX, ((1, 10), F32)], [MATRIX]),
    "gather": sample("gather", [TABLE, INDICES], [TAKEN], **ROWS),
    "generic": sample("an_unknown_primitive", [MATRIX, VECTOR], [MATRIX, VECTOR]),
    "host": sample("io_callback", [], [MATRIX]),  # what goes to the host is counted in test_host
    "inter_ipu_copy": sample("inter_ipu_copy", [MATRIX], [MATRIX], source=0, to=0),
    "iota": sample("iota", [], [((30,), I32)], dimension=0, shape=(30,), dtype=I32),
    "joins": sample("concatenate", [MATRIX, MATRIX], [((24, 10), F32)], dimension=0),
    "matmul": sample(
        "dot_general", [((6, 10), F32), ((10, 4), F32)], [((6, 4), F32)],
        lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=(),
    ),
    "pad": sample("pad", [MATRIX, ((), F32)], [((15, 10), F32)], low=(1, 0), high=(2, 0), interior=(0, 0)),
    "pooling": sample("reduce_window_max", [IMAGE], [POOLED], **WINDOW),
    "random_bits": sample("random_bits", [((), "key")], [((30,), U32)], bit_width=32, shape=(30,)),
    "random_hash": sample("random_split", [((), "key")], [((3,), "key")], shape=(3,)),
    "random_keys": sample("random_wrap", [((2,), U32)], [((), "key")]),
    "reduce": sample("reduce_sum", [MATRIX], [((10,), F32)], axes=(0,)),
    "reduce_scatter": sample("reduce_scatter", [MATRIX], [MATRIX]),
    "regions": _region(),
    "remote_load": _loaded(),
    "remote_store": _loaded("remote_store"),
    "replica_number": sample("axis_index", [], [((), I32)]),
    "running": sample("cumsum", [((3, 300), F32)], [((3, 300), F32)], axis=1, reverse=False),
    "scan": _scan(),
    "scatter": sample("scatter-add", [TABLE, INDICES, TAKEN], [TABLE], **UPDATES),
    "select_and_gather": sample("select_and_gather_add", [IMAGE, IMAGE], [POOLED], select_prim="ge", **WINDOW),
    "select_and_scatter": sample("select_and_scatter_add", [POOLED, IMAGE], [IMAGE], select_prim="ge", **WINDOW),
    "sort": sample("sort", [MATRIX, ((12, 10), I32)], [MATRIX, ((12, 10), I32)], dimension=1, num_keys=1),
    "substitution": _substitution(),
    "top_k": sample("top_k", [MATRIX], [((12, 3), F32), ((12, 3), I32)], k=3),
    "triangular_inverse": sample("triangular_inverse", [((3, 4, 4), F32)], [((3, 4, 4), F32)]),
    "triangular_solve": sample(
        "triangular_solve", [((3, 4, 4), F32), ((3, 4, 2), F32)], [((3, 4, 2), F32)],
        left_side=True, lower=True, transpose_a=False,
    ),
    "views": sample("transpose", [MATRIX], [((10, 12), F32)], permutation=(1, 0)),
    "while": _while(),
}  # fmt: skip


def test_every_family_has_a_sample() -> None:
    assert sorted(SAMPLES) == sorted(ops.load())


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
