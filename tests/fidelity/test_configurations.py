"""The models of shipped configurations are those the application makes of their settings."""

from __future__ import annotations

import json
from typing import Any

from tests.fidelity.data import DATA
from tests.fidelity.family_configurations import MODELS, source_of, with_application


def built(name: str) -> Any:
    import keras

    case = json.loads((DATA / "fidelity/configurations.json").read_text())["configurations"][name]
    with keras.StatelessScope(initialize_variables=False):
        return source_of(*MODELS[case["model"]], with_application(case))()


def test_efficientnet_has_four_times_the_channels_in_groups_of_sixteen() -> None:
    """graphcore/examples v3.4.1 vision/cnns/pytorch/train/configs.yml, efficientnet-g16-gn-pod16-base: its
    efficientnet_expand_ratio, efficientnet_group_dim, norm_num_groups and eight_bit_io. Block 1 expands none.
    """
    import keras

    model = built("cnn_train/efficientnet-b0-g16-gn-pod16")
    assert model.inputs[0].dtype == "uint8"
    widths = {"block1a_dwconv": 32, "block2a_expand_conv": 4 * 16, "block2a_dwconv": 4 * 16, "block7a_dwconv": 4 * 192}
    assert {name: model.get_layer(name).filters for name in widths} == widths
    groups = {name: width // 16 for name, width in widths.items() if name.endswith("dwconv")}
    assert {name: model.get_layer(name).groups for name in groups} == groups
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.GroupNormalization)]
    assert len(norms) == 1 + 2 + 15 * 3 + 1  # stem, first block, fifteen that expand, top
    assert {layer.groups for layer in norms} == {4}
    assert not any(isinstance(layer, keras.layers.BatchNormalization) for layer in model.layers)


def test_resnet_scales_images_of_one_byte_a_colour() -> None:
    model = built("cnn_train/resnet50")
    assert model.inputs[0].dtype == "uint8"
    assert [type(layer).__name__ for layer in model.layers[:3]] == ["InputLayer", "Rescaling", "ZeroPadding2D"]
