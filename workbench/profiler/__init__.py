"""Profiles as plain data, the tables and reports derived from them, and the files they are kept in.

`schema` names the tables, `profile` holds them, `storage` reads and writes them, `validity` checks what is read,
`registry` knows the reports, exports and methods that registered, `fidelity` the typical errors. `collect` is the one
reader of engine types. Imports `base`; the engine in `collect` only. Tests: tests/profiler.
"""

from workbench.profiler.registry import exports, methods, reports

reports.found_in("workbench.profiler.reports", in_any_order=True)
exports.found_in("workbench.profiler.export")
methods.found_in("workbench.profiler.export", "workbench.profiler.storage", "workbench.profiler.advice.explain")
