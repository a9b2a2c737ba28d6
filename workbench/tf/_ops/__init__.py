"""Operations by the names of `tf`: mathematics, layers as functions, random numbers, control flow, gradients.

They record on `tf._graph`. Tests: tests/tf, and tests/ipu for what an IPU makes of them.
"""
