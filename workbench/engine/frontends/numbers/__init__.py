"""Numbers as the IPU makes them, on the host: halves that overflow, rounding, checks, replicated runs.

`numerics` interprets a program with halves as the IPU makes them. Imports `trace` and `describe`. Tests:
tests/engine/frontends/numbers.
"""
