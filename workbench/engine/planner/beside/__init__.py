"""Plans searched beside: a second interpreter searches those of a large model while this one optimises its graph.

Products are known one by one while a model is traced, and no plan depends on another one, so they are what of a compile
can be done at the same time. `wire` says how questions and answers are written, `helper` is what the second interpreter
runs, `second` starts it, asks, and takes over from it what it has not come to. What it answers is the choice of a
search, of which the plan is made here; without it everything is searched here, with the same result.

Tests: tests/engine/planner/test_beside.py.
"""
