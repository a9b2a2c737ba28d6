"""Reports, one per file: what a profile says, as data, table, text and a sentence; never a drawing.

Each registers itself: `profile.<name>`. Imports profiles and what is derived from them; nothing drawn. Tests:
tests/profiler/reports.
"""
