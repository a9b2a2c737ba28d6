"""`tf.function`: Python functions recorded as graphs, converted by AutoGraph, and run whole on a device.

`function` is what programs write, `signature` says which calls share a recording, `recording` makes one and runs it;
`keras_calls` makes operations of what Keras objects are asked inside, `autograph` converts Python to what `statements`
and `expressions` record. Imports `_graph`, `_ops` and `_session` of `tf`. Tests: tests/tf/function.
"""
