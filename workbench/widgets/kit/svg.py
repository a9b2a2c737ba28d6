"""Still pictures: SVG as text for `<img>` data addresses, and heat maps as PNG, with nothing but numpy and zlib."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from workbench.base.text import markup
from workbench.base.units import bytes_text
from workbench.widgets.kit.palette import BAD, RAMP, Paint

# A picture has its own ground, so it can be read in whatever page it lands.
_STYLE = (
    "svg{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;color-scheme:light dark}"
    ".p{fill:#fff}.t{fill:#16191d}.m{fill:#5b636c}.g{stroke:#dfe3e8}.c{fill:#16191d;fill-opacity:.06}"
    ".o{stroke:#5b636c;fill:none}.b{font-weight:600}.h{font-size:15px;font-weight:600}.n{fill:#fff}.v{font-size:16px;font-weight:600}.l{font-size:24px;font-weight:600}"
    f".k{{fill:none;stroke:{BAD};stroke-width:2;stroke-dasharray:8 4}}.w{{fill:{BAD};font-weight:600}}"
    "@media(prefers-color-scheme:dark){.p{fill:#16191d}.t{fill:#f2f4f6}.m{fill:#aab2bb}.g{stroke:#343a41}"
    ".c{fill:#f2f4f6;fill-opacity:.1}.o{stroke:#aab2bb}.w{fill:#f0766d}.k{stroke:#f0766d}}"
)
_STROKES = {
    "rising": "M0 8 8 0M-2 2 2-2M6 10 10 6",
    "falling": "M0 0 8 8M-2 6 2 10M6-2 10 2",
    "vertical": "M4 0V8",
    "horizontal": "M0 4H8",
    "cross": "M0 4H8M4 0V8",
    "dots": "M3 4H5",
}


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """An SVG of a fixed size, written from back to front; coordinates in pixels."""

    def __init__(self, width: int, height: int, title: str = "") -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []
        self._patterns: dict[str, str] = {}
        self.box(0, 0, width, height, "p", radius=8)
        if title:
            self.text(16, 24, title, "t h")

    def fill(self, paint: Paint) -> str:
        """The fill of a paint, its pattern defined once."""
        colour, pattern = paint["colour"], paint["pattern"]
        if not pattern:
            return colour
        key = f"{pattern}{colour[1:]}"
        self._patterns[key] = (
            f'<pattern id="{key}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<path fill="{colour}" d="M0 0H8V8H0"/>'
            f'<path stroke="#fff" stroke-opacity=".55" stroke-width="1.5" d="{_STROKES[pattern]}"/></pattern>'
        )
        return f"url(#{key})"

    def raw(self, part: str) -> None:
        """Markup of our own making."""
        self._parts.append(part)

    def box(self, x: float, y: float, w: float, h: float, kind: str = "", fill: str = "", radius: float = 0) -> None:
        """A rectangle, by class or by fill."""
        paint = f' class="{kind}"' if kind else f' fill="{fill}"'
        corner = f' rx="{number(radius)}"' if radius else ""
        self.raw(f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"{paint}{corner}/>')

    def text(self, x: float, y: float, text: str, kind: str = "m", anchor: str = "", turn: int = 0) -> None:
        """A line of text, escaped; `anchor` is middle or end; `turn` degrees about its own place."""
        more = f' text-anchor="{anchor}"' if anchor else ""
        more += f' transform="rotate({turn} {number(x)} {number(y)})"' if turn else ""
        self.raw(f'<text x="{number(x)}" y="{number(y)}" class="{kind}"{more}>{markup(text)}</text>')

    def path(self, points: str, kind: str = "", fill: str = "") -> None:
        """A path, by class or by fill."""
        self.raw(f'<path d="{points}"' + (f' class="{kind}"' if kind else f' fill="{fill}"') + "/>")

    def image(self, x: float, y: float, w: float, h: float, png: bytes) -> None:
        """A PNG stretched into a rectangle, pixels kept square-edged."""
        data = base64.b64encode(png).decode()
        self.raw(
            f'<image x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )

    def legend(self, x: float, y: float, paints: Iterable[Paint], right: float) -> float:
        """Swatches with their labels, wrapped at `right`; returns the y below them."""
        at = x
        for paint in paints:
            wide = 34 + 6.7 * len(paint["label"])
            if at + wide > right and at > x:
                at, y = x, y + 18
            self.box(at, y - 9, 13, 11, fill=self.fill(paint), radius=2)
            self.text(at + 18, y, paint["label"])
            at += wide
        return y + 18

    def axes(self, plot: Box, x: Axis, y: Axis) -> None:
        """Grid lines, tick texts and axis labels with their units."""
        for value in y.ticks:
            level = plot.y + plot.h - y.part(value) * plot.h
            self.raw(f'<path class="g" d="M{number(plot.x)} {number(level)}h{number(plot.w)}"/>')
            self.text(plot.x - 8, level + 4, short_text(y.text(value)), anchor="end")
        self.text(16, plot.y + plot.h / 2, y.label, anchor="middle", turn=-90)
        self.axis_x(plot, x)

    def axis_x(self, plot: Box, x: Axis) -> None:
        """Ticks below a plot, their text, and the label with its unit."""
        for value in x.ticks:
            at = plot.x + x.part(value) * plot.w
            self.raw(f'<path class="g" d="M{number(at)} {number(plot.y + plot.h)}v4"/>')
            text = short_text(x.text(value))
            self.text(at, plot.y + plot.h + 18, text, anchor="end" if at + 3.5 * len(text) > self.width else "middle")
        self.text(plot.x + plot.w / 2, plot.y + plot.h + 36, x.label, anchor="middle")

    def capacity(self, plot: Box, y: Axis, size: float, *, drawn: bool) -> None:
        """The line no tile may cross; named only, when everything is far below it."""
        text = f"capacity {bytes_text(size)}"
        if not drawn:
            self.text(plot.x + plot.w, plot.y - 6, f"{text}, far above", anchor="end")
            return
        level = plot.y + plot.h - y.part(size) * plot.h
        self.path(f"M{number(plot.x)} {number(level)}h{number(plot.w)}", "k")
        wide = 7.2 * len(text) + 10
        self.box(plot.x + plot.w - wide, level - 19, wide, 17, "p")
        self.text(plot.x + plot.w - 4, level - 6, text, "w", "end")

    def __str__(self) -> str:
        patterns = f"<defs>{''.join(self._patterns.values())}</defs>" if self._patterns else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}"><style>{_STYLE}</style>{patterns}{"".join(self._parts)}</svg>'
        )


class Box:
    """The rectangle of a plot, in pixels."""

    def __init__(self, x: float, y: float, w: float, h: float) -> None:
        self.x, self.y, self.w, self.h = x, y, w, h


class Axis:
    """A range of numbers with its ticks, their text and a label that names the unit."""

    def __init__(
        self, low: float, high: float, label: str, text: Callable[[float], str], *, count: int = 6, binary: bool = False
    ) -> None:
        self.low, self.high = low, high if high > low else low + 1
        self.label, self.text = label, text
        self.ticks = ticks(self.low, self.high, count, binary=binary)

    def part(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


def short_text(text: str) -> str:
    """A tick's text without the zeros that say nothing: "24 KiB" of "24.0 KiB"."""
    return re.sub(r"\.(?=\D|$)", "", re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", text))


def ticks(low: float, high: float, count: int, *, binary: bool = False) -> list[float]:
    """Round numbers in [low, high], about `count`: steps of 1, 2, 5 times a power of ten, or powers of two."""
    raw = (high - low) / max(1, count)
    if binary:
        step = 2.0 ** np.ceil(np.log2(raw))
    else:
        power = 10.0 ** np.floor(np.log10(raw))
        step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = int(np.ceil(low / step - 1e-9))
    return [place * step for place in range(first, int(np.floor(high / step + 1e-9)) + 1)]


def stairs(plot: Box, x: Axis, y: Axis, edges: Sequence[float], tops: Sequence[float], bases: Sequence[float]) -> str:
    """Path of the area between two step functions: value i holds from edge i to edge i+1.

    Levels are rounded to half a pixel, so that what looks level is one line and pictures stay small.
    """
    if not len(tops):
        return ""
    at = [number(plot.x + x.part(edge) * plot.w) for edge in edges]
    over, under = ([_half(plot.y + plot.h - y.part(value) * plot.h) for value in part] for part in (tops, bases))
    if over == under:
        return ""
    places = range(1, len(over))
    there = [f"H{at[k]}V{number(over[k])}" for k in places if over[k] != over[k - 1]]
    back = [f"H{at[k]}V{number(under[k - 1])}" for k in reversed(places) if under[k] != under[k - 1]]
    turn = f"H{at[-1]}V{number(under[-1])}"
    return "".join([f"M{at[0]} {number(over[0])}", *there, turn, *back, f"H{at[0]}Z"])


def _half(value: float) -> float:
    return round(2 * value) / 2


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """RGBA pixels, uint8[rows, columns, 4], as a PNG file."""
    rows, columns, _ = pixels.shape
    raw = b"".join(b"\0" + pixels[row].tobytes() for row in range(rows))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(tag, data) for tag, data in parts)


def _chunk(tag: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))


def ramp(values: npt.ArrayLike, low: float, high: float) -> npt.NDArray[np.uint8]:
    """Colours of numbers between `low` and `high` on the ramp: uint8[..., 4]."""
    stops = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in RAMP], dtype=np.float64)
    place = np.clip((np.asarray(values, dtype=np.float64) - low) / ((high - low) or 1.0), 0, 1) * (len(RAMP) - 1)
    channels = [np.interp(place, np.arange(len(RAMP)), stops[:, channel]) for channel in range(3)]
    return np.stack([*channels, np.full(place.shape, 255.0)], axis=-1).round().astype(np.uint8)
