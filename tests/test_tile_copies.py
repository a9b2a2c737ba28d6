"""Copies by hand: columns arrive together and are laid out; copies that touch nothing of each other join."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.program import DoExchange, OnTileExecute, TileProgram
from workbench.tiles import Graph, Tensor


def exchanges(program: TileProgram) -> list[DoExchange]:
    return [step for step in program.steps if isinstance(step, DoExchange)]


def copied(program: TileProgram) -> list[tuple[str, dict[str, object], list[int]]]:
    sets = [step.compute_set for step in program.steps if isinstance(step, OnTileExecute)]
    return [(group.vertex, dict(group.arguments), group.tiles.tiles.tolist()) for each in sets for group in each.groups]


def matrices(graph: Graph, names: str = "xy", side: int = 12) -> list[Tensor]:
    """Square matrices of floats, each on a tile of its own."""
    area = side * side
    return [graph.variable(name, (side, side)).map({tile: slice(0, area)}) for tile, name in enumerate(names)]


def test_a_column_is_sent_by_element_and_laid_out_by_a_vertex() -> None:
    g = Graph("ipu2", tiles=4)
    x, y = matrices(g)
    program = g.sequence(g.host_copy(x), g.copy(x[:, 3], y[:, 5])).compile_program()
    (exchange,) = exchanges(program)
    assert exchange.exchange.received_bytes.tolist() == [0, 48, 0, 0]
    # 12 pieces of 4 B at the sender, each an event at both ends
    assert exchange.exchange.fragments.tolist() == [12, 12, 0, 0]
    assert copied(program) == [("poplar::DstStridedMemcpy", {"bytes": 48, "pieces": 12}, [1])]
    staged = next(variable for variable in program.variables if variable.name.endswith("/staged"))
    assert staged.bytes_per_tile.tolist() == [0, 48, 0, 0]


def test_a_row_arrives_where_it_belongs() -> None:
    g = Graph("ipu2", tiles=4)
    x, y = matrices(g)
    program = g.sequence(g.host_copy(x), g.copy(x[3], y[5]), g.copy(x[:, 0], y[6])).compile_program()
    (exchange,) = exchanges(program)
    assert exchange.exchange.received_bytes.tolist() == [0, 96, 0, 0]
    assert exchange.exchange.fragments.tolist() == [13, 13, 0, 0]  # the row is one piece, the column twelve
    assert copied(program) == []


def test_inside_a_tile_pieces_are_laid_out_and_rows_copied() -> None:
    g = Graph("ipu2", tiles=4)
    (x,) = matrices(g, "x")
    program = g.sequence(g.host_copy(x), g.copy(x[:, 3], x[:, 5])).compile_program()
    assert exchanges(program) == []
    assert copied(program) == [("poplar::DstStridedMemcpy", {"bytes": 48, "pieces": 12}, [0])]


def test_copies_inside_one_variable_join_unless_elements_meet() -> None:
    g = Graph("ipu2", tiles=2)
    x = g.variable("x", (4, 8)).map({0: slice(0, 16), 1: slice(16, 32)})
    apart = g.sequence(g.host_copy(x), g.copy(x[0], x[2]), g.copy(x[1], x[3])).compile_program()
    chained = g.sequence(g.host_copy(x), g.copy(x[0], x[2]), g.copy(x[2], x[1])).compile_program()
    assert [len(exchanges(program)) for program in (apart, chained)] == [1, 2]
    assert exchanges(apart)[0].exchange.received_bytes.tolist() == [0, 64]


def test_copies_between_variables_wait_for_the_variables_they_use() -> None:
    g = Graph("ipu2", tiles=3)
    x, y, z = matrices(g, "xyz")
    there_and_back = g.sequence(g.host_copy(x), g.copy(x[0], y[0]), g.copy(y[1], x[1])).compile_program()
    both_to_one = g.sequence(g.host_copy(x), g.copy(x[0], z[0]), g.copy(y[1], z[1])).compile_program()
    assert [len(exchanges(program)) for program in (there_and_back, both_to_one)] == [2, 1]


@given(st.data())
def test_copies_of_parts_give_numpys_numbers_and_lose_no_byte(data: st.DataObject) -> None:
    g = Graph("ipu2", tiles=3)
    side = 6
    owners = data.draw(st.lists(st.integers(0, 2), min_size=side, max_size=side))
    rows = {tile: [slice(i * side, i * side + side) for i in range(side) if owners[i] == tile] for tile in range(3)}
    x, y = (g.variable(name, (side, side)).map(rows) for name in "xy")
    numbers = np.arange(side * side, dtype=np.float32).reshape(side, side)
    expected, steps = {"x": numbers.copy(), "y": np.zeros_like(numbers)}, []
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.integers(1, 2))
        first, second = (data.draw(st.integers(0, side - 2 * step)) for _ in range(2))
        parts = [(slice(None), slice(at, at + 2 * step, step)) for at in (first, second)]
        source, target = data.draw(st.permutations(("x", "y")))
        tensors = {"x": x, "y": y}
        steps.append(g.copy(tensors[source][parts[0]], tensors[target][parts[1]]))
        expected[target][parts[1]] = expected[source][parts[0]]
    program = g.sequence(g.host_copy(x), g.host_copy(y), *steps, g.host_copy(x, "to_host"), g.host_copy(y, "to_host"))
    for step in exchanges(program.compile_program()):
        assert int(step.exchange.sent_bytes.sum()) == int(step.exchange.received_bytes.sum())
    found = g.run(program, x=numbers, y=np.zeros_like(numbers))
    assert all(found[name].tolist() == expected[name].tolist() for name in "xy")
