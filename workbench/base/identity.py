"""Tables keyed by objects that do not hash, or not by what they are: arrays, and objects of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """What is known of objects, each for itself. It keeps them, so that no later object is taken for one of them."""

    __slots__ = ("_held",)

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        self._held: dict[Hashable, tuple[K, V]] = {}
        for key, value in items:
            self[key] = value

    def __contains__(self, key: K) -> bool:
        return self._name(key) in self._held

    def __getitem__(self, key: K) -> V:
        return self._held[self._name(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        self._held[self._name(key)] = (key, value)

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K, default: Any = None) -> Any:
        """What is known of an object, or `default`."""
        found = self._held.get(self._name(key))
        return default if found is None else found[1]

    def setdefault(self, key: K, value: V) -> V:
        """What is known of an object; `value` from now on, where nothing was."""
        return self._held.setdefault(self._name(key), (key, value))[1]

    def pop(self, key: K) -> V:
        """Forget an object; returns what was known of it."""
        return self._held.pop(self._name(key))[1]

    def items(self) -> list[tuple[K, V]]:
        """The objects with what is known of them, in the order in which they came."""
        return list(self._held.values())

    _name: Callable[[Any], Hashable] = staticmethod(id)  # asked for often, so without a function around it


class ByIdentities(ByIdentity[tuple[K, ...], V]):
    """What is known of several objects together, each for itself."""

    __slots__ = ()

    @staticmethod
    def _name(key: tuple[Any, ...]) -> Hashable:
        return tuple(map(id, key))


class Selves(tuple[K, ...]):
    """Objects as a key that is equal only to one of the very same objects; who keeps it keeps them."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selves) and tuple(map(id, self)) == tuple(map(id, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def each_once(items: Iterable[K]) -> list[K]:
    """The objects without those that came before, in their order; equal objects are two."""
    return [item for item, _ in ByIdentity((item, None) for item in items).items()]
