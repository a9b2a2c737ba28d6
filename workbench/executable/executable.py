"""Compile a source for the IPU: what a notebook asks for becomes an `Executable` with a profile and numbers."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.base.collection import paused_collection
from workbench.engine.compile import Clock, Compiled, Phase, compile_graph, measure
from workbench.engine.options import Options
from workbench.engine.passes import PIPELINE
from workbench.engine.passes.shard import shards_of
from workbench.engine.target import Target
from workbench.engine.target import target as find_target
from workbench.errors import InputError, OutOfMemoryError, WorkbenchError
from workbench.executable import cache, disk_cache
from workbench.executable.pipelines import devices_of, recomputation_options, recomputed_source
from workbench.ipu._files.outputs import write
from workbench.ipu.config import current_options, use_emulation
from workbench.ipu.config.config import in_force
from workbench.ipu.devices import check_ipus
from workbench.profiler.advice.kept_trace import keep_trace
from workbench.profiler.collect import collect
from workbench.profiler.fidelity import typical_errors
from workbench.profiler.profile import Profile

if TYPE_CHECKING:
    import pandas as pd

    from workbench.engine.graph import Graph
    from workbench.engine.program import TileProgram

# What `progress` hears, in order; some phases are heard once for each operator.
PHASES = (
    "trace",
    *(each.name for each in PIPELINE),
    "in_place",
    "lower",
    "footprint",
    "liveness",
    "allocate",
    "execute",
)
MODES = (None, "training", "inference")
ACCUMULATION = "pipeline.gradient_accumulation_steps"
EXECUTION = "profile.execution"
NORM_MEMBERS = "norms.experimental.distributed_batch_norm_replica_group_size"
Progress = Callable[[str], None]


def _equal(left: Request, right: Request, name: str) -> bool:
    """Whether a plain field is equal; anything else (models, arrays) is the same only when it is the same object."""
    pair = (getattr(left, name), getattr(right, name))
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
    gradient_accumulation_steps: int = 1
    replicas: int = 1
    trip_counts: Mapping[str, int] | None = None
    configured: bool = False  # by an IPUConfig, given or in force: numbers are an IPU's own where it has others

    def replace(self, **changes: Any) -> Request:
        """The request with some fields changed; `options` may be a table of option values to set.

        The accumulation count is an option too: whichever of the two is changed, both say the same.
        """
        options = changes.pop("options", self.options)
        if isinstance(options, Mapping):
            options = self.options.with_values(options)
        steps = changes.pop("gradient_accumulation_steps", None)
        if steps is not None:
            options = options.with_values({ACCUMULATION: steps})
        elif options.get(ACCUMULATION) != self.options.get(ACCUMULATION):
            steps = options.get(ACCUMULATION)
        else:
            steps = self.gradient_accumulation_steps
        return dataclasses.replace(self, options=options, gradient_accumulation_steps=steps, **changes)

    def same_trace(self, other: Request) -> bool:
        """Whether both requests trace to the same graph: they differ in options and target alone."""
        left = dataclasses.replace(other, options=self.options, target=self.target)
        again = [bool(each.options.get("allow_recompute")) for each in (self, other)]
        if self.stages is None and again[0] != again[1]:  # a stage of its own, or none
            return False
        if self.options.get(NORM_MEMBERS) != other.options.get(NORM_MEMBERS):
            return False
        return all(
            getattr(self, each.name) is getattr(left, each.name) or _equal(self, left, each.name)
            for each in dataclasses.fields(self)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The profile an earlier session kept of equal content, and how to compile when more than the profile is asked."""

    profile: Profile
    phases: tuple[Phase, ...]
    compile: Callable[[], Compiled]


class Executable:
    """A compiled source. `.graph`, `.program`, `.profile`, `.passes`, `.run`; `.request` says what was asked.

    `key` is the content's, under which the profile is kept for later sessions; "" keeps nothing.
    """

    def __init__(self, request: Request, compiled: Compiled | Kept, traced: Any = None, key: str = "") -> None:
        self.request = request
        self._result = compiled
        self._traced = traced
        self._key = key

    @cached_property
    def compiled(self) -> Compiled:
        """Everything the compiler knows; compiled now when an earlier session's profile was enough so far."""
        return self._result.compile() if isinstance(self._result, Kept) else self._result

    @property
    def graph(self) -> Graph:
        """The graph after all graph passes."""
        return self.compiled.graph

    @property
    def program(self) -> TileProgram:
        """The tile program."""
        return self.compiled.program

    @cached_property
    def profile(self) -> Profile:
        """What the compiler knows, as data."""
        if isinstance(self._result, Kept):
            return self._result.profile
        found = keep_trace(collect(self._result, typical_errors()), self.request.options.get(EXECUTION))
        if self._key and cache.on_disk():
            disk_cache.keep(self._key, found)
        return found

    @property
    def passes(self) -> pd.DataFrame:
        """A row per phase: `phase`, `seconds`, `changed`; `"trace"` first."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(phase) for phase in self._result.phases])

    @cached_property
    def _runner(self) -> Any:
        if self._traced is None:
            raise InputError("a program made by hand is run with its graph", todo="call graph.run(program)")
        from workbench.engine.run import Runner
        from workbench.ipu._numbers import Numbers

        options = self.request.options
        source = recomputed_source(self._traced, options)
        runner = Runner(source, schedule=str(options.get("pipeline.schedule")), devices=devices_of(options))
        return Numbers(runner, options, self.request.configured)

    def run(self, *args: Any, sample_weight: Any = None) -> Any:
        """One call of the program, with numbers from XLA on the host.

        Training: `run(x, y, sample_weight=None)` returns a dict of loss and metrics and advances the model; inference:
        `run(x)` returns the outputs; a function: `run(*args)`. Raises `OutOfMemoryError` when the program does not
        fit; with `TF_POPLAR_FLAGS=--use_ipu_model` it warns and runs, as the SDK's model of the IPU does.
        """
        profile = self.profile
        if not profile.fits:
            problem = OutOfMemoryError(
                tile=profile.peak.tile,
                step=profile.peak.step,
                bytes_used=profile.max_tile_bytes,
                bytes_available=self.request.target.bytes_per_tile,
            )
            if not use_emulation():
                raise problem
            import warnings

            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
        return self._runner.run(*args, sample_weight=sample_weight)

    def __repr__(self) -> str:
        return f"<executable {self.profile.name}: {self.profile.summary.sentence}>"


def find_source(request: Request) -> Any:
    """Trace the request's source: a Keras model or builder, a ready name, or a JAX function with inputs."""
    from workbench.engine.frontends.functions import trace_function
    from workbench.engine.frontends.keras import trace_keras
    from workbench.engine.frontends.ready import ReadyModel

    source = request.source
    if hasattr(source, "trace_source"):
        return source.trace_source()
    is_model = isinstance(source, str | ReadyModel) or hasattr(source, "stateless_call")
    if not is_model and not callable(source):
        raise InputError(
            f"{source!r} cannot be compiled",
            expected="a Keras model, a function that builds one, a ready name, a JAX function with inputs, or tiles",
        )
    if not is_model and request.inputs:
        return trace_function(source, *request.inputs, batch_size=request.batch_size or 1, replicas=request.replicas)
    return trace_keras(
        source,
        request.batch_size,
        request.mode,
        optimizer=request.optimizer,
        loss=request.loss,
        precision=request.precision,
        stages=request.stages,
        gradient_accumulation_steps=request.gradient_accumulation_steps,
        replicas=request.replicas,
        norm_members=int(request.options.get(NORM_MEMBERS)),
        one_stage=bool(request.options.get("allow_recompute")),
        inputs=request.inputs,
    )


def layered_source(name: str, input_shape: Sequence[int], layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Any:
    """A source that builds a Sequential model of these layers: (class in `keras.layers`, its arguments) each."""
    from workbench.engine.frontends.ready.layered import layered

    return layered(name, input_shape, layers)


@paused_collection()
def compile_request(request: Request, progress: Progress | None = None, like: Executable | None = None) -> Executable:
    """Trace and compile; an exception raised by `progress` stops the compile with nothing kept.

    `like`: an executable whose trace, and graph after the passes, are taken where the request asks for the same ones.
    """
    listener = progress or (lambda phase: None)
    if hasattr(request.source, "compile_program"):
        clock = Clock(listener)
        with clock.phase("trace"):
            prefetched = bool(request.options.get("optimizations.prefetch_data_streams"))
            program = request.source.compile_program(prefetched=prefetched)
        return Executable(request, measure(program, request.options, clock))
    listener("trace")
    start = time.perf_counter()
    reused = like._traced if like is not None and request.same_trace(like.request) else None
    traced = reused or find_source(request)
    changed = _trace_text(traced.graph) + (", traced before" if reused else "")
    phase = Phase(phase="trace", seconds=time.perf_counter() - start, changed=changed)
    graph = recomputed_source(traced, request.options).graph
    earlier = like._result if like is not None and isinstance(like._result, Compiled) else None
    compiled, key = _compiled(request, graph, listener, earlier)
    return Executable(request, dataclasses.replace(compiled, phases=(phase, *compiled.phases)), traced, key)


def compile_and_write(request: Request, progress: Progress | None = None) -> Executable:
    """Compile, and write the report and the executable that options or `POPLAR_ENGINE_OPTIONS` ask for, to disk."""
    executable = compile_request(request, progress)
    write(executable)
    return executable


def compile_traced(source: Any, options: Options, *, replicas: int) -> Executable:
    """Compile what has a `trace_source`, with these options; what they ask for is written."""
    return compile_and_write(make_request(source, replicas=replicas).replace(options=options))


def _compiled(request: Request, graph: Graph, listener: Progress, like: Compiled | None) -> tuple[Compiled | Kept, str]:
    """The graph compiled, or what a cache kept of the same content; and the content's key."""
    ipus = _ipus(request, graph)
    fresh: list[Compiled] = []

    def compile_now() -> Compiled:
        fresh.append(compile_graph(graph, request.target, request.options, ipus=ipus, progress=listener, like=like))
        return fresh[0]

    if not cache.enabled():
        return compile_now(), ""
    start = time.perf_counter()
    key = cache.key_of(graph, request.options, request.target, ipus)
    if not cache.holds(key) and cache.on_disk():
        earlier = disk_cache.find(key)
        if earlier is not None:
            row = _found_row(start, "the profile an earlier session kept of equal content")
            return Kept(profile=earlier, phases=row, compile=lambda: cache.cached(key, compile_now)), key
    found = cache.cached(key, compile_now)
    if fresh:
        return found, key
    return dataclasses.replace(found, phases=_found_row(start, "the result of an equal compile")), key


def _found_row(start: float, changed: str) -> tuple[Phase, ...]:
    return (Phase(phase="cache", seconds=time.perf_counter() - start, changed=changed),)


def _trace_text(graph: Graph) -> str:
    return f"{sum(len(function.nodes) for function in graph.functions.values())} nodes"


def _ipus(request: Request, graph: Graph) -> int:
    """IPUs of one replica: one per stage, or as many as the stages are mapped to."""
    stages = max(int(str(graph.meta.get("stages", 1))), shards_of(graph))
    needed = max(devices_of(request.options), default=stages - 1) + 1
    asked, every = request.options.ipus(), needed * request.replicas
    if asked and asked != every:
        fits = f"replicas={asked // needed}" if asked % needed == 0 else f"a multiple of {needed} IPUs"
        raise InputError(
            f"the configuration selects {asked} IPUs, but {stages} stages on {request.replicas} replicas need {every}",
            expected=f"{every} IPUs, or {fits}",
            todo=f"set config.auto_select_ipus = {every}",
        )
    check_ipus(every, request.target, what=f"{stages} stages on {request.replicas} replicas")
    return needed


@paused_collection()
def make_request(
    source: Any,
    *inputs: Any,
    config: Any = None,
    target: str | Target | None = None,
    mode: str | None = None,
    batch_size: int | None = None,
    pipeline_schedule: Any = None,
    device_mapping: Sequence[int] | None = None,
    gradient_accumulation_steps: int | None = None,
    recomputation: Any = None,
    recomputation_checkpoints: Sequence[str] = (),
    offload: tuple[str, ...] = (),
    execution_profile: Any = None,
    **more: Any,
) -> Request:
    """Check the arguments of `wb.compile` and freeze them."""
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}", expected="'training', 'inference' or None")
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise InputError(f"batch_size is {batch_size!r}", expected="a whole number of at least 1")
    options = current_options() if config is None else config.freeze()
    if pipeline_schedule is not None:
        options = options.with_values({"pipeline.schedule": getattr(pipeline_schedule, "name", pipeline_schedule)})
    if device_mapping is not None:
        options = options.with_values({"pipeline.device_mapping": tuple(device_mapping)})
    if gradient_accumulation_steps is not None:
        options = options.with_values({ACCUMULATION: gradient_accumulation_steps})
    options = options.with_values(_offloaded(offload))
    if execution_profile is not None:
        options = options.with_values({EXECUTION: getattr(execution_profile, "name", execution_profile)})
    if recomputation is not None:
        options = options.with_values(recomputation_options(recomputation))
    if recomputation_checkpoints:
        options = options.with_values({"pipeline.recomputation_checkpoints": tuple(recomputation_checkpoints)})
    return Request(
        source=source,
        inputs=inputs,
        options=options,
        target=resolve_target(target, options, source),
        mode=mode,
        batch_size=batch_size,
        gradient_accumulation_steps=int(options.get(ACCUMULATION)),
        configured=config is not None or in_force() is not None,
        **more,
    )


OFFLOAD = {
    "weights": "pipeline.offload_weights",
    "activations": "pipeline.offload_activations",
    "optimizer_state": "pipeline.offload_weight_update_variables",
    "gradient_accumulation_buffers": "pipeline.offload_gradient_accumulation_buffers",
    "optimizer_state_to_replicas": "pipeline.optimizer_state_sharding",
}


def _offloaded(offload: Sequence[str]) -> dict[str, bool]:
    """The options that `offload` sets."""
    wanted = (offload,) if isinstance(offload, str) else tuple(offload)
    for each in wanted:
        if each not in OFFLOAD:
            raise InputError(f"offload names {each!r}", expected=f"any of: {', '.join(OFFLOAD)}")
    return {OFFLOAD[each]: True for each in wanted}


def resolve_target(wanted: str | Target | None, options: Options, source: Any = None) -> Target:
    """The target asked for, else the one of a hand-made program, else the one the options describe."""
    if isinstance(wanted, Target):
        return wanted
    own = getattr(source, "target", None)
    if wanted is None and isinstance(own, Target):
        return own
    tiles = int(options.get("ipu_model.tiles_per_ipu"))
    return find_target(wanted or str(options.get("ipu_model.version")), tiles_per_ipu=tiles)


__all__ = ["Executable", "Request", "WorkbenchError", "compile_request", "find_source", "make_request"]
