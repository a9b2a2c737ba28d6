"""Bodies of pipeline stages that are lowered once, recorded, and played again for stages alike.

`tape` records steps, `form` says when two stages are alike, `bodies` keeps and plays. Imports emit and operators.
Tests: tests/engine/lower/replay.
"""
