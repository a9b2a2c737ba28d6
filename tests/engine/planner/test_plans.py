"""The plans of ResNet-50's and BERT's layers, all on one page: read it when a plan changes."""

from __future__ import annotations

from collections.abc import Callable

from tests.engine.planner.cases import conv_node, dot_node
from workbench.engine.graph import Node
from workbench.engine.planner.problem import problem_of
from workbench.engine.planner.search import Settings, plan
from workbench.engine.target import target

IMAGES, SEQUENCES, TOKENS = 4, 2, 128
HIDDEN, HEADS, WIDE = 1024, 16, 4096


def convolution(size: int, chans: int, outputs: int, kernel: int, stride: int = 1) -> Node:
    low = (kernel - 1) // 2
    return conv_node(
        IMAGES,
        (size, size),
        (kernel, kernel),
        (chans, outputs),
        strides=(stride, stride),
        padding=((low, max(0, kernel - stride - low)),) * 2,
        dtype="float16",
    )


def weight_gradient(size: int, chans: int, outputs: int, kernel: int) -> Node:
    """As autodiff writes it: batch and input channels exchanged, and the output's field as the kernel."""
    node = conv_node(
        chans,
        (size, size),
        (size, size),
        (IMAGES, outputs),
        padding=(((kernel - 1) // 2,) * 2,) * 2,
        dtype="float16",
        direction="backward",
    )
    spec = {"lhs_spec": (3, 0, 1, 2)}
    shape = node.operands[0].shape
    return _with(node, (shape[3], shape[1], shape[2], shape[0]), spec)


def _with(node: Node, left: tuple[int, ...], changed: dict[str, tuple[int, ...]]) -> Node:
    from dataclasses import replace

    attrs = tuple((name, changed.get(name, value)) for name, value in node.attrs)
    operand = replace(node.operands[0], shape=left)
    return replace(node, operands=(operand, node.operands[1]), attrs=attrs)


def linear(inputs: int, outputs: int) -> Node:
    return dot_node((SEQUENCES, TOKENS, inputs), (inputs, outputs), ((2,), (0,)), dtype="float16")


def scores() -> Node:
    shape = (SEQUENCES, TOKENS, HEADS, HIDDEN // HEADS)
    return dot_node(shape, shape, ((3,), (3,)), ((0, 2), (0, 2)), dtype="float16")


LAYERS: dict[str, Node] = {
    "resnet50 conv1": convolution(224, 3, 64, 7, 2),
    "resnet50 conv2 1x1": convolution(56, 64, 64, 1),
    "resnet50 conv2 3x3": convolution(56, 64, 64, 3),
    "resnet50 conv2 out": convolution(56, 64, 256, 1),
    "resnet50 conv3 3x3": convolution(28, 128, 128, 3),
    "resnet50 conv3 shortcut": convolution(56, 256, 512, 1, 2),
    "resnet50 conv4 3x3": convolution(14, 256, 256, 3),
    "resnet50 conv5 3x3": convolution(7, 512, 512, 3),
    "resnet50 conv2 3x3 weight gradient": weight_gradient(56, 64, 64, 3),
    "resnet50 conv5 1x1 weight gradient": weight_gradient(7, 512, 2048, 1),
    "resnet50 classifier": dot_node((IMAGES, 2048), (2048, 1000), ((1,), (0,)), dtype="float16"),
    "bert query": linear(HIDDEN, HIDDEN),
    "bert intermediate": linear(HIDDEN, WIDE),
    "bert output": linear(WIDE, HIDDEN),
    "bert scores": scores(),
    "bert intermediate weight gradient": dot_node(
        (SEQUENCES, TOKENS, HIDDEN), (SEQUENCES, TOKENS, WIDE), ((0, 1), (0, 1)), dtype="float16", direction="backward"
    ),
}


def test_plans_of_known_layers(golden: Callable[[str, str], None]) -> None:
    lines = []
    for name, node in LAYERS.items():
        for partials_type in ("half", "float"):
            problem = problem_of(node, partials_type).problem
            lines.append(f"{name}: {problem}")
            lines.append(f"    {plan(problem, target('ipu2'), Settings())}")
    golden("engine/plans.txt", "\n".join(lines))


def test_weight_gradients_are_known_by_their_layout() -> None:
    assert problem_of(LAYERS["resnet50 conv2 3x3 weight gradient"], "float").problem.direction == "weight_update"
    assert problem_of(LAYERS["bert intermediate weight gradient"], "float").problem.direction == "weight_update"
    assert problem_of(LAYERS["bert output"], "float").problem.direction == "forward"
