"""Rematerialise: what the backward pass can compute elementwise from values it reads anyway is not kept for it."""

from workbench.engine.passes.rematerialise.rematerialise import (
    rematerialise,
)

__all__ = [
    "rematerialise",
]
