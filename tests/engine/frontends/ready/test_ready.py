from __future__ import annotations

import numpy as np
import pytest

from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.ready import READY_NAMES, ready
from workbench.engine.graph import Graph, walk
from workbench.errors import InputError

SMALL = {
    "mlp": {},
    "cnn": {"image_size": 8, "hidden": 4},
    "resnet50": {"image_size": 32, "classes": 10},
    "mobilenetv2": {"image_size": 32, "classes": 10},
    "efficientnetb0": {"image_size": 32, "classes": 10},
    "lstm": {"hidden": 8, "sequence_length": 6, "input_size": 4},
    "bert-base": {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 8, "vocabulary": 50},
    "bert-large": {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 8, "vocabulary": 50},
    "gpt2": {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 8, "vocabulary": 50},
    "llama-block": {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 8},
    "llama-decode": {"layers": 2, "hidden": 16, "heads": 2, "cache_length": 8, "batch": 2},
    "vit-b16": {"layers": 2, "hidden": 16, "heads": 2, "image_size": 32, "patch_size": 16, "classes": 10},
    "transformer-encoder": {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 8},
}


QUICK = ("mlp", "cnn", "lstm", "llama-block", "transformer-encoder")


def parameters(graph: Graph) -> int:
    pairs = zip(graph.inputs, graph.body.params, strict=True)
    return sum(value.elements for item, value in pairs if item.role == "parameter")


def test_the_names_are_those_of_the_contract() -> None:
    assert READY_NAMES == (
        "mlp",
        "cnn",
        "resnet50",
        "mobilenetv2",
        "efficientnetb0",
        "lstm",
        "bert-base",
        "bert-large",
        "gpt2",
        "llama-block",
        "llama-decode",
        "vit-b16",
        "transformer-encoder",
    )
    assert set(SMALL) == set(READY_NAMES)


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        pytest.param(mode, name, marks=[pytest.mark.slow] * (mode == "training" and name not in QUICK))
        for mode in ("training", "inference")
        for name in READY_NAMES
    ],
)
def test_every_ready_model_is_traced_at_another_size(name: str, mode: str) -> None:
    source = trace_keras(ready(name, **SMALL[name]), batch_size=2, mode=mode)
    assert source.lazy
    assert source.graph.mode == mode
    for _, node in walk(source.graph):
        assert node.origin.layer, str(node)


def test_resnet50_has_its_published_parameters() -> None:
    """Keras Applications: 25,583,592 trainable of 25,636,712 parameters; 53 batch norms of 2 states."""
    graph = trace_keras("resnet50", batch_size=4, mode="training").graph
    assert parameters(graph) == 25_583_592
    assert sum(node.op == "conv_general_dilated" for node in graph.body.nodes) == 3 * 53 - 1  # none for the images
    states = [value for item, value in zip(graph.inputs, graph.body.params, strict=True) if item.role == "state"]
    assert len(states) == 2 * 53
    assert sum(value.elements for value in states) == 25_636_712 - 25_583_592


@pytest.mark.parametrize("name", ["mobilenetv2", "bert-base", "vit-b16", "llama-block"])
def test_a_result_is_called_as_the_model_was_asked_for(name: str) -> None:
    """Keras would call them mobilenetv2_1.00_224, bert_base, vit and llama_block."""
    assert trace_keras(ready(name, **SMALL[name]), batch_size=2, mode="inference").graph.name == name


def test_bert_base_has_the_parameters_of_its_sizes() -> None:
    graph = trace_keras("bert-base", batch_size=1, mode="inference").graph
    hidden, inner = 768, 3072
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * inner + inner + inner * hidden + hidden
    block = attention + feed_forward + 2 * 2 * hidden
    embeddings = 30522 * hidden + 128 * hidden + 2 * hidden
    heads = hidden * hidden + hidden + hidden * 2 + 2
    assert parameters(graph) == 12 * block + embeddings + heads


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mobilenetv2", 3_538_984 - 34_112),  # Keras: 3,538,984 parameters, 34,112 of them not trained
        ("efficientnetb0", 5_330_571 - 42_023),  # and 5,330,571, 42,023 of them not trained
        ("bert-large", 24 * (12 * 1024**2 + 13 * 1024) + (30522 + 128 + 2) * 1024 + 1024**2 + 1024 + 2 * 1024 + 2),
        ("gpt2", 124_439_808),  # GPT-2 small as published by Hugging Face: wte, wpe, 12 blocks, final norm
        # projections 4 h², SwiGLU 3 h · 5632, two norms; the final norm and a classifier of 10
        ("llama-block", 4 * 2048**2 + 3 * 2048 * 5632 + 2 * 2048 + 2048 + 2048 * 10),
        ("vit-b16", 86_567_656),  # torchvision's vit_b_16: 86,567,656 parameters
    ],
)
def test_published_sizes_have_their_parameters(name: str, count: int) -> None:
    assert parameters(trace_keras(name, batch_size=1, mode="inference").graph) == count


def test_a_decode_step_advances_its_cache_where_it_lives() -> None:
    graph = trace_keras(ready("llama-decode", **SMALL["llama-decode"]), batch_size=2, mode="inference").graph
    roles = [item.name.rsplit("/", 1)[-1] for item in graph.inputs if item.role == "state"]
    assert roles == ["key_cache", "value_cache", "position"] * 2
    assert sum(output.role == "update" for output in graph.outputs) == 6


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        (
            "cnn",
            {"image_size": 4, "layers": 3},
            "cnn: layers=3 halves an image of image_size=4 away. "
            "Expected: image_size of at least 2 to the power of layers.",
        ),
        (
            "vit-b16",
            {"image_size": 40},
            "vit-b16: image_size=40 does not divide by patch_size=16. Expected: image_size a multiple of patch_size.",
        ),
        ("resnet50", {"image_size": 16}, "ResNet50: image_size is 16. Expected: at least 32, as Keras asks for."),
    ],
)
def test_sizes_that_no_model_can_have_are_an_error(name: str, size: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        trace_keras(ready(name, **size), batch_size=1)
    assert str(error.value) == message


def test_layers_of_an_encoder_have_paths() -> None:
    graph = trace_keras(ready("bert-base", **SMALL["bert-base"]), batch_size=2, mode="training").graph
    layers = {node.origin.layer: node.origin.layer_class for node in graph.body.nodes}
    assert layers["encoder_0/attention/query"] == "EinsumDense"
    assert layers["encoder_1/attention"] == "MultiHeadAttention"
    assert layers["encoder_1/intermediate"] == "Dense"
    softmax = {node.origin.layer for node in graph.body.nodes if node.origin.region == "softmax"}
    assert "encoder_0/attention/softmax" in softmax  # asked for scores, Keras has a layer for their softmax


def test_scores_of_an_encoder_are_of_its_type() -> None:
    """BERT's scores, batch x heads x positions x positions, are as wide as its activations, forward and backward."""
    made = ready("bert-base", **SMALL["bert-base"] | {"sequence_length": 5})
    graph = trace_keras(made, batch_size=3, mode="training", precision="float16").graph
    scores = [node for _, node in walk(graph) if node.results[0].shape == (3, 2, 5, 5) and node.op == "dot_general"]
    assert len(scores) == 2 * 2  # two layers: the scores, and the gradients of what multiplies the values
    assert {node.results[0].dtype for node in scores} == {"float16"}


def test_the_gradient_of_a_softmax_reads_its_result_alone() -> None:
    """One exponential is computed of the scores of each of two layers, and nothing going backward reads it."""
    graph = trace_keras(ready("bert-base", **SMALL["bert-base"]), batch_size=2, mode="training").graph
    inside = [
        node for _, node in walk(graph) if node.origin.region == "softmax" and "attention" in node.origin.layer
    ]  # the classifier's is Keras' own
    powers = {id(node.results[0]) for node in inside if node.op == "exp"}
    assert len(powers) == 2
    backward = [node for node in inside if node.origin.direction == "backward"]
    assert backward
    assert not any(id(value) in powers for node in backward for value in node.operands)


def test_a_ready_model_brings_its_loss() -> None:
    source = trace_keras("mlp", batch_size=2, mode="training")
    assert source.assumptions == (
        "weights: initialised by the first run, with seed 0",
        "loss: sparse categorical cross-entropy, the ready model's own, because none was given",
        "optimizer: SGD with learning rate 0.01, because none was given",
    )


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        (
            "vgg",
            {},
            "there is no ready model 'vgg'. Expected: one of: mlp, cnn, resnet50, mobilenetv2, efficientnetb0, "
            "lstm, bert-base, bert-large, gpt2, llama-block, llama-decode, vit-b16, transformer-encoder.",
        ),
        ("mlp", {"heads": 2}, "mlp has no size 'heads'. Expected: any of: layers, hidden, input_size, classes."),
        ("mlp", {"layers": 0}, "mlp: layers is 0. Expected: a whole number of at least 1."),
        (
            "bert-base",
            {"heads": 7},
            "bert-base: hidden=768 does not divide by heads=7. Expected: hidden a multiple of heads.",
        ),
    ],
)
def test_sizes_that_cannot_be_are_an_error(name: str, size: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        ready(name, **size)
    assert str(error.value) == message


def test_a_ready_model_prints_its_sizes() -> None:
    assert str(ready("mlp", hidden=32)) == "mlp(layers=2, hidden=32, input_size=64, classes=10)"


def test_sizes_are_numpys_whole_numbers_too() -> None:
    assert ready("mlp", hidden=np.int64(16)).size == ready("mlp", hidden=16).size


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("resnet", "resnet50"), ("bert_base", "bert-base"), ("GPT-2", "gpt2"), ("lama-block", "llama-block")],
)
def test_a_name_that_is_nearly_one_is_asked_about(asked: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"vit-b16, transformer-encoder\. To mend it: did you mean '{meant}'\?$"):
        ready(asked)
    with pytest.raises(InputError, match=r"transformer-encoder\.$"):
        ready("nothing like one")


def test_a_size_that_is_nearly_one_is_asked_about() -> None:
    with pytest.raises(InputError, match=r"^mlp has no size 'layer'.*did you mean 'layers'\?$"):
        ready("mlp", layer=2)
