"""What is asked of a compile: the arguments of `wb.compile`, checked and frozen."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.base.collection import paused_collection
from workbench.base.text import literal, short
from workbench.engine.options import Options
from workbench.engine.pipeline_schedule import check_count
from workbench.engine.target import Target, targets
from workbench.engine.target import target as find_target
from workbench.errors import InputError, OptionValueError
from workbench.executable.pipelines import chosen, offload_options, recomputation_options
from workbench.executable.values import check_names, checked, given, several_inputs
from workbench.ipu.config import current_options
from workbench.ipu.config.config import in_force

ACCUMULATION = "pipeline.gradient_accumulation_steps"
EXECUTION = "profile.execution"
OVERLAPPED = "io_tiles.place_ops_on_io_tiles"
NORM_MEMBERS = "norms.experimental.distributed_batch_norm_replica_group_size"
READ_BY_TRACES = (ACCUMULATION, NORM_MEMBERS)


def _equal(left: Request, right: Request, name: str) -> bool:
    """Whether a plain field is equal; anything else (models, arrays) is the same only when it is the same object."""
    pair = (getattr(left, name), getattr(right, name))
    if all(isinstance(each, tuple) for each in pair):  # inputs that were given in two lists
        return len(pair[0]) == len(pair[1]) and all(map(operator.is_, *pair))
    return all(isinstance(each, int | str | bool) for each in pair) and pair[0] == pair[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; `replace` makes the same request with something changed, as diagnosis and sweeps do."""

    source: Any
    inputs: tuple[Any, ...] = ()
    options: Options = field(default_factory=Options)
    target: Target
    mode: str | None = None
    batch_size: int | None = None
    optimizer: Any = None
    loss: Any = None
    precision: str | None = None
    stages: Any = None
    replicas: int = 1
    trip_counts: Mapping[str, int] | None = None
    given: frozenset[str] = frozenset()  # arguments that a user asked for; a changed request asks for nothing more
    configured: bool = False  # by an IPUConfig, given or in force: numbers are an IPU's own where it has others

    @property
    def gradient_accumulation_steps(self) -> int:
        """Micro-batches of a weight update, as the options say."""
        return int(self.options.get(ACCUMULATION))

    def replace(
        self,
        *,
        options: Options | Mapping[str, Any] | None = None,
        gradient_accumulation_steps: int | None = None,
        **changes: Any,
    ) -> Request:
        """The request with some fields changed; `options` may be a table of option values to set."""
        if not isinstance(options, Options):
            options = self.options if options is None else self.options.with_values(options)
        if gradient_accumulation_steps is not None:
            options = options.with_values({ACCUMULATION: gradient_accumulation_steps})
        return dataclasses.replace(self, options=options, given=frozenset(), **changes)

    def same_trace(self, other: Request) -> bool:
        """Whether both requests trace to the same graph: they differ in the target and options that no trace reads."""
        left = dataclasses.replace(other, options=self.options, target=self.target, given=self.given)
        if any(self.options.get(name) != other.options.get(name) for name in READ_BY_TRACES):
            return False
        return all(
            getattr(self, each.name) is getattr(left, each.name) or _equal(self, left, each.name)
            for each in dataclasses.fields(self)
        )

    def takes(
        self, micro_batches: int, devices: Sequence[int], *, training: bool, overlapped: bool | None = None
    ) -> bool:
        """Whether the schedule takes so many micro-batches of a call, with stages on these IPUs.

        `overlapped`: with copies of the host beside compute, or without; as the options say where it is None.
        """
        schedule = self.options.get("pipeline.schedule")
        overlapped = self.options.get(OVERLAPPED) if overlapped is None else overlapped
        try:
            check_count(
                str(schedule),
                len(devices),
                micro_batches,
                training=training,
                devices=devices,
                overlapped_io=bool(overlapped),
            )
        except InputError:
            return False
        return True

    @property
    def target_text(self) -> str:
        """How a call asks for the target, as source: its name, `wb.target(...)` with fewer tiles, or the variable
        `target` for one of the user's own; empty where the options or the program describe it."""
        if self.target == resolve_target(None, self.options, self.source):
            return ""
        known = targets.get(self.target.name)
        if known == self.target:
            return literal(known.name)
        tiles = self.target.tiles_per_ipu
        if known is not None and dataclasses.replace(known, tiles_per_ipu=tiles) == self.target:
            return f"wb.target({literal(known.name)}, tiles_per_ipu={tiles})"
        return "target"


@paused_collection()
def make_request(source: Any, *inputs: Any, config: Any = None, target: Any = None, **more: Any) -> Request:
    """Check the arguments of `wb.compile` and freeze them; those it has and are not here keep their defaults.

    `inputs` may be given by name too, as a list of them. Errors: `InputError` or `OptionError` for an argument that
    `wb.compile` does not have, or a value of no use.
    """
    inputs = inputs or several_inputs(more.get("inputs"))
    more.pop("inputs", None)
    check_names("wb.compile", more, ARGUMENTS)
    if more.get("device_mapping") is None and getattr(more.get("stages"), "device_mapping", None) is not None:
        more["device_mapping"] = more["stages"].device_mapping  # a split knows where its stages are
    asked = checked(more)
    options = options_of(config).with_values(_written(asked))
    found = resolve_target(target, options, source)
    own = getattr(source, "target", None)
    if target is not None and isinstance(own, Target) and found != own:
        raise InputError(
            f"target is {short(target)}, and the program was made for {own.name!r} with {own.tiles_per_ipu} tiles",
            expected="the target of the program's own graph",
            todo="give the target to wb.tiles.Graph, or leave target out",
        )
    return Request(
        source=source,
        inputs=inputs,
        options=options,
        target=found,
        given=given({**asked, "inputs": inputs}),
        configured=config is not None or in_force() is not None,
        **{name: asked[name] for name in FIELDS if asked.get(name) is not None},
    )


def options_of(config: Any) -> Options:
    """The options of a configuration; of the one in force where none is given."""
    if config is None:
        return current_options()
    if isinstance(config, type) or not callable(getattr(config, "freeze", None)):
        raise OptionValueError(
            f"config is {config!r}",
            expected="an ipu.config.IPUConfig",
            todo="write config = wb.ipu.config.IPUConfig(), set its options as attributes, and give config=config",
        )
    options: Options = config.freeze()
    return options


FIELDS = ("mode", "batch_size", "optimizer", "loss", "precision", "stages", "replicas", "trip_counts")


def _written(more: Mapping[str, Any]) -> dict[str, Any]:
    """The options that arguments write."""
    found: dict[str, Any] = {}
    for name, option in OPTIONS_OF.items():
        if more.get(name) is not None:
            found[option] = chosen(name, option, more[name])
    if more.get("device_mapping") is not None:
        found["pipeline.device_mapping"] = more["device_mapping"]
    if more.get("recomputation_checkpoints"):
        found["pipeline.recomputation_checkpoints"] = more["recomputation_checkpoints"]
    if more.get("recomputation") is not None:
        found |= recomputation_options(more["recomputation"])
    offload = more.get("offload")
    return found | offload_options(() if offload is None else offload)


ARGUMENTS = (
    *FIELDS,
    "pipeline_schedule",
    "device_mapping",
    "gradient_accumulation_steps",
    "recomputation",
    "recomputation_checkpoints",
    "offload",
    "execution_profile",
)
AS_TEXT = (*ARGUMENTS, "target")  # what a command line can give
VARIED = (*AS_TEXT, "config", "inputs")  # what can differ from compile to compile of one source
OPTIONS_OF = {
    "pipeline_schedule": "pipeline.schedule",
    "gradient_accumulation_steps": ACCUMULATION,
    "execution_profile": EXECUTION,
}


def resolve_target(wanted: str | Target | None, options: Options, source: Any = None) -> Target:
    """The target asked for, else the one of a hand-made program, else the one the options describe."""
    if isinstance(wanted, Target):
        return wanted
    own = getattr(source, "target", None)
    if wanted is None and isinstance(own, Target):
        return own
    if wanted is not None and not isinstance(wanted, str):
        raise InputError(
            f"target is {wanted!r}", expected="a name in wb.targets or a Target", todo="write target=wb.target('ipu2')"
        )
    tiles = int(options.get("ipu_model.tiles_per_ipu"))
    return find_target(str(options.get("ipu_model.version")) if wanted is None else wanted, tiles_per_ipu=tiles)


__all__ = ["EXECUTION", "NORM_MEMBERS", "Request", "make_request", "options_of", "resolve_target"]
