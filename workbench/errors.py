"""Every error a user can meet: what was wrong, what was expected, what to do, as fields and as text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workbench.base.source.tracebacks import in_a_notebook
from workbench.base.text import shown


def _again(kind: type[WorkbenchError], arguments: tuple[Any, ...]) -> WorkbenchError:
    """An error of a kind without its constructor, which asks every kind for other things; its fields come after."""
    error = Exception.__new__(kind)
    error.args = arguments
    return error


class WorkbenchError(Exception):
    """Base of all workbench errors.

    Fields: `what` (what was wrong), `expected` (what would have been right), `todo` (the next step); `mends`: arguments
    of a compile that do that step, where there are some.
    """

    mends: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, what: str, expected: str = "", todo: str = "") -> None:
        self.what = what
        self.expected = expected
        self.todo = todo
        parts = [what]
        if expected:
            parts.append(f"Expected: {expected}")
        if todo:
            parts.append(f"To mend it: {todo}")
        super().__init__(shown(" ".join(map(_ended, parts)), keep="\n\t"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors go between processes, and are copied, with all their fields."""
        return _again, (type(self), self.args), dict(self.__dict__)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows. `__traceback__` stays whole, for debuggers and for all that is not a notebook."""
        return in_a_notebook(self)


def _ended(part: str) -> str:
    return part if part.endswith("?") else f"{part.rstrip('.')}."


class InputError(WorkbenchError, ValueError):
    """A model, an array or an argument that cannot be compiled as it stands."""


class CallError(InputError, TypeError):
    """A call with arguments that a function does not have, or without some that it needs."""


class OperandError(InputError, TypeError):
    """What an operation was given and cannot compute with."""


class BackendError(InputError, ImportError):
    """Keras cannot be loaded on the backend that `KERAS_BACKEND` names."""


class KindError(WorkbenchError, TypeError):
    """A value of another kind than a call takes, where the SDK raises a TypeError."""


class StateError(WorkbenchError, RuntimeError):
    """What is asked for where or when it cannot be had: of a closed session, of a queue that was deleted."""


class UnsupportedError(NotImplementedError, InputError):
    """What is well formed, and what neither the SDK nor this workbench does."""

    def __init__(self, what: str, expected: str = "", todo: str = "") -> None:
        InputError.__init__(self, what, expected, todo)


class OptionError(WorkbenchError):
    """What is wrong with options; raised as it is where two of them exclude each other, or one is no option at all."""


class OptionValueError(OptionError, ValueError):
    """An option that is unknown, or that has a value or type it cannot have."""


class ProfileFileError(WorkbenchError):
    """A profile file that is truncated, foreign, or written by a newer workbench."""


class VerificationError(WorkbenchError, AssertionError):
    """A stage produced something its own rules forbid: a defect of the workbench, not of the model."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: here our lines are what to look at."""
        return in_a_notebook(self, whole=True)


class Cancelled(WorkbenchError):
    """The user asked to stop; nothing was kept of the interrupted work."""

    def __init__(self, phase: str = "") -> None:
        self.phase = phase
        super().__init__(
            f"the compile was cancelled{' in phase ' + repr(phase) if phase else ''}",
            todo="compile again when ready; nothing half-finished was kept",
        )


class OutOfMemoryError(WorkbenchError, MemoryError):
    """A program that does not fit was asked to run.

    Fields: `tile`, `step`, `bytes_used`, `bytes_available`; `region`: what says which memory region is full, where
    another has room. `todo`: what makes room where `diagnose` has no lever, as for a program made by hand.
    """

    def __init__(
        self, *, tile: int, step: int, bytes_used: int, bytes_available: int, region: str = "", todo: str = ""
    ) -> None:
        self.tile = tile
        self.step = step
        self.bytes_used = bytes_used
        self.bytes_available = bytes_available
        self.region = region
        super().__init__(
            f"Out of memory on tile {tile}: {bytes_used} bytes used but tiles only have "
            f"{bytes_available} bytes of memory" + (f"; {region}" if region else ""),
            todo=todo or "wb.diagnose(executable) lists fixes that were compiled and measured",
        )


class NumericError(WorkbenchError, FloatingPointError):
    """A floating-point exception that the configuration lets stop a run; the run kept nothing.

    Fields: `cause` (what happened), `operation` (the operation that did it), `layer` (the layer it belongs to).
    """

    def __init__(self, *, cause: str, operation: str, layer: str) -> None:
        self.cause = cause
        self.operation = operation
        self.layer = layer
        super().__init__(
            f"the run stopped at {cause} in operation {operation!r}"
            + (f" of layer {layer!r}" if layer else "")
            + ", which leaves tiles in an excepted state",
            todo="mend the numbers that reach it, or switch the exception off in config.floating_point_behaviour",
        )


class RowIndexError(WorkbenchError, IndexError):
    """An index outside a table, in a run that checks them; the run kept nothing.

    Fields: `operation` (the look-up or update), `layer` (the layer it belongs to).
    """

    def __init__(self, *, operation: str, layer: str) -> None:
        self.operation = operation
        self.layer = layer
        super().__init__(
            f"the run stopped at an index outside the table in operation {operation!r}"
            + (f" of layer {layer!r}" if layer else ""),
            todo="mend the indices that reach it, or leave validateIndices out of config.slices.poplar_options",
        )
