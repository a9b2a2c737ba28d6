"""Which operations the compute sets of a small graph do, by the PopLibs vertices in them; copies do not count.

Source: graphcore/tensorflow@b2127bba compiler/plugin/poplar/tests, the files and tests the cases name. A case has paths
of the driver's scopes, which this API has not; their last words are PopLibs' operations, which it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.fidelity.compiling import config, struct
from tests.fidelity.memory_programs import broadcast_convolutions, broadcast_products, outlined_inference
from tests.fidelity.outcome import Case, NotRun, source_of
from workbench import api
from workbench.engine.program import OnTileExecute
from workbench.engine.target import target

TILES = 8
Program = tuple[Callable[..., Any], tuple[Any, ...]]

# What the name of a vertex holds -> the operation as PopLibs calls its compute sets; the first that fits.
VERTICES = {
    r"^poplar|Memcpy|Copy": "",
    r"Transpose": "Transpose",
    r"poplin::(?:Conv|Outer|.*Mac)": "Conv",
    r"NonLinearityGrad": "NonLinearityGrad",
    r"NonLinearity": "Nonlinearity",
    r"MaxPooling(?:Grad)|MaxPool\w*Grad": "maxPoolGrad",
    r"MaxPooling": "maxPool",
    r"SumPooling|AvgPool": "avgPool",
    r"Reduce": "Reduce",
    r"Scaled|aXPlusbY|XMinusaXPlusbY": "AddTo",
    r"MultiUpdateAdd": "multiUpdateAdd",
    r"Slice": "multiSlice",
    r"Cast": "Cast",
    r"MapExpression": "Expression",
    r"[Nn]ormal": "normal",
    r"[Uu]niform": "uniform",
}
# What a path of the driver holds -> the operation; the first that fits, else what follows `Op/`, else the last word.
PATHS = {
    r"__seed|[cC]opy_|OnTileCopy|host-exchange": "",
    r"NonLinearityGrad": "NonLinearityGrad",
    r"Nonlinearity": "Nonlinearity",
    r"max-pool-grad": "maxPoolGrad",
    r"maxPool": "maxPool",
    r"avgPool": "avgPool",
    r"WeightsTranspose": "Transpose",
    r"Conv_\d|dot|/Conv\b|convolution$": "Conv",
    r"AddTo": "AddTo",
    r"/[rR]educe": "Reduce",
    r"Cast": "Cast",
    r"rng|/normal": "normal",
    r"/uniform": "uniform",
}


def compute_sets(case: Case) -> Any:
    """The operations of the compute sets of a case's test, in the order of the alphabet."""
    found = re.search(r"\[(\w+)\]", source_of(case))
    name = str(case.get("test") or (found[1] if found else ""))
    if name not in PROGRAMS:
        return NotRun(f"the graph of {name} is not built here")
    function, inputs = PROGRAMS[name]
    made = config()
    made.ipu_model.compile_ipu_code = False
    executable = api.compile(function, *inputs, target=target("ipu2", tiles_per_ipu=TILES), config=made)
    steps = [step for step in executable.program.steps if isinstance(step, OnTileExecute)]
    return sorted({word for step in steps for word in _words(step)})


def operations(patterns: Sequence[str]) -> list[str]:
    """The operations that paths of compute sets end in; a word that is no path is one already."""
    found = {_operation(each) if re.search(r"[/*-]", each) else each for each in patterns}
    return sorted(found - {""})


def _operation(path: str) -> str:
    word = next((word for pattern, word in PATHS.items() if re.search(pattern, path)), None)
    if word is not None:
        return word
    named = re.search(r"Op/(\w+)|/(\w+)\*?$", path)
    return (named[1] or named[2]).title() if named else path


def _words(step: OnTileExecute) -> Iterator[str]:
    if re.search(r"/(?:convolution|matmul)/", step.name):  # of its partial sums and rearrangements too
        yield "Conv"
        return
    for group in step.compute_set.groups:
        word = next((word for pattern, word in VERTICES.items() if re.search(pattern, group.vertex)), None)
        if word is None:
            word = str(dict(group.arguments).get("op", group.vertex)).title().replace("_", "")
        if word:
            yield word


# -- graphs -----------------------------------------------------------------------------------------------


def _of(size: Any, function: Callable[..., Any], count: int = 1, dtype: str = "float32") -> Program:
    """A function of so many arrays alike."""
    shape = (size,) if isinstance(size, int) else size
    return function, (struct(*shape, dtype=dtype),) * count


def _halves(size: Any, function: Callable[..., Any], count: int = 1) -> Program:
    return _of(size, function, count, "float16")


def _jax(name: str) -> Callable[..., Any]:
    """A function of `jax.nn`."""

    def function(x: Any) -> Any:
        import jax

        return getattr(jax.nn, name)(x)

    return function


def _slope(name: str) -> Callable[..., Any]:
    """The gradient of one, of what comes back and what went in."""

    def function(back: Any, x: Any) -> Any:
        import jax

        return jax.vjp(getattr(jax.nn, name), x)[1](back)

    return function


def _pool(kind: str, window: int, stride: int, padding: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        import keras

        return getattr(keras.ops, kind)(x, window, stride, padding, "channels_last")

    return function


def _pool_slope(x: Any, back: Any) -> Any:
    import jax

    made, pull = jax.vjp(_pool("max_pool", 2, 2, "same"), x)
    return made, pull(back)


def _convolution(dimensions: int, stride: int = 1, padding: str = "SAME") -> Callable[..., Any]:
    """A convolution with a bias behind it, when it is given one."""

    def function(x: Any, kernel: Any, *bias: Any) -> Any:
        import jax

        letters = "DHW"[-dimensions:]
        numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
        made = jax.lax.conv_general_dilated(x, kernel, (stride,) * dimensions, padding, dimension_numbers=numbers)
        return made + bias[0] if bias else made

    return function


def _back(which: int, dimensions: int) -> Callable[..., Any]:
    """The gradient of a convolution in its image (0) or its kernel (1)."""

    def function(other: Any, back: Any, like: Any) -> Any:
        import jax

        def forward(asked: Any) -> Any:
            given = (asked, other) if which == 0 else (other, asked)
            return _convolution(dimensions)(*given)

        return jax.vjp(forward, like * 0)[1](back)

    return function


def _twice(then: Callable[[Any], Any] = lambda x: x, stride: Any = (1, 1)) -> Callable[..., Any]:
    """Two convolutions of 1 x 1, something between them."""

    def function(x: Any, one: Any, two: Any) -> Any:
        import jax

        made = then(_convolution(2)(x, one))
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(made, two.astype(made.dtype), stride, "SAME", dimension_numbers=numbers)

    return function


def _reduced(kind: str = "sum", **how: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, kind)(x, **how)

    return function


def _cast_and_back(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: step(x.astype("float32")).astype("float16")


def _sum(x: Any) -> Any:
    return _reduced()(x)


def _cut(x: Any, y: Any, z: Any) -> Any:
    return (x[:2] + y[:2]) / z + x[1:]


def _broadcast(function: Callable[..., Any], dtype: str = "float16") -> Program:
    """Two vectors of three and a factor of one element."""
    return function, (struct(3, dtype=dtype), struct(3, dtype=dtype), struct(1, dtype=dtype))


def _scaled_sum(axes: tuple[int, ...], *, squared: bool, fixed: bool) -> Callable[..., Any]:
    def function(x: Any, *factor: Any) -> Any:
        made = _reduced(axis=axes)(x * x if squared else x)
        return made * (5 if fixed else factor[0])

    return function


def _scaled_sums() -> Iterator[tuple[str, Program]]:
    """Sums of eight, squared or not, over all or the last two axes, times a factor that is given or fixed."""
    for squared in (False, True):
        for half in (False, True):
            for fixed in (False, True):
                name = f"testReduction{'Squared' if squared else ''}AddScaled{'Constant' if fixed else ''}"
                dtype = "float16" if half else "float32"
                cube, factor = struct(2, 2, 2, dtype=dtype), () if fixed else (struct(dtype=dtype),)
                function = _scaled_sum((0, 1, 2), squared=squared, fixed=fixed)
                yield name + ("Fp16" if half else ""), (function, (cube, *factor))
    for squared, fixed, name in (
        (False, False, "testReductionAddDim12Scaled"),
        (False, True, "testReductionAddDim12ScaledConstant"),
        (True, False, "testReductionSquaredAddScaledDim12Scaled"),
        (True, True, "testReductionSquaredAddScaledDim12ScaledConstant"),
    ):
        function = _scaled_sum((1, 2), squared=squared, fixed=fixed)
        yield name, (function, (struct(2, 2, 2), *(() if fixed else (struct(1),))))


def _with_bias(stride: int, padding: str, *shapes: tuple[int, ...]) -> Program:
    return _convolution(len(shapes[0]) - 2, stride, padding), tuple(struct(*shape) for shape in shapes)


def _random(kind: str, shape: tuple[int, ...], width: float, start: float) -> Program:
    def function(key: Any) -> Any:
        import jax

        return getattr(jax.random, kind)(key, shape) * width + start

    return function, (struct(2, dtype="uint32"),)


_IMAGE, _KERNEL = struct(1, 4, 4, 2), struct(1, 1, 2, 2)
PROGRAMS: dict[str, Program] = {
    "testSigmoid": _of(3, _jax("sigmoid")),
    "testSigmoidNotInplace": _of(3, lambda x: _jax("sigmoid")(x) + x),
    "testSigmoidGrad": _of(3, _slope("sigmoid"), 2),
    "testRelu": _of(3, _jax("relu")),
    "testReluNotInPlace": _of(3, lambda x: _jax("relu")(x) + x),
    "testReluGrad": _of(3, _slope("relu"), 2),
    "testMaxPool": _of((1, 10, 10, 1), _pool("max_pool", 5, 2, "same")),
    "testFwdAndBwdMaxPool": (_pool_slope, (struct(1, 4, 4, 1), struct(1, 2, 2, 1))),
    "testAvgPoolValid": _of((1, 10, 10, 1), _pool("average_pool", 10, 1, "valid")),
    "testAvgPoolValidWithBroadcast": _of((1, 10, 10, 1), _pool("average_pool", 5, 2, "valid")),
    "testAvgPoolSameWithReshape": _of((1, 10, 10, 1), _pool("average_pool", 5, 2, "same")),
    "testScaledAddTo": _halves(3, lambda x, y: x + y * 2, 2),
    "testScaledSubtractFrom": _halves(3, lambda x, y: x - 2 * y, 2),
    "testScaledAddToVariable": _broadcast(lambda x, y, z: x + y * z),
    "testScaledSubtractFromVariable": _broadcast(lambda x, y, z: x - z * y),
    "testScaledAddaXbY": _halves(3, lambda x, y: 2 * x + 3 * y, 2),
    "testScaledAddToVariableFor2Scales": (
        lambda x, y, a, b: a * x + b * y,
        (struct(3, dtype="float16"),) * 2 + (struct(1, dtype="float16"),) * 2,
    ),
    "testScaledSubtractFromVariableFor2Scales": (
        lambda x, y, a, b: a * x - b * y,
        (struct(3, dtype="float16"),) * 2 + (struct(1, dtype="float16"),) * 2,
    ),
    "testFullyConnectedWithBias": (lambda x, w, b: x @ w + b, (struct(2, 2), struct(2, 2), struct(2))),
    "testBatchedMatmulWithBias": (lambda x, w, b: x @ w + b, (struct(2, 2, 2), struct(2, 2), struct(2))),
    "testSquareSum": _of(3, lambda x: _sum(x * x)),
    "testSquareSumHalfs": _halves(2, lambda x: _reduced("mean")(x * x)),
    "testReductionSumVectorF16NoConverts": _halves(4096, _reduced(axis=0)),
    "testNoCastsF16ReduceWithReshape": _halves((3, 4), lambda x: _reduced(axis=1)(x.reshape(4, 3))),
    "testMultipleReduces": _halves(3, lambda x, y: _cast_and_back(_sum)(x) * _cast_and_back(_sum)(y), 2),
    "testDontRemoveCastsIfUsed": _halves(3, _cast_and_back(lambda x: x + 1)),
    "testReduceMean": _halves((2, 10_000), _reduced("mean", axis=1)),
    "testReduceMax": _halves((2, 10_000), lambda x: _reduced("max", axis=1)(x.astype("float32"))),
    "testInplaceAddCopyWithInplacePeer": _of((2,) * 4, lambda x, y: x.T / (x + y), 2),
    "testInplaceAddCopyWithInplacePeer2": (
        lambda x, y, z: (x + y * z) / (x.T * y + z),
        (struct(2, 2), struct(2, 2), struct()),
    ),
    "testInplaceOpAddCopyWithInplaceParent": (_cut, (struct(3), struct(3), struct())),
    "testConv3x3_WithBias": _with_bias(1, "SAME", (1, 14, 14, 64), (3, 3, 64, 128), (128,)),
    "testConv8x8_WithBias": _with_bias(4, "VALID", (1, 84, 84, 4), (8, 8, 4, 16), (16,)),
    "testConv1x1_WithBias": _with_bias(1, "VALID", (1, 1, 1, 4), (1, 1, 4, 16), (16,)),
    "test3DConv3x3x3_WithBias": _with_bias(1, "SAME", (1, 14, 14, 14, 16), (3, 3, 3, 16, 32), (32,)),
    "test3DConv1x1x1_WithBias": _with_bias(1, "VALID", (1, 1, 1, 1, 4), (1, 1, 1, 4, 8), (8,)),
    "testConvBackpropInput": (_back(0, 2), (struct(2, 2, 3, 5), struct(2, 8, 8, 5), struct(2, 8, 8, 3))),
    "testConvBackpropFilter": (_back(1, 2), (struct(2, 8, 8, 3), struct(2, 8, 8, 5), struct(2, 2, 3, 5))),
    "test3DConvBackpropInput": (_back(0, 3), (struct(2, 2, 2, 3, 5), struct(2, 8, 8, 8, 5), struct(2, 8, 8, 8, 3))),
    "test3DConvBackpropFilter": (_back(1, 3), (struct(2, 8, 8, 8, 3), struct(2, 8, 8, 8, 5), struct(2, 2, 2, 3, 5))),
    "testConvolutionsMatch": (_twice(), (_IMAGE, _KERNEL, _KERNEL)),
    "testConvolutionsDontMatchDifferentTypes": (_twice(lambda x: x.astype("float16")), (_IMAGE, _KERNEL, _KERNEL)),
    "testConvolutionsDontMatchDifferentShapes": (_twice(lambda x: x.reshape(1, 2, 8, 2)), (_IMAGE, _KERNEL, _KERNEL)),
    "testConvolutionsDontMatchDifferentConvParams": (_twice(stride=(2, 1)), (_IMAGE, _KERNEL, _KERNEL)),
    "testMatMulBroadcast": broadcast_products(),
    "testConvolutionsWithBroadcast": broadcast_convolutions(),
    "testFunctionInferenceWithVariableScope": outlined_inference(),
    "testRandomNormalInitalizer": _random("normal", (), 0.01, 2.0),
    "testRandomNormalNonScalarInitalizer": _random("normal", (2,), 0.01, 2.0),
    "testUniformRandomInitalizer": _random("uniform", (), 4.0, -2.0),
    "testUniformRandomNonScalarInitalizer": _random("uniform", (2,), 4.0, -2.0),
    **dict(_scaled_sums()),
}
