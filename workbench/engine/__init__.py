"""The compiler with a glass wall: Graph → plan → TileProgram → liveness, allocation and trace.

A folder a stage, in the order of ROOMS in tests/test_architecture.py; `target` holds every number of the hardware,
`cost` the terms and formulas, `pipeline_schedule` the columns of a pipeline, `run` the numbers by XLA, `remembered`
what is kept of earlier work, `partition` cuts a chain of layers into stages. Imports `base`; nothing of profiles, views
or the mirrored API. Tests: tests/engine.
"""
