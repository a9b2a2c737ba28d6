"""What a compile asks of pipelines, read from its options and written to them: stages, devices, recompute, memory."""

from __future__ import annotations

from enum import Enum
from typing import Any

from workbench.base.text import meant, short
from workbench.engine.options import Options, find_option
from workbench.errors import InputError, OptionValueError

# What `offload` may name: its option, and the role of the variables that it moves (None: what stages keep).
OFFLOAD = {
    "weights": ("pipeline.offload_weights", "parameter"),
    "activations": ("pipeline.offload_activations", None),
    "optimizer_state": ("pipeline.offload_weight_update_variables", "optimizer"),
    "gradient_accumulation_buffers": ("pipeline.offload_gradient_accumulation_buffers", "accumulator"),
    "optimizer_state_to_replicas": ("pipeline.optimizer_state_sharding", "optimizer"),
}
IN_SHARES = "optimizer_state_to_replicas"
FILLINGS = 4  # of a pipeline, in one weight update, where nobody says how many micro-batches there are


def in_even_stages(request: Any, ipus: int | None = None) -> Any:
    """The request in stages: its own, else its layers spread evenly by number over `ipus`.

    Micro-batches that were left at one become four times those that fill the pipeline under any schedule.
    """
    from workbench.engine.frontends.staging.stages import even_stages

    if request.stages is None:
        if not ipus or ipus < 2:
            raise InputError(
                f"ipus is {ipus}, and there are no stages to schedule", todo="give stages=, or ipus= of at least 2"
            )
        request = request.replace(stages=even_stages(request.source, ipus, built=not request.inputs))
    stages = list(getattr(request.stages, "stages", request.stages))
    count = len(stages) + 1 if all(isinstance(stage, str) for stage in stages) else max(stages) + 1
    if ipus is not None and count != ipus:
        raise InputError(f"ipus is {ipus}, and stages are {count}: {stages}", todo="leave ipus out, or stages")
    if request.gradient_accumulation_steps > 1:
        return request
    return request.replace(gradient_accumulation_steps=FILLINGS * 2 * count)


def devices_of(options: Options) -> tuple[int, ...]:
    """The IPU of each stage; () is one each, in order."""
    return _several(options.get("pipeline.device_mapping"))


def _several(value: Any) -> tuple[Any, ...]:
    """An option of several values; of one it is that value."""
    return value if isinstance(value, tuple) else (value,)


def recomputed_source(source: Any, options: Options) -> Any:
    """The source as the options want it computed again; what it keeps without them."""
    if not options.get("allow_recompute"):
        return source
    from workbench.engine.frontends.staging.recompute import Recomputation, mode_for
    from workbench.engine.frontends.staging.staged_program import as_it_is, with_recomputation

    checkpoints = _several(options.get("pipeline.recomputation_checkpoints"))
    single = int(str(source.graph.meta.get("stages", 1))) == 1
    schedule = "Sequential" if single else str(options.get("pipeline.schedule"))
    mode = str(options.get("pipeline.recomputation_mode"))
    if mode == "Auto" and checkpoints and schedule == "Grouped":
        mode = "RecomputeAndBackpropagateInterleaved"
    mode_there = mode_for(mode, schedule)
    if checkpoints and mode_there == "RecomputeThenBackpropagate":
        raise InputError(
            f"recomputation_checkpoints are given, and {mode_there} under the {schedule} schedule computes a stage's"
            " whole forward pass again from what comes into it",
            expected="no checkpoints, or a mode that makes results again where they are needed",
            todo="leave recomputation_checkpoints out, or take the Grouped schedule with the mode 'Auto'",
        )
    how = Recomputation(mode=mode_there, checkpoints=checkpoints)
    left = as_it_is(source, how) if mode == "Auto" and schedule == "Sequential" else None
    return left or with_recomputation(source, how)


def offload_options(offload: Any) -> dict[str, bool]:
    """The options `offload` writes: a name, or several."""
    if not isinstance(offload, str | list | tuple | set | frozenset):
        raise InputError(
            f"offload is {offload!r}",
            expected="names in a tuple",
            todo="write offload=('activations', 'optimizer_state')",
        )
    wanted = ((offload,) if offload else ()) if isinstance(offload, str) else tuple(offload)
    for each in wanted:
        if not isinstance(each, str) or each not in OFFLOAD:
            raise InputError(f"offload names {each!r}", expected=f"any of: {', '.join(OFFLOAD)}")
    found = {OFFLOAD[each][0]: True for each in wanted}
    if {"optimizer_state", IN_SHARES} <= {*wanted}:  # shares in streaming memory, for which there is an option too
        found["pipeline.replicated_optimizer_state_sharding"] = True
    return found


def recomputation_options(wanted: Any) -> dict[str, Any]:
    """The options `recomputation` writes: yes or no, or a mode by its name or as the member of an enumeration."""
    if isinstance(wanted, bool):
        return {"allow_recompute": wanted}
    mode = chosen("recomputation", "pipeline.recomputation_mode", wanted, besides="True, False, or ")
    return {"allow_recompute": True, "pipeline.recomputation_mode": mode}


def chosen(argument: str, option: str, wanted: Any, besides: str = "") -> Any:
    """What an argument writes to an option: a member of an enumeration by its name. `OptionValueError` by the
    argument's name, which is what was typed; `besides`: what else it may be."""
    value, known = wanted.name if isinstance(wanted, Enum) else wanted, find_option(option).choices
    if known and not (isinstance(value, str) and value in known):
        raise OptionValueError(
            f"{argument} is {short(wanted)}",
            expected=f"{besides}one of: {', '.join(map(repr, known))}",
            todo=meant(value, map(str, known)) or f"leave {argument} out for the default",
        )
    return value
