"""A profile with its author's code: at which line each layer was made, and what stands at the lines of its steps.

Both are of the model at hand, so they are laid over a profile when it is asked for, and are not kept with it.
"""

from __future__ import annotations

from typing import Any

from workbench.base.source.lines import texts
from workbench.base.source.made_at import made_at
from workbench.profiler.profile import Profile, with_meta
from workbench.profiler.timeline.tree import Call, below


def with_lines(profile: Profile, traced: Any) -> Profile:
    """The profile of what was traced (None: a program by hand) with `layer_lines` and `sources` in its meta."""
    model = getattr(traced, "model", None)
    layers = {} if model is None else _layer_lines(model, profile)
    told = {line for call in _calls(profile) for line in call.sources}
    lines = {*profile.tables["steps"]["source"].tolist(), *told, *layers.values()}
    return with_meta(profile, layer_lines=layers, sources=texts(lines - {""}))


def _layer_lines(model: Any, profile: Profile) -> dict[str, str]:
    """The lines of the layers that the profile names, by path."""
    from workbench.engine.frontends.describe.keras_layers import walk_layers

    named = {*profile.tables["steps"]["layer"].tolist(), *(call.layer for call in _calls(profile))}
    paths = {path for each in named for path in _with_those_above(each)}
    lines = {path: made_at(layer) for path, layer in walk_layers(model) if path in paths}
    return {path: line for path, line in lines.items() if line}


def _calls(profile: Profile) -> set[Call]:
    """The calls that say for what they are made, which of a body that several share its steps do not."""
    found = (node for body in profile.control.bodies.values() for node in below(body) if isinstance(node, Call))
    return {call for call in found if call.layer or call.sources}


def _with_those_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
