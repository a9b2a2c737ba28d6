"""`tf.function` and what is beside it have TensorFlow's names, parameters, defaults: data/api_tf_function.json."""

from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import tf
from workbench.ipu.ipu_strategy import IPUStrategy

ROWS = json.loads((Path(__file__).parents[2] / "data" / "api_tf_function.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_names_parameters_defaults_and_kinds(row: dict[str, Any]) -> None:
    ours: Any = tf
    for part in row["name"].split("."):
        ours = getattr(ours, part)
    kinds = {
        "function": inspect.isfunction(ours),
        "class": inspect.isclass(ours),
        "property": isinstance(ours, property),
        "enumeration": inspect.isclass(ours) and issubclass(ours, Enum),
    }
    assert kinds[row["kind"]]
    assert inspect.getdoc(ours)
    if "parameters" in row:
        found = inspect.signature(ours).parameters.values()
        named = [[each.name] if each.default is each.empty else [each.name, repr(each.default)] for each in found]
        assert named == row["parameters"]
    if "members" in row:
        assert list(ours.__members__) == row["members"]


def test_a_replica_asks_its_context() -> None:
    strategy = IPUStrategy()
    assert tf.distribute.get_replica_context() is None
    with strategy.scope():
        context = tf.distribute.get_replica_context()
        assert (context.strategy, context.num_replicas_in_sync, context.replica_id_in_sync_group) == (strategy, 1, 0)
        assert float(context.all_reduce(tf.distribute.ReduceOp.SUM, np.float32(3))) == 3
