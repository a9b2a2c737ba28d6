"""What an app has compiled, as chips: one shows a result again, and holds it against the one that is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets

from workbench.base.text import markup, shown
from workbench.base.units import bytes_text, count_text, percent_text
from workbench.profiler.advice.compare import Comparison, asked_of_both
from workbench.profiler.advice.diagnose import cycles_per_sample
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.app.form.changes import Asked, changes, label_of, some_changes
from workbench.widgets.app.whatif import Basis

_SAME, _CALL = "the same again", "samples a call"
_COMPARED = "wb-app-compared"
KEPT = 12  # the latest results; earlier ones are forgotten


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One result: its number in the session, its profile, the code that was asked, and what tells it from before.

    `basis`: what moves of what-if begin from, `stands`: where the form stood that asked for it, `given`: all that it
    asked for; None where it was not compiled here.
    """

    number: int
    profile: Profile
    asked: str
    change: str
    basis: Basis | None = None
    stands: Any = None
    given: Asked | None = None


class History:
    """`box` are the chips, `comparison` two results side by side; `entries` is what is kept, `current` what is shown.

    `show(entry)` is called when a chip is pressed, `compares(name)` when a comparison was made, with its CSS class.
    """

    def __init__(self, show: Callable[[Entry], None], compares: Callable[[str], None] = lambda name: None) -> None:
        self.entries: list[Entry] = []
        self.current: Entry | None = None
        self.compared: tuple[Entry, Entry] | None = None
        self._count = 0
        self._show, self._compares = show, compares
        self._chips: list[_Chip] = []
        self.box = ipywidgets.Box()
        self.box.add_class("wb-app-history")
        self.comparison = ipywidgets.VBox()

    def add(
        self,
        profile: Profile,
        asked: str,
        basis: Basis | None = None,
        stands: Any = None,
        given: Asked | None = None,
    ) -> None:
        """Keep a result and mark it as the one that is shown; one that is kept already is only marked."""
        found = next((each for each in self.entries if each.profile is profile), None)
        if found is None:
            self._count += 1
            change = _change(self.entries[-1] if self.entries else None, profile, given)
            found = Entry(self._count, profile, asked, change, basis, stands, given)
            self.entries = [*self.entries, found][-KEPT:]
        self.mark(found)

    def take(self, profiles: Sequence[Profile]) -> None:
        """Put results of another session before those that are kept; what is shown stays."""
        earlier: list[Entry] = []
        for profile in profiles:
            before = earlier[-1].profile if earlier else None
            earlier.append(Entry(0, profile, "", told_apart(before, profile)))
        kept = {id(each): number for number, each in enumerate([*earlier, *self.entries], start=1)}
        renamed = [replace(each, number=kept[id(each)]) for each in [*earlier, *self.entries]]
        shown = None if self.current is None else self.current.profile
        self.entries = renamed[-KEPT:]
        self._count = len(renamed)
        self.current = next((each for each in self.entries if each.profile is shown), None)
        self.close()

    def mark(self, entry: Entry) -> None:
        """Say which result is shown."""
        self.current = entry
        self.close()

    def compare(self, entry: Entry) -> None:
        """Hold a result against the one that is shown, the earlier one first."""
        if self.current is None or entry is self.current:
            return
        self.close()
        before, after = sorted((self.current, entry), key=lambda each: each.number)
        self.compared = (before, after)
        close = ipywidgets.Button(description="Close the comparison", icon="times")
        close.on_click(lambda _: self.close())
        title = ipywidgets.HTML(f"<h3>{before.number} against {after.number}: {markup(after.change)}</h3>")
        head = ipywidgets.HBox([title, close])
        head.add_class(_COMPARED)
        self.comparison.children = [head, face("comparison").widget(_held(before, after))]
        self._draw()
        self._compares(_COMPARED)

    def close(self) -> None:
        """Take the comparison away."""
        self.compared = None
        gone, self.comparison.children = self.comparison.children, []
        self._draw()
        for each in gone:
            linked.close(each)

    def _draw(self) -> None:
        """One chip says nothing that the results do not, unless it is of no result that is shown.

        A chip stays the widget that it is, in its place: one that is made anew while it is pressed is never told of it,
        and a page keeps something of every widget, and every place of one, that there ever was.
        """
        while len(self._chips) < len(self.entries):
            self._chips.append(_Chip(self._show, self.compare))
        for chip, entry in zip(self._chips, self.entries, strict=False):
            chip.tell(entry)
            chip.mark(entry is self.current)
        said = len(self.entries) == 1 and self.entries[0] is self.current
        self.box.children = [] if said else [chip.box for chip in self._chips]


class _Chip:
    """A result to press; beside it, unless it is the one that is shown, what holds it against that."""

    entry: Entry

    def __init__(self, show: Callable[[Entry], None], against: Callable[[Entry], None]) -> None:
        self._button = ipywidgets.Button()
        self._button.add_class("wb-app-chip")
        self._button.on_click(lambda _: show(self.entry))
        self._against = ipywidgets.Button(icon="balance-scale")
        self._against.add_class("wb-app-icon")
        self._against.on_click(lambda _: against(self.entry))
        self.box = ipywidgets.HBox([self._button, self._against])

    def tell(self, entry: Entry) -> None:
        """Be the chip of this result."""
        self.entry = entry
        self._button.description, self._button.tooltip = label(entry), f"Show result {entry.number} again"
        (self._button.remove_class if entry.profile.fits else self._button.add_class)("wb-app-over")
        compared = f"Compare result {entry.number} with what is shown"
        self._against.description = self._against.tooltip = compared

    def mark(self, current: bool) -> None:
        """Say whether it is the result that is shown."""
        if current:
            self._button.add_class("wb-app-now")
        else:
            self._button.remove_class("wb-app-now")
        self._against.layout.visibility = "hidden" if current else None  # its place stays, and the chips where they are


def label(entry: Entry) -> str:
    """`"2 · batch size 8"` over `"fits, 210.5 KiB, 1.2 M cycles a sample"`."""
    profile = entry.profile
    verdict = "fits" if profile.fits else "does not fit"
    cycles = f"{count_text(cycles_per_sample(profile))} cycles a sample" if profile.total_cycles else "no cycles"
    return f"{entry.number} · {shown(entry.change)}\n{verdict}, {bytes_text(profile.max_tile_bytes)}, {cycles}"


def _held(before: Entry, after: Entry) -> Comparison:
    """Two results held against each other, under the numbers that their chips have."""
    labels = tuple(f"{each.number} · {shown(each.change)}" for each in (before, after))
    return Comparison(profiles=(before.profile, after.profile), labels=labels)


def _change(before: Entry | None, profile: Profile, given: Asked | None) -> str:
    """What tells a result from the one before: what the profiles say, else what the form asked for, as other layers."""
    told = told_apart(None if before is None else before.profile, profile)
    if told != _SAME or before is None or before.given is None or given is None:
        return told
    return some_changes(changes(before.given, given)) or told


def told_apart(before: Profile | None, after: Profile) -> str:
    """What of the request differs from the result before; the name of the model for the first."""
    if before is None or before.name != after.name:
        return after.name
    was, now = (_asked(each) | told for each, told in zip((before, after), asked_of_both(before, after), strict=True))
    if _samples(before) == _samples(after):  # said of one alone, where they are not those of one micro-batch
        was, now = ({name: each[name] for name in each if name != _CALL} for each in (was, now))
    names = [name for name in now if was.get(name) != now[name]] + [name for name in was if name not in now]
    last = [name.rpartition(".")[2] for name in names]
    said = {name: label_of(name) if last.count(short) > 1 else short for name, short in zip(names, last, strict=True)}
    changed = [f"{said[name]} {now.get(name, 'as by default')}" for name in names]
    if not changed:
        return _SAME
    return ", ".join(changed[:2]) + (f" and {len(changed) - 2} more" if len(changed) > 2 else "")


def _asked(profile: Profile) -> dict[str, str]:
    meta = profile.meta
    found = {"mode": str(meta["mode"]), "batch size": str(meta["batch_size"]), "IPUs": str(profile.ipus)}
    samples = _samples(profile)
    if samples is not None and samples != meta["batch_size"]:
        found[_CALL] = str(samples)
    return found | {name: str(value) for name, value in dict(meta["config_changed"]).items()}


def _samples(profile: Profile) -> int | None:
    """Samples of a call; files of earlier versions do not say."""
    samples: int | None = profile.meta.get("samples_per_call")
    return samples


def difference(before: Profile, after: Profile) -> str:
    """`"Against before: 98.2 KiB less on the fullest tile, 12.3 % more cycles per sample"`."""
    saved = before.max_tile_bytes - after.max_tile_bytes
    cycles = cycles_per_sample(after) / cycles_per_sample(before) - 1 if before.total_cycles else 0.0
    memory = f"{bytes_text(abs(saved))} {'less' if saved > 0 else 'more'}" if saved else "as much"
    text = percent_text(abs(cycles))
    time = "as many" if text == percent_text(0) else f"{text} {'more' if cycles > 0 else 'fewer'}"
    return f"Against before: {memory} on the fullest tile, {time} cycles per sample"


__all__ = ["Entry", "History", "difference", "label", "told_apart"]
