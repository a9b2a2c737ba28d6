"""The rules of a tile program's encoding, checked."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.identity import ByIdentities, ByIdentity
from workbench.engine import vertices
from workbench.engine.mapping.tileset import TileSet
from workbench.engine.program.columns import columns_of
from workbench.engine.program.program import ComputeSet, DoExchange, OnTileExecute, TileProgram, VertexGroup
from workbench.errors import VerificationError


def verify_program(program: TileProgram, known: Sound | None = None) -> TileProgram:
    """Check the rules of the encoding and return the program; a broken rule is a `VerificationError`.

    What is `known` to be sound for as many tiles is not looked at again, and what is found sound is known then.
    """
    columns = columns_of(program)
    if len(set(columns.step_id.tolist())) != len(program.steps):
        raise VerificationError("two steps have one id")
    _verify_variables(program)
    accesses = columns.accesses
    unknown = (accesses.variable < 0) | (accesses.variable >= len(program.variables))
    if unknown.any():
        step = program.steps[accesses.step[unknown.argmax()]]
        raise VerificationError(f"step {step.id} {step.name} names an unknown variable")
    known = known or Sound(program.target.tiles_per_ipu)
    for step in program.steps:
        if isinstance(step, OnTileExecute):
            known.compute_set(step.compute_set)
        elif isinstance(step, DoExchange):
            known.exchange(step)
    return program


def _verify_variables(program: TileProgram) -> None:
    columns, tiles = columns_of(program), program.target.tiles_per_ipu
    sound = np.array([len(each) == tiles and not (each < 0).any() for each in columns.vectors], bool)
    mapped = sound[columns.vector] if len(sound) else np.zeros(0, bool)
    placed = (columns.ipu >= 0) & (columns.ipu < program.ipus)
    ordered = np.array([variable.id for variable in program.variables], np.int64) == np.arange(len(mapped))
    broken = ~(ordered & mapped & placed)
    if not broken.any():
        return
    index = int(broken.argmax())
    variable = program.variables[index]
    if not ordered[index]:
        raise VerificationError(f"{variable} stands at place {index}")
    if not mapped[index]:
        raise VerificationError(f"{variable} is not mapped over {tiles} tiles")
    raise VerificationError(f"{variable} is on an IPU outside 0..{program.ipus - 1}")


class Sound:
    """What was looked at: many sets have the same groups, groups the same tiles, and exchanges the same bytes.

    Of what an `earlier` program had is kept what is met again.
    """

    def __init__(self, tiles: int, earlier: Sound | None = None) -> None:
        self.tiles = tiles
        self._groups: ByIdentity[tuple[VertexGroup, ...], None] = ByIdentity()
        self._placed: ByIdentity[TileSet, None] = ByIdentity()
        self._moved: ByIdentities[IntArray, None] = ByIdentities()
        before = self if earlier is None or earlier.tiles != tiles else earlier
        self._earlier_groups, self._earlier_moved = before._groups, before._moved
        self._vertices: set[str] = set()

    def compute_set(self, compute_set: ComputeSet) -> None:
        """Every group runs a vertex that there is, on tiles of the IPU."""
        if compute_set.groups in self._groups:
            return
        for group in () if compute_set.groups in self._earlier_groups else compute_set.groups:
            if group.vertex not in self._vertices:
                vertices.find(group.vertex)
                self._vertices.add(group.vertex)
            if len(group.tiles) == 0 or group.count < 1:
                raise VerificationError(f"{compute_set.name}: {group} runs nowhere")
            if group.tiles not in self._placed:
                tiles = group.tiles.tiles
                if tiles[0] < 0 or tiles[-1] >= self.tiles:  # they are sorted
                    raise VerificationError(f"{compute_set.name}: {group} is on a tile outside 0..{self.tiles - 1}")
                self._placed[group.tiles] = None
        self._groups[compute_set.groups] = None

    def exchange(self, step: DoExchange) -> None:
        """No more is sent than is received."""
        arrays = (step.exchange.sent_bytes, step.exchange.received_bytes)
        if arrays not in self._moved:
            if arrays not in self._earlier_moved and step.exchange.multicast_extra_bytes < 0:
                raise VerificationError(f"step {step.id} {step.name} sends more bytes than are received")
            self._moved[arrays] = None
