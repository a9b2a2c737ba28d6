"""Primitives the IPU has no operator for, as programs of smaller ones.

`expansions` is the table of primitives that are expanded; `fold` evaluates what is known. Slices, look-ups and updates
are `known_places` where it is known where, else `one_by_one`, both of the `windows` an equation means. Imports nothing
of the other steps. Tests: tests/engine/frontends/expand.
"""
