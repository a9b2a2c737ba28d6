"""What the exchange moves so that every tile gets what it needs, per tile in bytes and pieces."""

from workbench.engine.mapping.transfer.methods import (
    Transfer,
    check_transfer,
    transfer,
)

__all__ = [
    "Transfer",
    "check_transfer",
    "transfer",
]
