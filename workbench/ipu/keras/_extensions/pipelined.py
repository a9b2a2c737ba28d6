"""The part of an extension that speaks of pipeline stages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from workbench.base.checked import checked
from workbench.base.units import things_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.ipu.devices import get_num_of_ipus_in_device
from workbench.ipu.keras._extensions.assignment import (
    FunctionalLayerPipelineStageAssignment,
    SequentialLayerPipelineStageAssignment,
    StageError,
    Stages,
    as_run,
    functional_stages,
    noted_stages,
    post_order,
    sequential_stages,
    stages_of_calls,
    table,
)
from workbench.ipu.keras._extensions.model_options import ModelOptions
from workbench.ipu.keras._extensions.pipelining import pipelining_of

_LINE = 89


class PipelinedExtension:
    """Stages of a model, and how its pipeline runs."""

    name: str
    layers: Any
    train_function: Any
    test_function: Any
    predict_function: Any
    _ipu_strategy: Any
    _ipu_options: ModelOptions
    _ipu_stages_set: tuple[int, ...] | None

    def _set_options(self, **changes: Any) -> None:
        """New options; what was compiled with the old ones is not used any more."""
        object.__setattr__(self, "_ipu_options", dataclasses.replace(self._ipu_options, **changes))
        self._forget()

    def _set_stages(self, stages: Sequence[int] | None) -> None:
        object.__setattr__(self, "_ipu_stages_set", None if stages is None else tuple(stages))
        self._forget()

    def _forget(self) -> None:
        self.train_function = self.test_function = self.predict_function = None

    def set_pipelining_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        device_mapping: list[int] | None = None,
        accumulate_outfeed: bool | None = None,
        experimental_normalize_gradients: bool | None = None,
        gradient_accumulation_reduction_method: Any = "sum",
        **pipelining_kwargs: Any,
    ) -> None:
        """How the stages of the model run as a pipeline; to be called before it is trained.

        `gradient_accumulation_steps_per_replica`: batches of an update. `device_mapping`: the IPU of each stage, one
        each unless said. `accumulate_outfeed`: results leave once an update, as their mean over its batches.
        `experimental_normalize_gradients`, `gradient_accumulation_reduction_method`: as of
        `set_gradient_accumulation_options`. `pipelining_kwargs`: other arguments of `pipelining_ops.pipeline`.
        Errors: `ValueError`, `TypeError`; nothing is changed then.
        """
        found = pipelining_of(
            gradient_accumulation_steps_per_replica,
            device_mapping,
            accumulate_outfeed,
            experimental_normalize_gradients,
            gradient_accumulation_reduction_method,
            pipelining_kwargs,
        )
        self._set_options(pipelining=found)

    def _calls(self) -> list[Any]:
        """The layers, or calls of them, that an assignment speaks of."""
        raise StageError(
            f"the model {self.name!r} is a subclass of keras.Model, whose layers call each other in Python",
            expected="a Sequential or functional model",
            todo="make it of keras.Input and keras.Model(inputs, outputs) to pipeline it",
        )

    def _stages(self) -> Sequence[int] | None:
        """The stage of each of `_calls`; None for a model that is not pipelined."""
        return self._ipu_stages_set

    def _assignment(self, stages: Sequence[int | None]) -> list[Any]:
        raise NotImplementedError

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """The stage of each layer, or of each call of one, in the order they run: a copy, to be changed and set."""
        calls, stages = self._calls(), self._stages()
        return self._assignment(stages if stages is not None else [None] * len(calls))

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Refused: a `RuntimeError`, as of every model whose layers call each other in Python."""
        self._calls()

    def reset_pipeline_stage_assignment(self) -> None:
        """The model is not pipelined any more."""
        self._set_stages(None)

    @checked
    def print_pipeline_stage_assignment_summary(
        self, line_length: int | None = None, print_fn: Callable[[str], Any] | None = None
    ) -> None:
        """Print which layers are on which stages, a row each. `line_length`: 89 unless said, 20 to 10,000."""
        wide = _LINE if line_length is None else whole("line_length", line_length, least=20, most=10_000)
        for line in table(self.name, self._rows(), self._places(), wide):
            (print if print_fn is None else print_fn)(line)

    def _rows(self) -> Iterator[Sequence[str]]:
        raise NotImplementedError

    def _places(self) -> Sequence[float]:
        raise NotImplementedError

    def _staged_calls(self, stages: Sequence[int]) -> list[tuple[Any, int]]:
        """Layers and stages of calls, in the order in which they are made."""
        raise NotImplementedError

    def _stages_of_calls(self) -> Stages | None:
        """The stage of each call of a layer; None for a model that is not pipelined."""
        stages = self._stages()
        if stages is None:
            return None
        if max(stages) < 1:
            raise InputError(
                f"all layers of the model {self.name!r} are on stage 0",
                expected="at least two stages",
                todo="assign later layers to stage 1, or call reset_pipeline_stage_assignment()",
            )
        devices = self._ipu_options.pipelining.devices_of(max(stages) + 1)
        if len(devices) != max(stages) + 1:
            raise InputError(
                f"device_mapping has {things_text(len(devices), 'entry')} for {things_text(max(stages) + 1, 'stage')}",
                expected="an IPU for each",
            )
        return stages_of_calls(self._staged_calls(stages), devices)

    def _replicas(self) -> int:
        """Copies of the model on the strategy's device: each takes the next power of two of the IPUs it uses.

        Source: graphcore/keras@164c0e60 keras/ipu/extensions/extensions_base.py (`_get_replication_factor`).
        """
        have, stages = int(get_num_of_ipus_in_device(self._ipu_strategy._ipu_device)), self._stages()
        need = 1 if stages is None else max(self._ipu_options.pipelining.devices_of(max(stages) + 1)) + 1
        whole = 1 << (need - 1).bit_length()
        if need > have:
            raise InputError(
                f"the model {self.name!r} needs {need} IPUs, and {self._ipu_strategy._ipu_device} has {have}",
                todo=f"set config.auto_select_ipus = {whole} and configure the system again",
            )
        return 1 if have == need else max(1, have // whole)


class PipelinedSequential(PipelinedExtension):
    """Stages of a Sequential model, by layer."""

    def _calls(self) -> list[Any]:
        return list(self.layers)

    def _staged_calls(self, stages: Sequence[int]) -> list[tuple[Any, int]]:
        return list(zip(self.layers, stages, strict=True))

    def _assignment(self, stages: Sequence[int | None]) -> list[Any]:
        pairs = zip(self.layers, stages, strict=True)
        return [SequentialLayerPipelineStageAssignment(layer, stage) for layer, stage in pairs]

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Put each layer on a stage: a list of whole numbers from 0, or of assignments. Errors: `ValueError`."""
        self._set_stages(sequential_stages(self, pipeline_stage_assignment))

    def _rows(self) -> Iterator[Sequence[str]]:
        yield "Layer (type)", "Pipeline Stage"
        for each in self.get_pipeline_stage_assignment():
            yield f"{each.layer.name} ({type(each.layer).__name__})", str(each.pipeline_stage)

    def _places(self) -> Sequence[float]:
        return (0.7, 1.0)


class PipelinedFunctional(PipelinedExtension):
    """Stages of a functional model, by call of a layer."""

    def _calls(self) -> list[Any]:
        return post_order(self)

    def _staged_calls(self, stages: Sequence[int]) -> list[tuple[Any, int]]:
        known = dict(zip(self._calls(), stages, strict=True))
        return [(call[0], known[call]) for call in as_run(self) if call in known]

    def _stages(self) -> Sequence[int] | None:
        return self._ipu_stages_set if self._ipu_stages_set is not None else noted_stages(self)

    def _assignment(self, stages: Sequence[int | None]) -> list[Any]:
        pairs = zip(self._calls(), stages, strict=True)
        return [FunctionalLayerPipelineStageAssignment(layer, number, stage) for (layer, number), stage in pairs]

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Put each call of a layer on a stage: assignments as `get_pipeline_stage_assignment` gives them.

        Errors: `ValueError` for other entries or an order in which a stage takes what a later one makes.
        """
        self._set_stages(functional_stages(self, pipeline_stage_assignment))

    def reset_pipeline_stage_assignment(self) -> None:
        """The model is not pipelined any more, also where scopes gave stages."""
        for layer, number in self._calls():
            getattr(layer, "_ipu_stages", {}).pop(number, None)
        self._set_stages(None)

    def _rows(self) -> Iterator[Sequence[str]]:
        yield "Layer (type) (node index)", "Input Layers", "Pipeline Stage"
        for each in self.get_pipeline_stage_assignment():
            name = f"{each.layer.name} ({type(each.layer).__name__}) ({each.node_index})"
            yield name, ", ".join(layer.name for layer in each.inbound_layers), str(each.pipeline_stage)

    def _places(self) -> Sequence[float]:
        return (0.45, 0.84, 1.0)


__all__ = ["PipelinedExtension", "PipelinedFunctional", "PipelinedSequential"]
