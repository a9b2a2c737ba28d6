"""`make reference`: measure an example for each option that acts, and write the reference and its page.

python -m tests.reference.write           all
python -m tests.reference.write --keep    with the examples that are stored: after a changed declaration
python -m tests.reference.write --more    the same, and options without one are tried again: after a new program
"""

from __future__ import annotations

import argparse
from typing import Any

from tests.reference.declared import DATA, PAGE, data_text, page_text, reference, stored
from tests.reference.measure import example
from workbench.executable.configured import acting


def examples(found: dict[str, Any]) -> dict[str, Any]:
    """By option, measured now where there is none yet."""
    bases: dict[str, Any] = {}
    for each in acting():
        if found.get(each.name):
            continue
        found[each.name] = example(each.name, bases)
        print(each.name, found[each.name], flush=True)
    return found


def kept() -> dict[str, Any]:
    """By option, as they are stored."""
    return {each["name"]: each["example"] for each in stored()["options"]}


def write(found: dict[str, Any]) -> None:
    """The data and the page."""
    made = reference(found)
    DATA.write_text(data_text(made), encoding="utf-8")
    PAGE.write_text(page_text(made), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="take the examples that are stored")
    parser.add_argument("--more", action="store_true", help="and measure those that are missing")
    asked = parser.parse_args()
    stored_ones = kept() if asked.keep or asked.more else {}
    write(stored_ones if asked.keep else examples(stored_ones))
