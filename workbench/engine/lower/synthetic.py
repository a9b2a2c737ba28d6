"""Synthetic data: copies between host and IPU that a program leaves out, so that its time is that of the IPU alone."""

from __future__ import annotations

from typing import Literal

from workbench.engine.graph import Graph
from workbench.engine.options import Options


def left_out(graph: Graph, options: Options, direction: Literal["to_device", "to_host"]) -> bool:
    """Whether what goes this way is synthetic: arguments and results of a function are its parameters, a model's feeds.

    The driver makes no stream for entry parameters, nor for outputs, whose category is synthetic (graphcore/tensorflow
    tensorflow/compiler/plugin/poplar/driver/visitors/entry_visitor.cc:208-210, 385).
    """
    of_a_model = "infeed" if direction == "to_device" else "outfeed"
    return ("parameters" if graph.mode == "function" else of_a_model) in options.get("synthetic_data")
