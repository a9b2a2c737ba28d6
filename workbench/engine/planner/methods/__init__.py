"""The vertices that the planner can choose, one a file, found by folder discovery.

Imports the planner's parts and the vertices' cycles. Tests: tests/engine/planner.
"""

from __future__ import annotations

from functools import cache

from workbench.base.registry import Registry, import_folder
from workbench.engine.planner.method import Method, methods


@cache
def load() -> Registry[type[Method]]:
    """Import every vertex of this folder once."""
    import_folder(__name__)
    return methods
