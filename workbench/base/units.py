"""How quantities are written for people: the only place where numbers become text with a unit."""

from __future__ import annotations

from collections.abc import Sequence

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def _scaled(value: float, steps: tuple[tuple[int, str], ...]) -> tuple[float, str] | None:
    for size, name in steps:
        if abs(value) >= size:
            return value / size, name
    return None


MINUS = "\u2212"  # as the pages write it


def _minus(text: str) -> str:
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def bytes_text(value: int | float) -> str:
    """`638976` → `"624.0 KiB"`; below 1 KiB the plain count, `"1,000 B"`."""
    scaled = _scaled(value, _BINARY)
    return _minus(f"{value:,.0f} B" if scaled is None else f"{scaled[0]:,.1f} {scaled[1]}")


def cycles_text(value: int | float) -> str:
    """`1234567` → `"1.23 M cycles"`; below 1,000 the plain count; `"1 cycle"`."""
    text = count_text(value)
    return f"{text} cycle" if text == "1" else f"{text} cycles"


def count_text(value: int | float) -> str:
    """`1234567` → `"1.23 M"`; below 1,000 the plain count."""
    scaled = _scaled(value, _DECIMAL)
    return _minus(f"{value:.0f}" if scaled is None else f"{scaled[0]:.2f} {scaled[1]}")


def rate_text(samples_per_second: float) -> str:
    """`1234.5` → `"1.23 k samples/s"`; below 100 three digits, so that a sample in 20 seconds is not none a second."""
    slow = abs(samples_per_second) < 100
    return f"{samples_per_second:.3g} samples/s" if slow else f"{count_text(samples_per_second)} samples/s"


def things_text(count: int, thing: str) -> str:
    """1, `"stage"` → `"1 stage"`; 1472, `"tile"` → `"1,472 tiles"`."""
    return f"{_minus(f'{count:,}')} {plural(count, thing)}"


def plural(count: int, thing: str) -> str:
    """The word for so many: `"stage"` of 1, `"stages"` of any other number; `"batches"`, `"entries"`, `"vertices"`."""
    if count == 1:
        return thing
    if thing.endswith("ex"):
        return f"{thing[:-2]}ices"
    return f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}{'es' if thing.endswith('ch') else 's'}"


def seconds_text(value: float) -> str:
    """`0.00123` → `"1.23 ms"`."""
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= size:
            return _minus(f"{value / size:.2f} {name}")
    return _minus(f"{value * 1e9:.1f} ns") if value else "0 s"


def percent_text(fraction: float) -> str:
    """`0.125` → `"12.5 %"`; `19.58` → `"1,958.0 %"`."""
    return _minus(f"{fraction * 100:,.1f} %")


def shown_text(shown: int, count: int, thing: str, order: str) -> str:
    """4, 5, `"line"`, `"with most cycles"` → `"4 of 5 lines are shown, those with most cycles"`; "" where all are."""
    return f"{shown:,} of {things_text(count, thing)} are shown, those {order}" if shown < count else ""


def some_text(names: Sequence[str], most: int) -> str:
    """`["a", "b", "c"]`, 2 → `"a, b and 1 more"`; all of them where they are not more."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
