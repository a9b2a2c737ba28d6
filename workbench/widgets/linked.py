"""Several views of one profile, linked by one selection; and a whole profile as one view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets

from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets.face import views as faces_of_a_profile
from workbench.widgets.kit import assets
from workbench.widgets.kit.base import with_html
from workbench.widgets.kit.library import Drawn
from workbench.widgets.kit.selection import Selection


class Unseen(Drawn):
    """Room that a view will take; the page says when it comes into sight."""

    _esm = assets.stub("kit/unseen.js")


class Later(ipywidgets.Box):
    """A view that is made, and sent what it shows, when the page first sees it; `at_once` it is made without room.

    A page that is told of a widget's end while it still loads it says after two seconds that this failed: so the room
    is closed when the page has spoken for it.
    """

    def __init__(self, make: Callable[[], Any], *, at_once: bool = False) -> None:
        self._make = make
        self._view: Any = None
        self.room: Unseen | None = None
        self._loaded = False
        super().__init__([])
        self.layout.display = "block"
        if at_once:
            self.see()
            return
        room = Unseen()
        self.room = room
        room.on_msg(lambda widget, message, buffers: self._hear(message))
        self.children = [room]

    def _hear(self, message: Any) -> None:
        self._loaded = True
        if isinstance(message, dict) and message.get("seen") is True:
            self.see()
        self._leave_room()

    def _leave_room(self) -> None:
        if self._view is not None and self._loaded and self.room is not None:
            close(self.room)
            self.room = None

    def see(self) -> Any:
        """The view, in its place."""
        if self._view is None:
            self._view = self._make()
            self.children = [self._view]
            self._leave_room()
        return self._view


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

    @property
    def tab(self) -> str:
        """The title of the tab that is open, "" without tabs."""
        tabs = self.children[-1] if self.children else None
        return str(tabs.titles[tabs.selected_index or 0]) if isinstance(tabs, ipywidgets.Tab) and tabs.titles else ""

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
            raise InputError(f"there is no view {name!r}", expected=f"one of: {expected}")
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


def _made(profile: Profile, name: str, selection: Selection) -> Any:
    return face(name).widget(getattr(profile, name), selection=selection)


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
    head = [name for name in names if name in HEAD]
    below = [name for name in names if name not in HEAD]
    titles = [face(name).title for name in below]
    opened = 0
    if tab in titles:
        opened = titles.index(tab)
    elif not profile.fits and "xray" in below:  # the picture that explains an out-of-memory
        opened = below.index("xray")
    seen = (*head, below[opened])
    made = {name: Later(partial(_made, profile, name, selection), at_once=name in seen) for name in names}
    tabs = ipywidgets.Tab([made[name] for name in below], titles=titles, selected_index=opened)
    tabs.add_class("wb-tabs")
    tabs.observe(lambda change: _opened(made, below, change["new"]), "selected_index")
    return Linked(profile, names, [*(made[name] for name in head), tabs], selection, made)


def _opened(made: Mapping[str, Later], names: list[str], number: int | None) -> None:
    """Make the view of a tab that was opened: a page tells what is in sight, and its room may be below the fold."""
    if number is not None:
        made[names[number]].see()


def close(box: Any) -> None:
    """Take widgets that are shown no more out of the kernel and the page, with all that is in them.

    A page keeps the model of every widget that is not closed, and with it all that a view was sent.
    """
    room = getattr(box, "room", None)
    for child in (*getattr(box, "children", ()), *([] if room is None else [room])):
        close(child)
    for part in (box, *(getattr(box, name, None) for name in ("selection", "layout", "style"))):
        if isinstance(part, ipywidgets.Widget):
            part.close()
