"""How each cell ends: in a result, in an exception of the caller's own code, or else refused by name.

What is in no table here is to be refused with an error of ours that names argument and value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.hostile import ends_of_ipu, ends_of_tf
from tests.hostile.classes import CLASSES
from tests.hostile.in_numpy import IN_NUMPY, computed
from tests.hostile.surface import Call
from workbench.engine.options import OPTIONS
from workbench.engine.target import Target

NUMBERS = "zero|past 64 bits|10**18|numpy scalar"
ANY_NUMBER = f"negative|{NUMBERS}"
OF_NUMBERS = "negative|zero|float|nan|infinite|numpy scalar|numpy array"
TEXTS = "empty text|controls|markup|parent|turned|half a character|device path"
PATHS = "markup|parent|turned|half a character"

# What a plan finds, and so is not given.
PLANNED = ("stages", "replicas", "gradient_accumulation_steps", "pipeline_schedule", "recomputation", "offload")

IPU_SWITCHES = (
    *("reset_configuration", "print_stats", "is_input", "strict", "override", "apply_options"),
    "experimental_identical_replicas",
)
IPU_PATHS = (
    *("utils.export_dataset_to_file.output_filename", "utils.export_inputs_to_file.output_filename"),
    *("utils.export_variables_from_live_model.output_file", "utils.export_variables_from_live_session.output_file"),
)
LOOPED = ("repeat.body", "while_loop.body", "while_loop.condition")
ITERATED = "numpy array|numpy objects|empty list|nested list|in itself"
HAND_NAMES = ("", ".compute_set", ".function", ".repeat", ".sequence", ".variable")
# Classes that give a result, by "call.argument" or by the name of an argument; `None` does wherever it is the default.
RESULTS: Mapping[str, str] = {
    # places of the small pipeline: two IPUs of four tiles
    "ipu": "zero",
    "tile": "zero|numpy scalar",
    "step": "zero|numpy scalar",
    "position": "zero|numpy scalar",
    "variable": "zero|numpy scalar",
    "number": "zero|numpy scalar",
    "index": "zero|numpy scalar",
    "cycles_from": ANY_NUMBER,
    "cycles_to": ANY_NUMBER,
    "Profile.blocks.cycles_from": f"none|{ANY_NUMBER}|float|infinite",
    "Profile.blocks.cycles_to": f"none|{ANY_NUMBER}|float|infinite",
    "Profile.to_chrome_trace.cycles_from": NUMBERS,
    "Profile.to_chrome_trace.cycles_to": f"none|{NUMBERS}",
    "max_rows": NUMBERS,
    "max_rects": "zero|numpy scalar",
    "Profile.explain.depth": "none|past 64 bits|10**18|numpy scalar",
    "path": PATHS,
    "Profile.to.arguments": f"none|{PATHS}",  # the path of its JSON
    "folder": PATHS,
    "Profile.explain.step": "zero|numpy scalar",
    "Profile.explain.variable": "none",
    "wb.load_profile.path": "",
    "profile": "profile",
    "text": TEXTS,
    "kind": TEXTS,
    "Memory.variables.names": "empty list",
    "Playback.live_at.positions": "empty list",
    "TileMap.of.item": f"none|{ANY_NUMBER}|{TEXTS}",
    "TileMap.from_profile.item": f"none|{ANY_NUMBER}|{TEXTS}",
    # arguments of compiles
    **dict.fromkeys(
        (f"wb.{name}.inputs" for name in ("autosplit", "compare_schedules", "fewest_ipus", "plan", "search", "sweep")),
        "none|empty list",
    ),
    "config": "config",
    "target": "target",
    "batch_size": "numpy scalar",
    "gradient_accumulation_steps": "numpy scalar",
    "replicas": "numpy scalar",
    "recomputation": "true",
    "recomputation_checkpoints": "none|empty list",
    # where recomputation may be tried, a pattern waits for it
    "wb.autosplit.recomputation_checkpoints": f"none|empty list|{TEXTS}",
    "wb.plan.recomputation_checkpoints": f"none|empty list|{TEXTS}",
    "wb.compare_schedules.recomputation_checkpoints": f"none|empty list|{TEXTS}",
    "device_mapping": "none|empty list",
    "wb.compile.device_mapping": "none",
    "wb.sweep.device_mapping": "none",
    "wb.search.device_mapping": "none",
    "wb.profile.device_mapping": "none",
    "wb.fewest_ipus.device_mapping": "none",
    "offload": "none|empty list|empty text",
    "trip_counts": "",
    "wb.target.tiles_per_ipu": "none|zero|numpy scalar",
    "executable": "executable|profile",
    "wb.diagnose.ipus": "none|numpy scalar",
    "wb.fewest_ipus.most": "none|numpy scalar",  # of a system
    "seconds": "past 64 bits|10**18|float|infinite|numpy scalar",
    "wb.app.source": "none|callable|class",  # compiled when the button is pressed
    "compiles": "past 64 bits|10**18|numpy scalar",
    **dict.fromkeys([f"wb.plan.{name}" for name in PLANNED], ""),
    "wb.plan.compiles": "past 64 bits|10**18",
    "wb.compile.batch_size": "numpy scalar",
    "wb.profile.batch_size": "numpy scalar",
    "wb.autosplit.batch_size": "numpy scalar",
    "wb.fewest_ipus.batch_size": "numpy scalar",
    "wb.compare_schedules.batch_size": "numpy scalar",
    "wb.compare_schedules.recomputation": "",
    "wb.compare_schedules.ipus": "numpy scalar",
    "wb.sweep.batch_size": "numpy scalar",
    "wb.search.batch_size": "numpy scalar",
    "wb.autosplit.gradient_accumulation_steps": "none",
    "beside": "past 64 bits|10**18|numpy scalar",
    "levels": "zero|past 64 bits|10**18|numpy scalar",
    "most": "past 64 bits|10**18|numpy scalar",
    "global_batch": "",
    "trials": "numpy scalar",
    "seed": "zero|numpy scalar",
    "columns": "empty list",
    "ipus": "numpy scalar",
    # programs by hand
    **dict.fromkeys([f"tiles.Graph{name}.name" for name in HAND_NAMES], TEXTS),
    "tiles.Graph.tiles": "none|numpy scalar",
    "times": "numpy scalar",
    "prefetched": "true",
    "tiles.Graph.variable.shape": "numpy scalar|empty list",
    "tiles.Graph.variable.kind": "none",
    "interleaved": "true",
    "tiles": "numpy scalar",
    "first_tile": "zero|numpy scalar",
    "grain": "zero|numpy scalar",
    "tiles.ComputeSet.vertex.value": f"true|negative|{NUMBERS}|float|nan|infinite",
    "tiles.ComputeSet.vertex.reads": "empty list",
    "tiles.ComputeSet.vertex.writes": "none|empty list",
    "Diagnosis.figure.kind": "",
    "Sweep.figure.kind": "",
    "row": "zero",
    # functions of `ipu`
    **dict.fromkeys(IPU_SWITCHES, "true"),
    **dict.fromkeys([f"ipu.{name}" for name in IPU_PATHS], PATHS),
    **dict.fromkeys(("ipu.dataset_extractor.dataset_extractor.filename",), f"{PATHS}|device path"),
    "ipu.dataset_extractor.export_variables.filename": f"{PATHS}|device path",  # written when it runs
    "ipu.dataset_extractor.dataset_extractor.dataset": ITERATED,
    "ipu.dataset_extractor.dataset_extractor.num_elements": "past 64 bits|10**18|numpy scalar",
    "ipu.utils.export_dataset_to_file.dataset_or_infeed": "numpy array",
    "ipu.utils.export_dataset_to_file.num_elements": "numpy scalar",
    "feed_name": TEXTS,
    "attribute_name": TEXTS,
    "attribute_value": TEXTS,
    "restore_to": f"none|{TEXTS}",
    "ipu.dataset_extractor.get_variable_handles.variables": "empty list",
    "ipu.utils.export_inputs_to_file.inputs": "empty list",
    "ipu.scopes.ipu_shard.index": NUMBERS,
    "ipu.config.config.configure_ipu_system.config": "config",
    "ipu.utils.reset_ipu_seed.seed": "negative|zero|10**18|numpy scalar",
    # sessions: numbers and arrays are fetched as they are
    "fetches": f"true|negative|{NUMBERS}|float|nan|infinite|numpy array|numpy objects|empty list|dict",
    "tf.Session.target": "empty text",
    "tf.Session.config": "none",
    "tf.Session.graph": "none",
    "Session.make_callable.feed_list": "empty list",
    # loops and what is kept: numbers and arrays are made tensors
    **dict.fromkeys(("ipu.loops.repeat.inputs", "ipu.loops.while_loop.inputs"), f"none|true|empty list|{OF_NUMBERS}"),
    "ipu.ipu_compiler.compile.inputs": "none|empty list",
    "ipu.loops.while_loop.maximum_iterations": "none|zero|numpy scalar",
    "ipu.loops.repeat.n": "zero|numpy scalar",
    "use_while_v1": "true",
    "ipu.ops.pipelining_ops.recomputation_checkpoint.tensors": f"true|empty list|dict|{OF_NUMBERS}",
    "ipu.ops.pipelining_ops.recomputation_checkpoint.name": f"none|{TEXTS}",
    "ipu_scope": f"true|{TEXTS}|negative|zero|past 64 bits|10**18",
    **ends_of_tf.RESULTS,
    **ends_of_ipu.RESULTS,
    # fields of a machine
    "Target.replace.bytes_per_tile": "none|numpy scalar",
    "Target.replace.name": "controls|markup|parent|turned|half a character|device path",
    "Target.replace.memory": "",
    "Target.replace.code": "",
    "Target.replace.what_if": "",
    "Target.replace.architecture": "",
}
# Options that are otherwise than their type and bounds say, and why.
OF_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("compilation_poplar_options", "gcl_poplar_options"), "dict"),  # any key goes on to the SDK
    **dict.fromkeys(("auto_select_ipus", "select_ipus"), "zero|empty list"),  # as many as the system has
    **dict.fromkeys(("device_connection.version", "ipu_model.version"), "empty text"),  # one of their choices
    "experimental.multi_replica_distribution.process_count": "zero",  # above the index, 0
    "io_tiles.place_ops_on_io_tiles": "",  # where there are some
    "io_tiles.available_memory_proportion": "",  # a float, as the SDK's
}
OF_FIELDS = {"int": "numpy scalar", "float": "10**18|float|numpy scalar", "str": ""}

# A function or a class of the caller's that is called: what it raises is theirs.
OWN: Mapping[str, str] = {
    "source": "callable",
    "tiles.Graph.copy.source": "",
    "wb.app.source": "",
    "loss": "callable",
    "progress": "callable|class",
    "heard": "callable|class",
    "objective": "callable|class",
    "computation": "callable|class",
    **dict.fromkeys([f"ipu.loops.{name}" for name in LOOPED], "callable|class"),
    **ends_of_tf.OWN,
    **ends_of_ipu.OWN,
}
# What is documented to raise an exception of Python's: the file is not there.
MISSING: Mapping[str, str] = {
    "wb.load_profile.path": f"controls|{PATHS}",
    "ipu.utils.load_executable.path": PATHS,
}
# What is called in an error otherwise than in the signature.
CALLED: Mapping[str, tuple[str, ...]] = {
    "kind": ("figure",),
    "name": ("system", "export", "challenge", "target", "model", "table", "column"),
    "names": ("view", "variable"),
    "number": ("micro-batch",),
    "source": ("cannot be compiled", "model"),
    "dtype": ("of type",),
    "index": ("no fix",),
    **dict.fromkeys(("multiples", "depth", "num_rows", "num_columns"), ("an array of shape",)),
    "ipu_device": ("IPU device",),
    **dict.fromkeys(("output_filename", "output_file"), ("path of a file", "expected: the path of a file")),
    **dict.fromkeys(("filenames", "data_files"), ("in no file", "is no file")),
    "dataset_or_infeed": ("dataset",),
    **dict.fromkeys(("feed_dict", "feed_list", "fetches"), ("has no operation", "a fetch is")),
    "num_elements": ("elements",),
    "pieces": ("is mapped to",),
    "tiles": ("target",),
    "wanted": ("programs need",),
    "steps_per_epoch": ("an epoch has",),
    "gradient_accumulation_reduction_method": ("reduction_method",),
    "executable": ("diagnose",),
    "auto_select_ipus": ("IPUs",),
    "select_ipus": ("device",),
    "profiles": ("compare",),
    "ipus": ("stages",),
    "inputs": ("x",),
    "stages": ("a stage",),
    "pipeline_schedule": ("pipeline.schedule",),
    "execution_profile": ("profile.execution",),
    "events_per_file": ("blocks",),
    "global_batch": ("samples",),
    "recomputation": ("schedule to compare",),
    "arguments": ("too many positional", "path", "the path of a file"),  # of an export
}


def listed(text: str) -> frozenset[str]:
    return frozenset(each for each in text.split("|") if each)


def looked_up(table: Mapping[str, str], call: Call, argument: str) -> frozenset[str]:
    return listed(table.get(f"{call.name}.{argument}", table.get(argument, "")))


def expected(call: Call, argument: str, kind: str) -> str:
    """`result`, `own`, `missing` or `ours`."""
    if kind in looked_up(MISSING, call, argument):
        return "missing"
    if call.name in IN_NUMPY:
        return "result" if in_numpy(call, argument, CLASSES[kind]()) is not None else "ours"
    if kind in looked_up(OWN, call, argument):
        return "own"
    if call.name.startswith("IPUConfig."):
        return "result" if kind in of_option(call.name.removeprefix("IPUConfig.")) else "ours"
    alone = f"{call.name}.{argument}" in RESULTS  # tells all of a cell's results
    fields = of_field(argument) if call.name == "Target.replace" else frozenset()
    if kind in looked_up(RESULTS, call, argument) | fields:
        return "result"
    return "result" if kind == "none" and call.defaults_to_none(argument) and not alone else "ours"


def in_numpy(call: Call, argument: str, value: Any) -> Any:
    """What NumPy computes of an operation's arguments; None where it refuses them."""
    try:
        return computed(call.name, call.given(argument, value))
    except Exception:
        return None


def of_option(name: str) -> frozenset[str]:
    """What an option may be: of its type and inside its bounds, as declared, and what `OF_OPTIONS` says of it."""
    if name in OF_OPTIONS:
        return listed(OF_OPTIONS[name])
    declared = OPTIONS.get(name)
    if declared.type is bool:
        return frozenset({"true"})
    if declared.type not in (int, float):
        return listed(TEXTS) if declared.type is str and not declared.choices else frozenset()
    low = -np.inf if declared.minimum is None else declared.minimum
    high = np.inf if declared.maximum is None else declared.maximum
    whole = ("negative", "zero", "past 64 bits", "10**18")
    asked = whole if declared.type is int else (*whole, "float", "infinite")
    return frozenset(each for each in asked if low <= CLASSES[each]() <= high)


def of_field(name: str) -> frozenset[str]:
    """What a field of a machine may be: whole numbers and others by its declaration, zero where that says so."""
    declared = next((each for each in dataclasses.fields(Target) if each.name == name), None)
    if declared is None:
        return frozenset()
    zero = ["zero"] if declared.metadata.get("least") == 0 else []
    most = declared.metadata.get("most", 2)
    return frozenset([*zero, *listed(OF_FIELDS.get(str(declared.type), ""))]) if most > 1 else frozenset()


def names_it(text: str, argument: str) -> bool:
    """Whether an error names the argument, as in the signature or as `CALLED` says."""
    lowered = text.lower()
    words = (argument, argument.replace("_", " "), argument.rstrip("s"), *CALLED.get(argument, ()))
    return any(word.lower() in lowered for word in words)


# What tells as much as the value: that no value would do, or its shape, or what was made of it.
TOLD_OTHERWISE = (
    *(" is given, and", " was given to", "has no ", "too many positional", "compare was given"),
    "not given one thing",
    "The first stage cannot be called",
    "which one step takes",
    "got multiple values for",
    "there is no outfeed_queue",
    "cannot be placed",
    *(
        "names were given",
        "in no file",
        "override_type is object",
        "given shape",
        "has shape",
        "have different shapes",
        "a stranger",
        "arguments of custom_getter",
    ),
)


def shows_it(text: str, value: object) -> bool:
    """Whether the value, or what is in it, is shown: as code, or as text; of an array its type or shape."""
    if any(words in text for words in TOLD_OTHERWISE):
        return True
    if isinstance(value, list | dict | str) and not value and any(word in text for word in ("no ", "empty", "0 ")):
        return True
    inside = list(value) if isinstance(value, list | tuple | set | np.ndarray) else []
    inside += [*value, *value.values()] if isinstance(value, dict) else []
    parts = [value, *inside, *(more for each in inside if isinstance(each, list | tuple) for more in each)]
    shown = [word for each in parts for word in (repr(each), str(each))]
    shown += [str(word) for each in parts for word in (shape_of(each), getattr(each, "dtype", None))]
    return any(word[:20] in text for word in shown if (word and word != "None") or value is None)


def shape_of(value: Any) -> Any:
    return np.shape(value) if isinstance(value, int | float) else getattr(value, "shape", None)
