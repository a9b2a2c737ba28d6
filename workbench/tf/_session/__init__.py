"""Running a graph: a session, the devices it runs on, and clusters of operations that are compiled together.

What is placed on an IPU goes to the compiler by way of `tf._hooks`. Tests: tests/tf/test_programs.py and test_hooks.py.
"""
