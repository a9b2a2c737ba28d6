"""popops image normalisation and spline convolutions, popnn region-of-interest alignment."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import untold
from workbench.errors import InputError

# input type: cycles of a worker around its pixels, and of one pixel
_PIXEL_CYCLES = {"unsigned char": (29, 8), "half": (52, 11), "float": (52, 17)}


@codelet(
    "popops::NormaliseImage",
    kind="multi",
    source=f"{p.ESTIMATORS}:2652",
    formula="workers * (29 + 8 a pixel of unsigned char, 52 + 11 of half, 52 + 17 of float); one more pixel if "
    "more than one "
    "is left over",
    state_bytes=lambda **_: 4 * p.POINTER + 8,
    code_bytes=148,
    flops=lambda *, pixels, **_: 9 * pixels,
)
def normalise_image(*, in_type: str, out_type: str, pixels: int, workers: int) -> int:
    """Tile cycles of scaling and shifting `pixels` of three channels, which become four."""
    if in_type not in _PIXEL_CYCLES:
        raise InputError(f"no codelet reads {in_type!r}", expected="one of: " + ", ".join(_PIXEL_CYCLES))
    p.type_bytes(out_type)
    around, each = _PIXEL_CYCLES[in_type]
    share, rest = divmod(pixels, workers)
    return workers * (around + each * (share + (rest > 1)))


@codelet(
    "popops::SplineBasis",
    kind="worker",
    source=f"{p.ESTIMATORS}:2835",
    formula="30 an element of half, 60 of float",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.VECTOR_LIST, p.POINTER, scalars=3 * p.POINTER + 16),
    code_bytes=480,
    operands=untold,
)
def spline_basis(*, type: str, degree: int, rows: Sequence[int]) -> int:
    """Worker cycles of the basis functions of splines of `degree` 1 to 3."""
    if degree not in (1, 2, 3):
        raise InputError(f"no codelet for splines of degree {degree!r}", expected="1, 2 or 3")
    return 30 * p.total(rows) * (2 if type == "float" else 1)


@codelet(
    "popops::SplineWeighting",
    kind="worker",
    source=f"{p.ESTIMATORS}:2847",
    formula="15 * channels * splines an element of half, 30 * channels * splines of float",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.VECTOR_LIST, scalars=4 * p.POINTER + 20),
    code_bytes=320,
    operands=untold,
)
def spline_weighting(*, type: str, channels: int, splines: int, rows: Sequence[int]) -> int:
    """Worker cycles of weighting `channels` inputs by `splines` basis functions for every output element."""
    return 15 * channels * splines * p.total(rows) * (2 if type == "float" else 1)


def _align_codelet(name: str, line: int, spans: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"poplibs@7eac0f26 lib/popnn/popnnCycleEstimators.cpp:{line}",
        formula="10, whatever the sizes: PopLibs states no more",
        state_bytes=lambda **_: spans * p.SPAN + 44,
        code_bytes=900,
    )
    def align_cycles(*, type: str) -> int:
        """Worker cycles of one step of a region-of-interest alignment."""
        p.type_bytes(type)
        return 10


_align_codelet("popnn::ROIAlignForward", 423, 4)
_align_codelet("popnn::ROIAlignBackward", 429, 4)
