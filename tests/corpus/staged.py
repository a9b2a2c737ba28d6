"""Pipelines of Keras models: every schedule with and without recomputation, replicas, and what lives off the chip."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras

import workbench as wb
from tests.corpus.models import configured, mlp, sgd, training
from tests.corpus.registry import add, ipu2, program, slow

SCHEDULES = ("Grouped", "Interleaved", "Sequential")
SMALL = {"hidden": 256, "heads": 4, "sequence_length": 32, "vocabulary": 500}


def bert(layers: int = 4, **arguments: Any) -> Any:
    """The step of a small BERT in four stages of as many layers each."""
    cuts = [f"encoder_{layers // 4 * stage - 1}" for stage in (1, 2, 3)]
    given = {"stages": cuts, "gradient_accumulation_steps": 16, "batch_size": 1, "target": ipu2(64)}
    source = wb.ready("bert-base", layers=layers, **SMALL)
    return training(source, **{**given, "optimizer": keras.optimizers.Adam(1e-4), **arguments})


for schedule in SCHEDULES:
    for again in (False, True):
        name = f"bert_{schedule.lower()}{'_recomputed' if again else ''}"
        add(name, partial(bert, pipeline_schedule=schedule, recomputation=again), slow=again and schedule != "Grouped")


def staged_mlp(**arguments: Any) -> Any:
    given = {"stages": [0, 0, 1, 1], "batch_size": 8, "gradient_accumulation_steps": 8, "target": ipu2(24)}
    return training(mlp, **{**given, "optimizer": "adam", **arguments})


@program
def offload_activations() -> Any:
    return staged_mlp(offload=("activations",))


@program
def offload_weights() -> Any:
    return staged_mlp(offload=("weights",), pipeline_schedule="Interleaved")


@program
def offload_optimizer_state() -> Any:
    return staged_mlp(offload=("optimizer_state",))


@program
def offload_accumulators() -> Any:
    return staged_mlp(offload=("gradient_accumulation_buffers",), pipeline_schedule="Sequential")


@program
def offload_to_replicas() -> Any:
    """Each replica keeps a share of the state; reductions wait for each other."""
    config = configured(optimizations__maximum_cross_replica_sum_buffer_size=10**5)
    offload = ("optimizer_state", "optimizer_state_to_replicas")
    return staged_mlp(replicas=2, offload=offload, config=config)


@program
def stages_on_few_ipus() -> Any:
    """Three stages on two IPUs, one of them named as a checkpoint; proportions by stage."""
    config = configured(selection_order="HOOF", optimizations__maximum_inter_ipu_copies_buffer_size=10**4)
    return staged_mlp(
        stages=[0, 1, 2, 2],
        device_mapping=[0, 1, 0],
        optimizer=sgd(),
        config=config,
        pipeline_schedule="Sequential",
        recomputation="RecomputeAndBackpropagateInterleaved",
        recomputation_checkpoints=("hidden_*",),
    )


@slow
def schedules_compared() -> Any:
    """The last of six schedules compiled from one trace, stages taken over from those before."""
    source = wb.ready("bert-base", layers=4, **{**SMALL, "hidden": 64})
    return wb.compare_schedules(source, 2, batch_size=1, optimizer="sgd", target=ipu2(32)).profiles[-1]


@slow
def bert_eight_layers() -> Any:
    """Two layers alike in a stage."""
    return bert(8, pipeline_schedule="Grouped", recomputation=True)


@slow
def bert_base_in_four_stages() -> Any:
    cuts = ["encoder_2", "encoder_5", "encoder_8"]
    given = {"batch_size": 1, "stages": cuts, "gradient_accumulation_steps": 32, "recomputation": True}
    return training("bert-base", optimizer=keras.optimizers.Adam(1e-4), pipeline_schedule="Grouped", **given)


@slow
def bert_replicated_half() -> Any:
    """Whole IPUs: two replicas of four stages in halves, activations and state off the chip."""
    given = {"target": None, "replicas": 2, "precision": "mixed_float16", "pipeline_schedule": "Interleaved"}
    return bert(8, **given, offload=("activations", "optimizer_state"), gradient_accumulation_steps=8)
