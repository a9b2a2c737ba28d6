"""Files other tools read, made from a profile.

One export a file, which registers itself: `profile.to(name, path)`. Imports profiles, reports by name. Tests:
tests/profiler/export.
"""
