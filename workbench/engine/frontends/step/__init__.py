"""A Keras model as functions without state: built, with its loss, its optimizer and its training step.

`building` makes a model without weights, `losses` and `training` the step, `prepare` the whole. Imports `describe`,
`trace` and `ready`. Tests: tests/engine/frontends/step.
"""
