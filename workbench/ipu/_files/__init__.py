"""The files programs for IPUs leave behind: `executables` (by way of `portable` numbers), `tensors`, and `outputs`,
which says what a compile writes.

Imports the engine's frontends and the profiler's storage, nothing of `tf`. Tests: tests/ipu/_files.
"""
