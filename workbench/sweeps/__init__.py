"""Many compiles of one source: points over arguments, options and sizes, run here or on an executor, kept by content.

`points` checks what is asked, `jobs` is one compile that needs neither Keras nor JAX, `run` hands jobs out, `store`
keeps profiles, `sweep` is the report, `search` lets Optuna choose the points. Imports requests and profiles.
Tests: tests/sweeps.
"""
