"""What the form asked for once against what it asks for now: all of it, by name, also what code does not write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.units import some_text
from workbench.errors import OptionError
from workbench.executable.asked import asked
from workbench.executable.configured import found, text_of
from workbench.profiler.profile import Profile
from workbench.widgets.app.form.source import Choice

MOST = 3  # changes that are named; of more, how many
USUAL = "as by default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for: the `model` by its name, `layers` as code where the form has them, else the `source` that is
    an object of the notebook's; `words` of arguments, `options` that are not as by default, and the `target`.

    Of a profile that was not compiled here nobody knows layers, source and target: they are None.
    """

    model: str
    words: Mapping[str, str]
    options: Mapping[str, str]
    layers: str | None = None
    source: Any = None
    target: Any = None

    @classmethod
    def of(cls, choice: Choice, request: Any) -> Asked:
        """What the form asks for."""
        described = choice.code or isinstance(choice.source, str) or hasattr(choice.source, "size")
        return cls(
            model=choice.name,
            words=_words(request.mode, request.batch_size, request.replicas, asked(request)),
            options=_texts(dict(request.options.changed)),
            layers=choice.code,
            source=None if described else choice.source,
            target=request.target,
        )

    @classmethod
    def of_profile(cls, profile: Profile) -> Asked:
        """What a profile says of it."""
        meta = profile.meta
        batch = None if meta["mode"] == "function" else int(meta["batch_size"])
        words = _words(str(meta["mode"]), batch, int(meta["replicas"]), meta.get("asked", {}))
        return cls(model=profile.name, words=words, options=_texts(meta["config_changed"]))


def changes(before: Asked, now: Asked) -> list[str]:
    """`["batch size 4 → 8", "partialsType (matmuls) float → half"]`; nothing where both ask for the same."""
    told = [*_of_model(before, now)]
    told += [_arrow(name, before.words.get(name, USUAL), now.words.get(name, USUAL)) for name in _unlike(before, now)]
    names = [name for name in {**before.options, **now.options} if _option(before, name) != _option(now, name)]
    told += [_arrow(label_of(name), _option(before, name), _option(now, name)) for name in names]
    described = any(name.startswith("ipu_model.") for name in names)  # by options, which are named then
    if before.target is not None and before.target != now.target and not described:
        told.append("target")
    return told


def some_changes(told: Sequence[str]) -> str:
    """The first of many, and how many more."""
    return some_text(told, MOST)


def _of_model(before: Asked, now: Asked) -> list[str]:
    if before.model != now.model:
        return [_arrow("model", before.model, now.model)]
    if before.source is not now.source and before.layers is not None:
        return [f"model {_brief(now.model)}, which was made anew"]
    return ["layers"] if before.layers not in (None, now.layers) else []


def _unlike(before: Asked, now: Asked) -> list[str]:
    return [name for name in {**before.words, **now.words} if before.words.get(name) != now.words.get(name)]


def _words(mode: str | None, batch: int | None, replicas: int, given: Mapping[str, Any]) -> dict[str, str]:
    several = {"replicas": str(replicas)} if replicas > 1 else {}
    return {"mode": mode or USUAL, "batch size": str(batch or 1), **several, **{k: str(v) for k, v in given.items()}}


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Values as they are typed; a profile from a file has lists for tuples."""
    return {name: text_of(tuple(v) if isinstance(v, list) else v) for name, v in options.items()}


def _option(of: Asked, name: str) -> str:
    try:
        usual = text_of(found(name).default)
    except OptionError:  # of another version's file
        usual = USUAL
    return of.options.get(name, usual)


def label_of(name: str) -> str:
    """An option as the form names it, `"partialsType (matmuls)"`; others by their whole name."""
    try:
        return str(found(name).form_label or name)
    except OptionError:
        return name


def _arrow(name: str, before: str, now: str) -> str:
    return f"{name} {_brief(before)} → {_brief(now)}"


def _brief(text: str) -> str:
    return (text if len(text) <= 40 else f"{text[:39]}…") or "none"


__all__ = ["Asked", "changes", "label_of", "some_changes"]
