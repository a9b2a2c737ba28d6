"""How long it takes to compare pipeline schedules: BERT-Base's training on 4 IPUs, six combinations side by side.

Each figure is taken in a fresh process with every cache off. Ends with 1 when a budget is missed.
"""

from __future__ import annotations

import sys
import time

from harness import Budgets, Figures, main

BUDGETS: Budgets = (
    ("beyond_first_seconds", "s", 5.0, "all six side by side, beyond the profile of the first: compiled and tabled"),
    ("first_seconds", "s", None, "the first profile: Grouped, trace included"),
    ("compiles_seconds", "s", None, "of that: the five other compiles"),
    ("profiles_seconds", "s", None, "of that: their profiles"),
    ("table_seconds", "s", None, "of that: table, sentence and pictures of all six"),
)


def measure_bert() -> Figures:
    """Seconds of `wb.compare_schedules("bert-base", 4)` by what they are spent on."""
    import keras

    from workbench.executable import Executable, compile_request, make_request
    from workbench.executable.pipelines import in_even_stages
    from workbench.profiler.advice.schedules import compare_schedules

    adam = keras.optimizers.Adam(1e-4)
    request = in_even_stages(make_request("bert-base", mode="training", batch_size=1, optimizer=adam), 4)
    compiled: list[float] = []
    profiled: list[float] = []

    def compile_and_profile(*arguments: object) -> Executable:
        start = time.perf_counter()
        executable = compile_request(*arguments)  # type: ignore[arg-type]
        between = time.perf_counter()
        assert executable.profile.meta["pipeline"]["stages"] == 4
        compiled.append(between - start)
        profiled.append(time.perf_counter() - between)
        return executable

    start = time.perf_counter()
    comparison = compare_schedules(request, compile_and_profile)
    tabled = time.perf_counter()
    assert "<img" in comparison._repr_mimebundle_()["text/html"]
    end = time.perf_counter()
    first = compiled[0] + profiled[0]
    return {
        "beyond_first_seconds": end - start - first,
        "first_seconds": first,
        "compiles_seconds": sum(compiled[1:]),
        "profiles_seconds": sum(profiled[1:]),
        "table_seconds": end - tabled,
    }


MEASUREMENTS = {"bert": measure_bert}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS))
