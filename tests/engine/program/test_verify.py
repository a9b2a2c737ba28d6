"""What is verified of a program, and what is not looked at again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.small_programs import Builder
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.program import DoExchange, Sound, TileProgram, VertexGroup, verify_program
from workbench.errors import VerificationError


def made(b: Builder, tile: int = 1, received: int = 8) -> TileProgram:
    """A compute set on a tile and an exchange that receives so many bytes of 8 that are sent."""
    sound = b.program(
        b.groups(VertexGroup("stub", (("cycles", 5),), tile_set([1]))), b.exchange(b.exchanged([8], [0, 8]))
    )
    compute, exchange = sound.steps
    assert isinstance(exchange, DoExchange)
    group = VertexGroup("stub", (("cycles", 5),), tile_set([tile]))
    compute = replace(compute, compute_set=replace(compute.compute_set, groups=(group,)))
    exchange = replace(exchange, exchange=replace(exchange.exchange, received_bytes=b.row([0, received])))
    return replace(sound, entry=replace(sound.entry, children=(compute, exchange)))


@pytest.mark.parametrize(
    ("tile", "received", "told"),
    [(4, 8, "outside 0..3"), (1, 4, "more bytes than are received")],
    ids=["tile", "bytes"],
)
def test_what_is_known_of_another_program_does_not_hide_what_is_broken(tile: int, received: int, told: str) -> None:
    b = Builder()
    known = Sound(b.tiles)
    verify_program(made(b), known)
    for sound in (None, known, Sound(b.tiles, known)):
        with pytest.raises(VerificationError, match=told):
            verify_program(made(b, tile, received), sound)


def test_what_an_earlier_program_had_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    program, known = made(b), Sound(b.tiles)
    verify_program(program, known)
    looked: list[str] = []
    monkeypatch.setattr("workbench.engine.program.verify.vertices.find", looked.append)
    verify_program(program, Sound(b.tiles, known))
    verify_program(program, known)
    assert not looked
    verify_program(program, Sound(b.tiles + 1, known))  # of other machines nothing is known
    assert looked == ["stub"]
