"""What to make of a profile: explanations, comparisons, diagnoses with their levers.

`diagnose` measures fixes by `levers`, chosen by `search`; `explain` gives formula, inputs and source of a number,
`compare` holds profiles against each other. Imports what a profile stores. Tests: tests/profiler/advice.
"""
