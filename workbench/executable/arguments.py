"""What was asked for acts, or is refused: which arguments of `wb.compile` a kind of source takes, and what each needs.

`refuse_foreign` says which arguments a kind of source has no place for, `refuse_idle` which found nothing to act on in
what was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from workbench.engine.passes.offload import moved
from workbench.errors import InputError
from workbench.executable.pipelines import IN_SHARES, OFFLOAD

if TYPE_CHECKING:
    from workbench.engine.graph import Graph
    from workbench.executable.request import Request


def refuse_foreign(request: Request, what: str, takes: Collection[str]) -> None:
    """An `InputError` for an argument that a kind of source has no place for; `what` names the kind."""
    for name in sorted(request.given - {*takes, "execution_profile"}):
        raise InputError(
            f"{name} is given, and the source is {what}",
            expected=f"besides config, target, execution_profile and progress: {', '.join(takes) or 'nothing'}",
            todo=_INSTEAD.get(name, f"leave {name} out"),
        )


_INSTEAD = {
    "mode": "leave mode out; what the program computes is what is compiled",
    "precision": "give inputs of the type that the program is to compute in",
    "optimizer": "write the update into the function, or compile a Keras model",
    "loss": "write the loss into the function, or compile a Keras model",
}


def refuse_idle(request: Request, graph: Graph) -> None:
    """An `InputError` for an argument that finds nothing to act on in what was traced."""
    for name in sorted(request.given):
        why = _NEEDS[name](request, graph) if name in _NEEDS else ""
        if why:
            raise InputError(f"{name} is given, and {why}", expected="something it can act on", todo=_todo(name))


def _todo(name: str) -> str:
    return _GIVE.get(name, f"leave {name} out")


_GIVE = {
    "optimizer": "give mode='training', or leave optimizer out",
    "loss": "give mode='training', or leave loss out",
    "gradient_accumulation_steps": "give mode='training' or stages, or leave gradient_accumulation_steps out",
    "pipeline_schedule": "give stages, or leave pipeline_schedule out",
    "device_mapping": "give stages, or leave device_mapping out",
    "recomputation": "give mode='training', or leave recomputation out",
    "recomputation_checkpoints": "give mode='training' and recomputation=True, or leave recomputation_checkpoints out",
}


def _trained(request: Request, graph: Graph) -> str:
    return "" if graph.mode == "training" else f"the model is compiled for {graph.mode}"


def _in_stages(request: Request, graph: Graph) -> str:
    return "" if _stages(graph) > 1 else "the model is one stage"


def _stages(graph: Graph) -> int:
    return int(str(graph.meta.get("stages", 1)))


def _accumulated(request: Request, graph: Graph) -> str:
    return "" if "gradient_accumulation_steps" in graph.meta else _trained(request, graph)


def _kept(request: Request, graph: Graph) -> str:
    if not request.options.get("allow_recompute"):
        return "nothing is computed again without recomputation=True"
    return _trained(request, graph)


def _offloaded(request: Request, graph: Graph) -> str:
    """Why one of the names in `offload` moves nothing; "" when all do."""
    asked = [(name, role) for name, (option, role) in OFFLOAD.items() if request.options.get(option)]
    all_moved = moved(graph, request.options)
    alone = str(request.options.get("pipeline.schedule")).endswith("Sequential")
    for name, role in asked:
        if role is None and (graph.mode != "training" or _stages(graph) < 2):
            return f"{name!r} are what stages keep for their backward passes, and there are none"
        if role is None and alone:
            return (
                f"{name!r} are what waits in a stage for its backward pass: under the Sequential schedule nothing does"
            )
        acts = [shared if name == IN_SHARES else remote for each, remote, shared in all_moved if each == role]
        if role is not None and not any(acts):
            return f"no variable moves by {name!r}: there is none of them, all are small, or no replicas share them"
    return ""


def _replicated(request: Request, graph: Graph) -> str:
    traced = int(str(graph.meta.get("replicas", 1)))
    return "" if traced == request.replicas else f"the program was traced for {traced}"


_NEEDS: Mapping[str, Callable[[Request, Graph], str]] = {
    "optimizer": _trained,
    "loss": _trained,
    "gradient_accumulation_steps": _accumulated,
    "pipeline_schedule": _in_stages,
    "device_mapping": _in_stages,
    "recomputation": _trained,
    "recomputation_checkpoints": _kept,
    "offload": _offloaded,
    "replicas": _replicated,
}

__all__ = ["refuse_foreign", "refuse_idle"]
