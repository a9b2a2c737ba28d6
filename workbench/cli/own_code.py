"""Whose error it is: what the model's own code raised while it was built or traced, and no defect of the workbench."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from workbench.cli.given import ModelError

_OURS = Path(__file__).parents[1]
_OF_LIBRARIES = tuple(Path(place) for place in {*map(sysconfig.get_path, ("stdlib", "platlib", "purelib"))})


def of_the_model(error: BaseException, model: str) -> ModelError | None:
    """The error as one of the model's own code, with that part of the traceback; None where it is none of its own.

    `model`: as it was given. It is its own where a frame of its code is above the last frame of the workbench: what
    Keras or JAX raise of what it asked of them is its own, and what the workbench raises for it is not. A ready model
    has no code of its own.
    """
    module, colon, _ = model.partition(":")
    if not colon:
        return None
    own: list[TracebackType] = []
    for each in _frames(error.__traceback__):
        if _is_below(each, _OURS):
            own.clear()
        elif _is_own(each, module.partition(".")[0]):
            own.append(each)
    if not own:
        return None
    trace = "".join(traceback.format_exception(type(error), error, own[0], chain=False))
    place = f"{Path(own[-1].tb_frame.f_code.co_filename).name}, line {own[-1].tb_lineno}"
    return ModelError(f"the code of {model!r} raised {type(error).__name__} ({place}): {error}", trace)


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_own(trace: TracebackType, package: str) -> bool:
    """Whether a frame is of the model's package, which may be installed, or of a file that belongs to no library."""
    if str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == package:
        return True
    in_file = not trace.tb_frame.f_code.co_filename.startswith("<")
    return in_file and not any(_is_below(trace, place) for place in _OF_LIBRARIES)


def _is_below(trace: TracebackType, folder: Path) -> bool:
    return folder in Path(trace.tb_frame.f_code.co_filename).parents
