"""The primitives of a graph: what kind each is and what passes ask of it, in one table.

A pass asks `kind(node)` or `primitive(node)`; one that means fewer than a kind has takes `names(...)` and says why.
What the table does not know is of the kind `OTHER` and has no trait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from workbench.engine.graph.graph import Node


class Kind(Enum):
    """What a primitive does, as far as passes treat primitives alike."""

    IDENTITY = auto()  # nothing: it says where or how a value is held, or stops a derivative
    BARRIER = auto()  # nothing, but nobody moves work across it
    VIEW = auto()  # shows the elements of its operands otherwise
    FREE = auto()  # says where a value comes from and is made anew wherever it is read
    POINTWISE = auto()  # each element from the same element of the operands
    REDUCTION = auto()  # along axes, by one of the operations PopLibs reduces with
    FOLD = auto()  # along axes, by bits or a function of the user's
    RUNNING = auto()  # along an axis, every partial result kept
    PRODUCT = auto()  # products and convolutions, which are planned
    LOOKUP = auto()  # rows or slices by index
    SCATTER = auto()  # updates of rows by index
    UPDATE = auto()  # updates of a slice by its place
    ORDER = auto()  # sorts
    CONTROL = auto()  # calls functions of their own
    INLINE = auto()  # calls a function that shares the caller's values
    HOST = auto()  # is done on the host
    DRAW = auto()  # draws random numbers
    KEY = auto()  # makes keys of random numbers
    COLLECTIVE = auto()  # over replicas
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """A primitive with its traits; what is not said of it is false.

    `reshapes`: only the shape changes. `exact`: what it gives is among what it is given, so nothing is rounded.
    `rounds_once`: computed in float32 and rounded to half is what the IPU gives. `has_pole`: finite operands can give
    an exact infinity. `apart`: equal operands do not make two of them equal. `keeps_one`: one element reduced is the
    element. `loops`: its body feeds itself. `feeds`: a call of the host whose waiting is modelled. `alike`, `differs`:
    its results are the same on all replicas that take part, or differ whatever it reads.
    """

    name: str
    kind: Kind
    reshapes: bool = False
    exact: bool = False
    rounds_once: bool = False
    has_pole: bool = False
    apart: bool = False
    keeps_one: bool = False
    loops: bool = False
    feeds: bool = False
    alike: bool = False
    differs: bool = False


@dataclass(slots=True)
class _Rows:
    """Rows by name; what is said of several names at once is said of each."""

    found: dict[str, Primitive] = field(default_factory=dict)

    def add(self, kind: Kind, names: str, **traits: bool) -> None:
        """Rows of a kind."""
        for name in names.split():
            assert name not in self.found, name
            self.found[name] = Primitive(name=name, kind=kind, **traits)


def _table() -> dict[str, Primitive]:
    rows = _Rows()
    add = rows.add
    add(Kind.IDENTITY, "copy copy_p stop_gradient", exact=True)
    add(Kind.IDENTITY, "pvary sharding_constraint reshard name layout_constraint mesh_cast random_clone device_put")
    add(Kind.BARRIER, "optimization_barrier", exact=True, apart=True)
    add(Kind.VIEW, "reshape squeeze expand_dims", reshapes=True, exact=True)
    add(Kind.VIEW, "transpose slice rev bitcast_convert_type split concatenate pad", exact=True)
    add(Kind.VIEW, "known_rows", exact=True)
    add(Kind.VIEW, "unstack tile stack")
    add(Kind.FREE, "broadcast_in_dim iota", exact=True)
    add(Kind.FREE, "constant")
    add(Kind.OTHER, "real", exact=True)
    _add_pointwise(rows)
    add(Kind.REDUCTION, "reduce_max reduce_min", keeps_one=True, exact=True)
    add(Kind.REDUCTION, "reduce_and reduce_or reduce_prod", keeps_one=True)
    add(Kind.REDUCTION, "reduce_sum", keeps_one=True, rounds_once=True)
    add(Kind.REDUCTION, "reduce_square_sum")
    add(Kind.FOLD, "reduce reduce_xor argmax argmin")
    add(Kind.RUNNING, "cumsum", rounds_once=True)
    add(Kind.RUNNING, "cumprod cummax cummin cumlogsumexp")
    add(Kind.PRODUCT, "dot_general conv_general_dilated", rounds_once=True)
    add(Kind.LOOKUP, "gather dynamic_slice", exact=True)
    add(Kind.SCATTER, "scatter", exact=True)
    add(Kind.SCATTER, "scatter-add scatter-mul scatter-min scatter-max scatter-sub")
    add(Kind.SCATTER, "scatter_add scatter_mul scatter_min scatter_max")
    add(Kind.UPDATE, "dynamic_update_slice", exact=True)
    add(Kind.ORDER, "sort", exact=True)
    add(Kind.ORDER, "top_k")
    add(Kind.CONTROL, "scan while", loops=True)
    add(Kind.CONTROL, "cond call")
    add(Kind.INLINE, "fused region")
    add(Kind.HOST, "io_callback", feeds=True, exact=True, apart=True, differs=True)
    add(Kind.HOST, "pure_callback", exact=True, apart=True)
    add(Kind.HOST, "host_call", apart=True)
    add(Kind.DRAW, "random_bits rng_bit_generator", apart=True)
    add(Kind.DRAW, "rng_uniform")
    add(Kind.KEY, "random_wrap random_unwrap", exact=True)
    add(Kind.KEY, "random_seed random_split random_fold_in threefry2x32")
    add(Kind.COLLECTIVE, "psum pmax pmin all_gather psum_invariant all_gather_invariant", alike=True)
    add(Kind.COLLECTIVE, "axis_index ppermute all_to_all reduce_scatter psum_scatter", differs=True)
    return rows.found


def _add_pointwise(rows: _Rows) -> None:
    """What is computed element by element; which operation of PopLibs each is stands in `ops/pointwise.py`."""
    rows.add(Kind.POINTWISE, "abs neg sign max min select_n clamp is_finite", exact=True)
    rows.add(Kind.POINTWISE, "add add_any sub mul exp exp2 expm1 tanh logistic sqrt square", rounds_once=True)
    rows.add(Kind.POINTWISE, "sin cos erf convert_element_type", rounds_once=True)
    rows.add(Kind.POINTWISE, "div log log1p rsqrt integer_pow pow", rounds_once=True, has_pole=True)
    rows.add(Kind.POINTWISE, "atanh lgamma digamma", has_pole=True)
    rows.add(Kind.POINTWISE, "cbrt tan floor ceil round not population_count clz asin rem atan2 and or xor")
    rows.add(Kind.POINTWISE, "shift_left shift_right_logical shift_right_arithmetic reduce_precision")
    rows.add(Kind.POINTWISE, "eq ne lt le gt ge eq_to lt_to le_to")
    rows.add(Kind.POINTWISE, "erfc acos atan sinh cosh asinh acosh nextafter mulhi bessel_i0e bessel_i1e")
    rows.add(Kind.POINTWISE, "zeta polygamma erf_inv")


PRIMITIVES = _table()
_KINDS = {name: row.kind for name, row in PRIMITIVES.items()}


def kind(node: Node) -> Kind:
    """What kind of primitive a node is."""
    return _KINDS.get(node.op, Kind.OTHER)


def primitive(name: str) -> Primitive:
    """The row of a primitive; one without traits for what the table does not know."""
    return PRIMITIVES.get(name) or Primitive(name=name, kind=Kind.OTHER)


def names(*kinds: Kind, but: frozenset[str] = frozenset(), **traits: bool) -> frozenset[str]:
    """The primitives of some kinds (default: any) that have all the traits."""

    def found() -> Iterator[str]:
        for row in PRIMITIVES.values():
            if (not kinds or row.kind in kinds) and all(getattr(row, trait) == told for trait, told in traits.items()):
                yield row.name

    return frozenset(found()) - but
