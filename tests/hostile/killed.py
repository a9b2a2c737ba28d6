"""Kills processes while they write: `python -m tests.hostile.killed KILLS`, for every writer of the package.

Each child writes one of two things again and again to the same place, and is killed at a time drawn from a seed. The
last line is JSON: by writer, how often it was killed, how often a file was half written then, and how many files at
the place itself were neither of the two.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Write = Callable[[Path], Any]


def writers() -> dict[str, tuple[Write, Write]]:
    """By name, what writes one thing and what writes the other, into a folder."""
    return {**of_profiles(), **of_others(), "executable": of_executables()}


def of_executables() -> tuple[Write, Write]:
    """Two programs, compiled here; a child only writes."""
    import numpy as np

    import workbench as wb
    from tests.hostile import things
    from workbench.ipu._files.executables import save_executable

    warnings.simplefilter("ignore")  # JAX warns of every fork; what a child does here needs no thread of JAX
    made = [wb.compile(things.multiplied, np.ones((size, size), "f4"), target=things.machine()) for size in (4, 8)]
    one, two = [lambda folder, each=each: save_executable(each, folder / "a.wbexec") for each in made]
    return one, two


def of_profiles() -> dict[str, tuple[Write, Write]]:
    from tests.profiler.handmade import handmade_pipeline, handmade_profile
    from workbench.executable.cache import Content, keep_profile, written
    from workbench.profiler.storage import profile_bytes
    from workbench.sweeps.store import Store

    one, two = handmade_profile(), handmade_pipeline()

    def both(write: Callable[[Any, Path], Any]) -> tuple[Write, Write]:
        return (lambda folder: write(one, folder)), (lambda folder: write(two, folder))

    def cached(profile: Any, folder: Path) -> None:
        os.environ["WORKBENCH_CACHE"] = str(folder)
        keep_profile(Content(key="one model"), profile)
        written()

    kept = {id_of: profile_bytes(profile) for id_of, profile in (("one", one), ("two", two))}
    return {
        "profile": both(lambda profile, folder: profile.save(folder / "a.wbprofile")),
        "csv": both(lambda profile, folder: profile.to_csv(folder)),
        "chrome trace": both(lambda profile, folder: profile.to_chrome_trace(folder / "a.json")),
        "page": both(lambda profile, folder: profile.to_html(folder / "a.html")),
        "cache": both(cached),
        "sweep": (
            lambda folder: Store(folder).keep("a", kept["one"]),
            lambda folder: Store(folder).keep("a", kept["two"]),
        ),
    }


def of_others() -> dict[str, tuple[Write, Write]]:
    import numpy as np

    from workbench.cli.outcome import Outcome
    from workbench.ipu._files.tensors import Stored, write

    def tensors(value: int) -> Write:
        held = Stored(name="a", values=np.full((1, 200_000), value, dtype="int32"))
        return lambda folder: write(folder / "a.bin", "feed", [held])

    def outcome(code: int) -> Write:
        return lambda folder: Outcome(code=code, result="x" * 100_000 * (code + 1)).write(folder / "outcome.json")

    return {
        "tensors": (tensors(1), tensors(2)),
        "outcome": (outcome(0), outcome(1)),
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".part"}


def whole_ones(writes: tuple[Write, Write]) -> tuple[dict[str, set[bytes]], float]:
    """What each file may hold, which is what it holds where nothing was killed, and the seconds of writing both."""
    found: dict[str, set[bytes]] = {}
    start = time.perf_counter()
    for write in writes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
            for name, content in files_of(Path(folder)).items():
                found.setdefault(name, set()).add(content)
    return found, time.perf_counter() - start


def killed(writes: tuple[Write, Write], kills: int, draw: random.Random) -> dict[str, int]:
    (whole, seconds), halves, at_work = whole_ones(writes), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(kills):
            child = os.fork()
            while not child:
                for write in writes:
                    write(folder)
            time.sleep(draw.uniform(0.0, 2 * seconds))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            halves += sum(content not in whole.get(name, ()) for name, content in files_of(folder).items())
            parts = list(folder.rglob("*.part"))
            at_work += bool(parts)
            for part in parts:
                part.unlink()
    return {"kills": kills, "halves": halves, "at_work": at_work}


if __name__ == "__main__":
    drawn = random.Random(7)
    print(json.dumps({name: killed(pair, int(sys.argv[1]), drawn) for name, pair in writers().items()}))
