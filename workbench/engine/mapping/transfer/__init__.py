"""What the exchange moves so that every tile gets what it needs, per tile in bytes and pieces.

Every method is exact and counts the same; `methods.METHODS` are asked in this order, the first that can answers:

| method | for | takes time with |
| --- | --- | --- |
| parts | a joined tensor to a grid: what every part sends | the parts |
| axes (`by_axes`) | two grids, axis by axis | tiles and axes |
| turning | a view, seen in the order of its base | what is asked of the base |
| products (`by_lines`) | runs and a grid, without listing the grid's rows | runs and parts |
| lines (`by_lines`) | two mappings of which one is turned, line by line | the lines |
| elements (`by_axes`) | two owners with about as many runs as elements | the elements |
| sweep (`sweep`) | whatever is left, over the union of all boundaries | the runs of both |

Imports mappings. Tests: tests/engine/mapping.
"""

from workbench.engine.mapping.transfer.methods import Transfer, transfer

__all__ = ["Transfer", "transfer"]
