"""The user's code: the line that runs at the moment, the text that stands there, and where layers were made.

Imports `base.text`. Tests: tests/base/test_source.py.
"""
