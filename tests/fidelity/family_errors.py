"""Validation errors: the call a case names, made wrong as its condition says; the exception and text it gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.fidelity.family_config import TestConfig, configured, heard, modelled, put
from tests.fidelity.outcome import Case, NotRun
from workbench import ipu
from workbench.ipu._attributes import Attribute

_COUNT = "experimental__multi_replica_distribution__process_count"
_GROUP = "norms__experimental__distributed_batch_norm_replica_group_size"

# (function that raises, words of its condition) -> what goes wrong, told as "<exception> <text>"
CALLS: dict[tuple[str, str], Callable[[], str]] = {
    ("_ConfigBase.__getattr__", ""): lambda: heard(lambda: put(TestConfig(), "nested5.attr", 1)),
    ("configure_ipu_system", "isinstance"): lambda: heard(lambda: ipu.config.configure_ipu_system({})),  # type: ignore[arg-type]
    ("_MultiReplicaDistributionConfig._to_protobuf", "running_on_ipu_model"): lambda: modelled(**{_COUNT: 1}),
    ("_IOTilesConfig._to_protobuf", "place_ops_on_io_tiles"): lambda: configured(io_tiles__place_ops_on_io_tiles=True),
    ("_IPUModelConfig._to_protobuf", "version"): lambda: modelled(ipu_model__version=""),
    ("IPUConfig._to_protobuf", "auto_select_ipus and"): lambda: configured(auto_select_ipus=1, select_ipus=1),
    ("IPUConfig._to_protobuf", "num_io_tiles"): lambda: configured(io_tiles__num_io_tiles=32, **{_GROUP: 2}),
    ("_get_type_check_fn_from_AST_type_hints.helper", "Enum"): lambda: heard(
        lambda: Attribute(name="both", default=lambda: 1, annotation=int | ipu.config.SelectionOrder)
    ),
}


def _where(case: Case) -> tuple[str, str]:
    """The file and function that raise."""
    source = case["source"]
    path = source["path"] if isinstance(source, dict) else str(source)
    found = re.search(r"([\w/]+\.py)(?::\d+)? \[([\w.]+)\]", path)
    return (found[1], found[2]) if found else ("", "")


def validation_error(case: Case) -> Any:
    """`{"exception", "message"}` of the call a case names."""
    file, function = _where(case)
    condition = str(case["description"]).partition("when:")[2]
    if not file.endswith("ipu/config.py"):
        return NotRun(f"the checks of {file.rpartition('/')[2] or 'this call'} are not asked here")
    for (name, words), call in CALLS.items():
        if name == function and words in condition:
            exception, _, message = call().partition(" ")
            return {"exception": exception, "message": message}
    return NotRun(f"no call for {function}")
