"""Random numbers in the stages of a pipeline: every stage draws from a seed of its own, micro-batch by micro-batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import COUNT, DATA, Ran, close, first, second
from workbench import tf
from workbench.ipu.ops.pipelining_ops import PipelineSchedule
from workbench.ipu.utils import reset_ipu_seed


def dropping(rate: Any, x: Any, y: Any) -> Any:
    return first(rate, tf.nn.dropout(x, rate=0.5), y)


def dropping_too(rate: Any, hidden: Any, y: Any) -> Any:
    return second(rate, tf.nn.dropout(hidden, rate=0.5), y)


def losses(seed: int, schedule: PipelineSchedule) -> Any:
    """Of the same element in every micro-batch, so that they differ by what is dropped alone."""
    tf.reset_default_graph()
    reset_ipu_seed(seed)
    return Ran([dropping, dropping_too], data=[DATA[0]] * COUNT, pipeline_schedule=schedule)


@pytest.mark.slow
def test_stages_on_two_ipus_both_draw() -> None:
    configure(ipus=2)
    ran = losses(7, PipelineSchedule.Grouped)
    assert len(set(ran.out[1].tolist())) == COUNT
    table = ran.profile.variables.set_index("name")
    assert table.loc[["stage0_seed", "stage1_seed"], "ipu"].tolist() == [0, 1]


@pytest.mark.slow
def test_the_schedule_does_not_change_what_is_drawn_and_the_seed_does() -> None:
    configure(ipus=2)
    grouped, sequential, other = (
        losses(seed, schedule)
        for seed, schedule in (
            (7, PipelineSchedule.Grouped),
            (7, PipelineSchedule.Sequential),
            (8, PipelineSchedule.Grouped),
        )
    )
    assert close(grouped.out, sequential.out)
    assert close(grouped.weights, sequential.weights)
    assert not np.allclose(grouped.out[1], other.out[1])
