"""`python -m tests.decide.resnet`: ResNet-50's training at batch 32 under three constraints, against the lattice.

--fixes diagnoses anew and keeps the lattices of the stored rows; --show prints these.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.decide.cases import Case
from tests.decide.lattice import cost
from tests.decide.write import cheapest, found
from tests.kept_rows import KeptRows, identity

TABLE = Path(__file__).parent / "resnet.json"
BATCH = 32
HALF = ("half_precision", "half_partials")
# What is asked: the level of `keep_numbers`, whether in float32, and how many IPUs there are.
ASKED: dict[str, tuple[str, bool, int]] = {
    "any": ("any", False, 1),
    "any, in float32": ("any", True, 1),
    "exact": ("exact", False, 1),
    "exact, 16 IPUs": ("exact", False, 16),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Case):
    """ResNet-50 at full size: its lattice is that of a model that reads statistics of its batch."""

    single: bool

    @property
    def without(self) -> tuple[str, ...]:
        return ("precision", "partials") if self.single else ()

    def compiled(self) -> Any:
        import workbench as wb

        return wb.compile("resnet50", batch_size=self.batch, mode="training", optimizer="sgd")


def case_of(name: str) -> Case:
    """As the lattice takes it; in float32 without what rounds to half."""
    level, single, _ = ASKED[name]
    return Whole(
        model="normalised",
        single=single,
        way="activations",
        width=0,
        batch=BATCH,
        tiles=1472,
        share=1.0,
        keep_numbers=level,
        later=False,
    )


def stored() -> list[dict[str, Any]]:
    """The committed rows."""
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def diagnosed(base: Any, name: str) -> Any:
    """The diagnosis under a constraint."""
    import workbench as wb
    from workbench.profiler.advice.levers import LAST, LEVERS

    level, single, ipus = ASKED[name]
    levers = [each for each in LEVERS if each not in (*HALF, *LAST)] if single else None
    return wb.diagnose(base, keep_numbers=level, levers=levers, ipus=ipus)


def row(base: Any, name: str, lattice: dict[str, Any] | None) -> dict[str, Any]:
    """The first fix, as it was compiled, and the lattice's best on one IPU."""
    diagnosis = diagnosed(base, name)
    first = diagnosis.fixes[0] if diagnosis.fixes else None
    fix = None
    if first is not None:
        fix = found(
            diagnosis.apply(0).profile,
            dict(first.change.options),
            {each: list(v) if isinstance(v, tuple) else v for each, v in first.change.arguments},
            fix=first.fix,
            numbers=first.numbers,
            compiles=len(diagnosis.tried),
        )
    return {
        "asked": name,
        "max_tile_bytes": int(base.profile.max_tile_bytes),
        "cost": cost(base.profile),
        "first": fix,
        "lattice": cheapest(base, case_of(name), 0) if lattice is None else lattice,
    }


def show(rows: list[dict[str, Any]]) -> None:
    for each in rows:
        first, best = each["first"] or {}, each["lattice"]["best"]
        times = first["cost"] / best["cost"] if first and best else None
        cheapest_of_all = best and {**best["options"], **best["arguments"]}
        print(
            f"{each['asked']:18} {'fits' if first.get('fits') else 'over'} {first.get('cost'):14,.0f} a sample, "
            f"{times} of the lattice's best ({each['lattice']['fitting']} of {each['lattice']['points']} fit) "
            f"{first.get('compiles')} compiles: {first.get('fix')} | {cheapest_of_all}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the stored rows")
    parser.add_argument("--fixes", action="store_true", help="keep the lattices of the stored rows")
    asked = parser.parse_args()
    if asked.show:
        show(stored())
        return
    lattices = {each["asked"]: each["lattice"] for each in stored()} if asked.fixes else {}
    kept = KeptRows("decide-resnet", identity(Path(__file__).parent))
    base = case_of("any").compiled()
    assert not base.profile.fits
    for name in reversed(ASKED):
        if name not in kept.rows:
            same = kept.rows.get("exact, 16 IPUs", {}).get("lattice") if name == "exact" else None
            kept.put(name, row(base, name, lattices.get(name, same)))
            show([kept.rows[name]])
    kept.done(TABLE, [kept.rows[name] for name in ASKED])


if __name__ == "__main__":
    main()
