"""Operators of a profile: their steps by caller, their table, and what in them exceeds what options allow.

Imports what a profile stores, and the timeline. Tests: tests/profiler/operators.
"""
