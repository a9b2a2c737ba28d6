"""Views: what stands in the place of a lowering's tables while a body is recorded, and notes what is read of them.

What the body writes is its own: it goes to the table, and reading it again is not noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSet
from typing import Any

from workbench.engine.graph import Graph
from workbench.engine.program import Variable

Note = Callable[[Any], None]
NoteOf = Callable[[Any, Any], None]  # of a table as it is, and a key
Spoil = Callable[[str], None]


class TableView(MutableMapping[Any, Any]):
    """A table by key. `note` hears of each key that is read, `spoil` that all of it is; `own` is what was written."""

    def __init__(self, held: Any, note: NoteOf, spoil: Spoil, own: set[Any] | None = None) -> None:
        self.held = held
        self.own: set[Any] = set() if own is None else own
        self._known = set(self.own)  # and what was noted
        self._note = note
        self._spoil = spoil

    def _read(self, key: Any) -> None:
        if key not in self._known:
            self._known.add(key)
            self._note(self.held, key)

    def __getitem__(self, key: Any) -> Any:
        if key not in self._known:
            self._read(key)
        return self.held[key]

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        self._read(key)
        return self.held.get(key, default)

    def __contains__(self, key: object) -> bool:
        self._read(key)
        return key in self.held

    def __setitem__(self, key: Any, value: Any) -> None:
        self.own.add(key)
        self._known.add(key)
        self.held[key] = value

    def __delitem__(self, key: Any) -> None:
        self.own.add(key)
        self._known.add(key)
        del self.held[key]

    def __iter__(self) -> Iterator[Any]:
        self._spoil("was read whole")
        return iter(self.held)

    def __len__(self) -> int:
        """Numbers that count what was made before follow on each other, as those of steps do."""
        return len(self.held)

    def copy(self) -> TableView:
        """The table as it is now, to go back to."""
        return TableView(self.held.copy(), self._note, self._spoil, set(self.own))


class SetView(MutableSet[Any]):
    """The same of a set."""

    def __init__(self, held: Any, note: NoteOf, spoil: Spoil) -> None:
        self.held = held
        self.own: set[Any] = set()
        self._note = note
        self._spoil = spoil

    def __contains__(self, key: object) -> bool:
        if key not in self.own:
            self._note(self.held, key)
        return key in self.held

    def add(self, value: Any) -> None:
        """Add a value, which is the body's own."""
        self.own.add(value)
        self.held.add(value)

    def discard(self, value: Any) -> None:
        """Take a value out."""
        self.own.add(value)
        self.held.discard(value)

    def __iter__(self) -> Iterator[Any]:
        self._spoil("was read whole")
        return iter(self.held)

    def __len__(self) -> int:
        self._spoil("was read whole")
        return len(self.held)

    def __bool__(self) -> bool:
        """Whether it is worth asking; each question is noted by itself."""
        return True


class VariablesView:
    """The variables of a program; of those that were there before the body each field that is read is noted."""

    def __init__(self, held: list[Variable], note: Note, spoil: Spoil) -> None:
        self.held = held
        self.first = len(held)
        self._note = note
        self._spoil = spoil

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            if (place.start or 0) < self.first:
                self._spoil("was read whole")
            return self.held[place]
        return self.held[place] if place >= self.first else VariableView(self.held[place], self._note)

    def __setitem__(self, place: int, variable: Variable) -> None:
        if place < self.first:
            self._spoil("was changed where it was not the body's own")
        self.held[place] = variable

    def __delitem__(self, places: slice) -> None:
        del self.held[places]

    def __iter__(self) -> Iterator[Variable]:
        self._spoil("was read whole")
        return iter(self.held)

    def append(self, variable: Variable) -> None:
        """Add a variable of the body."""
        self.held.append(variable)


class VariableView:
    """A variable that was there before the body."""

    __slots__ = ("_held", "_note")

    def __init__(self, held: Variable, note: Note) -> None:
        self._held = held
        self._note = note

    def __getattr__(self, name: str) -> Any:
        self._note((self._held.id, name))
        return getattr(self._held, name)


class GraphView:
    """A graph: functions that the body calls are part of it, its name and what is said of it are noted."""

    def __init__(self, held: Graph, inside: frozenset[str], note: Note, spoil: Spoil) -> None:
        self.held = held
        self.functions: Mapping[str, Any] = TableView(held.functions, self._of_body, spoil)
        self.meta: Mapping[str, Any] = TableView(held.meta, lambda _, key: note(("meta", key)), spoil)
        self._inside = inside
        self._note = note
        self._spoil = spoil

    @property
    def name(self) -> str:
        """The model's name."""
        self._note("name")
        return self.held.name

    def _of_body(self, functions: Any, name: str) -> None:
        if name not in self._inside:
            self._spoil(f"was asked for @{name}, which the body does not call")

    def __getattr__(self, name: str) -> Any:
        self._spoil(f"was asked for its {name}")
        return getattr(self.held, name)
