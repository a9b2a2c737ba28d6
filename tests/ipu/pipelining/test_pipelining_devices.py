"""Pipelines on devices of more IPUs than they use, and losses that are no single number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import Ran
from workbench import tf
from workbench.errors import InputError

COUNT = 6
DATA = [(np.array([1.0, 2.0], np.float32) + turn,) for turn in range(COUNT)]


def _given(rate: Any, x: Any) -> Any:
    return rate, x


def _scaled(rate: Any, x: Any) -> Any:
    return rate, x * tf.get_variable("w", [2], initializer=tf.constant_initializer(3.0))


def _added(rate: Any, x: Any) -> Any:
    return rate, x + tf.get_variable("b", [2], initializer=tf.constant_initializer(0.0))


@pytest.mark.slow
def test_three_stages_on_four_ipus_with_a_loss_for_each_number() -> None:
    """Gradients are those of the loss' sum: of w the sum of x, 1 + … + 6 and 2 + … + 7; of b 1, six times."""
    configure(ipus=4)
    ran = Ran([_given, _scaled, _added], data=DATA, gradient_accumulation_count=COUNT)
    assert ran.profile.ipus == 3
    weights = {each.name: np.asarray(each) for each in tf.global_variables()}
    assert weights["w:0"].tolist() == [3 - 0.5 * 21, 3 - 0.5 * 27]
    assert weights["b:0"].tolist() == [-3.0, -3.0]
    assert np.asarray(ran.out[1]).tolist() == [[3 * x for x in (1 + turn, 2 + turn)] for turn in range(COUNT)]


def test_a_copy_takes_a_power_of_two() -> None:
    """Three stages take four IPUs, which are no whole share of six."""
    configure(ipus=6)
    with pytest.raises(InputError, match=r"a pipeline of 3 IPUs on .*has 6.*multiple of 4.*auto_select_ipus = 4"):
        Ran([_given, _scaled, _added], data=DATA)
