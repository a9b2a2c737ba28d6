"""The cards of the summary, in words."""

from __future__ import annotations

import workbench as wb
from workbench.profiler.report import face


def test_one_of_a_kind_is_not_many() -> None:
    graph = wb.tiles.Graph("ipu2", tiles=1)
    x = graph.variable("x", (4,), "float32").map_linearly(tiles=1)
    scale = graph.compute_set("scale")
    scale.vertex("popops::BinaryOp1D", tile=0, op="MULTIPLY", a=x, b=x, out=x)
    cards = face("summary").widget(wb.profile(graph.sequence(scale)).summary).data["cards"]
    said = {card["label"]: (card["value"], card["note"]) for card in cards}
    assert said["Target"][1].startswith("1 tile × ")
    assert said["Program"] == ("1 step", "1 variable")
