"""What each step of a program costs in cycles, and the trace they make.

`step_cost` is one step, `exchange_cost` the exchange, `host_waits` the host, `execute` all of it. Imports programs
and vertices. Tests: tests/engine/time.
"""
