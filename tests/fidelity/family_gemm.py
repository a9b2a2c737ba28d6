"""Matrix products on a Bow machine, compiled from JAX: compute and exchange cycles, sync and host left out."""

from __future__ import annotations

from tests.fidelity.compiling import breakdown, config, struct
from tests.fidelity.outcome import Case
from workbench import api

DTYPES = {"half": "float16", "float": "float32"}


def gemm(row: Case) -> int:
    """Cycles of [m, k] @ [k, n], partials of the type of the inputs."""
    dtype = DTYPES[row["dtype"]]
    profile = api.profile(
        lambda a, b: a @ b,
        struct(row["m"], row["k"], dtype=dtype),
        struct(row["k"], row["n"], dtype=dtype),
        config=config(matmuls={"partialsType": row["dtype"]}),
        target="bow",
    )
    causes = breakdown(profile)
    return causes["compute"] + causes["exchange"]
