"""`make stability`: profile every network at every width and write the table; read the difference before committing it.

python -m tests.stability.write            all, over two processes
python -m tests.stability.write --show     the ratios of the table as it is
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.stability.networks import NETWORKS, SEED, WIDTHS, Network, drawn, measured, ratios

TABLE = Path(__file__).parent / "table.json"
GOAL, MOST = 1.25, 1.6  # nine widths in ten, and every width

Widths = dict[int, dict[str, Any]]


def stored() -> dict[Network, Widths]:
    """The committed figures: of each network, by width."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return {Network(**entry["network"]): dict(zip(WIDTHS, entry["widths"], strict=True)) for entry in table["networks"]}


def swept(network: Network) -> list[dict[str, Any]]:
    return [measured(network, width) for width in WIDTHS]


def far(found: Iterable[tuple[Network, Widths]], above: float) -> list[tuple[Network, int, str, float]]:
    """Every (network, width, measure, ratio) beyond a ratio."""
    return [
        (network, width, measure, ratio)
        for network, widths in found
        for width, measure, ratio in ratios(widths)
        if ratio > above
    ]


def show(found: dict[Network, Widths]) -> None:
    every = [ratio for widths in found.values() for *_, ratio in ratios(widths)]
    beyond = far(found.items(), GOAL)
    for network, width, measure, ratio in sorted(beyond, key=lambda each: -each[3]):
        print(f"{ratio:5.2f}  {measure:19s} {width} channels of {network}\n       {found[network][width]['dearest']}")
    print(f"{len(every) - len(beyond)} of {len(every)} within {GOAL}, largest {max(every):.2f}")


def write() -> None:
    """Sweep every network, a process each, and write the table whole."""
    networks = drawn()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        rows = []
        for network, widths in zip(networks, pool.map(swept, networks), strict=True):
            print(f"{len(rows) + 1:3d} of {NETWORKS} {network}", flush=True)
            rows.append({"network": asdict(network), "widths": widths})
    lines = ",\n".join(
        '{"network": '
        + json.dumps(row["network"])
        + ', "widths": [\n'
        + ",\n".join(map(json.dumps, row["widths"]))
        + "]}"
        for row in rows
    )
    TABLE.write_text(f'{{"seed": {SEED}, "networks": [\n{lines}]}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only print the ratios of the table")
    if not parser.parse_args().show:
        write()
    show(stored())


if __name__ == "__main__":
    main()
