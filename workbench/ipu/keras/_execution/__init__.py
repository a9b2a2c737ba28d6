"""Executions: the data they are given, the program that is compiled, and its numbers, turn by turn.

Tests: tests/ipu/strategy.
"""
