"""`make splits`: cut six models over 2, 4 and 8 IPUs, and write what was expected of each stage beside what came.

python -m tests.splits.write          all; each row is kept as it comes, and a run that broke off goes on
python -m tests.splits.write --show   the table as it is
"""

from __future__ import annotations

import argparse
import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tests.kept_rows import KeptRows, identity

TABLE = Path(__file__).parent / "table.json"
MODELS = ("bert-base", "bert-large", "gpt2", "vit-b16", "resnet50", "efficientnetb0")
IPUS = (2, 4, 8)
SHARED = "gpt2"
PUBLISHED = "bert-large, as shipped"
CONFIGURATION = Path(__file__).parents[1] / "data" / "fidelity" / "configurations.json"
SHIPPED = "bert_pt_pretrain/pretrain_large_128"


def stored() -> list[dict[str, Any]]:
    """The committed rows."""
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def keys() -> list[str]:
    """What there is a row of."""
    return [*(f"{model}, {ipus}" for model in MODELS for ipus in IPUS), PUBLISHED]


def row(key: str) -> dict[str, Any]:
    """The row of a key."""
    if key == PUBLISHED:
        return published()
    from workbench.errors import WorkbenchError

    model, ipus = key.split(", ")
    try:
        return {"key": key, **found(searched(model, int(ipus)))}
    except WorkbenchError as problem:
        return {"key": key, "problem": str(problem), "attempts": []}


def searched(model: str, ipus: int) -> Any:
    """The split of a model's training in half precision, one sample a micro-batch, four rounds of the pipeline."""
    import workbench as wb

    return wb.autosplit(model, ipus, mode="training", batch_size=1, precision="float16", target="bow")


def found(split: Any) -> dict[str, Any]:
    """Every split that was compiled, the even one first; and which is the best."""
    return {
        "layers": len(split.names),
        "best": split.attempts.index(split.best),
        "attempts": [attempt(each) for each in split.attempts if each.profile is not None],
    }


def attempt(each: Any) -> dict[str, Any]:
    """What was expected of the stages of a split, and what came."""
    from workbench.splits.split import busy_cycles, stage_bytes

    return {
        "cuts": list(each.cuts),
        "arguments": {name: list(v) if isinstance(v, tuple) else v for name, v in each.arguments.items()},
        "expected_cycles": [round(value) for value in each.expected_cycles],
        "cycles": busy_cycles(each.profile),
        "expected_bytes": [round(value) for value in each.expected_bytes],
        "bytes": stage_bytes(each.profile),
        **measured(each.profile),
    }


def measured(profile: Any) -> dict[str, Any]:
    return {
        "fits": bool(profile.fits),
        "total_cycles": int(profile.total_cycles),
        "samples_per_second": round(profile.samples_per_second, 2),
    }


def shipped() -> dict[str, Any]:
    """BERT-Large's pre-training as it is shipped: the row of the table of configurations."""
    row: dict[str, Any] = json.loads(CONFIGURATION.read_text(encoding="utf-8"))["configurations"][SHIPPED]
    return row


def published() -> dict[str, Any]:
    """BERT-Large under the options it is shipped with: cut as published, and cut as found."""
    import workbench as wb

    arguments = shipped_arguments()
    split = wb.autosplit("bert-large", shipped()["ipus_per_replica"], **arguments)
    after = published_cut()
    as_published = wb.profile("bert-large", stages=after, **arguments)
    return {"key": PUBLISHED, "published": {"cut_after": after, **measured(as_published)}, **found(split)}


def published_cut() -> list[str]:
    """The last layer of each published stage but the last."""
    return [f"encoder_{bound - 1}" for bound in list(accumulate(shipped()["layers_per_ipu"]))[:-1]]


def shipped_arguments() -> dict[str, Any]:
    """What `wb.compile` is given for it, all but the stages."""
    import keras

    import workbench as wb

    case = shipped()
    library = {
        "partialsType": "half" if case["enable_half_partials"] else "float",
        "availableMemoryProportion": case["matmul_proportion"],
    }
    config = wb.ipu.config.IPUConfig()
    config.auto_select_ipus = case["ipus_per_replica"] * case["replication_factor"]
    for group in (config.matmuls, config.convolutions):
        group.poplar_options.update(library)
    return {
        "mode": "training",
        "optimizer": keras.optimizers.Lamb(1e-3),
        "batch_size": case["micro_batch_size"],
        "precision": "float16",
        "gradient_accumulation_steps": case["gradient_accumulation"],
        "replicas": case["replication_factor"],
        "recomputation": True,
        "recomputation_checkpoints": ("encoder_*",),
        "offload": ("optimizer_state",),
        "config": config,
        "target": "bow",
    }


def misses(rows: list[dict[str, Any]], what: str) -> np.ndarray[Any, Any]:
    """How far off what was expected of a stage was, as a share of what came; of every stage of every split."""
    pairs = [
        (expected, came)
        for row in rows
        for each in row["attempts"]
        for expected, came in zip(each[f"expected_{what}"], each[what], strict=False)
    ]
    expected, came = np.array(pairs, float).T
    return np.abs(expected / came - 1)


def show(rows: list[dict[str, Any]]) -> None:
    for each in rows:
        say(each)
    for what in ("cycles", "bytes"):
        off = misses(rows, what)
        print(
            f"{what} of {len(off)} stages: median {np.median(off):.3f}, nine in ten within {np.quantile(off, 0.9):.3f}"
        )


def say(each: dict[str, Any]) -> None:
    """A line of the table."""
    if not each["attempts"]:
        print(f"{each['key']:24} {each['problem']}", flush=True)
        return
    even, best = each["attempts"][0], each["attempts"][each["best"]]
    gain = max(even["cycles"]) / max(best["cycles"])
    verdict = "fits" if best["fits"] else f"nearest is {max(best['bytes']):,} B"
    print(
        f"{each['key']:24} {verdict:5} of {len(each['attempts'])}: slowest stage "
        f"{max(best['cycles']):14,} ({gain:5.3f} x quicker than even), {best['samples_per_second']:9.1f} samples/s"
        f"{each.get('published', {}).get('samples_per_second', '')!s:>10} {best['cuts']} {best['arguments']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the stored table")
    if parser.parse_args().show:
        show(stored())
        return
    kept = KeptRows("splits", identity(Path(__file__).parent))
    for key in keys():
        if key not in kept.rows:
            kept.put(key, row(key))
            say(kept.rows[key])
    rows = [kept.rows[key] for key in keys()]
    kept.done(TABLE, rows)
    show(rows)
    print(f"written: {TABLE}")


if __name__ == "__main__":
    main()
