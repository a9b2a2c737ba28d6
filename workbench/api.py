"""The few calls of a notebook: `wb.compile`, `wb.profile`, `wb.views`, `wb.diagnose` and their friends."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from workbench.base.checked import bound, checked
from workbench.engine.target import Target, target, targets
from workbench.errors import InputError
from workbench.executable import Executable, Progress, compile_and_write, compile_request, make_request
from workbench.executable.compile import check_progress
from workbench.executable.sources import check_layered, check_source, made_by_hand
from workbench.executable.values import BY_PLACE, WAYS, check_names, several_inputs
from workbench.profiler.advice.compare import Comparison, compare
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile


@functools.partial(bound, todo=BY_PLACE.format(call="wb.compile"), ways=WAYS)
def compile(
    source: Any,
    *inputs: Any,
    config: Any = None,
    target: str | Target | None = None,
    mode: str | None = None,
    batch_size: int | None = None,
    optimizer: Any = None,
    loss: Any = None,
    precision: str | None = None,
    stages: Any = None,
    pipeline_schedule: Any = None,
    device_mapping: list[int] | None = None,
    gradient_accumulation_steps: int | None = None,
    replicas: int = 1,
    recomputation: Any = None,
    recomputation_checkpoints: tuple[str, ...] = (),
    offload: tuple[str, ...] = (),
    trip_counts: dict[str, int] | None = None,
    execution_profile: Any = None,
    progress: Progress | None = None,
) -> Executable:
    """Compile a model for the IPU, without hardware.

    `source`: a Keras model; a function that builds one; the name of a ready model or `wb.ready(name, **size)`; a
    JAX-traceable function with `inputs` (arrays or shape/dtype structs); a program made with `wb.tiles`. What a jitted
    function donates (`donate_argnums` of `jax.jit`) and gives back anew stays on the chip from call to call.
    `batch_size` is the micro-batch of one replica; of a JAX function, whose `inputs` fix all shapes, it only says how
    many samples a call has, for samples a second. `mode`: "training" or "inference"; default: training when the model
    is compiled with an optimizer or one is given. `target`: a name in `wb.targets` or a `Target`. `config`: an
    `IPUConfig`, default the one configured last. `gradient_accumulation_steps`: micro-batches of one weight update,
    default the configured number, 1. `device_mapping`: the IPU of each stage, default one each. `recomputation`:
    whether activations are computed again in the backward pass, or a `RecomputationMode` by name; results of the layers
    in `recomputation_checkpoints` (names or patterns) are kept. Where that would save nothing, under the Sequential
    schedule without checkpoints, or on one IPU without them and without norms behind convolutions, nothing is, and
    `.profile.assumptions` says so. `replicas`: copies of the program on IPUs of their own,
    each with micro-batches of its own; gradients are averaged over them, and `run` takes all their batches behind each
    other. `offload`: what lives in streaming memory, any of "weights", "activations", "optimizer_state" and
    "gradient_accumulation_buffers"; with "optimizer_state_to_replicas" each replica keeps a share of the state, on its
    chip unless "optimizer_state" is named too. `trip_counts`: how often loops run whose count depends on numbers, by
    the layer a loop is in, its line or its body's function; without, such a loop counts as running once, and
    `.profile.assumptions` says so. `execution_profile`: how much of the trace the profile keeps, an
    `ipu.config.ExecutionProfileType` or its name, default all of it. `progress` hears the name of each phase as it
    begins.

    Writes to disk what `POPLAR_ENGINE_OPTIONS` or `config` ask for: the profile with `autoReport.all`, the executable
    with `serialization_output_folder`. Never raises for out-of-memory: ask `.profile.fits`.
    An argument that has nothing to act on is refused. Errors: `InputError`, `OptionError`.
    `stages="auto"` compiles the split that `autosplit` finds over the IPUs that `config` selects; where it selects
    none, over the fewest on which the model fits.
    """
    found = _is_auto(stages)
    request = make_request(
        source,
        *inputs,
        config=config,
        target=target,
        mode=mode,
        batch_size=batch_size,
        optimizer=optimizer,
        loss=loss,
        precision=precision,
        stages=None if found else stages,
        pipeline_schedule=pipeline_schedule,
        device_mapping=device_mapping,
        gradient_accumulation_steps=gradient_accumulation_steps,
        replicas=replicas,
        recomputation=recomputation,
        recomputation_checkpoints=recomputation_checkpoints,
        offload=offload,
        trip_counts=trip_counts,
        execution_profile=execution_profile,
    )
    check_progress(progress)
    return _write_found(request, progress) if found else compile_and_write(request, progress)


def _is_auto(stages: Any) -> bool:
    return isinstance(stages, str) and stages == "auto"


def _in_found_stages(request: Any, ipus: Any, progress: Progress | None) -> Any:
    """The request of the best split over so many IPUs."""
    from workbench.base.whole import whole
    from workbench.splits.find import autosplit

    split = autosplit(request, compile_request, whole("ipus", ipus, least=2), progress=progress)
    return split.executable.request


def _write_found(request: Any, progress: Progress | None) -> Executable:
    """Compiled in the stages that are found for it, and what its options ask for written."""
    from workbench.ipu._files.outputs import write
    from workbench.ipu.devices import number_of_ipus
    from workbench.splits.fewest import fewest_ipus
    from workbench.splits.find import autosplit

    check_layered(request, "stages='auto'")
    ipus = request.options.ipus() // request.replicas
    if ipus:
        executable = autosplit(request, compile_request, ipus, progress=progress).executable
    else:
        executable = fewest_ipus(request, compile_request, number_of_ipus(), progress=progress).executable
    write(executable)
    return cast(Executable, executable)


COMPILED_WITH = tuple(each for each in inspect.signature(compile).parameters if each not in ("source", "inputs"))


def profile(source: Any, *inputs: Any, **arguments: Any) -> Profile:
    """Compile and return the profile; arguments, and what is written to disk, as in `wb.compile`."""
    check_names("wb.profile", arguments, COMPILED_WITH, BY_PLACE.format(call="wb.profile"))
    return compile(source, *inputs, **arguments).profile


@checked
def ready(name: str, **size: int) -> Any:
    """A ready model by name in a given size, built without weights, as `wb.compile` takes it.

    Sizes are those that the model has, as in `wb.ready("mlp", layers=2, hidden=256)`; an unknown name or size is an
    `InputError` that lists what there is.
    """
    from workbench.engine.frontends.ready import ready as find

    return find(name, **size)


@bound
def views(profile: Profile, *names: str) -> Any:
    """Several linked views of one profile, e.g. `wb.views(profile, "liveness", "trace")`."""
    from workbench.widgets.linked import views as linked

    return linked(profile, *names)


# Whoever gives a model is told how to compile it, which a list of kinds does not say.
Measured: TypeAlias = Executable | Profile


@checked
def diagnose(
    executable: Measured,
    *,
    keep_numbers: str = "any",
    ipus: int | None = None,
    levers: Any = None,
    compiles: int | None = None,
    seconds: float | None = None,
    executor: Any = None,
    progress: Progress | None = None,
    heard: Callable[[Any], None] | None = None,
) -> Any:
    """Ranked fixes, each applied, compiled and measured: a `Diagnosis`; of a profile alone estimates only.

    Levers are moved alone and up to three at once, what promises most by the profile and by what was measured first,
    until nothing promises a hundredth more, or `compiles` (24) or `seconds` are used up. For a program that fits, what
    makes it faster. `keep_numbers`: "exact" lets nothing in but the same operations, "reassociated" sums in another
    order too, "any" everything. `ipus`: the most IPUs of a fix, default those of the system in use, at most 16; stages
    are tried where nothing on the program's own IPUs fits, or only dearly. `levers`: names, default all; another
    optimizer is tried only where it is named or nothing else fits. `executor`: compiles as many at once as it has
    workers, see `wb.sweep`. `progress` hears `"fix: phase"`; what it raises stops the diagnosis. `heard` is given each
    row as it is measured; a notebook shows them meanwhile. Errors: `InputError`.
    """
    from workbench.base.whole import whole
    from workbench.ipu.devices import check_ipus, number_of_ipus
    from workbench.profiler.advice.diagnose import diagnose as run
    from workbench.splits.offered import stages_found
    from workbench.sweeps.measure import measure_on
    from workbench.widgets.growing import growing

    if isinstance(executable, Profile):
        _refuse_of_a_profile(
            ipus=ipus, compiles=compiles, seconds=seconds, executor=executor, progress=progress, heard=heard
        )
    most = min(_MOST_IPUS, number_of_ipus()) if ipus is None else whole("ipus", ipus)
    if ipus is not None and isinstance(executable, Executable):
        check_ipus(most, executable.request.target, what="diagnose: fixes on all of ipus")
    measure, width = measure_on(executor)
    with growing() as so_far:
        return run(
            executable,
            compile_request,
            keep_numbers=keep_numbers,
            ipus=most,
            levers=levers,
            compiles=compiles,
            seconds=seconds,
            progress=progress,
            heard=heard,
            so_far=so_far,
            split=lambda request, count, left, told: stages_found(request, compile_request, count, left, told),
            measure=measure,
            width=width,
        )


def _refuse_of_a_profile(**given: Any) -> None:
    """An `InputError` for an argument about compiles where there are none: a profile is only estimated."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} is given, and what is diagnosed is a profile, of which nothing is compiled",
                expected="besides keep_numbers and levers: nothing",
                todo=f"leave {name} out, or give what wb.compile returned",
            )


_MOST_IPUS = 16  # of a fix that nobody set a bound for


@checked
def compare_schedules(
    source: Any,
    ipus: int | None = None,
    schedules: Sequence[Any] = ("Grouped", "Interleaved", "Sequential"),
    recomputation: Sequence[bool] = (False, True),
    *,
    inputs: Any = (),
    **arguments: Any,
) -> Comparison:
    """Pipeline schedules side by side, each with and without recomputation: time, bubble, memory per IPU.

    `arguments` as in `wb.compile`, and `inputs` a tuple of its example inputs. Without `stages`, layers are spread
    evenly by number over `ipus`; `stages="auto"` finds those of `wb.autosplit`. Without `gradient_accumulation_steps`,
    there are four times the micro-batches that fill the pipeline. Traced once.
    """
    from workbench.executable.pipelines import in_even_stages
    from workbench.profiler.advice.schedules import compare_schedules as run

    check_names("wb.compare_schedules", arguments, COMPILED_WITH)
    if arguments.get("pipeline_schedule") is not None:
        raise InputError(
            "pipeline_schedule is given, and wb.compare_schedules varies it",
            todo="give those to compare as schedules=, and leave pipeline_schedule out",
        )
    progress = arguments.pop("progress", None)
    check_progress(progress)
    if (found := _is_auto(arguments.get("stages"))) and ipus is None:
        raise InputError("stages is 'auto', and ipus is not given", todo="give ipus=, the number of stages to find")
    asked = {"mode": "training", **arguments, **({"stages": None} if found else {})}
    request = make_request(source, **asked, inputs=inputs)
    check_layered(request, "wb.compare_schedules")
    check_source(request)
    if found:
        request = _in_found_stages(request, ipus, progress)
    return run(
        request if found else in_even_stages(request, ipus),
        lambda request, _, like: compile_request(request, progress, like),
        schedules,
        recomputation,
    )


@checked
def autosplit(
    source: Any,
    ipus: int,
    *,
    inputs: Any = (),
    compiles: int = 8,
    progress: Progress | None = None,
    **arguments: Any,
) -> Any:
    """Pipeline stages for a model over so many IPUs, by measured cycles within memory, verified: a `Split`.

    Even stages are compiled first; what each layer took in them (cycles of each direction, bytes of the fullest tile,
    what crosses a cut) says which cuts of all are best, and those are compiled in turn, until none promises more or
    `compiles` were made. Where nothing fits, recomputation and then offloading are tried. `arguments` as in
    `wb.compile`, which takes the result: `stages=split`; `inputs`: a tuple of its example inputs. Without
    `gradient_accumulation_steps` there are four times the micro-batches that fill the pipeline. Layers at both ends
    that share a variable are on one IPU: its two stages are in `device_mapping`. `.decided` of the result, and the
    pipeline of its profile, say whether memory or time decided the cut. Errors: `InputError` for a source without
    layers, too few of them, or more IPUs than there are.
    """
    from workbench.base.whole import whole
    from workbench.ipu.devices import check_ipus
    from workbench.splits.find import autosplit as find

    check_names("wb.autosplit", arguments, COMPILED_WITH)
    request = make_request(source, **arguments, inputs=inputs)
    check_layered(request, "wb.autosplit")
    check_source(request)
    count, most = whole("ipus", ipus, least=2), whole("compiles", compiles)
    check_ipus(count * request.replicas, request.target, what="autosplit: stages and replicas")
    return find(request, compile_request, count, most, progress)


@checked
def fewest_ipus(
    source: Any,
    *,
    inputs: Any = (),
    most: int | None = None,
    compiles: int = 8,
    progress: Progress | None = None,
    **arguments: Any,
) -> Any:
    """On how few IPUs a model fits, each number verified by compiles, and why not on fewer: a `FewestIpus`.

    `most`: the last number to try, default those of the system in use. On more than one IPU the stages are those that
    `wb.autosplit` finds with so many `compiles`; where they are used up before something fits, what comes next is said.
    `arguments` as in `wb.compile`, and `inputs` a tuple of its example inputs. A number whose memory the weights and
    the optimizer's state alone exceed is not compiled; one row stands for all that are more than there are layers.
    """
    from workbench.base.whole import whole
    from workbench.ipu.devices import check_ipus, number_of_ipus
    from workbench.splits.fewest import fewest_ipus as find

    check_names("wb.fewest_ipus", arguments, COMPILED_WITH)
    request = make_request(source, **arguments, inputs=inputs)
    check_layered(request, "wb.fewest_ipus")
    check_source(request)
    last = number_of_ipus() if most is None else whole("most", most)
    if most is not None:
        check_ipus(last, request.target, what="fewest_ipus: stages on the most")
    return find(request, compile_request, last, whole("compiles", compiles), progress)


@checked
def plan(
    source: Any,
    *,
    global_batch: int,
    inputs: Any = (),
    system: str | None = None,
    compiles: int = 40,
    progress: Progress | None = None,
    **arguments: Any,
) -> Any:
    """The most samples a second of a whole system in training, every way compiled: a `Plan`.

    `system`: a name in `wb.ipu.devices.names()`, default the one in use. Tried are stages (powers of two, found as by
    `wb.autosplit`) x replicas on the rest, micro-batches (that of `batch_size`, else powers of two while they fit and
    are faster) with as many of them as make `global_batch` samples a weight update, recomputation and offloading where
    memory asks for them, and both pipeline schedules of the best, which also has what is left of the `compiles`; what
    was left out is named. `arguments` as in `wb.compile`, and `inputs` a tuple of its example inputs. Errors:
    `InputError`.
    """
    from workbench.base.whole import MOST_COUNT, whole
    from workbench.ipu import devices
    from workbench.splits.plan import plan as find

    found = next((name for name in arguments if name in _PLANNED), None)
    if found is not None:
        raise InputError(f"{found} is given, and wb.plan finds it", todo=f"leave {found} out")
    check_names("wb.plan", arguments, tuple(name for name in COMPILED_WITH if name not in _PLANNED))
    before = devices.current()
    described = devices.use(system) if system is not None else before
    try:
        of_system = {} if made_by_hand(source) else {"target": described.target_name}
        asked = {"mode": "training", **of_system, **arguments}
        request = make_request(source, **asked, inputs=inputs)
        check_layered(request, "wb.plan")
        check_source(request)
        if request.mode == "inference":
            raise InputError(
                "mode is 'inference', and wb.plan is for training",
                expected="'training'",
                todo="leave mode out; wb.autosplit cuts a model for inference",
            )
        return find(
            request,
            compile_request,
            ipus=described.ipus,
            system=described.title,
            global_batch=whole("global_batch", global_batch, most=MOST_COUNT),
            compiles=whole("compiles", compiles, least=3),
            progress=progress,
        )
    finally:
        devices.use(before.name)


MOST_TRIALS = 100_000  # of a search: each is a compile
_PLANNED = ("stages", "replicas", "gradient_accumulation_steps", "pipeline_schedule", "recomputation", "offload")


def _inputs_given(inputs: Any) -> dict[str, Any]:
    """The example inputs as an argument of all points; nothing where there are none, so that a grid may vary them."""
    found = several_inputs(inputs)
    return {"inputs": found} if found else {}


@checked
def sweep(
    source: Any,
    grid: Any,
    *,
    inputs: Any = (),
    executor: Any = None,
    folder: str | Path | None = None,
    columns: Any = None,
    progress: Progress | None = None,
    **arguments: Any,
) -> Any:
    """A source compiled at every point of a grid, a row for each: a `Sweep`.

    `grid`: a mapping of names to lists, of which every combination is a point, or a list of points. A name is an
    argument of `wb.compile`, an option by its dotted name, or a size of a ready model. `inputs`: a tuple of what a JAX
    function takes, for all points; as a name of the grid, a tuple for each, which is how its batch is varied.
    `columns`: names of `Profile` or `{"name": function of a profile}`, shown besides. What fails is a row that says
    why. `folder`: where profiles are kept by content; called again with it, a sweep that was interrupted goes on.
    `executor`: of `concurrent.futures`, or Dask's `client.get_executor()`; without one, processes of this machine where
    the work is worth them. What is sent to a worker is the traced graph: it imports neither Keras nor JAX. `progress`
    hears a line for each row. `arguments` as in `wb.compile`, for all points. Errors: `InputError` and `OptionError`,
    before anything is compiled.
    """
    from workbench.sweeps.sweep import sweep as run

    check_names("wb.sweep", arguments, COMPILED_WITH)
    arguments |= _inputs_given(inputs)
    return run(source, grid, arguments=arguments, executor=executor, folder=folder, columns=columns, progress=progress)


@checked
def search(
    source: Any,
    space: Any,
    objective: Any = "samples_per_second",
    trials: int = 20,
    *,
    inputs: Any = (),
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    **arguments: Any,
) -> Any:
    """So many points that Optuna chooses, as a `Sweep`; needs `pip install 'workbench[search]'`.

    `space`: names as in `wb.sweep`, each with a list of values, or a pair (low, high) of whole or real numbers.
    `objective`: "samples_per_second", "total_cycles", "max_tile_bytes", or a function of a profile, less being better;
    what does not fit counts as worse than anything that does, and calls as samples where nobody says how many a call
    of a function has (`batch_size`). `inputs`, `arguments`, `folder` and `progress` as in `wb.sweep`.
    Errors: `InputError` and `OptionError`, before anything is compiled.
    """
    from workbench.base.whole import whole
    from workbench.sweeps.search import search as run

    check_names("wb.search", arguments, COMPILED_WITH)
    arguments |= _inputs_given(inputs)
    return run(
        source,
        space,
        objective,
        whole("trials", trials, most=MOST_TRIALS),
        arguments=arguments,
        seed=whole("seed", seed, least=0, most=2**32 - 1),
        folder=folder,
        progress=progress,
    )


@checked
def app(source: Any = None, config: Any = None) -> Any:
    """The interactive workbench: compile, look, diagnose and apply fixes without code.

    `source`: a Keras model, a function that builds one or a ready name, default one to choose there. `config`: an
    `IPUConfig` to begin with, default the one configured last.
    """
    from workbench.widgets.app import App

    return App(source=source, config=config)


@checked
def challenge(name: str) -> Any:
    """An exercise: its `.brief` says what to reach, and `.check(profile)` grades a profile against it.

    `name`: "fit-the-tile" or "fit-resnet".
    """
    from workbench.profiler.advice.challenge import challenge as find

    return find(name)


__all__ = [
    "Executable",
    "Profile",
    "Target",
    "app",
    "autosplit",
    "challenge",
    "compare",
    "compare_schedules",
    "compile",
    "diagnose",
    "fewest_ipus",
    "load_profile",
    "plan",
    "profile",
    "ready",
    "search",
    "sweep",
    "target",
    "targets",
    "views",
]
