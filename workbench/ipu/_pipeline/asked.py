"""What a pipeline is asked for: whether its arguments fit each other, and Poplar options of single stages.

Options of a stage win over the configuration's, operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.engine.graph import Function, Graph, attrs
from workbench.engine.graph.stages import Turn, body_name, stage_calls
from workbench.engine.planner.search import PROPORTION
from workbench.errors import InputError, KindError, UnsupportedError
from workbench.ipu._feeds import check_program
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from workbench.tf._graph.dtypes import given_type

SUM = GradientAccumulationReductionMethod.SUM
GROUPS = {"dot_general": "matmul_options", "conv_general_dilated": "convolution_options"}
_LEFT_TO_THE_CONFIGURATION = (
    *("offload_weight_update_variables", "offload_activations", "offload_gradient_accumulation_buffers"),
    *("offload_weights", "replicated_weight_sharding", "replicated_optimizer_state_sharding"),
)
_PARTIALS = ("half", "float")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """The arguments of `pipelining_ops.pipeline`, under short names."""

    stages: Any
    count: Any
    sums: Any
    repeats: Any
    serial: Any
    inputs: Any
    infeed: Any
    outfeed: Any
    optimize: Callable[..., Any] | None
    devices: Any
    schedule: Any  # a member of PipelineSchedule, once checked
    recomputation: Any  # a member of RecomputationMode, once checked
    forward_options: Any
    backward_options: Any
    update_options: Any
    offload: Mapping[str, bool | None]
    continuous: bool
    loss_out: bool
    accumulate: bool
    accumulate_type: Any
    mask: Any
    reduction: Any
    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The options these arguments write over a configuration."""
        written = {name: bool(value) for name, value in self.offload.items() if value is not None}
        return written | {
            "pipeline.schedule": self.schedule.name,
            "pipeline.device_mapping": tuple(self.devices),
            "pipeline.recomputation_mode": self.recomputation.name,
        }


def checked(asked: Asked, schedule: type[Enum], recomputation: type[Enum], options: type) -> Asked:
    """The same with lists as lists and a device for every stage; a clear error for what does not fit."""
    _check_count("gradient_accumulation_count", asked.count, least=1)
    _check_count("repeat_count", asked.repeats, least=1)
    _check_count("batch_serialization_iterations", asked.serial, least=1)
    asked = replace(asked, reduction=GradientAccumulationReductionMethod.parse(asked.reduction))
    if asked.serial != 1 and asked.reduction is not SUM:
        raise InputError("batch_serialization_iterations beyond 1 needs the reduction method SUM.")
    _check_switches(asked)
    if asked.continuous:
        raise UnsupportedError("continuous_weight_updates is True, which is not there, as in the SDK.")
    asked = replace(asked, schedule=member("pipeline_schedule", asked.schedule, schedule))
    if asked.serial > 1 and asked.schedule.name != "Sequential":
        raise UnsupportedError(
            f"batch_serialization_iterations is {asked.serial}: it is not supported under {asked.schedule.name}. "
            "To mend it: use PipelineSchedule.Sequential."
        )
    _check_waiting(asked)
    asked = replace(asked, recomputation=member("recomputation_mode", asked.recomputation, recomputation))
    asked = _check_stages(asked)
    _check_queues(asked)
    _check_options(asked, options)
    return replace(asked, inputs=_as_list(asked.inputs))


def _check_waiting(asked: Asked) -> None:
    """Where each micro-batch goes back before the next one comes, no activations wait that could be offloaded."""
    offloads, alone = asked.offload["pipeline.offload_activations"], asked.schedule.name == "Sequential"
    if offloads and alone and asked.serial == 1 and asked.optimize is not None:
        raise InputError(
            "offload_activations is True, and under the Sequential schedule no activations wait in a stage for its "
            "backward pass",
            expected="something it can act on",
            todo="leave offload_activations out, or take PipelineSchedule.Grouped or Interleaved",
        )


def member(name: str, value: Any, kind: type[Enum]) -> Any:
    """The member of an enumeration from itself or its name."""
    if isinstance(value, kind):
        return value
    names = list(kind.__members__)
    if isinstance(value, str) and value in names:
        return kind[value]
    raise KindError(
        f"{name} is {short(value)}",
        expected=f"a member of {kind.__name__}, or its name: {', '.join(names)}",
        todo=f"write {name}={names[0]!r}, or another of them",
    )


def _check_switches(asked: Asked) -> None:
    """Yes or no, None where the configuration says it; one for each output of the last stage in the mask."""
    given = {
        **{name.rpartition(".")[2]: value for name, value in asked.offload.items()},
        "continuous_weight_updates": asked.continuous,
        "outfeed_loss": asked.loss_out,
        "accumulate_outfeed": asked.accumulate,
    }
    for name, value in given.items():
        if not isinstance(value, bool | np.bool_) and (value is not None or name not in _LEFT_TO_THE_CONFIGURATION):
            raise KindError(f"{name} is {short(value)}, but it must be True or False.")
    mask = asked.mask
    if mask is not None and (
        not isinstance(mask, list | tuple) or not all(isinstance(each, bool | np.bool_) for each in mask)
    ):
        raise KindError(f"outfeed_mask is {short(mask)}, but it must be a list of True and False.")
    for name, kind in (
        ("gradient_accumulation_dtype", asked.sums),
        ("accumulate_outfeed_dtype", asked.accumulate_type),
    ):
        if kind is not None and not (callable(kind) and not hasattr(kind, "as_numpy_dtype")):
            given_type(kind, name)


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]


def _check_count(name: str, value: Any, *, least: int) -> None:
    if value is None:
        raise InputError(f"{name} must be given, and is None: how often it runs is part of the program.")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise KindError(f"{name} is {short(value)}, but it must be a whole number known when the program is built.")
    if value < least:
        raise InputError(f"{name} is {value}, but it must be at least {least}.")
    if value > np.iinfo(np.int32).max:
        raise InputError(f"{name} is {value}, more than an int32 counts.")


def _check_stages(asked: Asked) -> Asked:
    """At least two functions, each on an IPU."""
    if not isinstance(asked.stages, list | tuple):
        raise KindError(f"computational_stages is {short(asked.stages)}, but it must be a list or a tuple.")
    count = len(asked.stages)
    if count < 2:
        raise InputError(
            f"computational_stages has {things_text(count, 'stage')}, {short(asked.stages)}; a pipeline has at "
            "least two."
        )
    for number, stage in enumerate(asked.stages):
        if isinstance(stage, list | tuple):
            raise UnsupportedError(
                f"computational_stages[{number}] is a list, {short(stage)}: parallel stages are not supported."
            )
        if not callable(stage):
            raise KindError(f"computational_stages[{number}] is {short(stage)}, but it must be a function.")
    return replace(asked, devices=_devices(asked, count))


def _devices(asked: Asked, count: int) -> list[int]:
    """The IPU of each stage."""
    devices = asked.devices
    if devices is None:
        devices = [0] * count if asked.serial > 1 else list(range(count))
    if not isinstance(devices, list | tuple):
        raise KindError(f"device_mapping is {short(devices)}, but it must be a list or a tuple.")
    if len(devices) != count:
        raise InputError(
            f"device_mapping is {short(devices)}: {things_text(len(devices), 'entry')} for "
            f"{things_text(count, 'stage')}; each has an IPU."
        )
    for number, device in enumerate(devices):
        if isinstance(device, bool) or not isinstance(device, int | np.integer) or device < 0:
            raise KindError(
                f"device_mapping[{number}] is {short(device)}, but it must be the number of an IPU, from 0."
            )
    if asked.schedule.name == "Interleaved" and asked.optimize is not None and len(set(devices)) != count:
        raise UnsupportedError(
            f"device_mapping puts several stages on one IPU, {list(devices)}, which the Interleaved schedule cannot "
            "train. To mend it: use PipelineSchedule.Grouped or Sequential."
        )
    if asked.serial > 1 and len(set(devices)) > 1:
        raise UnsupportedError(
            f"batch_serialization_iterations is {asked.serial} with the device_mapping {list(devices)}, but then all "
            "stages must be on a single IPU."
        )
    return [int(device) for device in devices]


def _check_queues(asked: Asked) -> None:
    """Queues of the right kind, and what is enqueued said in one way."""
    if asked.infeed is not None and not isinstance(asked.infeed, IPUInfeedQueue):
        raise KindError(f"infeed_queue is {short(asked.infeed)}, but it must be an IPUInfeedQueue.")
    if asked.outfeed is not None and not isinstance(asked.outfeed, IPUOutfeedQueue):
        raise KindError(f"outfeed_queue is {short(asked.outfeed)}, but it must be an IPUOutfeedQueue.")
    for name, queue in (("infeed", asked.infeed), ("outfeed", asked.outfeed)):
        check_program(name, None if queue is None else queue._device_ordinal)
    if asked.optimize is not None and not callable(asked.optimize):
        raise KindError(f"optimizer_function is {short(asked.optimize)}, but it must be a function.")
    for name, value in (("outfeed_mask", asked.mask), ("outfeed_loss", asked.loss_out)):
        if value and asked.optimize is None:
            raise InputError(f"{name} is set without an optimizer_function, whose outputs it speaks of.")
    if asked.loss_out and asked.mask is not None:
        raise InputError("outfeed_loss and outfeed_mask are both set, but only one of them says what is enqueued.")
    if asked.loss_out and asked.outfeed is None:
        raise InputError("outfeed_loss is set without an outfeed_queue to enqueue it to.")
    _check_accumulation(asked)
    if asked.optimize is None:
        _check_untrained(asked)


def _check_untrained(asked: Asked) -> None:
    """What acts on gradients and updates alone.

    Of two options that are not here the SDK says that they do nothing in inference; a reduction method, which always
    has a value, it takes there and its own tests give one.
    """
    given = {
        "gradient_accumulation_dtype": asked.sums is not None,
        "backward_propagation_stages_poplar_options": asked.backward_options is not None,
        "weight_update_poplar_options": asked.update_options is not None,
        "offload_weight_update_variables": bool(asked.offload["pipeline.offload_weight_update_variables"]),
        "offload_activations": bool(asked.offload["pipeline.offload_activations"]),
    }
    for name, is_given in given.items():
        if is_given:
            raise InputError(
                f"{name} is set without an optimizer_function: nothing goes back and nothing is updated",
                expected="something it can act on",
                todo=f"give an optimizer_function, or leave {name} out",
            )


def _check_accumulation(asked: Asked) -> None:
    if asked.accumulate_type is not None and not asked.accumulate:
        raise InputError(
            f"accumulate_outfeed_dtype is {short(asked.accumulate_type)} without accumulate_outfeed: nothing adds up",
            todo="set accumulate_outfeed=True, or leave accumulate_outfeed_dtype out",
        )
    if asked.accumulate:
        if asked.outfeed is None:
            raise InputError("accumulate_outfeed is set without an outfeed_queue.")
        if asked.outfeed._outfeed_mode is not IPUOutfeedMode.ALL:
            raise InputError("accumulate_outfeed needs an outfeed queue in the mode IPUOutfeedMode.ALL.")


def _check_options(asked: Asked, kind: type) -> None:
    """Options for each stage, and of the known kind."""
    for name, several in (
        ("forward_propagation_stages_poplar_options", asked.forward_options),
        ("backward_propagation_stages_poplar_options", asked.backward_options),
    ):
        if several is None:
            continue
        if not isinstance(several, list | tuple):
            raise KindError(f"{name} is {short(several)}, but it must be a list of PipelineStageOptions.")
        if len(several) != len(asked.stages):
            raise InputError(
                f"{name} is {short(several)}: {things_text(len(several), 'entry')} for "
                f"{things_text(len(asked.stages), 'stage')}."
            )
        for each in several:
            if not isinstance(each, kind):
                raise KindError(f"{name} holds {short(each)}, which is no PipelineStageOptions.")
    if asked.update_options is not None and not isinstance(asked.update_options, kind):
        raise KindError(f"weight_update_poplar_options is {short(asked.update_options)}, no PipelineStageOptions.")


# Options of single stages


def with_stage_options(graph: Graph, asked: Asked) -> Graph:
    """The graph with the options of each stage's passes on its products."""
    wanted: dict[tuple[int, Turn], Any] = {}
    for number, each in enumerate(asked.forward_options or ()):
        wanted |= {(number, "forward"): each, (number, "recompute"): each}
    for number, each in enumerate(asked.backward_options or ()):
        wanted[number, "backward"] = each
    if asked.update_options is not None:
        wanted |= {(number, "update"): asked.update_options for number in range(len(asked.stages))}
    given = {
        place: {op: _attributes(vars(options)[group], body_name(*place)) for op, group in GROUPS.items()}
        for place, options in wanted.items()
    }
    for place, options in wanted.items():
        _attributes(options.slice_options, body_name(*place), known=())
    calls = {(call.number, call.direction): call.function.name for call in stage_calls(graph)}
    reached = {
        inner: chosen for place, chosen in given.items() if place in calls for inner in _inside(graph, calls[place])
    }
    functions = {name: _with(function, reached.get(name, {})) for name, function in graph.functions.items()}
    return replace(graph, functions=functions)


def _inside(graph: Graph, name: str) -> list[str]:
    """A function and those it calls."""
    found: list[str] = []
    pending = [name]
    while pending:
        found.append(pending.pop())
        pending += [inner for node in graph.functions[found[-1]].nodes for inner in node.calls]
    return found


def _attributes(
    options: Mapping[str, Any], where: str, known: tuple[str, ...] = ("availableMemoryProportion", "partialsType")
) -> dict[str, Any]:
    """What options say of an operator; those that the model of a stage does not have are an `InputError`."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise InputError(
                f"the PipelineStageOptions of {where} set {short(name)}",
                expected=f"options of a single stage: {', '.join(known) or 'none of slices'}",
                todo="set it for all stages in IPUConfig",
            )
        if name == "partialsType":
            if value not in _PARTIALS:
                raise InputError(f"partialsType of {where} is {short(value)}", expected="'half' or 'float'")
            found["partials_type"] = value
        else:
            found[PROPORTION] = _proportion(value, where)
    return found


def _proportion(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise InputError(f"availableMemoryProportion of {where} is {short(value)}", expected="a number from 0 to 1")
    return number


def _with(function: Function, chosen: Mapping[str, Mapping[str, Any]]) -> Function:
    if not any(chosen.values()):
        return function
    nodes = tuple(
        replace(node, attrs=attrs(**{**dict(node.attrs), **chosen[node.op]})) if chosen.get(node.op) else node
        for node in function.nodes
    )
    return replace(function, nodes=nodes)


__all__ = ["SUM", "Asked", "checked", "member", "with_stage_options"]
