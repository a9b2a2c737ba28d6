"""Where a contract says that a sample is missing."""

from __future__ import annotations

from tests.engine.samples import place
from workbench.engine import ops, vertices


def test_a_sample_s_place_is_the_file_of_the_name_of_what_it_is_of() -> None:
    assert place("ops", type(ops.load().get("joins"))) == "tests/engine/ops/samples/views.py"
    mac = vertices.find("poplin::ConvPartialVerticalMac").cycles
    assert place("vertices", mac) == "tests/engine/vertices/samples/conv/mac.py"
