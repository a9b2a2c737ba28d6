"""The row of the app that shares: an HTML file, a profile file there and back, the code as a cell, the kept history."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import traitlets

from workbench.base.text import shown
from workbench.base.units import bytes_text
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.profile import Profile
from workbench.profiler.storage import profile_from
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn

MOST_BYTES = 100_000_000  # of a file that is brought
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


class SharePanel(Drawn):
    """`state` holds: ready (whether there is a result), code, keeping, folder, said, problem.

    `files` gives the content of a file by what is asked for, "html" or "profile": its name, type and bytes.
    `brought(profile)` is called with a profile that was dropped, `keep(on)` when the history is to be kept or no more.
    """

    _esm = assets.stub("app/share/panel.js")
    _css = assets.style("app/app", "app/share/panel")
    state = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        files: Mapping[str, Callable[[], tuple[str, str, bytes]]],
        brought: Callable[[Profile], None],
        keep: Callable[[bool], str],
        folder: str,
    ) -> None:
        self._files, self._brought, self._keep = files, brought, keep
        self._coming = bytearray()
        self.asked = {"file": self._on_file, "load": self._on_load, "keep": self._on_keep}
        begin = {"ready": False, "code": "", "keeping": False, "folder": folder, "said": "", "problem": ""}
        super().__init__(state=begin)
        self.on_msg(self._hear)

    def say(self, **changes: Any) -> None:
        """Change what the row says."""
        self.state = {**self.state, **changes}

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the browser: one of `asked` and what goes with it; anything else is no message of ours."""
        if not isinstance(content, dict) or str(content.get("do")) not in self.asked:
            return
        try:
            self.asked[str(content["do"])](content, buffers or [])
        except Exception as error:
            # A full disk, a file that cannot be drawn: who pressed a button is told, whatever it is.
            told = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            self.say(problem=shown(told), said="")
            self.send({"refused": True})  # a box that was ticked is not, though the same was told before

    def _on_file(self, content: Mapping[str, Any], buffers: Any) -> None:
        make = self._files.get(str(content.get("kind")))
        if make is None:
            return
        name, kind, data = make()
        self.send({"file": name, "type": kind}, [data])
        self.say(said=f"{name}, {bytes_text(len(data))}", problem="")

    def _on_load(self, content: Mapping[str, Any], buffers: Any) -> None:
        """A file comes in parts, each behind the other: a message has a largest size."""
        size, offset, name = content.get("size"), content.get("offset"), shown(str(content.get("name", "")))[:80]
        if type(size) is not int or type(offset) is not int or len(buffers) != 1:
            return
        if not 0 < size <= MOST_BYTES:
            raise InputError(f"{name} has {size:,} bytes", expected=f"at most {MOST_BYTES:,}")
        if offset == 0:
            self._coming = bytearray()
        part = bytes(buffers[0])
        if offset != len(self._coming) or offset + len(part) > size:
            return
        self._coming += part
        if len(self._coming) == size:
            whole, self._coming = bytes(self._coming), bytearray()
            profile = profile_from(whole)
            self._brought(profile)
            self.say(said=f"{name} is shown", problem="")

    def _on_keep(self, content: Mapping[str, Any], buffers: Any) -> None:
        wanted = content.get("on") is True
        problem = self._keep(wanted)
        said = f"every result is kept in {self.state['folder']}" if wanted else "results are kept no more"
        self.say(keeping=wanted, said=said, problem=problem)


def file_name(name: str, ending: str) -> str:
    """A name for a file of a result; what names of models hold beside letters, digits, dots and dashes is left out."""
    plain = _NO_NAME.sub("-", name).strip("-.")[:60]
    return f"{plain or 'profile'}.{ending}"


__all__ = ["SharePanel", "file_name"]
