"""One view a file, with its script and style of the same name.

Each registers itself with its title and place in the order. Imports `kit`, profiles and reports. Tests:
tests/widgets/views.
"""
