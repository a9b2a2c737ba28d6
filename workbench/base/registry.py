"""Folder discovery and name → object tables: how one new file becomes a new operator, vertex, report or view."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

from workbench.base.text import meant, short
from workbench.errors import WorkbenchError

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of named things; a name registered twice is an error that names both owners.

    What fills a table may lie above what reads it: `found_in` says where, and reading imports it first.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}
        self._unread: list[str] = []
        self._in_any_order = False
        self._reading = threading.RLock()

    def found_in(self, *modules: str, in_any_order: bool = False) -> None:
        """Name modules and whole folders that register things here; they are imported when the table is first read.

        `in_any_order`: nobody depends on which comes first, so the file that has the name asked for is read alone.
        """
        self._unread += modules
        self._in_any_order = in_any_order

    def _read(self) -> dict[str, T]:
        with self._reading:
            while self._unread:
                module = self._unread.pop(0)
                try:
                    _import(module)
                except BaseException:
                    self._unread.insert(0, module)
                    raise
        return self._items

    def add(self, name: str, item: T) -> T:
        """Register `item` under `name` and return it."""
        known = self._items.get(name)
        if known is not None and known is not item:
            raise WorkbenchError(
                f"{self.kind} {name!r} is registered twice: {known!r} and {item!r}",
                expected="one owner per name",
                todo="rename one of them",
            )
        self._items[name] = item
        return item

    def get(self, name: str) -> T:
        """Return the item, or raise an error that lists the known names."""
        if not isinstance(name, str) or name not in self:
            items = self._read()
            known = ", ".join(sorted(items)) or "none"
            raise WorkbenchError(
                f"unknown {self.kind} {short(name)}", expected=f"one of: {known}", todo=meant(name, items)
            )
        return self._items[name]

    def _read_file(self, name: str) -> None:
        """Import the files of a name in the folders that are not read yet."""
        if not name.isidentifier():
            return
        with self._reading:
            for package in self._unread:
                folder = importlib.util.find_spec(package)
                if folder is not None and folder.submodule_search_locations is not None:
                    module = f"{package}.{name}"
                    if importlib.util.find_spec(module) is not None:
                        importlib.import_module(module)

    def __contains__(self, name: object) -> bool:
        if self._in_any_order and isinstance(name, str) and name not in self._items:
            self._read_file(name)
        return name in self._items or name in self._read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def items(self) -> list[tuple[str, T]]:
        """Names with their items, in order of registration."""
        return list(self._read().items())

    def values(self) -> list[T]:
        """The items, in order of registration."""
        return list(self._read().values())


def _import(name: str) -> None:
    if hasattr(importlib.import_module(name), "__path__"):
        import_folder(name)


def import_folder(package: str) -> list[str]:
    """Import every module of a package in name order (each registers what it defines); return their names.

    A folder inside it is imported with all its modules, and counts as one name.
    """
    module = importlib.import_module(package)
    found = sorted(pkgutil.iter_modules(module.__path__), key=lambda info: info.name)
    for info in found:
        inner = f"{package}.{info.name}"
        if info.ispkg:
            import_folder(inner)
        else:
            importlib.import_module(inner)
    return [info.name for info in found]


# Drawn faces of reports (widget, svg, figure, html), registered by the widgets under the report's name and
# looked up here so that nothing below the widgets imports them.
faces: Registry[object] = Registry("drawn face")
