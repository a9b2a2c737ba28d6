"""What a stage merely returns is handed from stage to stage: it crosses every link and lies on every IPU on its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import BATCH, Ran, close, expected, first, second
from workbench import tf
from workbench.engine.program import GlobalExchange
from workbench.ipu.ops.pipelining_ops import PipelineSchedule

ROUNDS = 12  # micro-batches: whole rounds of three stages under every schedule


def middle(rate: Any, hidden: Any, y: Any) -> Any:
    w = tf.get_variable("middle", [8, 8], initializer=tf.constant_initializer(np.eye(8, dtype=np.float32)))
    return rate, tf.matmul(hidden, w), y


def crossings(program: Any) -> dict[str, int]:
    """Bytes of every copy between IPUs."""

    def inside(part: Any) -> Iterator[GlobalExchange]:
        if isinstance(part, GlobalExchange):
            yield part
        for child in getattr(part, "children", ()):
            yield from inside(child)

    return {each.name: each.size_bytes for body in program.functions.values() for each in inside(body)}


@pytest.mark.parametrize(
    "schedule",
    [PipelineSchedule.Grouped, *(pytest.param(each, marks=pytest.mark.slow) for each in list(PipelineSchedule)[1:])],
)
def test_labels_go_through_every_stage(schedule: PipelineSchedule) -> None:
    """Of 2 x 8 floats of activations come 64 bytes on each link; 2 labels of int32 are 8 more, the rate none: only the
    update reads it. Stage 1 keeps the labels for a column, as what arrives next overwrites them."""
    configure(ipus=3)
    asked: dict[str, Any] = {"gradient_accumulation_count": ROUNDS, "outfeed_mask": [True, False]}
    ran = Ran([first, middle, second], pipeline_schedule=schedule, **asked)
    hidden, labels = BATCH * 8 * 4, BATCH * 4
    links = crossings(ran.executable.program)
    assert links == {
        "stage0/to_stage1": hidden + labels,
        "stage1/to_stage2": hidden + labels,
        "stage2/to_stage1": hidden,
        "stage1/to_stage0": hidden,
    }
    table = ran.profile.variables
    handed = table[(table["bytes"] == labels) & table["dtype"].eq("int32")]
    assert set(zip(handed["name"], handed["ipu"], strict=True)) >= {
        ("infeed/1", 0),
        ("stage0/to_stage1", 1),
        ("stage0/to_stage1/relay", 1),
        ("stage0/to_stage2", 2),
    }
    assert table[table["name"] == "infeed/1"]["ipu"].tolist() == [0]  # the host gives labels to the first stage alone
    assert close(ran.out, [expected(count=ROUNDS)[0]])


@pytest.mark.slow
def test_an_input_that_a_stage_reads_goes_through_those_before_it() -> None:
    def slower(rate: Any, hidden: Any, y: Any) -> Any:
        return second(rate, hidden * (rate + 0.5), y)

    configure(ipus=3)
    ran = Ran([first, middle, slower], gradient_accumulation_count=ROUNDS, outfeed_mask=[True, False])
    links = crossings(ran.executable.program)
    assert links["stage0/to_stage1"] == links["stage1/to_stage2"] == BATCH * 8 * 4 + BATCH * 4 + 4
    assert close(ran.out, [expected(count=ROUNDS)[0]])


@pytest.mark.slow
def test_what_the_last_stage_returns_unchanged_leaves_from_its_ipu() -> None:
    """Inference: labels that the first stage was given and doubled activations, both to the outfeed of stage 1."""
    configure(ipus=2)
    ran = Ran(
        [lambda rate, x, y: (x * 2.0, y), lambda x, y: (x, y)], gradient_accumulation_count=4, optimizer_function=None
    )
    assert crossings(ran.executable.program) == {"stage0/to_stage1": BATCH * 6 * 4 + BATCH * 4}
    steps = ran.profile.steps.set_index("name")
    assert steps.loc[["outfeed/0/to_host", "outfeed/1/to_host"], "ipu"].tolist() == [1, 1]


@pytest.mark.slow
def test_what_nobody_reads_is_not_handed_on() -> None:
    configure(ipus=2)
    ran = Ran(
        [lambda rate, x, y: (x * 2.0, y), lambda x, y: x + 1.0], gradient_accumulation_count=4, optimizer_function=None
    )
    assert crossings(ran.executable.program) == {"stage0/to_stage1": BATCH * 6 * 4}
    assert "infeed/1" not in set(ran.profile.variables["name"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "kept"), [(PipelineSchedule.Grouped, [("infeed/1/pass", 0)]), (PipelineSchedule.Sequential, [])]
)
def test_a_later_stage_on_the_same_ipu_has_it_from_a_fifo(schedule: PipelineSchedule, kept: Any) -> None:
    """Stages 0 and 2 on IPU 0: labels wait there for one turn, that of the stage between, and cross no link."""
    configure(ipus=2)
    asked: dict[str, Any] = {"gradient_accumulation_count": ROUNDS, "outfeed_mask": [True, False]}
    ran = Ran([first, middle, second], pipeline_schedule=schedule, device_mapping=[0, 1, 0], **asked)
    links = crossings(ran.executable.program)
    assert links["stage0/to_stage1"] == links["stage1/to_stage2"] == BATCH * 8 * 4
    table = ran.profile.variables
    waiting = table[table["name"].str.endswith("/pass")]
    assert list(zip(waiting["name"], waiting["ipu"], strict=True)) == kept
    assert set(waiting["bytes"]) <= {BATCH * 4}
    assert close(ran.out, [expected(count=ROUNDS)[0]])
