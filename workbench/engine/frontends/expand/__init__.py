"""Primitives the IPU has no operator for, as programs of smaller ones.

`expansions` is the table of primitives that are expanded; `fold` evaluates what is known. Imports nothing of the
other steps. Tests: tests/engine/frontends/expand.
"""
