"""The planner of matmuls and convolutions: from a node to a problem, from a problem to the cheapest plan that fits.

The nouns, in the order in which a search meets them:

problem    what is multiplied: a loop nest over groups, batch, field, kernel, input and output channels
layout     how operands lie for it: which one streams, and whether the kernel's positions are laid out as channels
method     a vertex with the blocks it takes, one file a vertex in `methods/`: what it costs, which vertices it becomes
variant    a layout with a method that computes it
rules      what the layout of a variant rearranges, whatever the cut, with the settings and the machine
grain      elements of an axis that are not cut apart: a block of channels
parts      into how many an axis is cut; a tile has one part of every axis
table      all cuts of the axes of one role; a row of it is one number of parts for each
cut        a row of every role's table, so one way to cut the problem
shares     sizes on the fullest tile that follow from a cut
candidates cuts of a variant with numbers of serial steps, their cycles and temporary bytes as lower bounds
choice     the candidate that is cheapest and fits: it becomes the plan
plan       how the problem is cut, and what that costs the planner as terms
places     where a plan puts operands, partials and results

Tests: tests/engine/planner.
"""
