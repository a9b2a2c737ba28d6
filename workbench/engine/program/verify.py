"""The rules of a tile program's encoding, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.base.identity import ByIdentity
from workbench.engine import vertices
from workbench.engine.program.columns import columns_of
from workbench.engine.program.program import ComputeSet, DoExchange, OnTileExecute, TileProgram
from workbench.errors import VerificationError


def verify_program(program: TileProgram) -> TileProgram:
    """Check the rules of the encoding and return the program; a broken rule is a `VerificationError`."""
    columns = columns_of(program)
    if len(set(columns.step_id.tolist())) != len(program.steps):
        raise VerificationError("two steps have one id")
    _verify_variables(program)
    accesses = columns.accesses
    unknown = (accesses.variable < 0) | (accesses.variable >= len(program.variables))
    if unknown.any():
        step = program.steps[accesses.step[unknown.argmax()]]
        raise VerificationError(f"step {step.id} {step.name} names an unknown variable")
    tiles, sound = program.target.tiles_per_ipu, ByIdentity[Any, None]()
    for step in program.steps:
        if isinstance(step, OnTileExecute):
            groups = step.compute_set.groups
            if groups not in sound:  # many sets have the same
                _verify_compute_set(step.compute_set, tiles, sound)
                sound[groups] = None
        if isinstance(step, DoExchange) and step.exchange not in sound:
            if step.exchange.multicast_extra_bytes < 0:
                raise VerificationError(f"step {step.id} {step.name} sends more bytes than are received")
            sound[step.exchange] = None
    return program


def _verify_variables(program: TileProgram) -> None:
    columns, tiles = columns_of(program), program.target.tiles_per_ipu
    sound = np.array([len(each) == tiles and not (each < 0).any() for each in columns.vectors], bool)
    mapped = sound[columns.vector] if len(sound) else np.zeros(0, bool)
    placed = (columns.ipu >= 0) & (columns.ipu < program.ipus)
    for index, variable in enumerate(program.variables):
        if variable.id != index:
            raise VerificationError(f"{variable} stands at place {index}")
        if not mapped[index]:
            raise VerificationError(f"{variable} is not mapped over {tiles} tiles")
        if not placed[index]:
            raise VerificationError(f"{variable} is on an IPU outside 0..{program.ipus - 1}")


def _verify_compute_set(compute_set: ComputeSet, tiles: int, sound: ByIdentity[Any, None]) -> None:
    """`sound` is filled with sets of tiles that lie on the IPU: few serve many groups."""
    for group in compute_set.groups:
        vertices.find(group.vertex)
        if len(group.tiles) == 0 or group.count < 1:
            raise VerificationError(f"{compute_set.name}: {group} runs nowhere")
        if group.tiles in sound:
            continue
        if np.min(group.tiles.tiles) < 0 or np.max(group.tiles.tiles) >= tiles:
            raise VerificationError(f"{compute_set.name}: {group} is on a tile outside 0..{tiles - 1}")
        sound[group.tiles] = None
