"""An explanation as it is printed, read back: its numbers, and what its arithmetic comes to with its inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

HEAD = re.compile(r"^ *(?:where )?(?P<subject>.*?): (?P<shown>.*?), typical error ")
EXACT = re.compile(r"\(([\d,]+) (?:bytes|cycles?)\)$|^(\d+) (?:B|cycles?)$")
NAME = re.compile(r"\b(?!0x)[a-z_]\w*", re.IGNORECASE)
ALLOWED = {"ceil": math.ceil, "floor": math.floor}


@dataclass
class Printed:
    """One number of the text: what is said of it, its arithmetic and its inputs."""

    subject: str
    value: int
    arithmetic: str = ""
    inputs: str = ""
    source: str = ""

    @property
    def evaluated(self) -> float:
        """What the arithmetic comes to with nothing but what is printed."""
        names = set(NAME.findall(self.arithmetic)) - set(ALLOWED)
        given = {name: _number(name, self.inputs) for name in names}
        return float(eval(self.arithmetic, {"__builtins__": {}, **ALLOWED}, given))


def _number(name: str, inputs: str) -> float:
    found = re.search(rf"(?:^|, ){name} = (-?\d[\d.e+-]*)(?:, |$)", inputs)
    assert found, f"{name} is not among what went in: {inputs}"
    text = found[1]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def printed(text: str) -> Iterator[Printed]:
    """Every number that a text explains."""
    now: Printed | None = None
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if now and word == "so":
            now.arithmetic = rest
        elif now and word == "with":
            now.inputs = rest
        elif now and word == "from":
            now.source = rest
        elif head := HEAD.match(line):
            if now:
                yield now
            exact = EXACT.search(head["shown"])
            assert exact, f"no exact number in {line}"
            now = Printed(subject=head["subject"], value=int((exact[1] or exact[2]).replace(",", "")))
    if now:
        yield now


def wrong(text: str) -> list[str]:
    """What is printed and does not come to its number."""
    found = []
    for each in printed(text):
        if not each.arithmetic:
            found += [f"{each.subject}: no arithmetic"] if each.value else []
        elif each.evaluated != each.value:
            found.append(f"{each.subject}: {each.arithmetic} with {each.inputs} is {each.evaluated}, not {each.value}")
    return found
