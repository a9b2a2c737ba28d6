"""Stages as a diagnosis asks for them: what a search compiled, as arguments and options of a compile."""

from __future__ import annotations

from typing import Any

from workbench.splits.find import RELIEFS, Compile, Progress, chain_to_cut, options_of, searched
from workbench.splits.split import check_stages

Attempts = list[tuple[dict[str, Any], dict[str, Any], Any, str]]


def stages_found(request: Any, compile: Compile, ipus: int, compiles: int, progress: Progress) -> Attempts:
    """Each split that was compiled: arguments of a compile, options, profile and problem. Errors: `InputError`."""
    chain = chain_to_cut(request, "the lever 'stages'")
    check_stages(chain.names, ipus)
    alone = str(request.options.get("pipeline.schedule")).endswith("Sequential")  # whose stages compute again as it is
    split = searched(request, compile, chain, ipus, compiles, progress, () if alone else RELIEFS)
    return [
        (
            {"stages": [chain.names[cut - 1] for cut in each.cuts]},
            options_of(each.arguments),
            each.profile,
            each.problem,
        )
        for each in split.attempts
    ]


__all__ = ["stages_found"]
