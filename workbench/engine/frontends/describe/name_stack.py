"""Origins from name stacks: scopes and transforms in nesting order become a layer path, a call and a direction.

A stack is a tuple of `("scope", name)` and `("transform", name)`, outermost first. The frontends open scopes of
their own beside those of Keras; they start with a control character, which no layer name can hold, so they are
told apart from the user's names without parsing a printed stack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from workbench.engine.graph.origin import Direction

Stack: TypeAlias = tuple[tuple[str, str], ...]

MARK = "\x1f"
LOSS_SCOPE = f"{MARK}loss"
UPDATE_SCOPE = f"{MARK}update"
CALL_PREFIX = f"{MARK}call:"
ATTRIBUTE_PREFIX = f"{MARK}attribute:"
LINE_PREFIX = f"{MARK}line:"
# What scopes.partials_type sets, by the names of the driver, and PopLibs' names for it.
PARTIALS_TYPE = "PARTIALS_TYPE"
# Attributes of a feed, and what the calls of the host that serve it are told by them.
PREFETCH_DEPTH, OPTIMISE_LATENCY = "PREFETCH_DEPTH", "OPTIMISE_LATENCY"
FEEDS = {PREFETCH_DEPTH: "prefetch_depth", OPTIMISE_LATENCY: "in_packets"}
PARTIALS = {"F16": "half", "F32": "float"}
SHARD_PREFIX = "ipu_shard_"
HOST_REGION = f"{MARK}host:"  # begins the name of a called function that stays on the host
REMAT_SCOPE = "rematted_computation"
CHECKPOINT = "recomputation_checkpoint"  # what `jax.ad_checkpoint.checkpoint_name` calls a checkpoint

KERAS_LOSS_SCOPE = "compile_loss"  # the scope of losses compiled into a model

LOSS_LAYER = "loss"
METRICS_LAYER = "metrics"
OPTIMIZER_LAYER = "optimizer"


def call_scope(number: int) -> str:
    """The scope that says which call of a shared layer this is, from 1."""
    return f"{CALL_PREFIX}{number}"


def attribute_scope(name: str, value: str) -> str:
    """The scope that sets an attribute for the operations in it."""
    return f"{ATTRIBUTE_PREFIX}{name}={value}"


def line_scope(line: str) -> str:
    """The scope of what a line of the user made, when that is traced later than it was made."""
    return f"{LINE_PREFIX}{line}"


def shard_scope(index: int) -> str:
    """The scope of operations placed on one IPU of several."""
    return f"{SHARD_PREFIX}{index}"


def is_mark(primitive: str, name: object) -> bool:
    """Whether what a primitive names is a checkpoint."""
    return primitive == "name" and str(name or "").startswith(CHECKPOINT)


def attributes_of(stack: Stack) -> dict[str, str]:
    """Attributes set by the scopes of a stack, the innermost winning."""
    marked = [name[len(ATTRIBUTE_PREFIX) :] for kind, name in stack if name.startswith(ATTRIBUTE_PREFIX)]
    return dict(each.split("=", 1) for each in marked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a name stack says: layer path, call number, direction (None where it says nothing), shard (or -1),
    and `source`, the user's line ("" where the stack says nothing).

    `outer_call` is the call of the outermost layer of the path.
    `partials` is the type in which products add up, as PopLibs names it; empty where the options say. `feed`:
    what the feed that is served here says of it, as attributes with numbers.
    """

    layer: str = ""
    call: int = 1
    outer_call: int = 1
    direction: Direction | None = None
    shard: int = -1
    source: str = ""
    partials: str = ""
    feed: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class LayerNames:
    """Which scope names are layers. `classes` maps layer path to Keras class; empty: every scope is a layer."""

    classes: Mapping[str, str]
    leaves: frozenset[str] = field(init=False)
    only: Mapping[str, str] = field(init=False)  # the path of a layer whose name no other has

    def __post_init__(self) -> None:
        self.leaves = frozenset(path.rsplit("/", 1)[-1] for path in self.classes)
        paths = [(path.rsplit("/", 1)[-1], path) for path in self.classes if not self._held_twice(path)]
        count = Counter(leaf for leaf, _ in paths)
        self.only = {leaf: path for leaf, path in paths if count[leaf] == 1}

    def _held_twice(self, path: str) -> bool:
        """Whether it is that of a layer of a Sequential model in the functional one that Keras makes of it."""
        parts = path.split("/")
        for place in range(1, len(parts) - 1):
            holder, made, rest = parts[:place], parts[: place + 1], parts[place + 1 :]
            of = (self.classes.get("/".join(holder)), self.classes.get("/".join(made)))
            if of == ("Sequential", "Functional") and "/".join([*holder, *rest]) in self.classes:
                return True
        return False

    def extend(self, path: str, scope: str) -> str | None:
        """The path one scope deeper, or None when the scope is no layer.

        A layer that is called past the one that holds it has its own path all the same, where its name says which.
        """
        if "->" in scope:  # jax.numpy.einsum names its scope after its subscripts
            return None
        candidate = f"{path}/{scope}" if path else scope
        if not self.classes or candidate in self.classes:
            return candidate
        if not path and scope in self.only:
            return self.only[scope]
        return candidate if scope in self.leaves else None

    def class_of(self, path: str) -> str:
        """Keras class of a layer path; a layer called by one that does not own it is found by its own name."""
        known = self.classes.get(path)
        if known is not None:
            return known
        leaf = path.rsplit("/", 1)[-1]
        if leaf not in self.leaves:
            return ""
        return next(name for key, name in self.classes.items() if key.rsplit("/", 1)[-1] == leaf)


def _scopes(stack: Stack) -> list[str]:
    """The scopes of a stack; a part behind a transform that repeats what came before is read once.

    Transposing a rematerialised or looped body prefixes its equations with the stack they already have.
    """
    merged: list[str] = []
    part: list[str] = []
    for kind, name in (*stack, ("transform", "")):
        if kind == "scope":
            part.append(name)
            continue
        merged = part if part[: len(merged)] == merged else merged + part
        part = []
    return merged


def once(stack: Stack) -> Stack:
    """One equation's own stack, read once when it is the same stack twice."""
    half = len(stack) // 2
    return stack[:half] if half and stack[:half] == stack[half:] else stack


def _direction(stack: Stack) -> Direction | None:
    if ("scope", REMAT_SCOPE) in stack:
        return "recompute"
    if ("scope", UPDATE_SCOPE) in stack:
        return "update"
    if ("transform", "transpose") in stack:
        return "backward"
    return None


def place_of(enclosing: Stack, own: Stack, names: LayerNames) -> Place:
    """Read a stack: `enclosing` is that of the equations around, `own` the equation's."""
    path, call, outer_call, shard, source = "", 1, 1, -1, ""
    for scope in _scopes(enclosing + own):
        if scope == LOSS_SCOPE or (scope == KERAS_LOSS_SCOPE and scope not in names.leaves):
            path, call = LOSS_LAYER, 1
        elif scope.startswith(CALL_PREFIX):
            call = int(scope[len(CALL_PREFIX) :])
            outer_call = outer_call if "/" in path else call
        elif scope.startswith(LINE_PREFIX):
            source = scope[len(LINE_PREFIX) :]
        elif scope.startswith(SHARD_PREFIX) and scope[len(SHARD_PREFIX) :].isdigit():
            shard = int(scope[len(SHARD_PREFIX) :])
        elif scope.startswith(MARK) or scope == REMAT_SCOPE or path == LOSS_LAYER:
            continue
        else:
            deeper = names.extend(path, scope)
            if deeper is not None:
                path, call = deeper, 1
    told = attributes_of(enclosing + own)
    partials, direction = PARTIALS.get(told.get(PARTIALS_TYPE, ""), ""), _direction(enclosing + own)
    feed = tuple((attribute, int(told[name])) for name, attribute in FEEDS.items() if name in told)
    return Place(
        layer=path,
        call=call,
        outer_call=outer_call,
        direction=direction,
        shard=shard,
        source=source,
        partials=partials,
        feed=feed,
    )
