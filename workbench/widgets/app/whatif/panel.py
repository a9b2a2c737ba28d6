"""What if, as a widget: sliders and menus that compile where they are moved, over the picture of what was compiled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import traitlets

from workbench.base.text import shown
from workbench.errors import Cancelled, WorkbenchError
from workbench.executable import compile_request
from workbench.executable.configured import acting, neighbours
from workbench.widgets.app.bar import said_of
from workbench.widgets.app.form.run import OWN
from workbench.widgets.app.task import Outcome, Progress
from workbench.widgets.app.whatif.knobs import Basis, Knob, checked_at, knobs_of, moved, option_knob, request_at
from workbench.widgets.app.whatif.newest import Asked, Newest, TooSlow
from workbench.widgets.app.whatif.picture import fastest, picture, point, refused
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn

LIVE_SECONDS = 1.0  # a model that compiles within it does so while a slider moves, any other when it is let go
_NOTHING: Mapping[str, Any] = {
    "from": "",
    "at": {},
    "working": "",
    "problem": "",
    "slow": False,
    "curve": None,
    "others": [],
}


class WhatIf(Drawn):
    """`knobs` can be moved; `state` says where they are and what works; `data` and `buffer` are the last picture.

    `take(arguments, options)` is called with what is to be set in the form. `busy()` says that something else
    compiles: then nothing is moved. `of(basis)` begins again from a compile; `profile` is of the last picture.
    """

    _esm = assets.stub("app/whatif/panel.js")
    _css = assets.style("app/app", "app/whatif/panel")
    knobs = traitlets.List().tag(sync=True)
    state = traitlets.Dict(dict(_NOTHING)).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    buffer = traitlets.Bytes().tag(sync=True)

    def __init__(
        self, take: Callable[[dict[str, Any], dict[str, Any]], None], busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._take, self._busy = take, busy
        self._newest = Newest()
        self._knobs: list[Knob] = []
        self._at: dict[str, int] = {}
        self._basis: Basis | None = None
        self._like: Any = None
        self._last: Any = None
        self._points: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
        self._along = ""
        self._drawn: dict[str, int] = {}
        self._open = False
        self._saying = threading.RLock()
        self.profile: Any = None
        self.does: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "open": self._on_open,
            "move": self._on_move,
            "curve": self._on_curve,
            "add": self._on_add,
            "back": self._on_back,
            "take": self._on_take,
            "stop": lambda content: self.stop(),
        }
        super().__init__()
        self.on_msg(self._hear)

    def of(self, basis: Basis | None, like: Any = None) -> None:
        """Begin from a compile; knobs that were added and curves are of what was before. None: nothing can be moved,
        and nothing is shown. The one that is begun from already: what was moved stays.

        `like`: an executable whose trace is taken where it is of the same model.
        """
        if basis is self._basis is not None:
            return
        self.stop()
        with self._saying:  # what still compiles is of what was before
            self._basis, self._like, self._last = basis, like, like
            self.profile = None if basis is None else basis.profile
            self._along = ""
            self._knobs = [] if basis is None else knobs_of(basis)
            self._at = self._drawn = self._compiled_at()
            self._points = {} if basis is None else {self._key(self._at): point(basis.profile)}
        self._show_knobs()
        said = "" if basis is None else said_of(basis.profile)
        self._say(**{**_NOTHING, "from": said, "at": dict(self._at), "others": self._others()})
        if self._open:
            self._draw()

    def stop(self) -> None:
        """Stop what compiles here."""
        self._newest.stop()

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until nothing compiles here; False when something still does after so many seconds."""
        return self._newest.wait(seconds)

    # What the browser asks for

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the browser; anything that is none of `does`, or comes before a compile, is not heard."""
        if self._basis is None or not isinstance(content, dict) or str(content.get("do")) not in self.does:
            return
        try:
            self.does[str(content["do"])](content)
        except WorkbenchError as error:
            self._say(problem=shown(str(error)))

    def _on_open(self, content: Mapping[str, Any]) -> None:
        if not self._open:
            self._open = True
            self._draw()

    def _on_move(self, content: Mapping[str, Any]) -> None:
        """A knob at a place; `done` when it was let go."""
        knob, done = checked_at(self._knobs, content.get("name"), content.get("at")), content.get("done") is True
        self._open = True
        self._along = knob.name
        self._at = {**self._at, knob.name: content["at"]}
        if self._busy() or (self.state["slow"] and not done):
            return self._say(at=dict(self._at))
        at, basis = dict(self._at), self._basis
        if not self._newest.busy and at == self._drawn:
            return self._say(at=at, problem="")  # it was drawn while it moved
        self._say(at=at, working=self._asked(at) or "as it was compiled", problem="")
        return self._newest.ask(
            Asked(
                work=lambda progress: self._compiled(basis, at, progress),
                ended=lambda outcome: self._moved(basis, at, outcome),
                within=None if done else LIVE_SECONDS,
            )
        )

    def _on_curve(self, content: Mapping[str, Any]) -> None:
        """All places of a knob, one after another; those that are known are not compiled again."""
        knob = checked_at(self._knobs, content.get("name"), 0)
        if self._busy():
            return None
        self._along, here, basis = knob.name, dict(self._at), self._basis
        self._say(working=f"the curve of {knob.label}", problem="")
        return self._newest.ask(
            Asked(
                work=lambda progress: self._follow(basis, knob, here, progress),
                ended=lambda outcome: self._ended(basis, outcome),
            )
        )

    def _on_add(self, content: Mapping[str, Any]) -> None:
        if self._basis is None:
            return
        knob = option_knob(self._basis.request, str(content.get("name")))
        if knob is not None and knob.name not in self._at:
            with self._saying:
                self._knobs = [*self._knobs, knob]
                # A point is known by where all knobs are; where this one is, all have been.
                self._points = {self._key({**dict(key), knob.name: knob.at}): row for key, row in self._points.items()}
                self._at, self._drawn = ({**at, knob.name: knob.at} for at in (self._at, self._drawn))
            self._show_knobs()
            self._say(at=dict(self._at), others=self._others(), problem="")

    def _on_back(self, content: Mapping[str, Any]) -> None:
        """Everything to where it was compiled."""
        self.stop()
        self._at = self._drawn = self._compiled_at()
        self.profile, self._last = None if self._basis is None else self._basis.profile, self._like
        self._say(at=dict(self._at), problem="", working="", curve=None)
        self._draw()

    def _on_take(self, content: Mapping[str, Any]) -> None:
        """Set what was moved in the form, and show it as a result."""
        self.stop()
        arguments, options = moved(self._knobs, self._at)
        self._take({name: OWN if value is None else value for name, value in arguments.items()}, options)

    # Work

    def _compiled(self, basis: Basis | None, at: Mapping[str, int], progress: Progress) -> tuple[Any, float]:
        """What a position compiles to, and the seconds of it."""
        began = time.perf_counter()
        if basis is not self._basis or basis is None:
            raise Cancelled("what if")
        try:
            knobs = [knob for knob in self._knobs if knob.name in at]  # one that was added since is where it was
            executable = compile_request(request_at(basis.request, knobs, at), progress, self._last)
        except Cancelled:
            raise
        except WorkbenchError as error:
            self._note(basis, at, refused(str(error)))
            raise
        self._note(basis, at, point(executable.profile))
        return executable, time.perf_counter() - began

    def _note(self, basis: Basis | None, at: Mapping[str, int], row: dict[str, Any]) -> None:
        """Keep a point, unless it is of what moves no longer begin from."""
        with self._saying:
            if basis is self._basis:
                self._points[self._key(self._whole(at))] = row

    def _whole(self, at: Mapping[str, int]) -> dict[str, int]:
        """A position with the knobs that were added since it was asked for."""
        return {**self._compiled_at(), **at}

    def _follow(self, basis: Basis | None, knob: Knob, here: Mapping[str, int], progress: Progress) -> None:
        for count, place in enumerate(knob.curve, 1):
            at = {**here, knob.name: place}
            if self._key(self._whole(at)) not in self._points:
                self._say_of(basis, working=f"the curve of {knob.label}: {count} of {len(knob.curve)}")
                with contextlib.suppress(WorkbenchError):  # it is a point of the curve, with its reason
                    self._compiled(basis, at, progress)
                progress(knob.label)  # where it was cancelled, it ends here
            with self._saying:
                self._say_of(basis, curve=self._curve())

    def _moved(self, basis: Basis | None, at: dict[str, int], outcome: Outcome) -> None:
        if outcome.error is not None:
            return self._ended(basis, outcome)
        if basis is not self._basis:
            return None
        self._last, seconds = outcome.result
        self.profile = self._last.profile
        self._drawn = self._whole(at)
        self._draw()
        return self._say(slow=seconds > LIVE_SECONDS, working="", curve=self._curve())

    def _ended(self, basis: Basis | None, outcome: Outcome) -> None:
        """Work that drew nothing: what it was stopped by, unless by what is newer."""
        error = outcome.error
        if basis is not self._basis:
            return None
        if isinstance(error, TooSlow):
            return self._say(slow=True, working="")
        if error is None or isinstance(error, Cancelled):
            return self._say(working="")
        self._say(curve=self._curve())
        told = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
        return self._say(working="", problem=shown(told))

    # What is shown

    def _draw(self) -> None:
        data: dict[str, Any] = {}
        buffer = b""
        if self._basis is not None:
            data, buffer = picture(self._basis.profile, self.profile, self._asked(self._drawn))
        with self.hold_sync():
            self.data, self.buffer = data, buffer

    def _asked(self, at: Mapping[str, int]) -> str:
        """`"batch size 8, precision float16"`: what is not as it was compiled."""
        return ", ".join(f"{knob.label} {knob.text(at[knob.name])}" for knob in self._knobs if at[knob.name] != knob.at)

    def _curve(self) -> dict[str, Any] | None:
        """The points along the knob that was moved last, all others where they are."""
        knob = next((each for each in self._knobs if each.name == self._along), None)
        if knob is None or self._basis is None:
            return None
        there = (self._points.get(self._key({**self._at, knob.name: at})) for at in range(len(knob.values)))
        rows = [{**row, "at": at, "value": shown(knob.text(at))} for at, row in enumerate(there) if row is not None]
        if len(rows) < 2:
            return None
        capacity = int(self._basis.profile.target["bytes_per_tile"])
        return {
            "name": knob.name,
            "label": knob.label,
            "rows": rows,
            "best": fastest(rows),
            "capacity": capacity,
            "left": sum(self._key({**self._at, knob.name: at}) not in self._points for at in knob.curve),
        }

    def _compiled_at(self) -> dict[str, int]:
        return {knob.name: knob.at for knob in self._knobs}

    @staticmethod
    def _key(at: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(at.items()))

    def _others(self) -> list[str]:
        """Names of options that a slider or a menu can be added for."""
        if self._basis is None:
            return []
        options = self._basis.request.options
        return [
            each.name for each in acting() if each.name not in self._at and neighbours(each, options.get(each.name))
        ]

    def _show_knobs(self) -> None:
        self.knobs = [
            {
                "name": knob.name,
                "label": knob.label,
                "doc": knob.doc,
                "menu": knob.menu,
                "texts": [knob.text(at) for at in range(len(knob.values))],
                "compiled": knob.at,
            }
            for knob in self._knobs
        ]

    def _say_of(self, basis: Basis | None, **changes: Any) -> None:
        """Say how what was asked for goes on, unless moves no longer begin from there."""
        with self._saying:
            if basis is self._basis:
                self._say(**changes)

    def _say(self, **changes: Any) -> None:
        with self._saying:  # a curve grows in the thread that compiles
            self.state = {**self.state, **changes}


__all__ = ["WhatIf"]
