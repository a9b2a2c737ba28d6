"""Runs cells: every argument of a callable with a value of every class, and says what did not end as it should.

`python -m tests.hostile.rows SHARE ROOM …` runs every SHAREth cell of rooms, chosen by name, in this process, with a
limit of memory and of time around each; the last line is JSON: how many ended how, and the problems.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 60  # of one cell
MEMORY_BYTES = 6 << 30  # of address space, beside what the process has when it begins


class Cell(NamedTuple):
    call: str
    argument: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.call}({self.argument}={self.kind})"


def chosen(cell: Cell, share: int) -> bool:
    """Whether a cell is among every so manieth; the same on every machine."""
    return zlib.crc32(cell.name.encode()) % share == 0


def cells(room: str) -> Iterator[tuple[Any, Cell]]:
    from tests.hostile.classes import CLASSES
    from tests.hostile.surface import ROOMS

    for call in ROOMS[room]():
        for argument in call.arguments:
            for kind in CLASSES:
                yield call, Cell(call.name, argument, kind)


def end_of(call: Any, argument: str, value: Any) -> tuple[str, Any]:
    """How a call with this value ends: the end's name, and the result or the error."""
    from tests.hostile.classes import Theirs
    from workbench.errors import WorkbenchError

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = call(**call.given(argument, value))
    except WorkbenchError as error:
        return "ours", error
    except Theirs as error:
        return "own", error
    except FileNotFoundError as error:
        return "missing", error
    except BaseException as error:
        return "foreign", error
    return told_in_rows(result)


def told_in_rows(result: Any) -> tuple[str, Any]:
    """Problems of a sweep, or a plan, stand in its rows: where all have one, it is what was told."""
    both = (getattr(result, name, ()) for name in ("rows", "uses"))  # of an exchange they are numbers
    rows = next((each for each in both if isinstance(each, list | tuple) and each), ())
    problems = [getattr(row, "problem", "") for row in rows]
    if problems and all(problems):
        return "ours", problems[0]
    return "result", result


def judged(call: Any, cell: Cell) -> tuple[str, str]:
    """The end of a cell, and what is wrong with it, "" for nothing."""
    from tests.hostile.checks import CHECKS
    from tests.hostile.classes import CLASSES
    from tests.hostile.ends import expected, names_it, shows_it
    from tests.hostile.surface import UNKNOWN

    value = CLASSES[cell.kind]()
    end, found = end_of(call, cell.argument, value)
    wanted = expected(call, cell.argument, cell.kind)
    if end != wanted:
        text = repr(found) if isinstance(found, BaseException | str) else f"a {type(found).__name__}"
        return end, f"{wanted} was expected, and it ended in {end}: {text[:200]}"
    if end == "ours":
        if not names_it(str(found), cell.argument):
            return end, f"the argument is not named: {str(found)[:200]}"
        if cell.argument != UNKNOWN and not shows_it(str(found), value):
            return end, f"the value is not shown: {str(found)[:200]}"
    check = CHECKS.get(f"{cell.call}.{cell.argument}", CHECKS.get(cell.call))
    if end == "result" and check is not None:
        try:
            check(call, cell.argument, value, found)
        except AssertionError as error:
            return "compared", f"the result differs: {str(error)[:200]}"
        return "compared", ""
    return end, ""


def ran(rooms: list[str], share: int) -> dict[str, Any]:
    """The chosen cells of rooms, each in an empty folder of its own, so that none meets what another wrote."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        counted: Counter[str] = Counter()
        problems = {}
        limited = False
        every = [(call, cell) for room in rooms for call, cell in cells(room) if chosen(cell, share)]
        for number, (call, cell) in enumerate(every):
            inner = Path(folder, f"{number}", "a", "b")  # `..` leads nowhere else
            inner.mkdir(parents=True)
            os.chdir(inner)
            if not limited:
                limit()
                limited = True
            print(cell.name, file=sys.stderr, flush=True)  # the last one is the one that stopped the process
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            end, problem = judged(call, cell)
            faulthandler.cancel_dump_traceback_later()
            counted[end] += 1
            if problem:
                problems[cell.name] = problem
        os.chdir(folder)
    return {"ends": dict(counted), "problems": problems}


def unlimited() -> None:
    """As much address space as this process was given."""
    whole = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (whole, whole))


def limit(more_bytes: int = MEMORY_BYTES) -> None:
    """No more address space than this process has by now and so much."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    print(json.dumps(ran(sys.argv[2:], int(sys.argv[1]))))
