"""Colours and patterns of phases, categories and directions, one table for the browser and the stored pictures.

The colours keep a contrast of at least 3 to 1 on white and on JupyterLab's dark ground, and no two neighbours differ by
red against green alone; a pattern tells phases apart without colour.
"""

from __future__ import annotations

from typing import TypedDict

from workbench.base.categories import CATEGORY_WORDS
from workbench.base.causes import CAUSE_WORDS


class Paint(TypedDict):
    """How one thing is painted: its name for people, its colour, and the pattern over it ("" is plain)."""

    label: str
    colour: str
    pattern: str


def _paint(label: str, colour: str, pattern: str = "") -> Paint:
    return {"label": label, "colour": colour, "pattern": pattern}


ACCENT = "#2f74c0"
BAD = "#c8352b"
GREY = "#858d96"

CAUSES: dict[str, Paint] = {
    cause: _paint(CAUSE_WORDS[cause], colour, pattern)
    for cause, colour, pattern in (
        ("compute", "#3579bd", ""),
        ("exchange", "#cf7a1c", "rising"),
        ("sync", "#8a6cb8", "dots"),
        ("host", "#1f9178", "cross"),
        ("inter_ipu", "#b8518f", "falling"),
        ("collective", "#967333", "vertical"),
        ("idle_fill", GREY, "rising"),
        ("idle_drain", GREY, "falling"),
        ("idle_wait_stage", GREY, "horizontal"),
        ("idle_wait_host", GREY, "dots"),
    )
}

DIRECTIONS: dict[str, Paint] = {
    "": _paint("no direction", GREY, ""),
    "forward": _paint("forward", "#2a94ad", ""),
    "recompute": _paint("recompute", "#7d8530", "dots"),
    "backward": _paint("backward", "#c25b52", "rising"),
    "update": _paint("update", "#66727f", "cross"),
    "loss": _paint("loss", "#967333", "falling"),
}

# What a place of the control program is when it is no step: steps have the paint of their cause.
CONTROL: dict[str, Paint] = {
    "sequence": _paint("sequence", GREY, ""),
    "direction": _paint("direction", "#66727f", ""),
    "layer": _paint("layer", "#7d8530", ""),
    "repeat": _paint("repeat", "#c25b52", ""),
    "call": _paint("call", "#2a94ad", ""),
    "overlap": _paint("side by side", "#94836b", "vertical"),
    "if": _paint("either", "#94836b", "dots"),
}

CATEGORIES: dict[str, Paint] = {
    category: _paint(CATEGORY_WORDS[category], colour, pattern)
    for category, colour, pattern in (
        ("vertex_code", "#6f7d8c", ""),
        ("vertex_instance_state", "#94836b", ""),
        ("copy_descriptor", "#7d7396", "dots"),
        ("internal_exchange_code", "#6f7d8c", "rising"),
        ("host_exchange_code", "#6f7d8c", "falling"),
        ("global_exchange_code", "#6f7d8c", "cross"),
        ("host_exchange_packet_headers", "#7d7396", "vertical"),
        ("control_code", "#7d7396", "horizontal"),
        ("stack", "#94836b", "dots"),
        ("constant", "#967333", "rising"),
        ("parameter", "#3579bd", ""),
        ("optimizer", "#8a6cb8", ""),
        ("state", "#5f93c9", "vertical"),
        ("stash", "#b8518f", "rising"),
        ("input", "#1f9178", "horizontal"),
        ("activation", "#26967d", ""),
        ("gradient", "#cf7a1c", ""),
        ("temporary", "#b8518f", ""),
        ("stream", "#1f9178", "cross"),
    )
}

REGIONS: dict[str, Paint] = {
    "non_interleaved": _paint("not interleaved", "#3579bd"),
    "interleaved": _paint("interleaved", "#26967d", "vertical"),
    "beyond the tile": _paint("beyond the tile", BAD, "cross"),
}

LIVENESS: dict[str, Paint] = {
    "always_live_bytes": _paint("always live", "#6f7d8c"),
    "not_always_live_bytes": _paint("comes and goes, at its most", "#cf7a1c", "rising"),
}

GAPS: Paint = _paint("gaps", GREY, "falling")

# One hue per micro-batch; neighbours differ most. Micro-batch n takes colour n modulo the length.
MICRO_BATCHES = ("#3579bd", "#cf7a1c", "#1f9178", "#b8518f", "#8a6cb8", "#967333", "#2a94ad", "#c25b52")

# Low to high of a quantity, readable on both grounds and without colour vision: lightness alone orders them.
RAMP = ("#0d2748", "#1d4f86", "#2f7bb0", "#4fa6b8", "#8cc9a8", "#d6e48c", "#fdf3a6")


def paint(table: dict[str, Paint], name: str) -> Paint:
    """The paint of a name; one that is not in the table is grey under its own name."""
    return table.get(name) or _paint(name.replace("_", " "), GREY, "cross")
