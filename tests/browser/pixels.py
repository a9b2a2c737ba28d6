"""Whether a picture shows anything: its colours, counted."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG in numbers: size in pixels, how many colours, and the share of pixels that are not the commonest one."""

    width: int
    height: int
    colours: int
    filled: float

    @classmethod
    def from_png(cls, png: bytes) -> Picture:
        image = Image.open(io.BytesIO(png)).convert("RGB")
        pixels = image.width * image.height
        counts = [count for count, _ in image.getcolors(maxcolors=pixels) or []]
        return cls(width=image.width, height=image.height, colours=len(counts), filled=1 - max(counts) / pixels)

    def is_drawn(self, *, colours: int = 4, filled: float = 0.01) -> bool:
        """Not blank: at least so many colours, and at least this share of pixels off the background."""
        return self.colours >= colours and self.filled >= filled
