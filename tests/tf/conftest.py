"""Tests of `tf` begin as those of `ipu` do."""

from __future__ import annotations

from tests.ipu.conftest import fresh_graph, fresh_system

__all__ = ["fresh_graph", "fresh_system"]
