"""What crosses to the browser."""

from __future__ import annotations

import numpy as np
import pytest

from tests.widgets.kit.javascript import evaluate
from workbench.widgets.kit.payload import Names, pack


def test_columns_come_out_of_the_browser_as_they_went_in(node: str) -> None:
    layout, raw = pack({"a": ("u1", [1, 2, 3]), "b": ("f8", [0.5, 2**52 + 1]), "c": ("i2", []), "d": ("i4", [-5])})
    assert [column["offset"] for column in layout] == [0, 8, 24, 24]
    source = (
        "import {unpack} from 'WIDGETS/kit/kernel.js';\n"
        f"const bytes = new Uint8Array({list(raw)});\n"
        f"const found = unpack({layout}, new DataView(bytes.buffer));\n"
        "console.log(JSON.stringify(Object.fromEntries(Object.entries(found).map(([k, v]) => [k, [...v]]))));"
    )
    assert evaluate(node, source) == {"a": [1, 2, 3], "b": [0.5, 2**52 + 1], "c": [], "d": [-5]}


def test_a_number_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(OverflowError, match=r"^column 'tile' does not fit into i2$"):
        pack({"tile": ("i2", np.array([40_000]))})


def test_names_are_stored_once() -> None:
    names = Names()
    assert names.indexes(["b", "a", "b"]) == [0, 1, 0]
    assert names.values == ["b", "a"]
