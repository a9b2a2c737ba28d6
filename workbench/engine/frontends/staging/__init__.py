"""A model cut into pipeline stages: forward, backward and update of each, and the program around them.

`stages` says which layer is in which, `vjp` cuts a stage's forward and backward, `program` builds what runs them, for
Keras and for `tf` alike, `recompute` the second forward pass, `whole_step` that of a step without stages, `scheduled`
the numbers. Imports the steps before it. Tests: tests/engine/frontends/staging.
"""
