"""Every option of a compile, declared once: name, default, type, doc, what it changes and the module that reads it.

Names are the dotted paths of `IPUConfig` (API reference of `tensorflow.python.ipu.config`); a key of a
`poplar_options` dictionary is one level deeper; arguments of `wb.compile` that write an option are under `pipeline`.

A module a group of options; `declaration` is what one is. Imports targets. Tests: tests/engine/options.
"""

from __future__ import annotations

from workbench.engine.options import libraries as declared_libraries
from workbench.engine.options import offload as declared_offload
from workbench.engine.options import optimizations as declared_optimizations
from workbench.engine.options import system as declared_system
from workbench.engine.options.declaration import (
    CATEGORIES,
    OPTIONS,
    Effect,
    NotedOptions,
    Option,
    Options,
    answers_alike,
    find_option,
    option,
    options,
)

DECLARED = (declared_system, declared_libraries, declared_optimizations, declared_offload)


def form_options() -> tuple[Option, ...]:
    """The options of the app's form, in order; each has a label, a doc and choices or bounds."""
    return tuple(sorted((each for each in OPTIONS.values() if each.form_label), key=lambda each: each.form_place))


def attributes() -> tuple[Option, ...]:
    """The attributes of `IPUConfig`, category by category in the order of the API reference."""
    rank = {name.partition(".")[0]: number for number, name in enumerate(["", *CATEGORIES])}
    found = [each for each in OPTIONS.values() if each.kind in ("attribute", "dictionary")]
    return tuple(sorted(found, key=lambda each: rank[each.name.partition(".")[0] if "." in each.name else ""]))


__all__ = [
    "CATEGORIES",
    "OPTIONS",
    "Effect",
    "NotedOptions",
    "Option",
    "Options",
    "answers_alike",
    "attributes",
    "find_option",
    "form_options",
    "option",
    "options",
]
