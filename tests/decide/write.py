"""`make decide`: diagnose every case, compile its whole lattice, and write the table; read it before committing it.

python -m tests.decide.write                all; each row is kept as it comes, and a run that broke off goes on
python -m tests.decide.write --processes 2  over so many processes (one without: a run takes an hour)
python -m tests.decide.write --fixes        diagnose every case anew; a lattice is compiled where the table has none, or
                                            one whose cheapest point has come to other figures since
python -m tests.decide.write --show         the table as it is
python -m tests.decide.write NAME ...       print what comes of some cases, and write nothing
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from tests.decide.cases import Case, drawn
from tests.decide.lattice import arguments, cost, measured, options, points
from tests.kept_rows import KeptRows, identity

TABLE = Path(__file__).parent / "table.json"
NEAR = 1.1


def stored() -> list[dict[str, Any]]:
    """The committed rows, in the order of the cases."""
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def found(profile: Any, options: dict[str, Any], arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What was changed, and what came of it."""
    return {
        "options": options,
        "arguments": arguments,
        "fits": bool(profile.fits),
        "max_tile_bytes": int(profile.max_tile_bytes),
        "cycles": int(profile.total_cycles),
        "cost": cost(profile),
        **more,
    }


def first_fix(base: Any, case: Case) -> dict[str, Any] | None:
    """The first fix of a diagnosis, applied; and how many compiles it took to the first that fits, and in all."""
    import workbench as wb

    diagnosis = wb.diagnose(base, keep_numbers=case.keep_numbers, ipus=1)
    if not diagnosis.fixes:
        return None
    fix = diagnosis.fixes[0]
    until = next((place for place, each in enumerate(diagnosis.tried, 1) if each.fits), None)
    return found(
        diagnosis.apply(0).profile,
        dict(fix.change.options),
        dict(fix.change.arguments),
        fix=fix.fix,
        compiles=len(diagnosis.tried),
        compiles_to_first=until,
    )


def cheapest(base: Any, case: Case, seed: int) -> dict[str, Any]:
    """The cheapest point of the lattice that fits, and how many there are and fit."""
    every = points(case, seed)
    came = [(point, profile) for point, profile in measured(base, every) if profile is not None]
    fitting = [(cost(profile), place) for place, (_, profile) in enumerate(came) if profile.fits]
    counts = {"points": len(every), "compiled": len(came), "fitting": len(fitting)}
    if not fitting:
        return {**counts, "best": None}
    point, profile = came[min(fitting)[1]]
    return {**counts, "best": found(profile, options(point), arguments(point))}


def still(base: Any, lattice: dict[str, Any]) -> bool:
    """Whether the cheapest point of a lattice comes to the figures that were stored of it; no, where it has none."""
    from workbench.executable.compile import compile_request

    best = lattice["best"]
    if best is None:
        return False
    request = base.request.replace(options=best["options"], **best["arguments"])
    return found(compile_request(request, None, base).profile, best["options"], best["arguments"]) == best


def row(case: Case, seed: int, lattice: dict[str, Any] | None = None) -> dict[str, Any]:
    """All that the table says of a case; its lattice is compiled if none is given, or none that is still so."""
    base = case.compiled()
    assert not base.profile.fits, case
    if lattice is None or not still(base, lattice):
        lattice = cheapest(base, case, seed)
    return {
        "case": asdict(case),
        "max_tile_bytes": int(base.profile.max_tile_bytes),
        "bytes_per_tile": int(base.profile.target["bytes_per_tile"]),
        "cost": cost(base.profile),
        "first": first_fix(base, case),
        "lattice": lattice,
    }


def ratio(row: dict[str, Any]) -> float | None:
    """The first fix's cost over the lattice's least; None where either has nothing that fits."""
    first, best = row["first"], row["lattice"]["best"]
    return first["cost"] / best["cost"] if first and first["fits"] and best else None


def near(row: dict[str, Any]) -> bool:
    """Whether the first fix fits and costs little more than the lattice's cheapest, if anything there fits at all."""
    times = ratio(row)
    return bool(row["first"] and row["first"]["fits"]) and (times is None or times <= NEAR)


def show(rows: list[dict[str, Any]]) -> None:
    for each in rows:
        first, best, case = each["first"] or {}, each["lattice"]["best"], Case(**each["case"])
        times = ratio(each)
        print(
            f"{case.name:26} {case.keep_numbers:13} {case.share:5.3f}  "
            f"{'fits' if first.get('fits') else 'over':5} {'' if times is None else f'{times:6.3f}':7}"
            f"first {first.get('compiles_to_first')!s:5} of {first.get('compiles')!s:5} "
            f"lattice {each['lattice']['fitting']} of {each['lattice']['points']}"
            f"  {first.get('fix', '')} | {None if best is None else {**best['options'], **best['arguments']}}",
            flush=True,
        )
    if len(rows) == 1:
        return
    ratios = [found for found in map(ratio, rows) if found is not None]
    firsts = [each["first"]["compiles_to_first"] or 10**6 for each in rows if each["first"]]
    print(
        f"{sum(bool(each['first'] and each['first']['fits']) for each in rows)} of {len(rows)} first fixes fit, "
        f"{sum(map(near, rows))} cost at most {NEAR} of the least, median {median(ratios):.3f}; "
        f"median compiles to the first that fits {median(firsts)}"
    )


def rows_of(chosen: dict[int, Case], processes: int, lattices: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each row as it comes."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(row, case, place, lattices.get(key(case))) for place, case in chosen.items()]
        for done in as_completed(waiting):
            show([done.result()])
            yield done.result()


def key(case: Case) -> str:
    return json.dumps(asdict(case))


def known_lattices() -> dict[str, Any]:
    """The lattices of the stored table by case: those of cases drawn since are not in it."""
    return {key(Case(**each["case"])): each["lattice"] for each in stored()}


def write(cases: tuple[Case, ...], processes: int, lattices: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows, kept one by one, and the table of them."""
    kept = KeptRows("decide", f"{identity(Path(__file__).parent)} {len(lattices)}")
    left = {place: case for place, case in enumerate(cases) if key(case) not in kept.rows}
    for each in rows_of(left, processes, lattices):
        kept.put(key(Case(**each["case"])), each)
    rows = [kept.rows[key(case)] for case in cases]
    kept.done(TABLE, rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="some cases, as 'cnn, state'")
    parser.add_argument("--show", action="store_true", help="print the stored table")
    parser.add_argument("--fixes", action="store_true", help="keep the lattices of the stored table")
    parser.add_argument("--processes", type=int, default=1, help="how many compile at once")
    asked = parser.parse_args()
    cases = drawn()
    if asked.show:
        show(stored())
        return
    lattices = known_lattices() if asked.fixes else {}
    if asked.names:
        chosen = {place: case for place, case in enumerate(cases) if case.name in asked.names}
        show(list(rows_of(chosen, asked.processes, lattices)))
        return
    show(write(cases, asked.processes, lattices))
    print(f"written: {TABLE}")


if __name__ == "__main__":
    main()
