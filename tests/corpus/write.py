"""`make corpus`: profile every program, print what is not as it was, and write the digests.

python -m tests.corpus.write                       every program, or those named
python -m tests.corpus.write --added               write no digest anew: only list the columns that came since
python -m tests.corpus.write --against DIR name    write nothing: the first rows that differ in another checkout
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.corpus.comparing import PATH, columns_in, differences, first_differences, news, stored, write
from tests.corpus.digest import columns, digests
from tests.corpus.programs import PROGRAMS


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else list(value)


def compare(names: list[str], checkout: Path) -> None:
    """Print where each program's columns here and there first differ."""
    for name in names:
        here = json.loads(json.dumps(columns(PROGRAMS[name].profile()), default=plain))
        lines = sorted(first_differences(here, columns_in(checkout, name)))
        print(name, "is alike" if not lines else "differs:", *(f"\n  {line}" for line in lines))


def rewrite(names: list[str], *, keep: bool) -> None:
    """Profile the programs, print the differences, and write the file; `keep` stored digests and list new columns."""
    before = stored()
    programs = {name: found for name, found in before["programs"].items() if name in PROGRAMS}
    added = set(before["added"])
    for name in names:
        new, old = digests(PROGRAMS[name].profile()), programs.get(name, {})
        lines = differences(old, new, [*added]) if old else ["new"]
        print(name, "is as it was" if not lines else "", *(f"\n  {line}" for line in lines), flush=True)
        added |= set(news(old, new)) if old and keep else set()
        programs[name] = old if old and keep else new
    write(sorted(added if keep or len(names) < len(PROGRAMS) else ()), programs)
    print(f"written: {PATH}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []], metavar="name", help="default: every program")
    parser.add_argument("--added", action="store_true", help="keep stored digests and list new columns")
    parser.add_argument("--against", type=Path, metavar="DIR", help="compare rows with another checkout")
    parser.add_argument("--columns", metavar="NAME", choices=PROGRAMS, help="print a program's columns as JSON")
    asked = parser.parse_args()
    names = asked.names or list(PROGRAMS)
    if asked.columns:
        print(json.dumps(columns(PROGRAMS[asked.columns].profile()), default=plain))
    elif asked.against:
        compare(names, asked.against)
    else:
        rewrite(names, keep=asked.added)


if __name__ == "__main__":
    main()
