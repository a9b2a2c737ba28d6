"""Which bytes are alive on which tile at which step, and where they lie.

`footprint` is code and state, `lifetimes` when a variable is alive, `liveness` the sums, `packing` lays blocks out,
`allocation` gives addresses. Imports programs, mappings and `time`'s exchange costs. Tests: tests/engine/memory.
"""
