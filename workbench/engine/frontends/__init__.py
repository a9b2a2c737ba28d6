"""Models in: Keras, JAX and ready models become a `Graph`.

The doors `keras` and `functions`, and behind them a folder a step: `describe` a source, `expand` what the IPU lacks,
`trace` into a graph, `numbers` on the host, the training `step`, `staging` over IPUs, `ready` models. Only here and
in `run` is JAX or Keras imported. Imports the graph, options and targets; nothing that plans or lowers. Tests:
tests/engine/frontends.
"""
