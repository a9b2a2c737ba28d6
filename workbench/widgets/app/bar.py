"""The bar over the app: its buttons, the verdict, what is shown and what the form says; it stays while results scroll.

`said_of` and `asked_for` put a profile and a request into the same words, so that a reader sees what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.base.text import markup
from workbench.base.units import bytes_text
from workbench.executable.asked import asked
from workbench.profiler.profile import Profile, call_text

MOST_OPTIONS = 3  # that are named; of more, how many
_USE = ("Use its settings", "reply", "Set the form to what was asked for what is shown")
_UNDO = ("Undo its settings", "undo", "Set the form back to where it stood before")
_FOLD = "Show or hide the form: model, run and options"


class Bar:
    """`box` is the bar over `buttons` and the drawn `progress`; `folds` are the boxes that its last button hides.

    `back()` is called when the form is to be set to what is shown, or back from there.
    """

    def __init__(
        self, buttons: Sequence[Any], progress: Any, folds: Sequence[Any], back: Callable[[], None] = lambda: None
    ) -> None:
        self._folds = folds
        self._asked, self._changed, self._running = "", "", False
        self._use = self._undo = False
        self.verdict = _text("wb-app-verdict")
        self.shown = _text("wb-app-shown")
        self.form = _text("wb-app-asked")
        self.fold = ipywidgets.ToggleButton(description="Form", icon="chevron-up", tooltip=_FOLD, value=True)
        self.fold.observe(self._turn, "value")
        head = ipywidgets.HBox([*buttons, self.verdict, self.fold])
        head.add_class("wb-app-head")
        self.back = ipywidgets.Button()
        self.back.add_class("wb-app-back")
        self.back.on_click(lambda _: back())
        said = ipywidgets.HBox([self.shown, self.back, self.form])
        said.add_class("wb-app-said")
        self.box = ipywidgets.VBox([head, said, progress])
        self.box.add_class("wb-app-actions")

    def say_form(self, text: str, changed: str = "") -> None:
        """What a press of Compile would ask for, or why it cannot; `changed` marks that the results are of something
        else, and says of what."""
        self._asked, self._changed = text, changed
        self._say()

    def offer(self, *, use: bool, undo: bool) -> None:
        """Whether the form can be set to what was asked for what is shown, or, where it was, back again."""
        self._use, self._undo = use, undo
        self._say()

    def say_running(self, running: bool) -> None:
        """Whether a compile or a diagnosis goes on: meanwhile nobody is asked to press Compile."""
        self._running = running
        self._say()

    def _say(self) -> None:
        note = f" <em>{markup(self._changed)}: press Compile</em>" if self._changed and not self._running else ""
        self.back.layout.display = None if (self._use or self._undo) and not self._running else "none"
        self.back.description, self.back.icon, self.back.tooltip = _UNDO if self._undo else _USE
        self.form.value = f"<p><b>Form:</b> {markup(self._asked)}{note}</p>"

    def say_shown(self, profile: Profile | None) -> None:
        """What the results are of, and their verdict; nothing before the first compile."""
        self.shown.value = "" if profile is None else f"<p><b>Shown:</b> {markup(said_of(profile))}</p>"
        self.verdict.value = "" if profile is None else _verdict(profile)

    def _turn(self, change: Any) -> None:
        self.fold.icon = "chevron-up" if self.fold.value else "chevron-down"
        for each in self._folds:
            each.layout.display = None if self.fold.value else "none"


def _text(name: str) -> Any:
    found = ipywidgets.HTML()
    found.add_class(name)
    return found


def _verdict(profile: Profile) -> str:
    """The verdict as a mark with the fullest tile beside it; one that is in doubt says so."""
    report = profile.summary
    tone = "close" if report.caution else "fits" if profile.fits else "over"
    spare = profile.margin_bytes
    beside = f"{bytes_text(abs(spare))} {'to spare' if spare >= 0 else 'over'} on the fullest tile"
    if spare >= 0 and not profile.fits:
        beside = "not all of it could be placed inside its memory region"
    doubt = f'; <span title="{markup(report.caution)}">in doubt</span>' if report.caution else ""
    word = "Fits" if profile.fits else "Does not fit"
    return f'<p role="status" title="{markup(report.verdict)}"><b class="wb-app-{tone}">{word}</b> {beside}{doubt}</p>'


def said_of(profile: Profile) -> str:
    """What a profile was compiled from: `"cnn, training, batch size 4 (16 samples to a weight update), 2 IPUs, loss
    huber, allow_recompute = True"`."""
    meta = profile.meta
    call = call_text(meta).partition(",")[0]
    words = _words(
        profile.name,
        str(meta["mode"]),
        None if meta["mode"] == "function" else int(meta["batch_size"]),
        meta.get("samples_per_call"),
        profile.ipus * int(meta["replicas"]),
        f"{'an' if call.startswith('e') else 'a'} {call}",
    )
    return ", ".join([*words, *_settings(meta.get("asked", {}), meta["config_changed"])])


def asked_for(name: str, request: Any) -> str:
    """The same of a request."""
    mode, batch = request.mode or "as the source says", request.batch_size or 1
    steps = request.gradient_accumulation_steps if mode == "training" else 1
    ipus = max(request.options.ipus(), request.replicas)
    update = "a weight update" if mode == "training" else "a call"
    words = _words(name, mode, batch, batch * steps * request.replicas, ipus, update)
    return ", ".join([*words, *_settings(asked(request), dict(request.options.changed))])


def _settings(given: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """What was given for arguments, and the options that are not as by default, the first of many."""
    changed = [f"{name} = {value}" for name, value in options.items()]
    more = len(changed) - MOST_OPTIONS
    several = [f"{more} {'option' if more == 1 else 'options'} more"] if more > 0 else []
    return [*(f"{name} {value}" for name, value in given.items()), *changed[:MOST_OPTIONS], *several]


def _words(name: str, mode: str, batch: int | None, samples: int | None, ipus: int, call: str) -> list[str]:
    words = [name, mode]
    if batch is not None:
        many = "samples" if samples is None else f"{samples:,} {'sample' if samples == 1 else 'samples'}"
        words.append(f"batch size {batch:,} ({many} to {call}{' not recorded' if samples is None else ''})")
    return [*words, f"{ipus:,} IPUs"] if ipus > 1 else words


__all__ = ["Bar", "asked_for", "said_of"]
