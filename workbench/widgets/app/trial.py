"""What the values beside an option's change: each is compiled, and held against the value that is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.base.text import shown
from workbench.base.units import bytes_text, percent_text
from workbench.errors import Cancelled, InputError, WorkbenchError
from workbench.executable import compile_request
from workbench.executable.configured import found, neighbours, text_of
from workbench.profiler.advice.diagnose import cycles_per_sample
from workbench.profiler.profile import Profile
from workbench.widgets.app.task import Progress


@dataclass(frozen=True, slots=True)
class Tries:
    """What values of an option are tried against: the value that was set, and the code of all that was asked for."""

    name: str
    value: Any
    asked: str


def tried(request: Any, name: str, progress: Progress, like: Any = None) -> list[dict[str, Any]]:
    """A row for each value beside the one that is set: what it changes, or why it cannot be compiled.

    `like`: an executable whose trace is taken where the request asks for the same one.
    """
    declared = found(name)
    values = neighbours(declared, request.options.get(name))
    if not values:
        raise InputError(f"{name} has no values beside {request.options.get(name)!r}", todo="set one by hand")

    def heard(number: int) -> Progress:
        return lambda phase: progress(f"value {number} of {len(values) + 1}: {phase}")

    base = compile_request(request, heard(1), like)
    rows = []
    for number, value in enumerate(values, 2):
        try:
            beside = compile_request(request.replace(options={name: value}), heard(number), base).profile
        except Cancelled:
            raise
        except WorkbenchError as error:
            rows.append({"value": text_of(value), "problem": shown(str(error))})
        else:
            rows.append({"value": text_of(value), **_change(base.profile, beside)})
    return rows


def _change(before: Profile, after: Profile) -> dict[str, Any]:
    """Bytes on the fullest tile and cycles a sample, after less before."""
    saved = after.max_tile_bytes - before.max_tile_bytes
    cycles = cycles_per_sample(after) / cycles_per_sample(before) - 1 if cycles_per_sample(before) else 0.0
    memory = "same memory" if not saved else f"{bytes_text(abs(saved))} {'more' if saved > 0 else 'less'}"
    time = "same cycles" if not cycles else f"{percent_text(abs(cycles))} {'more' if cycles > 0 else 'fewer'} cycles"
    return {"fits": after.fits, "bytes": saved, "cycles": cycles, "bytes_text": memory, "cycles_text": time}


__all__ = ["Tries", "tried"]
