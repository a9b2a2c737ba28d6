"""Several views of one profile, linked by one selection; and a whole profile as one view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets
import traitlets

from workbench.base.text import meant, short
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets.face import views as faces_of_a_profile
from workbench.widgets.kit import assets
from workbench.widgets.kit.base import View, with_html
from workbench.widgets.kit.library import Drawn
from workbench.widgets.kit.selection import Selection


class Unseen(Drawn):
    """Room that a view will take; the page says when it comes into sight. Once `taken` nothing of it is seen."""

    _esm = assets.stub("kit/unseen.js")
    taken = traitlets.Bool(False).tag(sync=True)


class Later(ipywidgets.Box):
    """A view that is made, and sent what it shows, when the page first sees it; `at_once` it is made without that.

    `make(view)` is the view: None makes it, else the view that is there takes what it shows now. Its room stays for
    what it shows later, and in its place: a page that is still drawing what its box holds no more reports an error.
    """

    def __init__(self, make: Callable[[Any], Any], *, at_once: bool = False) -> None:
        self._make = make
        self._view: Any = None
        self._seen = False
        self.room: Unseen | None = None
        super().__init__([])
        self.layout.display = "block"
        self._show(at_once)

    def renew(self, make: Callable[[Any], Any], *, at_once: bool = False) -> None:
        """Show something else in the same place."""
        self._make, self._seen = make, False
        self._show(at_once)

    def see(self) -> Any:
        """The view, in its place."""
        if not self._seen:
            before, self._view = self._view, self._make(self._view)
            self._seen = True
            if self.room is not None:
                self.room.taken = True
            self.children = self.parts()
            if before is not None and before is not self._view:
                close(before)
        return self._view

    def parts(self) -> list[Any]:
        """The widgets that stand here by turns, the room first."""
        return [each for each in (self.room, self._view) if each is not None]

    def _show(self, at_once: bool) -> None:
        if at_once:
            self.see()
            return
        if self.room is None:
            self.room = Unseen()
            self.room.on_msg(lambda widget, message, buffers: self._hear(message))
        self.room.taken = False
        self.children = [self.room]

    def _hear(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("seen") is True:
            self.see()


class Linked(ipywidgets.VBox):
    """Views of `profile` under one another; `selection` is what they share. Stored, it shows their pictures."""

    def __init__(
        self,
        profile: Profile,
        names: tuple[str, ...],
        children: list[Any],
        selection: Selection,
        made: Mapping[str, Later],
    ) -> None:
        super().__init__(children)
        self.selection = selection
        self._made = made
        self.profile, self._names = profile, names
        if self._tabs is not None:
            self._tabs.observe(lambda change: self._opened(), "selected_index")

    @property
    def _tabs(self) -> Any:
        last = self.children[-1] if self.children else None
        return last if isinstance(last, ipywidgets.Tab) else None

    @property
    def tab(self) -> str:
        """The title of the tab that is open, "" without tabs."""
        tabs = self._tabs
        return str(tabs.titles[tabs.selected_index or 0]) if tabs is not None and tabs.titles else ""

    def take(self, profile: Profile, tab: str, selection: Selection) -> bool:
        """Show another profile in the same widgets, as `profile_view` would; False, and nothing is done, where its
        views are others."""
        tabs = self._tabs
        if tabs is None or shown(profile) != self._names:
            return False
        below = _below(self._names)
        opened = _open_tab(profile, below, tab)
        before, self.selection, self.profile = self.selection, selection, profile
        seen = {*(name for name in self._names if name in HEAD), below[opened]}
        try:
            for name, place in self._made.items():
                place.renew(partial(_made, profile, name, selection), at_once=name in seen)
            tabs.selected_index = opened
        finally:
            before.close()
        return True

    def _opened(self) -> None:
        """Make the view of a tab that was opened: a page tells what is in sight, and its room may be below the fold."""
        if self._tabs.selected_index is not None:
            self._made[_below(self._names)[self._tabs.selected_index]].see()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the reports that are shown, in order."""
        return self._names

    def view(self, name: str) -> Any:
        """The view of a report by its name, made if it has not been seen."""
        return self._made[name].see()

    def html(self) -> str:
        """The stored faces of all the views, stacked."""
        return "".join(face(name).html(getattr(self.profile, name)) for name in self._names)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return with_html(super()._repr_mimebundle_(**kwargs), self.html(), str(self.profile))


def names_of(*names: str) -> tuple[str, ...]:
    """Report names of views, which may be given by their short names."""
    known = faces_of_a_profile()
    name_of = {called: each.name for each in known for called in (each.name, each.short) if called}
    for name in names:
        if not isinstance(name, str) or name not in name_of:
            expected = ", ".join(sorted(each.short or each.name for each in known))
            several = isinstance(name, list | tuple | set)
            todo = "give each name by itself: wb.views(profile, *names)" if several else meant(name, name_of)
            raise InputError(f"there is no view {short(name)}", expected=f"one of: {expected}", todo=todo)
    return tuple(name_of[name] for name in names)


def views(profile: Profile, *names: str) -> Linked:
    """The named views under one another: what is chosen in one is chosen in all. Over those of several IPUs stands a
    strip of all IPUs, which chooses the one they show. Without names all are shown, and each is made when it is first
    seen."""
    if not isinstance(profile, Profile):
        raise InputError(
            f"views was given {profile!r}",
            expected="a profile",
            todo="give executable.profile, wb.profile(...) or wb.load_profile(path)",
        )
    chosen = names_of(*names) or shown(profile)
    if profile.ipus > 1 and STRIP not in chosen:
        chosen = (STRIP, *chosen)
    return _linked(profile, chosen, chosen if names else tuple(name for name in chosen if name in HEAD), Selection())


STRIP = "chips"
HEAD = (STRIP, "summary")  # what stands over the tabs


def _linked(profile: Profile, names: tuple[str, ...], seen: tuple[str, ...], selection: Selection) -> Linked:
    """The views of `names`, of which `seen` are made at once."""
    made = {name: Later(partial(_made, profile, name, selection), at_once=name in seen) for name in names}
    return Linked(profile, names, list(made.values()), selection, made)


def _made(profile: Profile, name: str, selection: Selection, view: Any = None) -> Any:
    """A view of this profile: `view`, where it can show another."""
    report = getattr(profile, name)
    if not isinstance(view, View):
        return face(name).widget(report, selection=selection)
    view.take(report, selection)
    return view


def shown(profile: Profile) -> tuple[str, ...]:
    """Names of the views a profile is shown with."""
    return tuple(each.name for each in faces_of_a_profile() if each.shown(profile))


def profile_view(profile: Profile, tab: str = "", selection: Selection | None = None) -> Linked:
    """The strip of IPUs where there are several, the summary, and the other views as tabs, all linked.

    `tab`: the title of the one to open, if it is there; `selection`: what is chosen at the start. The view of a tab is
    made when it is first opened.
    """
    names = shown(profile)
    selection = Selection() if selection is None else selection
    below = _below(names)
    opened = _open_tab(profile, below, tab)
    head = [name for name in names if name in HEAD]
    seen = (*head, below[opened])
    made = {name: Later(partial(_made, profile, name, selection), at_once=name in seen) for name in names}
    titles = [face(name).title for name in below]
    tabs = ipywidgets.Tab([made[name] for name in below], titles=titles, selected_index=opened)
    tabs.add_class("wb-tabs")
    return Linked(profile, names, [*(made[name] for name in head), tabs], selection, made)


def _below(names: tuple[str, ...]) -> list[str]:
    """The views that stand as tabs."""
    return [name for name in names if name not in HEAD]


def _open_tab(profile: Profile, below: list[str], tab: str) -> int:
    """Number of the tab that is open at the start."""
    titles = [face(name).title for name in below]
    if tab in titles:
        return titles.index(tab)
    # the picture that explains an out-of-memory
    return below.index("xray") if not profile.fits and "xray" in below else 0


def close(box: Any) -> None:
    """Take widgets that are shown no more out of the kernel and the page, with all that is in them.

    A page keeps the model of every widget that is not closed, and with it all that a view was sent.
    """
    for child in box.parts() if isinstance(box, Later) else getattr(box, "children", ()):
        close(child)
    for part in (box, *(getattr(box, name, None) for name in ("selection", "layout", "style"))):
        if isinstance(part, ipywidgets.Widget):
            part.close()
