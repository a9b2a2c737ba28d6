"""What a source is, before anything of it is traced: its kind, its layers, its replicas, its checks.

`source` is what every door hands on. Imports the graph. Tests: tests/engine/frontends/describe.
"""
