"""poprand: drawing from the tile's generators. All workers draw; cycles are of the tile."""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p

_SOURCE = "poplibs@7eac0f26 lib/poprand/poprandCycleEstimators.cpp"


def _wide_vector(dtype: str) -> int:
    """PopLibs counts the uniform and Bernoulli loops per 32 floats or 16 halves."""
    return 32 if dtype == "float" else 16


def _uniform_int(n: int, full_range: bool, *, workers: int) -> int:
    start = 4 + 22 * workers
    return start + n // 2 if full_range else start + 6 * (n // 2) + 2 * (n % 2)


@codelet(
    "poprand::Uniform",
    kind="multi",
    source=f"{_SOURCE}:11",
    formula="4 + workers * 22 (24 half) + 4 * (n + v - 1) / v + 4 (12 half) if n is no multiple of v = 32 floats or 16 "
    "halves; int 6 a pair, or 1 a pair over the whole range",
    state_bytes=lambda **_: p.SPAN + 8,
    code_bytes=200,
    flops=lambda *, type, n, **_: 3 * n if p.is_float(type) else 0,
)
def uniform(*, type: str, n: int, full_range: bool = False, workers: int) -> int:
    """Tile cycles of n uniform numbers; `full_range` is an int without scaling."""
    if type == "int":
        return _uniform_int(n, full_range, workers=workers)
    vector = _wide_vector(type)
    start, rest = (22, 4) if type == "float" else (24, 12)
    return 4 + p.loop_cycles(n, vector, 4) + start * workers + (rest if n % vector else 0)


@codelet(
    "poprand::Bernoulli",
    kind="multi",
    source=f"{_SOURCE}:52",
    formula="4 + workers * 23 (21 half) + ceil(n / v) + 1 (9 half) if n is no multiple of v = 32, or 16 halves",
    state_bytes=lambda **_: p.SPAN + 4,
    code_bytes=140,
    flops=lambda *, type, n: n if p.is_float(type) else 0,
)
def bernoulli(*, type: str, n: int, workers: int) -> int:
    """Tile cycles of n zeros and ones."""
    vector = 16 if type == "half" else 32
    start, rest = (21, 9) if type == "half" else (23, 1)
    return 4 + ceil_div(n, vector) + start * workers + (rest if n % vector else 0)


@codelet(
    "poprand::Normal",
    kind="multi",
    source=f"{_SOURCE}:74",
    formula="4 + workers * 22 (24 half) + 4 * (n + v - 1) / v + 3 (12 half) if n is no multiple of v = 2 floats "
    "or 4 halves",
    state_bytes=lambda **_: p.SPAN + 8,
    code_bytes=180,
    flops=lambda *, type, n: 3 * n if p.is_float(type) else 0,
)
def normal(*, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of n normal numbers."""
    vector = p.vector_width(type, data_path_bytes)
    start, rest = (22, 3) if type == "float" else (24, 12)
    return 4 + p.loop_cycles(n, vector, 4) + start * workers + (rest if n % vector else 0)


@codelet(
    "poprand::TruncatedNormal",
    kind="multi",
    source=f"{_SOURCE}:97",
    formula="4 + workers * 26 (28 half) + (11 (12 half) * iterations + 5) * (n + v - 1) / v + one more round "
    "for the rest",
    state_bytes=lambda **_: p.SPAN + 16,
    code_bytes=392,
    flops=lambda *, type, n, iterations: 3 * n if p.is_float(type) else 0,
)
def truncated_normal(*, type: str, n: int, iterations: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of n normal numbers drawn again, `iterations` times at most, while out of bounds."""
    vector = p.vector_width(type, data_path_bytes)
    is_float = type == "float"
    each = (11 if is_float else 12) * iterations + 5
    rest = 13 * iterations + 2 if is_float else 12 * iterations + 10
    start = (26 if is_float else 28) * workers
    return 4 + start + p.loop_cycles(n, vector, each) + (rest if n % vector else 0)


@codelet(
    "poprand::Dropout",
    kind="multi",
    source=f"{_SOURCE}:125",
    formula="6 + workers * 24 + 2 * (n + v - 1) / v + 1 (9 half) if n is no multiple of v = 2 floats or 4 halves",
    state_bytes=lambda **_: 2 * p.SCALED_POINTER + 12,
    code_bytes=236,
    flops=lambda *, type, n: 2 * n if p.is_float(type) else 0,
)
def dropout(*, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of keeping or clearing n elements and scaling them."""
    vector = p.vector_width(type, data_path_bytes)
    rest = 1 if type == "float" else 9
    return 6 + 24 * workers + p.loop_cycles(n, vector, 2) + (rest if n % vector else 0)


@codelet(
    "poprand::SetSeed",
    kind="multi",
    source=f"{_SOURCE}:145",
    formula="14 + workers * 27",
    state_bytes=lambda **_: p.POINTER + 8,
    code_bytes=72,
)
def set_seed(*, workers: int) -> int:
    """Tile cycles of seeding all workers' generators."""
    return 14 + 27 * workers
