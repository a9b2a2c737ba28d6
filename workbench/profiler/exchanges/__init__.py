"""What a profile keeps of its exchanges: where elements lie and where they are needed, from which it follows which
tile sends how much to which.

`placements` reads the mappings, `arrows` holds two against each other. Imports base and the schema. Tests:
tests/profiler/exchanges.
"""
