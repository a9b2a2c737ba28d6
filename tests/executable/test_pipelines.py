"""What `wb.compile` makes of stages, devices and recomputation."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import ipu
from workbench.errors import InputError, OptionError

THEN, INTERLEAVED = "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"


def deep() -> Any:
    import keras

    keras.utils.set_random_seed(5)
    layers = [keras.layers.Dense(16, activation="gelu", name=f"d{number}") for number in range(6)]
    return keras.Sequential([keras.Input((16,)), *layers])


def compiled(source: Any = deep, **arguments: Any) -> Any:
    chosen = {"mode": "training", "batch_size": 8, "target": wb.target("ipu2", tiles_per_ipu=8)} | arguments
    return wb.compile(source, **chosen)


def directions(executable: Any) -> set[str]:
    return set(executable.profile.blocks(max_rows=10**6)["direction"]) - {""}


class RecomputationMode(enum.Enum):
    Auto = 0
    RecomputeThenBackpropagate = 1
    RecomputeAndBackpropagateInterleaved = 2


@pytest.mark.parametrize("wanted", [True, THEN, RecomputationMode.RecomputeThenBackpropagate, "Auto"])
def test_recomputation_as_a_choice_a_name_or_a_member(wanted: Any) -> None:
    executable = compiled(stages=["d2"], gradient_accumulation_steps=4, recomputation=wanted)
    assert directions(executable) == {"forward", "recompute", "backward", "update"}
    assert executable.profile.meta["pipeline"]["recomputed_stages"] == "0"
    assert "stage0_recompute" in executable.program.functions


def test_the_option_of_a_configuration_says_the_same() -> None:
    config = ipu.config.IPUConfig()
    config.allow_recompute = True
    executable = compiled(stages=["d2"], gradient_accumulation_steps=4, config=config)
    assert "recompute" in directions(executable)
    assert "recompute" not in directions(
        compiled(stages=["d2"], gradient_accumulation_steps=4, config=config, recomputation=False)
    )


def test_checkpoints_on_one_ipu_make_again_what_lies_before_them() -> None:
    plain = compiled().profile
    again = compiled(recomputation=True, recomputation_checkpoints=("d1", "d3"))
    assert directions(again) == {"forward", "recompute", "backward", "update"}
    steps = again.profile.steps
    assert set(steps[steps["direction"] == "recompute"]["layer"]) == {"d0", "d1", "d2", "d3"}  # not d4 and d5
    assert again.profile.total_cycles > plain.total_cycles


def test_without_checkpoints_one_ipu_runs_what_it_runs_and_says_what_to_name() -> None:
    plain, again = compiled(), compiled(recomputation=True)
    assert again.profile.total_cycles == plain.profile.total_cycles
    assert again.profile.max_tile_bytes == plain.profile.max_tile_bytes
    assert again.profile.assumptions[:-1] == plain.profile.assumptions
    assert again.profile.assumptions[-1].startswith("recomputation: nothing is computed again; name layers in ")


def test_sequential_computes_nothing_again_and_says_so() -> None:
    """No micro-batch waits for another: unless the mode is asked for by name, or a checkpoint parts a stage."""
    given: dict[str, Any] = {"stages": ["d2"], "gradient_accumulation_steps": 4, "pipeline_schedule": "Sequential"}
    plain, again = compiled(**given), compiled(recomputation=True, **given)
    assert again.profile.total_cycles == plain.profile.total_cycles
    assert "under the Sequential schedule no stage keeps anything" in again.profile.assumptions[-1]
    for more in ({"recomputation": INTERLEAVED}, {"recomputation": True, "recomputation_checkpoints": ("d1",)}):
        found = compiled(**more, **given)
        assert "recompute" in directions(found)
        assert found.profile.assumptions == plain.profile.assumptions


def test_an_optimizer_that_ties_stages_together_is_named_where_they_are_on_several_ipus() -> None:
    import keras

    given: dict[str, Any] = {"stages": ["d2"], "gradient_accumulation_steps": 4}
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    with pytest.raises(InputError, match="the optimizer ties the updates together, as a LossScaleOptimizer does"):
        compiled(optimizer=scaled, **given)
    assert compiled(optimizer=scaled, device_mapping=[0, 0], **given).profile.ipus == 1
    counting = keras.optimizers.SGD(0.1, gradient_accumulation_steps=4)
    mend = "To mend it: make the optimizer without gradient_accumulation_steps and give them to wb.compile, or to "
    with pytest.raises(InputError, match=f"{mend}set_pipelining_options as gradient_accumulation_steps_per_replica;"):
        compiled(optimizer=counting, **given)
    assert compiled(optimizer=keras.optimizers.SGD(0.1), **given).profile.ipus == 2


def in_two_stages(policy: str | None, **compiled: Any) -> Any:
    import keras

    source = keras.Input((6,))
    hidden = keras.layers.Dense(5, "relu", name="hidden", dtype=policy)(source)
    made = keras.Model(source, keras.layers.Dense(3, name="last", dtype=policy)(hidden))
    made.dtype_policy = keras.dtype_policies.get(policy or "float32")
    made.compile("sgd", "mse", **compiled)
    return made


HALVED: dict[str, Any] = {"stages": ["hidden"], "gradient_accumulation_steps": 4, "batch_size": 2}


def test_mixed_precision_is_pipelined_by_what_the_refusal_says() -> None:
    """Keras wraps the optimizer of a mixed model unasked: who named no LossScaleOptimizer is told what to do."""
    import keras

    with pytest.raises(
        InputError, match=r"give optimizer= here, or compile a mixed model with auto_scale_loss=False\)"
    ):
        wb.compile(in_two_stages("mixed_float16"), **HALVED)
    given = {**HALVED, "optimizer": keras.optimizers.SGD(0.1)}
    assert wb.compile(in_two_stages("mixed_float16"), **given).profile.ipus == 2
    unscaled = wb.compile(in_two_stages("mixed_float16", auto_scale_loss=False), **HALVED).profile
    assert unscaled.ipus == 2
    assert not [each for each in unscaled.assumptions if each.startswith("optimizer: ")]  # it is known


def test_a_copy_in_mixed_precision_is_pipelined_without_the_scaling_that_nobody_asked_for() -> None:
    """Keras forgets auto_scale_loss, and what it does unless told otherwise cannot be cut into stages."""
    import keras

    given = {**HALVED, "precision": "mixed_float16"}
    for compiled in ({}, {"auto_scale_loss": False}):
        profile = wb.compile(in_two_stages(None, **compiled), **given).profile
        assert profile.ipus == 2
        (said,) = [each for each in profile.assumptions if each.startswith("optimizer: ")]
        assert said.startswith("optimizer: without the LossScaleOptimizer that Keras puts around that of a mixed")
    own = wb.compile(in_two_stages(None), optimizer=keras.optimizers.SGD(0.1), **given).profile
    assert not [each for each in own.assumptions if each.startswith("optimizer: ")]
    scaling = in_two_stages(None)
    scaling.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)), "mse")
    with pytest.raises(InputError, match="the optimizer ties the updates together"):
        wb.compile(scaling, **given)


def test_checkpoints_under_grouped_choose_the_mode_they_work_in() -> None:
    executable = compiled(
        stages=["d2"], gradient_accumulation_steps=4, recomputation=True, recomputation_checkpoints=("d?",)
    )
    assert "stage0_recompute" not in executable.program.functions
    assert "recompute" in directions(executable)


@pytest.mark.parametrize(
    ("schedule", "recomputation"), [("Interleaved", True), ("Interleaved", THEN), ("Grouped", THEN)]
)
def test_checkpoints_are_refused_where_a_whole_stage_is_made_again(schedule: str, recomputation: Any) -> None:
    given: dict[str, Any] = {"stages": ["d2"], "gradient_accumulation_steps": 4, "pipeline_schedule": schedule}
    with pytest.raises(InputError, match=f"{schedule} schedule computes a stage's whole forward pass again"):
        compiled(recomputation=recomputation, recomputation_checkpoints=("d1",), **given)


@pytest.mark.parametrize("recomputation", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_pipelined_executable_runs_under_its_schedule(recomputation: bool) -> None:
    x = np.linspace(-1, 1, 32 * 16, dtype=np.float32).reshape(32, 16)
    more: dict[str, Any] = {"batch_size": 8, "gradient_accumulation_steps": 4, "loss": "mean_squared_error"}
    plain = compiled(deep(), **more).run(x, x[:, ::-1].copy())
    found = compiled(deep(), stages=["d2"], recomputation=recomputation, **more).run(x, x[:, ::-1].copy())
    assert found == pytest.approx(plain, abs=1e-6)


def test_stages_share_an_ipu_by_their_map() -> None:
    profile = compiled(stages=["d1", "d3"], gradient_accumulation_steps=6, device_mapping=[0, 1, 0]).profile
    assert profile.ipus == 2
    assert profile.stages["ipu"].tolist() == [0, 1, 0]
    assert profile.meta["pipeline"]["device_mapping"] == "0, 1, 0"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"pipeline_schedule": "Sequential", "recomputation": THEN},
            InputError,
            f"the recomputation mode is '{THEN}' under the Sequential schedule. Expected: '{INTERLEAVED}' or 'Auto'.",
        ),
        (
            {"pipeline_schedule": "Interleaved", "recomputation": INTERLEAVED},
            InputError,
            f"the recomputation mode is '{INTERLEAVED}' under the Interleaved schedule. Expected: '{THEN}' or 'Auto'.",
        ),
        ({"recomputation": "Twice"}, OptionError, "recomputation is 'Twice'."),
        ({"device_mapping": [0, 1, 2]}, InputError, "device_mapping has 3 entries for 2 stages."),
        (
            {"device_mapping": [0, 0], "pipeline_schedule": "Interleaved"},
            InputError,
            "device_mapping has the stages [0, 1] on IPU 0, under the Interleaved schedule in training.",
        ),
        ({"recomputation": True, "recomputation_checkpoints": ("dense",)}, InputError, "no layer is called 'dense'"),
    ],
)
def test_errors(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        compiled(stages=["d2"], gradient_accumulation_steps=4, **arguments)
    assert str(caught.value).startswith(text)
