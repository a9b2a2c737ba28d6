"""A traced program (jaxpr) becomes a graph.

`jaxpr` is the door, the only one to what is not public in JAX; `flatten` and `control_flow` walk equations, `drafts`
and `body` are the nodes in the making, `index_values` is what is known of indices, `frames` and `describe.name_stack`
say where they come from. Imports `describe` and `expand`. Tests: tests/engine/frontends/trace.
"""
