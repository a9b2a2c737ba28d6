"""Operators of a profile: their steps, their table."""
