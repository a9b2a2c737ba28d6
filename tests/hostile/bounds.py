"""What a bound stands around, run in a process of its own: `python -m tests.hostile.bounds NAME`.

`loops`: everything that is shown of a loop of loops with 10⁹ turns. `bomb`: a profile that unpacks to more than any is
refused within half a GiB. `memory`: 200 compiles and 60 displays, whose memory stays where it is after the first
quarter of them.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.hostile import things
from tests.hostile.rows import limit
from workbench.errors import InputError, ProfileFileError

HALF_A_GIB = 1 << 29
TURNS = (10**6, 10**3)


def looping() -> Any:
    """A program by hand of a loop in a loop."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    x = g.variable("x", (4,), "float32").map_linearly(tiles=4)
    step: Any = g.host_copy(x)
    for turns in TURNS:
        step = g.repeat(turns, step)
    return g.sequence(step)


def shown_of(profile: Any, folder: Path) -> Mapping[str, Callable[[], Any]]:
    """Everything that may be asked of a profile, by name."""
    middle = profile.total_cycles // 2
    return {
        "text": lambda: str(profile),
        "blocks": lambda: profile.blocks(max_rows=20),
        "blocks in the middle": lambda: profile.blocks(cycles_from=middle, cycles_to=middle + 1000),
        "trace": lambda: profile.trace.window(),
        "trace in the middle": lambda: profile.trace.window(0, middle, middle + 1000),
        "tiles": lambda: profile.trace.tiles(),
        "balance": lambda: profile.trace.tile_balance(),
        "proportions": lambda: profile.trace.proportions(0, 5, middle),
        "pipeline": lambda: profile.pipeline.blocks(),
        "tree": lambda: str(profile.program_tree),
        "csv": lambda: profile.to_csv(folder / "tables"),
        "html": lambda: profile.to_html(folder / "page.html"),
        "views": lambda: wb.views(profile),
    }


def loops() -> dict[str, int]:
    profile = wb.profile(looping())
    assert profile.total_cycles > 10**9
    with tempfile.TemporaryDirectory() as folder:
        for ask in shown_of(profile, Path(folder)).values():
            ask()
        window = profile.trace.window()
        assert window["cycles_to"].max() == profile.total_cycles
        lane = window[window["lane"] == "phase"]
        assert (lane["cycles_from"].to_numpy()[1:] == lane["cycles_to"].to_numpy()[:-1]).all()
        with pytest.raises(InputError, match="cycles_to="):
            profile.to_chrome_trace(Path(folder) / "trace.json")
        return {"rectangles": len(window)}


def bomb() -> dict[str, int]:
    found = io.BytesIO()
    with (
        zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("profile.json", "w", force_zip64=True) as member,
    ):
        for _ in range(1024):
            member.write(bytes(1 << 20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bomb.wbprofile"
        path.write_bytes(found.getvalue())
        limit(HALF_A_GIB)
        with pytest.raises(ProfileFileError):
            wb.load_profile(path)
    return {"packed_bytes": len(found.getvalue())}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def memory() -> dict[str, int]:
    """Different programs, so that nothing is taken from before; what is kept is bounded by the cache's sixteen."""
    import numpy as np

    after = []
    for number in range(200):
        size = 4 + number % 50
        made = wb.compile(things.multiplied, np.zeros((size, size), "float32"), target=things.machine())
        assert made.profile.total_cycles > 0
        if number < 60:
            wb.views(made.profile)._repr_mimebundle_()
        if number in (99, 199):
            after.append(resident_bytes())
    return {"grown_bytes": after[1] - after[0]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({"loops": loops, "bomb": bomb, "memory": memory}[sys.argv[1]]()))
