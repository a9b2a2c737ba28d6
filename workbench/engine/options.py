"""Every option of a compile, declared once: name, default, type, doc, what it changes and the module that reads it.

Names are the dotted paths of `IPUConfig` (API reference of `tensorflow.python.ipu.config`); a key
of a `poplar_options` dictionary is one level deeper. `effect` says what an option does here: `"modelled"` changes
memory or time, `"numeric"` changes results or stops the run, `"recorded"` is kept and shown with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workbench.engine.cost import Plain, freeze
from workbench.errors import OptionError
from workbench.registry import Registry

Effect = Literal["modelled", "numeric", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. `choices` lists allowed values, `minimum`/`maximum` bound a number; `reason` is for recorded ones."""

    name: str
    default: Plain
    type: type
    doc: str
    effect: Effect = "modelled"
    read_by: str = ""
    choices: tuple[Plain, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    reason: str = ""
    form_label: str = ""  # shown in the app's form when set

    def check(self, value: Any) -> Plain:
        """The value in its frozen form, or an `OptionError` naming the option."""
        if self.type is float and isinstance(value, int | str) and not isinstance(value, bool):
            value = _number(self.name, value)
        if self.type is int and isinstance(value, bool):
            raise OptionError(f"{self.name} is {value!r}", expected="an integer")
        if value is not None and not isinstance(value, self.type):
            raise OptionError(f"{self.name} is {value!r}", expected=f"a value of type {self.type.__name__}")
        if self.choices and value not in self.choices:
            raise OptionError(f"{self.name} is {value!r}", expected=f"one of: {', '.join(map(repr, self.choices))}")
        too_low = self.minimum is not None and value is not None and value < self.minimum
        too_high = self.maximum is not None and value is not None and value > self.maximum
        if too_low or too_high:
            raise OptionError(f"{self.name} is {value!r}", expected=f"{self.minimum} to {self.maximum}")
        return freeze(value)


def _number(name: str, value: int | str) -> float:
    try:
        return float(value)
    except ValueError:
        raise OptionError(f"{name} is {value!r}", expected="a number") from None


OPTIONS: Registry[Option] = Registry("option")


def option(name: str, default: Plain, type_: type, doc: str, **more: Any) -> Option:
    """Declare an option."""
    return OPTIONS.add(name, Option(name=name, default=default, type=type_, doc=doc, **more))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one compile, frozen: values that differ from the default, by name."""

    changed: tuple[tuple[str, Plain], ...] = ()

    def get(self, name: str) -> Any:
        """The value of an option."""
        for key, value in self.changed:
            if key == name:
                return value
        return OPTIONS.get(name).default

    def with_values(self, values: Mapping[str, Any]) -> Options:
        """New options with some values set; each is checked."""
        merged = dict(self.changed)
        for name, value in values.items():
            declared = OPTIONS.get(name)
            frozen = declared.check(value)
            if frozen == declared.default:
                merged.pop(name, None)
            else:
                merged[name] = frozen
        return Options(tuple(sorted(merged.items(), key=lambda pair: pair[0])))

    def __iter__(self) -> Iterator[tuple[str, Plain]]:
        return iter((name, self.get(name)) for name in OPTIONS)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.changed) or "defaults"


def options(values: Mapping[str, Any] | None = None) -> Options:
    """Options with these values and the defaults for the rest."""
    return Options().with_values(values or {})


_PARTIALS = ("float", "half")
for _group, _label in (("matmuls", "matmul"), ("convolutions", "convolution")):
    option(
        f"{_group}.poplar_options.availableMemoryProportion",
        0.6,
        float,
        f"Share of a tile's memory that the plan of one {_label} may take for temporaries; 0 asks for the least. "
        "PopLibs' default is 0.6.",
        read_by="engine/planner",
        minimum=0.0,
        maximum=10.0,
        form_label=f"availableMemoryProportion ({_group})",
    )
    option(
        f"{_group}.poplar_options.partialsType",
        "float",
        str,
        f"Type in which a {_label} accumulates: half doubles the rate of half inputs and halves the partials.",
        read_by="engine/planner",
        choices=_PARTIALS,
        form_label=f"partialsType ({_group})",
    )
    option(
        f"{_group}.poplar_options.use128BitConvUnitLoad",
        False,
        bool,
        "Load the weights of the matrix unit 16 bytes a cycle; they must lie in interleaved memory.",
        read_by="engine/planner",
    )
    option(
        f"{_group}.poplar_options.enableMultiStageReduce",
        True,
        bool,
        "Reduce deep partials in several exchanges.",
        read_by="engine/planner",
    )
option(
    "optimizations.outline",
    True,
    bool,
    "Keep repeated operators once and call them; trades copies of arguments for code.",
    read_by="engine/passes/outline.py",
    form_label="outlining",
)
option(
    "ipu_model.tiles_per_ipu",
    0,
    int,
    "Tiles of one IPU; 0 means all of them.",
    read_by="engine/compile.py",
    minimum=0,
    maximum=1472,
    form_label="tiles per IPU",
)
option(
    "ipu_model.version",
    "ipu2",
    str,
    "Which IPU is modelled.",
    read_by="engine/compile.py",
    choices=("ipu1", "ipu2", "bow", "ipu21"),
    form_label="IPU version",
)
option(
    "ipu_model.compile_ipu_code",
    True,
    bool,
    "Count code (vertex, control and exchange code) in memory.",
    read_by="engine/footprint.py",
    form_label="count code",
)
option(
    "auto_select_ipus",
    0,
    int,
    "How many IPUs; 0 means as many as stages times replicas need.",
    read_by="api.py",
    minimum=0,
    maximum=64,
    form_label="IPUs",
)
option(
    "pipeline.schedule",
    "Grouped",
    str,
    "Order in which the stages of a pipeline run.",
    read_by="engine/passes/pipeline.py",
    choices=("Grouped", "Interleaved", "Sequential"),
    form_label="pipeline schedule",
)
option(
    "pipeline.gradient_accumulation_steps",
    1,
    int,
    "Micro-batches whose gradients are added before one weight update.",
    read_by="engine/frontends",
    minimum=1,
    form_label="gradient accumulation",
)
option(
    "floating_point_behaviour.esr",
    "off",
    str,
    "Stochastic rounding of half-precision results.",
    effect="numeric",
    read_by="engine/run.py",
    choices=("off", "on", "replica_identical_only"),
)
