"""The tile program: a control tree of bulk-synchronous steps over variables that are mapped to tiles.

`program` has the types, `verify` checks them, `columns` are its steps as arrays, `tree` its control as stored data,
`links` the wires between IPUs, `remote_buffers` what lies outside. Imports mappings, the graph's origins, vertices.
Tests: tests/engine/program.
"""

from workbench.engine.program.moves import Move
from workbench.engine.program.program import (
    Call,
    ComputeSet,
    DoExchange,
    Exchange,
    GlobalExchange,
    If,
    Leaf,
    OnTileExecute,
    Overlap,
    Program,
    Repeat,
    Sequence,
    Step,
    StreamCopy,
    Sync,
    TileProgram,
    Variable,
    VertexGroup,
    children,
    leaves,
    rewritten,
)
from workbench.engine.program.verify import Sound, verify_program

__all__ = [
    "Call",
    "ComputeSet",
    "DoExchange",
    "Exchange",
    "GlobalExchange",
    "If",
    "Leaf",
    "Move",
    "OnTileExecute",
    "Overlap",
    "Program",
    "Repeat",
    "Sequence",
    "Sound",
    "Step",
    "StreamCopy",
    "Sync",
    "TileProgram",
    "Variable",
    "VertexGroup",
    "children",
    "leaves",
    "rewritten",
    "verify_program",
]
