"""Damages files and reads them: an error of ours or an equal value, no crash, no hang.

`python -m tests.hostile.damage FORMAT FIRST COUNT …` does so with seeds FIRST … in this process, format by format, with
a limit of address space and of time around each; the last line is JSON: how many ended how, and the problems.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import io
import json
import os
import random
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.hostile.rows import SECONDS, limit, unlimited

MEMORY_BYTES = 1 << 30
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 10**400, 1.5, float("nan"), float("inf")),
    *("", "\x00", "../..", "\u202e", "<b>", "=1+1", "nosuch"),
    *([], [[]], {}, {"nosuch": 1}, [None] * 3, "9" * 5000, -(2**70)),
)


def flipped(whole: bytes, draw: random.Random) -> bytes:
    """A few bits turned."""
    content = bytearray(whole)
    for _ in range(draw.randint(1, 8)):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(content)


def cut(whole: bytes, draw: random.Random) -> bytes:
    """The first part alone, or the last."""
    at = draw.randrange(len(whole))
    return whole[:at] if draw.random() < 0.7 else whole[at:]


def moved(whole: bytes, draw: random.Random) -> bytes:
    """A part taken out, put in twice, or in another place."""
    first, last = sorted(draw.randrange(len(whole)) for _ in range(2))
    part, at = whole[first:last], draw.randrange(len(whole))
    return draw.choice([whole[:first] + whole[last:], whole[:last] + whole[first:], whole[:at] + part + whole[at:]])


def overwritten(whole: bytes, draw: random.Random) -> bytes:
    """Other bytes in the place of some."""
    at = draw.randrange(len(whole))
    other = draw.choice([draw.randbytes(draw.randint(1, 64)), bytes(64), b"\xff" * 64, b"\r\n" * 8])
    return whole[:at] + other + whole[at + len(other) :]


def members(whole: bytes) -> dict[str, bytes] | None:
    if not zipfile.is_zipfile(io.BytesIO(whole)):
        return None
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: list[tuple[str, bytes]]) -> bytes:
    found = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        warnings.simplefilter("ignore")  # names twice are meant
        for name, content in parts:
            archive.writestr(name, content)
    return found.getvalue()


def spliced(whole: bytes, draw: random.Random) -> bytes:
    """A zip with one member left out, twice, under another's name, or damaged inside; sums are right again."""
    held = members(whole)
    if held is None:
        return moved(whole, draw)
    names = list(held)
    one, other = draw.choice(names), draw.choice(names)
    changed: Mapping[str, Callable[[], list[tuple[str, bytes]]]] = {
        "left out": lambda: [(name, held[name]) for name in names if name != one],
        "twice": lambda: [*held.items(), (one, held[other])],
        "another's": lambda: [(name, held[other] if name == one else content) for name, content in held.items()],
        "outside": lambda: [*held.items(), (draw.choice(["../nosuch", "/tmp/nosuch", "a\\..\\b"]), b"x")],
        "damaged": lambda: [
            (name, flipped(content, draw) if name == one and content else content) for name, content in held.items()
        ],
    }
    return packed(changed[draw.choice(list(changed))]())


def bomb(whole: bytes, draw: random.Random) -> bytes:
    """A zip whose member unpacks to more than any; of other formats, a file of zeros or of brackets."""
    held = members(whole)
    if held is None:
        return draw.choice([bytes(1 << 20), b"[" * 100_000, b'{"a":' * 50_000, whole[:1] * (1 << 20)])
    one = draw.choice(list(held))
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in held.items():
            if name != one:
                archive.writestr(name, content)
        with archive.open(one, "w", force_zip64=True) as member:
            for _ in range(640):
                member.write(bytes(1 << 20))
    return found.getvalue()


def foreign(whole: bytes, draw: random.Random) -> bytes:
    """JSON in which something is of another kind; of other formats, bytes."""
    held = members(whole)
    if held is not None:
        name = draw.choice([each for each in held if each.endswith(".json")])
        held[name] = json.dumps(with_junk(json.loads(held[name]), draw)).encode("utf-8", "surrogatepass")
        return packed(list(held.items()))
    try:
        return json.dumps(with_junk(json.loads(whole), draw)).encode()
    except ValueError:
        return overwritten(whole, draw)


def with_junk(value: Any, draw: random.Random) -> Any:
    """The value with junk in one place, chosen on the way down."""
    found = copy.deepcopy(value)
    junk = copy.deepcopy(draw.choice(JUNK))
    holder, key = None, None
    inner = found
    while isinstance(inner, dict | list) and inner and draw.random() < 0.8:
        holder, key = inner, draw.choice(list(inner)) if isinstance(inner, dict) else draw.randrange(len(inner))
        inner = inner[key]
    if holder is None:
        return junk
    holder[key] = junk
    return found


DAMAGES = {each.__name__: each for each in (flipped, cut, moved, overwritten, spliced, foreign, bomb)}
SHARES = (30, 20, 15, 15, 12, 12, 1)  # of a hundred; a bomb takes seconds to make
# Made so that every sum is right: what is read may be another value.
REMADE = ("spliced", "foreign", "bomb")


def damaged(whole: bytes, seed: int) -> tuple[str, bytes]:
    draw = random.Random(seed)
    name = draw.choices(list(DAMAGES), SHARES)[0]
    return name, DAMAGES[name](whole, draw)


def judged(form: Any, path: Path, name: str, wanted: Any) -> tuple[str, str]:
    """How reading a damaged file ends, and what is wrong with that, "" for nothing."""
    from workbench.errors import WorkbenchError

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = form.read(path)
    except WorkbenchError:
        return "ours", ""
    except BaseException as error:
        return "foreign", f"{type(error).__name__}: {str(error)[:200]}"
    if found is None or found == wanted:
        return "equal", ""
    if not form.checked or name in REMADE:
        return "another", ""
    return "differs", "another value was read"


def ran(format_name: str, first: int, count: int) -> dict[str, Any]:
    """So many damaged files of a format, in a folder of their own."""
    from tests.hostile.formats import FORMATS

    form = FORMATS[format_name]
    unlimited()  # of the format before, whose reading filled what it had
    whole = form.whole()
    counted: Counter[str] = Counter()
    problems = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        place = Path(folder, "whole").with_suffix(form.suffix)
        place.write_bytes(whole)
        wanted = form.read(place)
        limit(MEMORY_BYTES)
        for seed in range(first, first + count):
            name, content = damaged(whole, seed)
            here = Path(folder, f"case{seed}")
            here.mkdir()
            path = (here / "damaged").with_suffix(form.suffix)
            path.write_bytes(content)
            print(f"{format_name} {name} {seed}", file=sys.stderr, flush=True)  # the last one stopped the process
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            end, problem = judged(form, path, name, wanted)
            faulthandler.cancel_dump_traceback_later()
            counted[f"{name} {end}"] += 1
            if problem:
                problems[f"{format_name} {name} {seed}"] = problem
        os.chdir("/")
    return {"ends": dict(counted), "problems": problems}


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    found = {
        name: ran(name, int(first), int(count))
        for name, first, count in zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True)
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
