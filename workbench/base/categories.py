"""What a tile's memory holds: the words that engine, profiles and views share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

VariableKind = Literal[
    "parameter", "optimizer", "state", "constant", "stash", "stream", "input", "activation", "gradient", "temporary"
]
VARIABLE_CATEGORIES: tuple[str, ...] = get_args(VariableKind)
"""Kinds of variables. An address that several share counts for the first."""

CODE_CATEGORIES = (
    "vertex_code",
    "internal_exchange_code",
    "host_exchange_code",
    "global_exchange_code",
    "control_code",
)
"""Categories that hold instructions, so they must lie in the executable region."""

FOOTPRINT_CATEGORIES = (
    *CODE_CATEGORIES,
    "vertex_instance_state",
    "copy_descriptor",
    "host_exchange_packet_headers",
    "stack",
)
"""What a program takes on a tile beside its variables, code first."""

MEMORY_CATEGORIES: tuple[str, ...] = (*VARIABLE_CATEGORIES, *FOOTPRINT_CATEGORIES)
"""Every category of memory. An address of several categories counts for the first."""

CATEGORY_WORDS: Mapping[str, str] = {
    **{category: category.replace("_", " ") for category in MEMORY_CATEGORIES},
    **{kind: f"{kind}s" for kind in ("parameter", "constant", "stream", "input", "activation", "gradient", "stack")},
    "optimizer": "optimizer slots",
    "temporary": "temporaries",
    "internal_exchange_code": "exchange code",
    "global_exchange_code": "inter-IPU exchange code",
    "vertex_instance_state": "vertex state",
    "copy_descriptor": "copy descriptors",
    "host_exchange_packet_headers": "host packet headers",
}
"""Each category as people read it, in a sentence, a table or a legend."""
