"""`tf.data`: datasets as chains of generators, enough for the feeds of programs for the IPU.

Tests: tests/tf/test_train.py.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from workbench.base.checked import called, checked_methods
from workbench.base.text import short
from workbench.base.whole import MOST_EXACT, whole
from workbench.engine.frontends.trace.jaxpr import keras_reads
from workbench.errors import InputError, KindError, StateError
from workbench.tf import _graph, _hooks
from workbench.tf._absent import absent
from workbench.tf._function.signature import TensorSpec
from workbench.tf._graph.convert import check_depth
from workbench.tf._graph.dtypes import given_type
from workbench.tf._graph.shapes import sizes
from workbench.tf.data._of_keras import adapter
from workbench.tf.distribute import get_strategy

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class Options:
    """Options of datasets, which change nothing here."""


class DatasetIterator:
    """A pass over a dataset. Inside a `tf.function` its next element is one that the running program takes."""

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements
        self._queue: Any = None

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        """The next element: of a program's infeed while a function is recorded, else its arrays.

        Errors: `StateError` in a function for a strategy that was made with `enable_dataset_iterators=False`.
        """
        if _graph.in_function():
            return self._infeed()._dequeue()
        if self._queue is None:
            return next(self._elements)
        return self._queue.take_next()

    def get_next(self) -> Any:
        """As `next`."""
        return next(self)

    def _infeed(self) -> Any:
        strategy = get_strategy()
        if strategy is not None and not getattr(strategy, "_enable_dataset_iterators", True):
            raise StateError(
                "next() of a dataset's iterator in a function of a strategy with enable_dataset_iterators=False. "
                "To mend it: make the strategy with enable_dataset_iterators=True, or pass the element as an argument."
            )
        if self._queue is None:
            with _graph.outside_graphs():
                self._queue = _hooks.ipu.get().ipu_infeed_queue.IPUInfeedQueue(self._elements, device_ordinal=None)
        return self._queue


@checked_methods
@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A dataset: a function that begins a new pass over its elements, and how many a pass has, where that is known.

    `short`: samples of a smaller batch that a pass has, 0 where none is, None where nobody can tell; `short_last`:
    whether it is the last element. `fixed`: whether all sizes of an element are said; not those of a batch that keeps a
    remainder, even if none is left.
    """

    begin: Callable[[], Iterator[Any]]
    elements: int = UNKNOWN_CARDINALITY
    short: int | None = 0
    short_last: bool = True
    fixed: bool = True

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """One element for each entry of the first dimension; an `InputError` for arrays that do not share one."""
        arrays = _arrays(tensors)
        counts = {len(leaf) if leaf.ndim else None for leaf in jax.tree_util.tree_leaves(arrays)}
        if len(counts) != 1 or None in counts:
            shapes = [leaf.shape for leaf in jax.tree_util.tree_leaves(arrays)]
            raise InputError(
                f"tensors is {short(tensors)}, arrays of shapes {shapes}",
                expected="arrays whose first dimensions are equal",
            )
        ((count,),) = [[each for each in counts if each is not None]]
        return Dataset(
            lambda: (jax.tree_util.tree_map(lambda leaf, at=place: leaf[at], arrays) for place in range(count)),
            count,
        )

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element."""
        arrays = _arrays(tensors)
        return Dataset(lambda: iter([arrays]), 1)

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
    ) -> Dataset:
        """What a function's iterable gives, as arrays of these types, in one structure with them.

        `args`: what the function is called with; `output_signature`: `tf.TensorSpec`s in place of types and shapes.
        Errors: `InputError` for an element of another structure or shape.
        """
        if output_signature is not None:
            output_types, output_shapes = _signed(output_signature, output_types, output_shapes)
        if output_types is None and output_shapes is not None:
            raise InputError(
                f"output_shapes is {short(output_shapes)}, without output_types", expected="both, or neither"
            )
        types = None if output_types is None else _types(output_types)
        if args is not None and not isinstance(args, list | tuple):
            raise InputError(f"args is {short(args)}", expected="a tuple of the generator's arguments")
        arguments = tuple(args or ())

        def elements() -> Iterator[Any]:
            made = called("generator", generator, *arguments)
            if not isinstance(made, Iterable):
                raise InputError(
                    f"generator is {short(generator)} and gave {short(made)}", expected="what can be iterated"
                )
            for element in made:
                yield _of_types(element, types, output_shapes)

        said = () if types is None else _shapes_of(output_shapes, jax.tree_util.tree_structure(types))
        return Dataset(elements, fixed=all(None not in each for each in said if each is not None))

    @staticmethod
    def range(*args: int, output_type: Any = "int64") -> Dataset:
        """Whole numbers: `range(stop)`, `range(start, stop)` or with a step, of a type."""
        given = [whole("args", each, least=-(2**63), most=2**63 - 1) for each in args]
        if not 1 <= len(given) <= 3 or (len(given) == 3 and not given[2]):
            raise InputError(f"args are {short(args)}", expected="stop, or start and stop, and a step that is not 0")
        numbers = range(*given)
        kind = given_type(output_type, "output_type").as_numpy_dtype
        return Dataset(lambda: map(kind, numbers), len(numbers))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Elements of several datasets side by side."""
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        for each in parts:
            if not isinstance(each, Dataset):
                raise KindError(f"datasets are {short(datasets)}", expected="datasets")
        shorts = [each.short for each in parts if each.short != 0]
        return Dataset(
            lambda: zip(*(iter(part) for part in parts), strict=False),
            short=shorts[0] if shorts else 0,
            short_last=all(each.short_last for each in parts),
            fixed=all(each.fixed for each in parts),
        )

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self.begin())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"Dataset has no attribute {name!r}")
        raise absent(f"{__name__}.Dataset", f"data.Dataset.{name}", [f"data.Dataset.{each}" for each in dir(Dataset)])

    @property
    def __jax_array__(self) -> Any:
        """None: an `InputError` says how a dataset is read, where an array is asked for."""
        raise InputError(
            "a dataset stands where an array is expected",
            todo="give fit, evaluate or predict the dataset, or one batch, next(iter(dataset)), to train_on_batch",
        )

    def cardinality(self) -> int:
        """Elements of a pass; `INFINITE_CARDINALITY`, or `UNKNOWN_CARDINALITY` where only a pass would tell."""
        return self.elements

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Elements with arrays as leaves."""
        return (jax.tree_util.tree_map(np.asarray, element) for element in self)

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: int | None = None, deterministic: bool | None = None
    ) -> Dataset:
        """Each element through a function; a tuple is its arguments. One call at a time, in order: the other arguments
        change nothing. What it returns in a list is a tuple, as in TensorFlow.

        Errors: `InputError` for a function that takes no element, and in a pass for one of other arguments."""
        _check_calls(num_parallel_calls)
        call = _of_elements("map_func", map_func)

        def apply(element: Any) -> Any:
            made = call(element)
            return jax.tree_util.tree_map(_mapped, tuple(made) if isinstance(made, list) else made, is_leaf=_is_list)

        return dataclasses.replace(self, begin=lambda: map(apply, iter(self)))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Elements a function is true of; errors as of `map`."""
        call = _of_elements("predicate", predicate)
        return dataclasses.replace(
            self,
            begin=lambda: (each for each in self if bool(call(each))),
            elements=UNKNOWN_CARDINALITY,
        )

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Elements stacked along a new first dimension; the last may be shorter unless it is dropped. The other
        arguments change nothing, as those of `map`."""
        _check_calls(num_parallel_calls)
        batch_size = whole("batch_size", batch_size, most=MOST_EXACT)

        def batches() -> Iterator[Any]:
            elements = iter(self)
            while group := list(itertools.islice(elements, batch_size)):
                if len(group) == batch_size or not drop_remainder:
                    yield jax.tree_util.tree_map(
                        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *group
                    )

        fixed = self.fixed and drop_remainder
        count = self.elements // batch_size if drop_remainder else -(-self.elements // batch_size)
        if self.elements < 0:
            unknown = self.elements == UNKNOWN_CARDINALITY and not drop_remainder
            return Dataset(batches, self.elements, None if unknown else 0, fixed=fixed)
        return Dataset(batches, count, 0 if drop_remainder else self.elements % batch_size, fixed=fixed)

    def unbatch(self) -> Dataset:
        """Each entry of the first dimension on its own."""

        def entries() -> Iterator[Any]:
            for element in self:
                yield from iter(Dataset.from_tensor_slices(element))

        return Dataset(entries)

    def concatenate(self, dataset: Any) -> Dataset:
        """All elements, and behind them those of another dataset."""
        if not isinstance(dataset, Dataset):
            raise KindError(f"dataset is {short(dataset)}", expected="a dataset")
        counts = (self.elements, dataset.elements)
        ends = (each for each in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY) if each in counts)
        return Dataset(
            lambda: itertools.chain(iter(self), iter(dataset)),
            next(ends, sum(counts)),
            dataset.short if self.short == 0 else self.short,
            dataset.short_last and self.short == 0,
            self.fixed and dataset.fixed,
        )

    def enumerate(self, start: int = 0) -> Dataset:
        """Each element behind its number, counted from `start`."""
        start = whole("start", start, least=-(2**63), most=2**63 - 1)
        return dataclasses.replace(
            self,
            begin=lambda: (
                (np.int64(number), each) for number, each in zip(itertools.count(start), self, strict=False)
            ),
        )

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every `num_shards`th element, from the `index`th on."""
        num_shards = whole("num_shards", num_shards, most=MOST_EXACT)
        index = whole("index", index, least=0, most=num_shards - 1)
        known = self.elements >= 0
        return dataclasses.replace(
            self,
            begin=lambda: itertools.islice(iter(self), index, None, num_shards),
            elements=max(0, -(-(self.elements - index) // num_shards)) if known else self.elements,
            short=self.short if self.short in (0, None) else None,
        )

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Dataset:
        """What a function makes of this dataset, a dataset too."""
        made = called("transformation_func", transformation_func, self)
        if not isinstance(made, Dataset):
            raise KindError(f"transformation_func gave {short(made)}", expected="a dataset")
        return made

    def repeat(self, count: int | None = None) -> Dataset:
        """All elements again and again, or `count` times; without end with -1."""
        if count is not None:
            count = whole("count", count, least=-1, most=MOST_EXACT)

        def passes() -> Iterator[Any]:
            turns = itertools.count() if count is None or count < 0 else iter(range(count))
            for _ in turns:
                empty = True
                for element in self:
                    empty = False
                    yield element
                if empty:
                    return

        if count is None or count < 0:
            return Dataset(passes, INFINITE_CARDINALITY, self.short, False, self.fixed)
        times = self.elements * count if self.elements >= 0 else self.elements
        return Dataset(passes, times, self.short, self.short_last and count == 1, self.fixed)

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Elements in random order, drawn from a buffer; in another one in each pass unless
        `reshuffle_each_iteration=False`."""
        buffer_size = whole("buffer_size", buffer_size, most=MOST_EXACT)
        passes = itertools.count()
        first = secrets.randbits(64) if seed is None else seed % 2**64

        def mixed() -> Iterator[Any]:
            again = reshuffle_each_iteration is False
            draw = np.random.default_rng([first, 0 if again else next(passes)])
            elements = iter(self)
            waiting = list(itertools.islice(elements, buffer_size))
            for element in elements:
                place = int(draw.integers(len(waiting)))
                waiting[place], chosen = element, waiting[place]
                yield chosen
            yield from (waiting[place] for place in draw.permutation(len(waiting)))

        return Dataset(mixed, self.elements, self.short, False, self.fixed)

    def take(self, count: int) -> Dataset:
        """The first elements; all with -1."""
        count = whole("count", count, least=-1, most=MOST_EXACT)
        taken = self.elements if count < 0 else count if self.elements == INFINITE_CARDINALITY else self._least(count)
        whole_ones = self.short_last and 0 <= count < self.elements
        return Dataset(
            lambda: itertools.islice(iter(self), count if count >= 0 else None),
            taken,
            0 if whole_ones else self.short,
            self.short_last,
            self.fixed,
        )

    def _least(self, count: int) -> int:
        return min(count, self.elements) if self.elements >= 0 else self.elements

    def skip(self, count: int) -> Dataset:
        """All but the first elements; none with -1."""
        count = whole("count", count, least=-1, most=MOST_EXACT)
        if count < 0:
            return Dataset(lambda: iter(()), 0)
        left = max(0, self.elements - count) if self.elements >= 0 else self.elements
        return dataclasses.replace(self, begin=lambda: itertools.islice(iter(self), count, None), elements=left)

    def prefetch(self, buffer_size: int = AUTOTUNE) -> Dataset:
        """The same elements, whatever the buffer: queues of the IPU prefetch."""
        whole("buffer_size", buffer_size, least=-1, most=MOST_EXACT)
        return self

    def cache(self, filename: str = "") -> Dataset:
        """The elements of the first pass, kept in memory: an `InputError` for a file."""
        if filename:
            raise InputError(f"filename is {short(filename)}", expected="none: elements are kept in memory")
        kept: list[Any] = []

        def elements() -> Iterator[Any]:
            if not kept:
                kept.extend(self)
            return iter(kept)

        return dataclasses.replace(self, begin=elements)

    def with_options(self, options: Options) -> Dataset:
        """The same elements: options of datasets change nothing here."""
        return self


def _check_calls(num_parallel_calls: int | None) -> None:
    """As many calls at a time as are allowed, `AUTOTUNE`, or None for one."""
    if num_parallel_calls is not None and num_parallel_calls != AUTOTUNE:
        whole("num_parallel_calls", num_parallel_calls, most=MOST_EXACT)


def _of_elements(name: str, function: Callable[..., Any]) -> Callable[[Any], Any]:
    """The function of an element, whose arguments are the parts of a tuple; they are held against what it takes once,
    for that takes longer than most functions."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # one that does not say what it takes
        taken = None
    if taken is not None and not any(each.kind not in (each.KEYWORD_ONLY, each.VAR_KEYWORD) for each in taken):
        raise InputError(
            f"{name} is {short(function)}, which takes no element",
            expected="a function of an element, or of the parts of one that is a tuple",
            todo=f"write {name}=lambda x: ...",
        )
    held: set[int] = set()

    def call(element: Any) -> Any:
        parts = element if isinstance(element, tuple) else (element,)
        if len(parts) in held:
            return function(*parts)
        held.add(len(parts))
        return called(name, function, *parts)

    return call


def _arrays(tensors: Any) -> Any:
    """Arrays in tuples and dicts, a list being one array; an `InputError` for what is none."""
    try:
        check_depth(tensors)
        made = jax.tree_util.tree_map(_as_array, tensors, is_leaf=_is_list)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"tensors is {short(tensors)}: {error}", expected="arrays, or tuples and dicts of them"
        ) from None
    for leaf in jax.tree_util.tree_leaves(made):
        if leaf.dtype == object:
            raise InputError(f"tensors is {short(tensors)}", expected="arrays of numbers or texts")
    return made


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    """An array of the type it has; of numbers of Python float32, or int32 if it has them, as TensorFlow types them."""
    found = np.asarray(value)
    typed = any(hasattr(each, "dtype") for each in jax.tree_util.tree_leaves(value))
    if typed or str(found.dtype) not in ("float64", "int64"):
        return found
    with np.errstate(over="ignore"):  # more than float32 has is infinite
        narrow = found.astype(np.float32 if found.dtype == np.float64 else np.int32)
    return narrow if found.dtype == np.float64 or np.array_equal(narrow, found) else found


def _mapped(value: Any) -> Any:
    """What a function made, a tensor or an array as it is, numbers and lists of Python as an array."""
    return value if hasattr(value, "dtype") or not isinstance(value, bool | int | float | list) else _as_array(value)


def _signed(signature: Any, types: Any, shapes: Any) -> tuple[Any, Any]:
    """Types and shapes of a structure of `tf.TensorSpec`s."""
    try:
        check_depth(signature)
    except RecursionError as error:
        raise InputError(f"output_signature is {short(signature)}: {error}", expected=_SPECS) from None
    specs, tree = jax.tree_util.tree_flatten(signature)
    if not specs or not all(isinstance(each, TensorSpec) for each in specs):
        raise InputError(f"output_signature is {short(signature)}", expected=_SPECS)
    if types is not None or shapes is not None:
        raise InputError("output_signature is given beside output_types or output_shapes", expected="one of both ways")
    sizes_of = [None if each.shape is None else tuple(each.shape.as_list()) for each in specs]
    kinds = tree.unflatten([each.dtype for each in specs])
    return kinds, sizes_of[0] if tree.num_nodes == 1 else tree.unflatten(sizes_of)


_SPECS = "a tf.TensorSpec, or tuples and dicts of them"


def _types(output_types: Any) -> Any:
    try:
        check_depth(output_types)
    except RecursionError as error:
        raise InputError(f"output_types is {short(output_types)}: {error}", expected="types in one structure") from None
    return jax.tree_util.tree_map(lambda each: given_type(each, "output_types"), output_types)


def _of_types(element: Any, types: Any, shapes: Any) -> Any:
    """An element of a generator as arrays of the types that were said, of the shapes that were."""
    if types is None:
        return element
    leaves, tree = jax.tree_util.tree_flatten(types)
    try:
        made = [np.asarray(each, str(kind)) for each, kind in zip(tree.flatten_up_to(element), leaves, strict=True)]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the generator gave {short(element)}: {error}", expected=f"{short(types)}, as output_types say"
        ) from None
    for found, wanted in zip(made, _shapes_of(shapes, tree), strict=True):
        if wanted is not None and not _fits(found.shape, wanted):
            raise InputError(
                f"the generator gave an array of shape {found.shape}",
                expected=f"{tuple(wanted)}, as output_shapes say",
            )
    return jax.tree_util.tree_unflatten(tree, made)


def _shapes_of(shapes: Any, tree: Any) -> list[Any]:
    """The shape of each array of an element, None where any will do."""
    if shapes is None:
        return [None] * tree.num_leaves
    found = [shapes] if tree.num_leaves == 1 and not _nested(shapes) else tree.flatten_up_to(shapes)
    return [None if each is None else sizes(each, "output_shapes") for each in found]


def _nested(shapes: Any) -> bool:
    return isinstance(shapes, list | tuple) and any(isinstance(each, list | tuple) for each in shapes)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    same = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(size is None or have == size for have, size in same)


keras_reads(Dataset, adapter)


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module("workbench.tf.data.experimental")
    raise absent(__name__, f"data.{name}", [f"data.{each}" for each in __all__])


__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "DatasetIterator", "Options"]
