"""Takes from JavaScript the blanks that say nothing, so that readable sources stay within what a widget may weigh."""

from __future__ import annotations

import re

_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*")
_PLAIN = re.compile(r'"(?:\\.|[^"\\])*"|[ \t]+')
_BLANKS = re.compile(r"[ \t]+")
_WORD = re.compile(r"[\w$]+")
# Behind one of these a statement goes on, or has ended.
_OPEN = (";", "{", ",", "(", "[")
# A slash after one of these begins a regular expression, elsewhere it divides.
_BEFORE_REGEX = "(,=:[!&|?{};\n"


def tighten(source: str) -> str:
    """The source without blanks beside punctuation; strings, templates and regular expressions stay as they are.

    Line ends stay, but for those where a statement cannot end or has ended. No string or template may go over one.
    """
    # Most lines have neither templates nor slashes; one substitution does for them.
    lines = (
        _Scan(line).code() if "`" in line or "/" in line else _PLAIN.sub(_kept, line) for line in source.splitlines()
    )
    return "".join(line if line.endswith(_OPEN) else f"{line}\n" for line in lines if line)


def _kept(found: re.Match[str]) -> str:
    text = found.string
    if found.group().startswith('"'):
        return found.group()
    return _between(text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1])


def _between(before: str, after: str) -> str:
    """What must stay between two characters: "a + +b" is not "a ++b"."""
    words = _WORD.match(before) and _WORD.match(after)
    return " " if words or (before == after and before in "+-") else ""


class _Scan:
    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        self.parts: list[str] = []

    def code(self) -> str:
        """All of it."""
        self._until("")
        return "".join(self.parts)

    def _until(self, end: str) -> None:
        """Code up to an unmatched `end` brace, which is taken too."""
        depth = 0
        while self.at < len(self.source):
            letter = self.source[self.at]
            if letter == end and not depth:
                self._take(1)
                return
            depth += (letter == "{") - (letter == "}")
            self._token(letter)

    def _token(self, letter: str) -> None:
        if letter == "`":
            self._template()
        elif letter in " \t":
            self._blanks()
        else:
            pattern = {'"': _STRING, "/": _REGEX if self._last() in _BEFORE_REGEX else None}.get(letter, _WORD)
            found = pattern.match(self.source, self.at) if pattern else None
            self._take(len(found.group()) if found else 1)

    def _template(self) -> None:
        self._take(1)
        while self.at < len(self.source):
            found = _TEMPLATE.match(self.source, self.at)
            self._take(len(found.group()) if found else 0)
            if self.source.startswith("${", self.at):
                self._take(2)
                self._until("}")
            else:
                self._take(1)
                return

    def _blanks(self) -> None:
        found = _BLANKS.match(self.source, self.at)
        assert found is not None
        kept = _between(self._last(), self.source[found.end() : found.end() + 1])
        self.parts += [kept] if kept else []
        self.at = found.end()

    def _last(self) -> str:
        return self.parts[-1][-1] if self.parts else "\n"

    def _take(self, length: int) -> None:
        if length:
            self.parts.append(self.source[self.at : self.at + length])
            self.at += length
