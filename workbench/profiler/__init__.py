"""Profiles as plain data, the tables and reports derived from them, and the files they are kept in."""

from workbench.profiler.registry import exports, methods, reports

reports.found_in("workbench.profiler.reports")
exports.found_in("workbench.profiler.export")
methods.found_in("workbench.profiler.export", "workbench.profiler.storage", "workbench.profiler.advice.explain")
