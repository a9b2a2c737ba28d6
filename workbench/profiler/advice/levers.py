"""Levers against too much memory, each a rule that reads a profile and proposes changes with an estimate.

An estimate starts from the variables live on the fullest tile at its peak and takes away what the change frees there;
it is a first guess that ranks what to try, and only a compile says what a change really does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench.base.registry import Registry

if TYPE_CHECKING:
    import pandas as pd

    from workbench.profiler.profile import Profile

GROUPS = ("matmuls", "convolutions")
PROPORTION = "{}.poplar_options.availableMemoryProportion"
PARTIALS = "{}.poplar_options.partialsType"
LOWER_PROPORTIONS = (0.4, 0.2, 0.1, 0.05)
HIGHER_PROPORTIONS = (0.8, 1.0)
BY_BATCH = ("activation", "input", "temporary", "stash")
DEFAULT = ("available_memory", "half_partials", "micro_batch")
_FLOAT_BYTES = 4  # gradients of one weight update are added in float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to try: option values by dotted name, arguments of a compile, and the bytes it should leave.

    `estimated_bytes` is the fullest tile after the change, by the lever's estimate; `note` what else it changes;
    `scale` what is left of a size that bytes depend on (half a batch: 0.5), 0 where there is none.
    """

    lever: str
    title: str
    options: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[tuple[str, Any], ...] = ()
    estimated_bytes: int
    note: str = ""
    scale: float = 0.0

    def applied(self, request: Any) -> Any:
        """The request with this change."""
        return request.replace(options=dict(self.options), **dict(self.arguments))

    def joined(self, other: Change, base_bytes: int) -> Change:
        """Both changes at once; the savings of both are taken from `base_bytes`."""
        return Change(
            lever=f"{self.lever}+{other.lever}",
            title=f"{self.title}, with {other.title}",
            options=self.options + other.options,
            arguments=self.arguments + other.arguments,
            estimated_bytes=max(0, self.estimated_bytes + other.estimated_bytes - base_bytes),
            note=" ".join(note for note in (self.note, other.note) if note),
        )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What levers see: the profile, whether something is to be freed or made faster, and fixed inputs.

    `fixed_inputs`: the arrays of the compile were given by the caller, so the batch size cannot change.
    """

    profile: Profile
    fixed_inputs: bool = False

    @property
    def mode(self) -> str:
        """`"training"`, `"inference"` or `"function"`."""
        return str(self.profile.meta["mode"])

    @property
    def batch_size(self) -> int:
        """Samples of a micro-batch."""
        return int(self.profile.meta["batch_size"] or 0)

    @property
    def accumulation(self) -> int:
        """Micro-batches of one call."""
        samples = int(self.profile.meta.get("samples_per_call") or 0)
        one = self.batch_size * int(self.profile.meta["replicas"])
        return max(1, samples // one) if one else 1

    @cached_property
    def passing(self) -> pd.DataFrame:
        """The variables live on the fullest tile at its peak that come and go, with their bytes there."""
        peak = self.profile.peak
        live = self.profile.live_variables(peak.step, peak.ipu, peak.tile)
        return live[~live["always_live"]]

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operators of the program by name."""
        return frozenset(str(name) for name in self.profile.column("operators", "op"))

    @property
    def by_hand(self) -> bool:
        """Whether the program was made by hand: no operator was lowered."""
        return not self.operators

    @property
    def plans(self) -> bool:
        """Whether the program has products, whose plans keep to a share of a tile's memory."""
        return any(name in op for op in self.operators for name in ("dot", "matmul", "conv"))

    @property
    def proportions(self) -> list[float]:
        """The shares of a tile's memory that plans keep to."""
        return _present(self.profile, PROPORTION, 0.0)

    @property
    def can_recompute(self) -> bool:
        """Whether activations are kept that could be computed again: stages one after the other have no need to."""
        config = self.profile.config
        sequential = self.profile.ipus > 1 and str(config.get("pipeline.schedule")).endswith("Sequential")
        return self.mode == "training" and not config.get("allow_recompute") and not sequential

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len({str(name) for name in self.profile.column("operators", "layer")} - {""})

    def has_half(self) -> bool:
        """Whether any variable is in half precision."""
        return bool((self.profile.column("variables", "dtype") == "float16").any())

    def left(self, saved_bytes: float) -> int:
        """Bytes of the fullest tile after saving some of what comes and goes."""
        return max(0, self.profile.max_tile_bytes - max(0, int(saved_bytes)))


Proposal: TypeAlias = tuple[tuple[Change, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A named rule. `propose` gives changes to try, the mildest first, and why there are none where there are none."""

    name: str
    title: str
    propose: Callable[[Situation], Proposal]


LEVERS: Registry[Lever] = Registry("lever")


def _set_in_groups(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((name.format(group), value) for group in GROUPS)


def _present(profile: Profile, name: str, kind: Any) -> list[Any]:
    """The values of an option in each group that the profile knows, in the type of `kind`."""
    found = [profile.config.get(name.format(group)) for group in GROUPS]
    several = [value if isinstance(value, list | tuple) else (value,) for value in found if value is not None]
    return [type(kind)(value) for values in several for value in values] or [kind]


def available_memory(situation: Situation) -> Proposal:
    """Plans of matmuls and convolutions under another share of a tile's memory.

    Estimate: temporaries live at the peak shrink to the share of the tile that plans may take.
    """
    profile = situation.profile
    if not situation.plans:
        return (), "no matmul or convolution is planned in this program"
    present = situation.proportions
    shares = (
        [share for share in HIGHER_PROPORTIONS if share > min(present)]
        if profile.fits
        else [share for share in LOWER_PROPORTIONS if share < max(present)]
    )
    passing, limit = situation.passing, int(profile.target["bytes_per_tile"])
    temporary = int(passing["bytes"][passing["kind"] == "temporary"].sum())
    changes = tuple(
        Change(
            lever="available_memory",
            title=f"availableMemoryProportion {share:g} for matmuls and convolutions",
            options=_set_in_groups(PROPORTION, share),
            estimated_bytes=situation.left(temporary - share * limit),
        )
        for share in shares
    )
    return changes, "" if changes else f"availableMemoryProportion is already {present[0]:g}"


def half_partials(situation: Situation) -> Proposal:
    """Sums of half-precision matmuls and convolutions kept in half.

    Estimate: float temporaries live at the peak take half their bytes.
    """
    if all(value == "half" for value in _present(situation.profile, PARTIALS, "")):
        return (), "partials are half already"
    if not situation.has_half():
        return (), "half partials need half inputs, and nothing here is in half precision"
    passing = situation.passing
    wide = passing[(passing["kind"] == "temporary") & (passing["dtype"] == "float32")]
    change = Change(
        lever="half_partials",
        title="half partials for matmuls and convolutions",
        options=_set_in_groups(PARTIALS, "half"),
        estimated_bytes=situation.left(int(wide["bytes"].sum()) / 2),
        note="Sums in half precision lose accuracy.",
    )
    return (change,), ""


def micro_batch(situation: Situation) -> Proposal:
    """A smaller micro-batch; in training with as many more micro-batches, so that a weight update sees as much.

    Estimate: activations, inputs and temporaries live at the peak shrink in proportion, as do gradients with the batch
    as their first dimension; the first accumulation adds a float accumulator for each parameter.
    """
    batch, steps = situation.batch_size, situation.accumulation
    if situation.mode not in ("training", "inference") or situation.fixed_inputs or not batch:
        return (), "the batch size is given by the inputs"
    if situation.profile.fits:
        return _larger_batch(situation)
    factors = [2**power for power in range(1, batch.bit_length()) if batch % 2**power == 0]
    if not factors:
        return (), f"a batch of {batch} cannot be halved"
    changes = tuple(_batch_change(situation, batch // factor, steps * factor) for factor in factors)
    return changes, ""


def _larger_batch(situation: Situation) -> Proposal:
    if situation.mode == "training" and situation.accumulation % 2 == 0:
        return (_batch_change(situation, situation.batch_size * 2, situation.accumulation // 2),), ""
    return (), "there are no micro-batches to put together"


def _batch_change(situation: Situation, batch: int, steps: int) -> Change:
    factor = situation.batch_size / batch
    passing = situation.passing
    by_batch = [
        kind in BY_BATCH or _first(str(shape)) == situation.batch_size
        for kind, shape in zip(passing["kind"], passing["shape"], strict=True)
    ]
    saved = int(passing["bytes"][by_batch].sum()) * (1 - 1 / factor)
    arguments: dict[str, int] = {"batch_size": batch}
    title = f"a batch of {batch} instead of {situation.batch_size}"
    if situation.mode == "training":
        arguments["gradient_accumulation_steps"] = steps
        title = f"micro-batches of {batch}, {steps} to a weight update"
        if situation.accumulation == 1:
            saved -= _parameter_elements(situation.profile) * _FLOAT_BYTES
    return Change(
        lever="micro_batch",
        title=title,
        arguments=tuple(arguments.items()),
        estimated_bytes=max(0, situation.profile.max_tile_bytes - int(saved)),
        note=_batch_note(situation),
        scale=1 / factor,
    )


def _first(shape: str) -> int:
    found = re.match(r"\((\d+)", shape)
    return int(found.group(1)) if found else 0


def _parameter_elements(profile: Profile) -> int:
    """Elements of parameters on the fullest tile."""
    variables, peak = profile.tables["variables"], profile.peak
    mine = (variables["kind"] == "parameter") & (variables["ipu"] == peak.ipu)
    size = profile.arrays["per_tile"][variables["bytes_index"][mine], peak.tile]
    item = [2 if dtype == "float16" else _FLOAT_BYTES for dtype in variables["dtype"][mine]]
    return sum(int(count) // width for count, width in zip(size, item, strict=True))


def _batch_note(situation: Situation) -> str:
    names = situation.profile.column("variables", "name")
    if situation.mode == "training" and any("moving_mean" in str(name) for name in names):
        return "Batch normalisation then sees the statistics of each smaller micro-batch."
    return ""


def half_precision(situation: Situation) -> Proposal:
    """The whole model in float16. Estimate: float variables live at the peak take half their bytes."""
    if situation.mode not in ("training", "inference"):
        return (), "the types are given by the inputs"
    if situation.has_half():
        return (), "the model is in half precision already"
    passing = situation.passing
    wide = int(passing["bytes"][passing["dtype"] == "float32"].sum())
    change = Change(
        lever="half_precision",
        title="the model in float16",
        arguments=(("precision", "float16"),),
        estimated_bytes=situation.left(wide / 2),
        note="Everything is computed in half precision.",
    )
    return (change,), ""


_TITLES: Mapping[str, tuple[str, Callable[[Situation], Proposal]]] = {
    "available_memory": ("less memory for the plans of matmuls and convolutions", available_memory),
    "half_partials": ("half partials", half_partials),
    "micro_batch": ("smaller micro-batches", micro_batch),
    "half_precision": ("half precision", half_precision),
}
for _name, (_title, _propose) in _TITLES.items():
    LEVERS.add(_name, Lever(name=_name, title=_title, propose=_propose))
