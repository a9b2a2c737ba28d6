"""A profile with its author's code: at which line each layer was made, and what stands at the lines of its steps.

Both are of the model at hand, so they are laid over a profile when it is asked for, and are not kept with it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

from workbench.base.source.lines import texts
from workbench.base.source.made_at import made_at
from workbench.profiler.profile import Profile, with_meta
from workbench.profiler.timeline.tree import Call, below


def with_lines(profile: Profile, traced: Any) -> Profile:
    """The profile of what was traced (None: a program by hand) with `layer_lines` and `sources` in its meta."""
    calls = _calls(profile)
    layers = {} if getattr(traced, "model", None) is None else _layer_lines(traced, profile, calls)
    told = {line for call in calls for line in call.sources}
    lines = {*profile.tables["steps"]["source"].tolist(), *told, *layers.values()}
    return with_meta(profile, layer_lines=layers, sources=texts(lines - {""}))


_KNOWN: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""By what was traced, the lines of all layers: a model is traced once for many profiles."""


def _layer_lines(traced: Any, profile: Profile, calls: Collection[Call]) -> dict[str, str]:
    """The lines of the layers that the profile names, by path."""
    known = _KNOWN.get(traced)
    if known is None:
        known = _KNOWN[traced] = _lines_of(traced.model)
    named = {*profile.tables["steps"]["layer"].tolist(), *(call.layer for call in calls)}
    paths = {path for each in named for path in _with_those_above(each)}
    return {path: line for path, line in known.items() if path in paths}


def _lines_of(model: Any) -> dict[str, str]:
    from workbench.engine.frontends.describe.keras_layers import walk_layers

    lines = {path: made_at(layer) for path, layer in walk_layers(model)}
    return {path: line for path, line in lines.items() if line}


def _calls(profile: Profile) -> set[Call]:
    """The calls that say for what they are made, which of a body that several share its steps do not."""
    found = (node for body in profile.control.bodies.values() for node in below(body) if isinstance(node, Call))
    return {call for call in found if call.layer or call.sources}


def _with_those_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
