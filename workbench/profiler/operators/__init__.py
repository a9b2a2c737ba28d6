"""Operators of a profile: their steps, their table.

Imports what a profile stores, and the timeline. Tests: tests/profiler/operators.
"""
