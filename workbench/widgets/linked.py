"""Several views of one profile, linked by one selection; and a whole profile as one view."""

from __future__ import annotations

from typing import Any

import ipywidgets

from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets.face import views as faces_of_a_profile
from workbench.widgets.kit.base import with_html
from workbench.widgets.kit.selection import Selection


class Linked(ipywidgets.VBox):
    """Views of `profile` under one another; `selection` is what they share. Stored, it shows their pictures."""

    def __init__(self, profile: Profile, names: tuple[str, ...], children: list[Any], selection: Selection) -> None:
        super().__init__(children)
        self.selection = selection
        self.profile, self._names = profile, names

    @property
    def tab(self) -> str:
        """The title of the tab that is open, "" without tabs."""
        tabs = self.children[-1] if self.children else None
        return str(tabs.titles[tabs.selected_index or 0]) if isinstance(tabs, ipywidgets.Tab) and tabs.titles else ""

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
    """The named views under one another: what is chosen in one is chosen in all."""
    if not isinstance(profile, Profile):
        raise InputError(
            f"views was given {profile!r}",
            expected="a profile",
            todo="give executable.profile, wb.profile(...) or wb.load_profile(path)",
        )
    chosen = names_of(*names) or shown(profile)
    selection = Selection()
    children = [face(name).widget(getattr(profile, name), selection=selection) for name in chosen]
    return Linked(profile, chosen, children, selection)


def shown(profile: Profile) -> tuple[str, ...]:
    """Names of the views a profile is shown with."""
    return tuple(each.name for each in faces_of_a_profile() if each.shown(profile))


def profile_view(profile: Profile, tab: str = "", selection: Selection | None = None) -> Linked:
    """The summary, and the other views as tabs, all linked. `tab`: the title of the one to open, if it is there;
    `selection`: what is chosen at the start."""
    names = shown(profile)
    selection = Selection() if selection is None else selection
    made = [face(name).widget(getattr(profile, name), selection=selection) for name in names]
    tabs = ipywidgets.Tab(made[1:], titles=[face(name).title for name in names[1:]])
    if tab in tabs.titles:
        tabs.selected_index = tabs.titles.index(tab)
    elif not profile.fits and "xray" in names:  # the picture that explains an out-of-memory
        tabs.selected_index = names.index("xray") - 1
    return Linked(profile, names, [made[0], tabs], selection)


def close(box: Any) -> None:
    """Take widgets that are shown no more out of the kernel and the page, with all that is in them.

    A page keeps the model of every widget that is not closed, and with it all that a view was sent.
    """
    for child in getattr(box, "children", ()):
        close(child)
    for part in (box, *(getattr(box, name, None) for name in ("selection", "layout", "style"))):
        if isinstance(part, ipywidgets.Widget):
            part.close()
