"""What functions of JAX give when they are compiled and run: products, convolutions, choices, replicas, barriers.

Source: graphcore/tensorflow@b2127bba compiler/plugin/poplar/tests and python/ipu/tests, the files the cases name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fidelity.compiling import config, struct
from tests.fidelity.outcome import Case
from workbench import api
from workbench.engine.target import target

TILES = 4


def given(function: Callable[..., Any], *values: Any, replicas: int = 1, **options: bool) -> Any:
    """What a function gives for arrays; replicas have theirs side by side, along the first dimension."""
    made = config()
    made.auto_select_ipus = replicas
    for name, on in options.items():
        setattr(made.floating_point_behaviour, name, on)
    arrays = [np.asarray(value) for value in values]
    types = [struct(*each.shape, dtype=str(each.dtype)) for each in arrays]
    machine = target("ipu2", tiles_per_ipu=TILES)
    executable = api.compile(function, *types, target=machine, config=made, replicas=replicas)
    wide = [np.concatenate([each] * replicas) if replicas > 1 else each for each in arrays]
    return executable.run(*wide)


def _floats(values: Any) -> Any:
    return np.asarray(values, np.float32)


def products(case: Case) -> Any:
    """The product of the two arrays a case gives, as lists."""
    a, b = case["config"]["a"], case["config"]["b"]
    return np.asarray(given(lambda x, y: x @ y, _floats(a), _floats(b))).tolist()


def convolution() -> Any:
    """Every second of five numbers, times ten."""
    import jax

    def program(image: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(
            image, kernel, (1, 1, 2), "VALID", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
        )

    image = np.arange(1.0, 6.0, dtype=np.float32).reshape(1, 1, 1, 5, 1)
    return np.asarray(given(program, image, np.full((1,) * 5, 10.0, np.float32))).tolist()


def chosen() -> Any:
    """A sum, a difference or a product by an index; one beyond them takes the last."""
    import jax

    def program(index: Any, x: Any, y: Any) -> Any:
        return jax.lax.switch(index, [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y], x, y)

    def of(index: int) -> Any:
        return np.asarray(given(program, np.int32(index), _floats([0, 1]), _floats([1, 5]))).tolist()

    return {"0": of(0), "1": of(1), "2": of(2), "other": of(10)}


def scaled(*, small: bool = False, minus: bool = False) -> Any:
    """Halves times factors that are floats and cast, added or taken off; `small`: a factor no half is as small as."""
    import jax.numpy as jnp

    half = lambda values: np.asarray(values, np.float16)  # noqa: E731

    def program(x: Any, y: Any, a: Any, b: Any) -> Any:
        left, right = a.astype(jnp.float16) * x, b.astype(jnp.float16) * y
        return left - right if minus else left + right

    if small:
        found = given(
            lambda x, y, b: x + b.astype(jnp.float16) * y,
            half([4e-4, 1e-4, 2e-4]),
            half([1e4, 2e4, 3e4]),
            np.float32(3e-8),
        )
        return [round(float(each), 4) for each in found]
    found = given(program, half([2, 0.5, 1]), half([1, 2, 3]), np.float32(2), np.float32(3))
    return np.asarray(found, np.float64).tolist()


def summed() -> Any:
    """Eight ones summed, times five."""
    import jax.numpy as jnp

    return float(given(lambda x: jnp.sum(x) * 5, np.ones((2, 2, 2), np.float32)))


def mean() -> Any:
    """The mean of 10,000 halves, each half of the largest there is, with exceptions on."""
    import jax.numpy as jnp

    value = np.float16(np.finfo(np.float16).max / 2)
    options = {"inv": True, "div0": True, "oflo": True, "nanoo": True}
    found = given(lambda x: jnp.mean(x, axis=1), np.full((2, 10_000), value), **options)
    (number,) = set(np.asarray(found, np.float64).tolist())
    return number


def barrier() -> Any:
    """Gradients and loss through a barrier between two products of variables."""
    import jax
    import jax.numpy as jnp

    def loss(a: Any, b: Any) -> Any:
        left, right = jax.lax.optimization_barrier((a * 4, b * 2))
        return jnp.sum((left + a * 8) @ right)

    ones = np.ones((2, 2), np.float32), np.ones((2, 8), np.float32)
    value, slopes = given(jax.value_and_grad(loss, argnums=(0, 1)), *ones)
    left, right = ({int(each) for each in np.ravel(slope)} for slope in slopes)
    return {"dA": min(left), "dB": min(right), "loss": float(value)} if len(left | right) == 2 else str(slopes)


def looked_up() -> Any:
    """Shapes of rows looked up: of a matrix by 8 indices, by 3 x 4 x 2, and of a tensor of four dimensions."""
    import jax.numpy as jnp

    def shape(table: tuple[int, ...], ids: tuple[int, ...]) -> list[int]:
        found = given(lambda x, i: jnp.take(x, i, axis=0), np.ones(table, np.float32), np.zeros(ids, np.int32))
        return list(np.shape(found))

    return {
        "flat": shape((1200, 200), (8,)),
        "auto": shape((32, 16), (3, 4, 2)),
        "4d": shape((12, 2, 200, 4), (8,)),
    }


def normalised() -> Any:
    """A one divided by the number of two replicas, and a one added to that."""
    import jax

    from workbench.engine.frontends.describe.replicas import AXIS

    def program(x: Any, other: Any) -> Any:
        shared = x / jax.lax.psum(1, AXIS)
        return shared, shared + other

    ones = np.ones((1, 4, 4, 2), np.float32)
    found = given(program, ones, ones, replicas=2)
    (norm,), (more,) = (set(np.ravel(each).tolist()) for each in found)
    return {"norm": norm, "norm+x": more}


def gathered() -> Any:
    """What each of eight replicas has of all, which hold their own numbers."""
    import jax

    from workbench.engine.frontends.describe.replicas import AXIS

    def program(x: Any) -> Any:
        return jax.lax.all_gather(x + jax.lax.axis_index(AXIS).astype(x.dtype), AXIS)

    found = np.asarray(given(program, np.zeros(8, np.float32), replicas=8)).reshape(8, 8, 8)
    wanted = np.broadcast_to(np.arange(8.0)[None, :, None], found.shape)
    return "[replica][k] = [k]*8" if np.array_equal(found, wanted) else found[..., 0].tolist()


BY_ID: dict[str, Callable[[], Any]] = {
    "SEM-conv3d": convolution,
    "SEM-case": chosen,
    "SEM-axpby": scaled,
    "SEM-axpby-mixed": scaled,
    "SEM-axmby": lambda: scaled(minus=True),
    "SEM-axpby-sub": lambda: scaled(minus=True),
    "SEM-axpby-small": lambda: scaled(small=True),
    "SEM-redscaled": summed,
    "SEM-redmean-f16": mean,
    "SEM-barrier": barrier,
    "SEM-emb-shape": looked_up,
    "SEM-rep-normalise": normalised,
    "SEM-rep-allgather": gathered,
}
