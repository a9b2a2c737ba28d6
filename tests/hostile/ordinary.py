"""What an ordinary call of each public callable gives: its arguments without a default, by name or for one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tests.hostile import things

# By the name of an argument, wherever it has no default.
BY_NAME: Mapping[str, Callable[[], Any]] = {
    "source": things.model,
    "executable": things.small_executable,
    "profile": things.profile,
    "path": lambda: "file",
    "folder": lambda: "folder",
    "step": lambda: 0,
    "tile": lambda: 0,
    "ipu": lambda: 0,
    "number": lambda: 0,
    "row": lambda: 0,
    "index": lambda: 0,
    "position": lambda: 0,
    "variable": lambda: 0,
    "cycles_from": lambda: 0,
    "cycles_to": lambda: 100,
    "text": lambda: "first",
    "kind": lambda: "cycles",
    "kind_of_number": lambda: "memory",
    # of operations
    **dict.fromkeys(("x", "y", "a", "b", "input", "input_tensor", "features", "logits"), things.square),
    "shape": lambda: [2, 3],
    "tensor": things.square,
    "multiples": lambda: [1, 2],
    "axes": lambda: 1,
    "axis": lambda: None,
}
_TRAINED = {"source": things.model, "batch_size": lambda: 2, "target": things.machine, "mode": lambda: "training"}
OF_TRUTHS = {
    "logical_not": ("x",),
    "logical_and": ("x", "y"),
    "logical_or": ("x", "y"),
    "reduce_all": ("input_tensor",),
    "reduce_any": ("input_tensor",),
}
BY_CALL: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "wb.compile": _TRAINED,
    "wb.profile": _TRAINED,
    "wb.compare_schedules": {**_TRAINED, "ipus": lambda: 2},
    "wb.autosplit": {**_TRAINED, "ipus": lambda: 2, "compiles": lambda: 1},
    "wb.fewest_ipus": {**_TRAINED, "most": lambda: 1, "compiles": lambda: 1},
    "wb.plan": {**_TRAINED, "global_batch": lambda: 32, "compiles": lambda: 3},
    "wb.sweep": {**_TRAINED, "grid": lambda: {"ipu_model.compile_ipu_code": [True]}},
    "wb.search": {**_TRAINED, "space": lambda: {"ipu_model.compile_ipu_code": [True]}, "trials": lambda: 1},
    "wb.compare": {"profiles": lambda: (things.profile(), things.profile()), "labels": lambda: ("before", "after")},
    "wb.ready": {"name": lambda: "mlp"},
    "wb.challenge": {"name": lambda: "fit-the-tile"},
    "wb.load_profile": {"path": lambda: things.saved()},
    "Profile.column": {"table": lambda: "steps", "name": lambda: "id"},
    "Profile.to": {"name": lambda: "json"},
    "Profile.explain": {"step": lambda: things.profile().steps["id"].iloc[0]},
    "Profile.live_variables": {"step": lambda: int(things.profile().steps["id"].iloc[0])},
    "Executable.run": {"args": lambda: (things.square(),)},
    "Memory.variables": {"names": lambda: [str(things.profile().memory.profile.tables["variables"]["name"][0])]},
    "Comparison.table": {"name": lambda: "variables"},
    "tf.reshape": {"shape": lambda: [2, 8]},
    "tf.expand_dims": {"axis": lambda: 0},
    "tf.argmax": {"axis": lambda: 0},
    "tf.add_n": {"inputs": lambda: [things.square(), things.square()]},
    "tf.cast": {"dtype": lambda: "int32"},
    "tf.clip_by_value": {"t": things.square, "clip_value_min": lambda: -0.5, "clip_value_max": lambda: 0.5},
    "tf.concat": {"values": lambda: [things.square(), things.square()], "axis": lambda: 1},
    "tf.constant": {"value": lambda: 2.5},
    "tf.einsum": {"equation": lambda: "ij->ji", "inputs": lambda: (things.square(),)},
    "tf.fill": {"dims": lambda: [2, 3], "value": lambda: 2},
    "tf.gather": {"params": things.square, "indices": lambda: [0, 3]},
    "tf.getitem": {"whole": things.square, "index": lambda: 1},
    "tf.one_hot": {"indices": lambda: [0, 3], "depth": lambda: 4},
    "tf.pad": {"paddings": lambda: [[0, 1], [2, 0]]},
    "tf.broadcast_to": {"input": things.square, "shape": lambda: [2, 4, 4]},
    "tf.reverse": {"tensor": things.square, "axis": lambda: [0]},
    "tf.eye": {"num_rows": lambda: 3},
    "tf.gather_nd": {"params": things.square, "indices": lambda: [[0, 3], [1, 1]]},
    **{
        f"tf.tensor_scatter_nd_{kind}": {
            "tensor": things.square,
            "indices": lambda: [[0, 3], [1, 1]],
            "updates": lambda: [0.5, 2.0],
        }
        for kind in ("add", "update")
    },
    **{
        f"tf.unsorted_segment_{kind}": {
            "data": things.square,
            "segment_ids": lambda: [0, 1, 1, 0],
            "num_segments": lambda: 3,
        }
        for kind in ("sum", "mean")
    },
    "tf.clip_by_norm": {"t": things.square, "clip_norm": lambda: 0.5},
    "tf.global_norm": {"t_list": lambda: [things.square(), things.square()]},
    "tf.ensure_shape": {"x": things.square, "shape": lambda: [4, None]},
    "tf.range": {"start": lambda: 5},
    "tf.slice": {"input_": things.square, "begin": lambda: [0, 1], "size": lambda: [2, -1]},
    "tf.split": {"value": things.square, "num_or_size_splits": lambda: 2},
    "tf.stack": {"values": lambda: [things.square(), things.square()]},
    "tf.unstack": {"value": things.square},
    "tf.where": {"condition": things.truths, "x": things.square, "y": things.square},
    **{f"tf.{name}": dict.fromkeys(names, things.truths) for name, names in OF_TRUTHS.items()},
    "tf.nn.conv2d": {"input": things.images, "filters": things.kernel},
    **{f"tf.nn.{kind}_pool{of}": {"value": things.images} for kind in ("max", "avg") for of in ("", "2d")},
    "tf.nn.bias_add": {"value": things.square, "bias": things.row},
    "tf.nn.xw_plus_b": {"x": things.square, "weights": things.square, "biases": things.row},
    "tf.nn.l2_loss": {"t": things.square},
    "tf.nn.embedding_lookup": {"params": things.square, "ids": lambda: [0, 3]},
    "tf.nn.moments": {"axes": lambda: [0]},
    "tf.nn.in_top_k": {"targets": lambda: [0, 3, 1, 2], "predictions": things.square},
    **{
        f"tf.nn.{kind}_cross_entropy_with_logits{of}": {"labels": labels, "logits": things.square}
        for kind, labels in (
            ("softmax", things.square),
            ("sparse_softmax", lambda: [0, 3, 1, 2]),
            ("sigmoid", things.square),
        )
        for of in ("", "_v2")
    },
    "Exchange.partners": {"way": lambda: "in"},
    "Playback.live_at": {"positions": lambda: [0, 1]},
    "ProgramTree.dearest": {"most": lambda: 20},
    "ProgramTree.unfolded": {"levels": lambda: 2},
    "Sweep.joined": {"other": lambda: things.decisions()[-1]},
    "Diagnosis.slowdown": {"fix": lambda: None},
}


def given(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of an ordinary call; a `LookupError` where one without a default stands in neither table."""
    special = BY_CALL.get(name, {})
    found = {argument: make() for argument, make in special.items()}
    for each in inspect.signature(function).parameters.values():
        needed = each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if needed and each.name not in found:
            if each.name not in BY_NAME:
                raise LookupError(f"{name}: what is an ordinary {each.name!r}? Say it in {__name__}")
            found[each.name] = BY_NAME[each.name]()
    return found
