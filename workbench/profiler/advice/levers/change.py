"""One thing to try: option values, arguments of a compile, what it does to the numbers, and what it should leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# What may become of the numbers, the strictest first: the same operations; sums in another order; anything.
LEVELS = ("exact", "reassociated", "any")


SAME = "The same operations."
REORDERED = "The same sums, added in another order."


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to try: option values by dotted name, arguments of a compile, and the bytes it should leave.

    `estimated_bytes` is the fullest tile after the change, by the lever's estimate; `slower` the cycles of a sample
    after it, as a multiple; `numbers` one of `LEVELS`; `effect` what it does to them in words; `note` what else it
    changes; `steps` how far it goes from what is (halvings of a batch, values passed by); `needs`: levers of which one
    has to be changed with it; `to`: a name of what it leads to, if a lever goes several ways (offloads to and fro).
    """

    lever: str
    title: str
    options: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[tuple[str, Any], ...] = ()
    estimated_bytes: int
    slower: float = 1.0
    numbers: str = "exact"
    effect: str = SAME
    note: str = ""
    steps: float = 1.0
    to: str = ""
    needs: tuple[str, ...] = ()

    def applied(self, request: Any) -> Any:
        """The request with this change."""
        return request.replace(options=dict(self.options), **dict(self.arguments))

    def joined(self, other: Change, base_bytes: int) -> Change:
        """Both changes at once: each leaves its share of `base_bytes`, and takes its multiple of the cycles.

        Of their effects on the numbers only those of the strongest level are said: what rounds is not the same update.
        """
        level = max(self.numbers, other.numbers, key=LEVELS.index)
        effects = [each.effect for each in (self, other) if each.numbers == level]
        share = other.estimated_bytes / base_bytes if base_bytes else 1.0
        return Change(
            lever=f"{self.lever}+{other.lever}",
            title=f"{self.title}, with {other.title}",
            options=self.options + other.options,
            arguments=self.arguments + other.arguments,
            estimated_bytes=round(self.estimated_bytes * share),
            slower=self.slower * other.slower,
            numbers=level,
            effect=_sentences(effects),
            note=_sentences([self.note, other.note]),
        )


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))


def joined(parts: Sequence[Change], base_bytes: int) -> Change:
    """Several changes at once."""
    found, *rest = parts
    for each in rest:
        found = found.joined(each, base_bytes)
    return found


__all__ = ["LEVELS", "REORDERED", "SAME", "Change", "joined"]
