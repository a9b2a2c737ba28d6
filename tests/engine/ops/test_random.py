"""Random numbers on four tiles, worked out by hand."""

from __future__ import annotations

from tests.engine.ops.lowered import F32, compiled, single
from workbench.engine.graph import GraphBuilder
from workbench.engine.ops.random import THREEFRY

KEY = ((), "key")


def test_bits_are_drawn_on_every_tile_that_holds_them() -> None:
    """128 words over four tiles; the key, 8 B on tile 1, is broadcast, seeds six generators a tile, which draw 32."""
    case = single("random_bits", [KEY], [((128,), "uint32")], bit_width=32, shape=(128,))
    assert case.received() == [8, 0, 8, 8]
    seed, draw = case.computes[-2:]
    assert case.trace.steps[seed.id].cycles == 14 + 27 * 6 + 80
    assert case.trace.steps[draw.id].cycles == 4 + 22 * 6 + 32 // 2 + 80
    arguments, tiles, _ = case.vertex("poprand::Uniform")
    assert arguments == {"type": "int", "full_range": True, "n": 32}
    assert tiles == [0, 1, 2, 3]


def test_bits_of_eight_are_drawn_four_to_a_word() -> None:
    case = single("random_bits", [KEY], [((512,), "uint8")], bit_width=8, shape=(512,))
    arguments, _, _ = case.vertex("poprand::Uniform")
    assert arguments["n"] == 128 // 4


def test_a_key_is_the_memory_of_its_words() -> None:
    builder = GraphBuilder("main")
    words = builder.param((2,), "uint32")
    (key,) = builder.node("random_wrap", (words,), (KEY,))
    (back,) = builder.node("random_unwrap", (key,), (((2,), "uint32"),))
    case = compiled(builder, [key, back])
    assert case.vertices() == []
    assert len(case.lowered.program.variables) == 1
    assert case.streamed() == [8, 8]


def test_keys_are_split_by_the_operations_of_threefry() -> None:
    """20 rounds of five operations and six key schedules of three."""
    assert len(THREEFRY) == 20 * 5 + 6 * 3
    case = single("random_split", [KEY], [((16,), "key")], shape=(16,))
    arguments, tiles, _ = case.vertex("popops::MapExpression")
    assert (arguments["n"], len(tiles)) == (16, 1)
    assert arguments["operations"] == THREEFRY


def test_a_generator_keeps_its_state() -> None:
    case = single("rng_bit_generator", [((4,), "uint32")], [((4,), "uint32"), ((128,), "uint32")], shape=(128,))
    assert case.streamed() == [16, 512]
    assert sum(one.shape == (4,) for one in case.lowered.program.variables) == 1


def test_uniform_numbers_count_three_operations_each() -> None:
    case = single("rng_uniform", [((), F32), ((), F32)], [((128,), F32)], shape=(128,))
    assert case.lowered.operators[0].flops == 3 * 128
