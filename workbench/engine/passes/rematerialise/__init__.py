"""Rematerialise: what the backward pass can compute elementwise from values it reads anyway is not kept for it.

`residual_roots` chooses what is kept in its place, `moving` moves what can be made again to where it is read, `stages`
does it across the passes of a pipeline stage. Imports the graph and families' traits. Tests:
tests/engine/passes/rematerialise.
"""

from workbench.engine.passes.rematerialise.rematerialise import (
    rematerialise,
)

__all__ = [
    "rematerialise",
]
