"""Static shapes of what a function gives where those of what it takes are known in part, or not at all.

The function is asked of stand-ins: sizes that nothing else has, those its other arguments have, and 1, for each rank
where the rank is not known. Where all that it accepts agree, the shape is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import jax

Shape: TypeAlias = "Sequence[int | None] | None"  # None: nobody knows the rank
SIZES = (7, 11, 1)
RANKS = range(5)


def types_of(
    function: Callable[..., Any], given: Sequence[tuple[Shape, str]], held: Iterable[int] = ()
) -> tuple[list[tuple[Shape, str]], Any]:
    """Shape and type of each leaf of the function's result, and the result's structure.

    `held` are sizes of the arrays that the function holds besides what it is given.
    """
    found, refused = [], None
    for shapes in _stand_ins([shape for shape, _ in given], held):
        specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, (_, dtype) in zip(shapes, given, strict=True)]
        try:
            found.append(jax.tree_util.tree_flatten(jax.eval_shape(function, *specs)))
        except Exception as error:
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    leaves = zip(*(flat for flat, _ in found), strict=True)
    return [(_agreed([leaf.shape for leaf in same]), str(same[0].dtype)) for same in leaves], found[0][1]


def _stand_ins(shapes: Sequence[Shape], held: Iterable[int]) -> Iterator[list[tuple[int, ...]]]:
    if all(shape is not None and None not in shape for shape in shapes):
        yield [tuple(shape or ()) for shape in shapes]  # type: ignore[arg-type]
        return
    known = sorted({*held, *(size for shape in shapes for size in shape or () if size is not None)})
    ranks = RANKS if None in shapes else range(1)
    for size in dict.fromkeys((*SIZES, *known)):
        for rank in ranks:
            yield [
                (size,) * rank if shape is None else tuple(size if each is None else each for each in shape)
                for shape in shapes
            ]


def _agreed(shapes: Sequence[tuple[int, ...]]) -> Shape:
    if len({len(shape) for shape in shapes}) > 1:
        return None
    return [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True)]
