"""Element types: the one table of their names, bytes and words. Whoever needs a part of it finds that part here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """One type of element: `name` is numpy's and the graph's, `word` Poplar's in the arguments of a vertex.

    `also` are further words Poplar has for it; `by_hand` tells whether a tile program can declare tensors of it.
    """

    name: str
    word: str
    size_bytes: int
    floating: bool = False
    by_hand: bool = True
    also: tuple[str, ...] = ()


ELEMENT_TYPES = (
    ElementType(name="float32", word="float", size_bytes=4, floating=True),
    ElementType(name="float16", word="half", size_bytes=2, floating=True),
    ElementType(name="bfloat16", word="half", size_bytes=2, floating=True, by_hand=False),
    ElementType(name="float8_e4m3fn", word="quarter", size_bytes=1, floating=True, by_hand=False),
    ElementType(name="float8_e5m2", word="quarter", size_bytes=1, floating=True, by_hand=False),
    ElementType(name="int32", word="int", size_bytes=4),
    ElementType(name="uint32", word="unsigned int", size_bytes=4),
    ElementType(name="int16", word="short", size_bytes=2),
    ElementType(name="uint16", word="unsigned short", size_bytes=2),
    ElementType(name="int8", word="signed char", size_bytes=1, also=("char",)),
    ElementType(name="uint8", word="unsigned char", size_bytes=1),
    ElementType(name="bool", word="bool", size_bytes=1),
    ElementType(name="int64", word="long long", size_bytes=8),
    ElementType(name="uint64", word="unsigned long long", size_bytes=8),
    ElementType(name="key", word="unsigned long long", size_bytes=8, by_hand=False),
)

ITEMSIZE_BYTES: Mapping[str, int] = {each.name: each.size_bytes for each in ELEMENT_TYPES}
"""Bytes of an element by the type's name."""

DTYPE_WORDS: Mapping[str, str] = {each.name: each.word for each in ELEMENT_TYPES}
"""Poplar's word by the type's name."""

HAND_WORDS: Mapping[str, str] = {each.name: each.word for each in ELEMENT_TYPES if each.by_hand}
"""Poplar's word by the type's name, of the types that tile programs declare."""

TYPE_BYTES: Mapping[str, int] = {word: each.size_bytes for each in ELEMENT_TYPES for word in (*each.also, each.word)}
"""Bytes of an element by Poplar's word."""

DTYPE_OF_WORD: Mapping[str, str] = {each.word: each.name for each in reversed(ELEMENT_TYPES)}
"""The first type of the table that has this word of Poplar's."""

FLOATING_WORDS = frozenset(each.word for each in ELEMENT_TYPES if each.floating)
"""Poplar's words for floating-point types."""

NARROWED: Mapping[str, str] = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
"""The type in 32 bits by the 64-bit one, as data of the host reach the IPU; other types stay as they are."""

_names: dict[Any, str] = {}  # numpy takes 30 µs to name a dtype


def dtype_name(dtype: Any) -> str:
    """The graph's name of a JAX dtype; random keys are `"key"`."""
    known = _names.get(dtype)
    if known is None:
        name = str(getattr(dtype, "name", dtype))
        known = "key" if name.startswith("key<") else "bool" if name == "float0" else name
        _names[dtype] = known
    return known
