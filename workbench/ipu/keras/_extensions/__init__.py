"""Extensions of Keras' models: how they get into a class, the options they take, and Keras' loop on executions.

Tests: tests/ipu/strategy.
"""
