"""A program as columns: where its variables lie and what its steps read and write, as arrays for all passes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.base.identity import ByIdentity
from workbench.engine.program.program import Leaf, TileProgram, Variable

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Accesses:
    """What steps touch, a row an access: of each step what it reads, then what it writes.

    `step` is the place among the program's steps, int64[accesses]; `variable` int64[accesses]; `write` bool[accesses].
    """

    step: IntArray
    variable: IntArray
    write: Flags


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProgramColumns:
    """Steps in the order of `program.steps`: `step_id`, `step_ipu` and `step_other` (the second IPU of a step on two,
    else the same), int64[steps] each, and `step_body`, the place of its body among the functions, the entry the last.

    Variables by id: `ipu` int64[variables], `always_live` and `interleaved` bool[variables], and `vector`
    int64[variables], the place of the bytes per tile among `vectors`: arrays that are shared between variables are
    there once.
    """

    step_id: IntArray
    step_ipu: IntArray
    step_other: IntArray
    step_body: IntArray
    accesses: Accesses
    ipu: IntArray
    always_live: Flags
    interleaved: Flags
    vector: IntArray
    vectors: tuple[IntArray, ...]


_MADE: WeakKeyDictionary[TileProgram, ProgramColumns] = WeakKeyDictionary()


def columns_of(program: TileProgram) -> ProgramColumns:
    """The columns of a program, which are made once."""
    known = _MADE.get(program)
    if known is None:
        known = _MADE[program] = _columns(program)
    return known


def _columns(program: TileProgram) -> ProgramColumns:
    steps, variables = program.steps, program.variables
    ipus = [step.ipus for step in steps]
    vector, vectors = _vectors(variables)
    return ProgramColumns(
        step_id=np.array([step.id for step in steps], np.int64),
        step_ipu=np.array([places[0] for places in ipus], np.int64),
        step_other=np.array([places[-1] for places in ipus], np.int64),
        step_body=_bodies(program),
        accesses=_accesses(steps),
        ipu=np.array([each.ipu for each in variables], np.int64),
        always_live=np.array([each.always_live for each in variables], bool),
        interleaved=np.array([each.interleaved for each in variables], bool),
        vector=vector,
        vectors=vectors,
    )


def _bodies(program: TileProgram) -> IntArray:
    counts = [len(found) for found in program.leaves_of_bodies]
    ids = np.array([leaf.id for found in program.leaves_of_bodies for leaf in found], np.int64)
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(ids, kind="stable")]


def _accesses(steps: tuple[Leaf, ...]) -> Accesses:
    parts = [part for step in steps for part in (step.reads, step.writes)]
    counts = np.array([len(part) for part in parts], np.int64)
    place = np.repeat(np.arange(len(parts)), counts)
    variable = np.fromiter(chain.from_iterable(parts), np.int64, count=len(place))
    return Accesses(step=place // 2, variable=variable, write=place % 2 == 1)


def _vectors(variables: tuple[Variable, ...]) -> tuple[IntArray, tuple[IntArray, ...]]:
    known: ByIdentity[IntArray, int] = ByIdentity()
    vectors: list[IntArray] = []
    rows = []
    for array in [each.bytes_per_tile for each in variables]:
        row = known.setdefault(array, len(vectors))
        if row == len(vectors):
            vectors.append(array)
        rows.append(row)
    return np.array(rows, np.int64), tuple(vectors)
