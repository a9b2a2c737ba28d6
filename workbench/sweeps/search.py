"""Points chosen by Optuna: which to try next is its business, what they cost ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from workbench.base.checked import heard
from workbench.base.text import meant, short
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.sweeps.points import kinds_of
from workbench.sweeps.sweep import Progress, Sweep, checked_requests, sweep

OBJECTIVES: dict[str, Callable[[Profile], float]] = {
    # Of what nobody says the samples of, as a function of arrays, a call is one: else every trial would be as good.
    "samples_per_second": lambda profile: -(profile.samples_per_second or 1 / max(profile.seconds, 1e-12)),
    "total_cycles": lambda profile: float(profile.total_cycles),
    "max_tile_bytes": lambda profile: float(profile.max_tile_bytes),
}


def search(
    source: Any,
    space: Any,
    objective: Any,
    trials: int,
    *,
    arguments: Mapping[str, Any],
    seed: int = 0,
    folder: Any = None,
    progress: Progress | None = None,
) -> Sweep:
    """The points that Optuna asks for, as a sweep: see `wb.search`."""
    try:
        import optuna
    except ImportError:
        raise InputError("wb.search needs Optuna", todo="pip install 'workbench[search]'") from None
    chosen = _checked(space)
    cost = _objective(objective)
    kinds = kinds_of([dict.fromkeys(chosen)], source)
    checked_requests(source, _values_of(space), kinds, arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    found: Sweep | None = None
    for _ in range(trials):
        trial = study.ask()
        point = {name: choose(trial, name) for name, choose in chosen.items()}
        one = sweep(
            source,
            [point],
            arguments=arguments,
            folder=folder if found is None else found.folder,
            progress=progress or (lambda text: None),
        )
        found = one if found is None else found.joined(one)
        profile = one.profile(0) if one.rows[0].key else None
        if profile is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:  # what does not fit is worse than anything that does, by as much as it is over
            over = max(0, -profile.margin_bytes)
            study.tell(trial, cost(profile) if profile.fits else UNFIT + over)
    assert found is not None
    return found


UNFIT = 1e15


def _objective(objective: Any) -> Callable[[Profile], float]:
    words = f"one of: {', '.join(OBJECTIVES)}, or a function of a profile, less being better"
    if callable(objective):
        return partial(_number_of, heard("objective", objective, words))
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InputError(
            f"objective is {objective!r}",
            expected=words,
            todo=meant(objective, OBJECTIVES),
        )
    return OBJECTIVES[objective]


def _number_of(objective: Callable[[Profile], Any], profile: Profile) -> float:
    """What the user's own function says of a profile."""
    found = objective(profile)
    try:
        number = math.nan if isinstance(found, str | bytes) else float(found)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise InputError(f"objective gave {short(found)} for a profile", expected="a number, less being better")
    return number


def _checked(space: Any) -> dict[str, Callable[[Any, str], Any]]:
    """How each name is chosen: from a list, or whole or real numbers from a pair (low, high)."""
    if not isinstance(space, Mapping) or not space:
        raise InputError(f"space is {space!r}", expected="names with lists, or with pairs (low, high)")
    return {name: _choice(name, values) for name, values in space.items()}


def _values_of(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Points at which each value of a list, and both ends of a range, are there once."""
    first = {name: values[0] for name, values in space.items()}
    return [{**first, name: value} for name, values in space.items() for value in values]


def _choice(name: str, values: Any) -> Callable[[Any, str], Any]:
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(each, int | float) for each in values):
        low, high = values
        if not low < high:
            raise InputError(f"the range of {name!r} is {values!r}", expected="a low and a higher end")
        if all(isinstance(each, int) for each in values):
            return lambda trial, label: trial.suggest_int(label, low, high)
        return lambda trial, label: trial.suggest_float(label, low, high)
    if not isinstance(values, list) or not values:
        told = f"the values of {name!r} in the space are {short(values)}"
        raise InputError(told, expected="a list of some, or a pair (low, high)")

    def choose(trial: Any, label: str) -> Any:
        return values[trial.suggest_categorical(label, list(range(len(values))))]

    return choose


__all__ = ["OBJECTIVES", "search"]
