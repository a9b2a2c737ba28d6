"""Which changes to compile next, alone or up to three at once: `beliefs` what is expected, `trial` the loop.

Nothing is offered on a belief: it only chooses what is compiled. Imports levers and profiles; the compiler is a
function that is given. Tests: tests/profiler/advice.
"""
