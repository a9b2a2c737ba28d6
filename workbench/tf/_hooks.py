"""What stands above those who ask for it, and tells them where it is: they import none of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.engine.options import Options

T = TypeVar("T")


class Compiler(Protocol):
    """Compiles something that has a `trace_source`, for so many replicas; the executable."""

    def __call__(self, source: Any, options: Options, *, replicas: int) -> Any: ...


class Hook(Generic[T]):
    """A place for one thing from above. It is looked for whenever it is needed, so that setting costs nothing."""

    def __init__(self, what: str, todo: str) -> None:
        self._what, self._todo = what, todo
        self._find: Callable[[], T] | None = None

    def set(self, find: Callable[[], T]) -> None:
        """From here on, `find` gives it."""
        self._find = find

    def get(self) -> T:
        """What was set, or a `WorkbenchError`."""
        if self._find is None:
            raise WorkbenchError(f"tf was not told where {self._what} is", todo=self._todo)
        return self._find()


_FRONT_DOOR = "import workbench, which tells it"
compiler: Hook[Compiler] = Hook("the compiler", _FRONT_DOOR)
ipu: Hook[ModuleType] = Hook("tensorflow.python.ipu", _FRONT_DOOR)
operators: Hook[Mapping[str, Callable[..., Any]]] = Hook("arithmetic", _FRONT_DOOR)
session: Hook[Callable[..., Any]] = Hook("a session", "use tf.Session")  # variables are below what runs them

__all__ = ["Compiler", "Hook", "compiler", "ipu", "operators", "session"]
