"""What `pipelining_ops.pipeline` records, as a staged program.

`asked` checks a call, `recorded` keeps its stages, `forward` traces them, `sums` and `feeds` are what is added up and
what the host gives, `beside` what stands beside the stages, `program` the whole by the one builder of staged
programs. Imports `tf` and the engine's frontends. Tests: tests/ipu/pipelining.
"""
