"""A compiled source: its graph, program and profile, and its numbers."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.base.checked import bound
from workbench.base.text import no_attribute
from workbench.engine.compile import Compiled, Phase
from workbench.errors import InputError, KindError, OutOfMemoryError
from workbench.executable import cache
from workbench.executable.asked import with_asked
from workbench.executable.kin import Kin
from workbench.executable.pipelines import devices_of, recomputed_source
from workbench.executable.request import EXECUTION, Request
from workbench.executable.source_lines import with_lines
from workbench.ipu.config import use_emulation
from workbench.profiler.advice.kept_trace import keep_trace
from workbench.profiler.advice.regions import full_region
from workbench.profiler.advice.tips import hand_made_advice
from workbench.profiler.collect import collect, collect_again
from workbench.profiler.fidelity import typical_errors
from workbench.profiler.profile import Profile
from workbench.profiler.registry import methods, reports
from workbench.profiler.words import on_an_executable

if TYPE_CHECKING:
    import pandas as pd

    from workbench.engine.graph import Graph
    from workbench.engine.program import TileProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of equal content: how to get its profile, and how to compile when more than that is asked."""

    profile: Callable[[], Profile]
    phases: tuple[Phase, ...]
    compile: Callable[[], Compiled]


def profile_of(compiled: Compiled, request: Request) -> Profile:
    """The profile of a compile, with as much of the trace as was asked for."""
    return keep_trace(collect(compiled, typical_errors()), request.options.get(EXECUTION))


def _same_program(one: object, other: object) -> bool:
    """Whether a compile took over all from another but its options."""
    return isinstance(one, Compiled) and isinstance(other, Compiled) and one.trace is other.trace


class Executable:
    """A compiled source. `.graph`, `.program`, `.profile`, `.passes`, `.run`; `.request` says what was asked.

    `traced` is what the front end made of the source, None when an earlier session's profile was enough.
    `content` is what the profile is kept by for later sessions; without it nothing is kept. What was collected of
    `like` is taken over where it is of the same program. `kin` are those it was made like, and they like it.
    """

    def __init__(
        self,
        request: Request,
        compiled: Compiled | Kept,
        traced: Any = None,
        content: cache.Content | None = None,
        like: Executable | None = None,
    ) -> None:
        self.request = request
        self._result = compiled
        self.traced = traced
        self._content = content
        self._running = threading.RLock()
        self.kin: Kin[Executable] = Kin() if like is None else like.kin
        self.kin.join(self)
        same = like is not None and _same_program(compiled, like._result)
        self._known: Profile | None = like.__dict__.get("_whole_profile", like._known) if like and same else None

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
            return self._laid_over(self._result.profile())
        found = keep_trace(self._whole_profile, self.request.options.get(EXECUTION))
        cache.keep_profile(self._content, found)
        return self._laid_over(found)

    def _laid_over(self, profile: Profile) -> Profile:
        """A profile, which may be of an equal program, with what is of this request and its model."""
        return with_asked(with_lines(profile, self.traced), self.request)

    @cached_property
    def _whole_profile(self) -> Profile:
        known, self._known = self._known or cache.collected(self._content, self.compiled), None
        if known is None:
            found = collect(self.compiled, typical_errors())
        else:
            found = collect_again(known, self.compiled, typical_errors())
        cache.hold_profile(self._content, self.compiled, found)
        return found

    @property
    def passes(self) -> pd.DataFrame:
        """A row per phase: `phase`, `seconds`, `changed`; `"trace"` first."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(phase) for phase in self._result.phases])

    @cached_property
    def _runner(self) -> Any:
        if self.traced is None:
            raise InputError("a program made by hand is run with its graph", todo="call graph.run(program)")
        from workbench.engine.run import Runner
        from workbench.ipu._numbers import Numbers

        options = self.request.options
        source = recomputed_source(self.traced, options)
        runner = Runner(source, schedule=str(options.get("pipeline.schedule")), devices=devices_of(options))
        return Numbers(runner, options, self.request.configured)

    def check_fits(self) -> None:
        """An `OutOfMemoryError` when the program does not fit; with `TF_POPLAR_FLAGS=--use_ipu_model` a warning."""
        profile = self.profile
        if not profile.fits:
            problem = OutOfMemoryError(
                tile=profile.peak.tile,
                step=profile.peak.step,
                bytes_used=profile.max_tile_bytes,
                bytes_available=self.request.target.bytes_per_tile,
                region=str(full_region(profile) or ""),
                todo=hand_made_advice(profile),
            )
            if not use_emulation():
                raise problem
            import warnings

            warnings.warn(str(problem), RuntimeWarning, stacklevel=3)

    @functools.partial(bound, todo="give arrays by place, in the order of the function: run(x, y); of a model run(x)")
    def run(self, *args: Any, sample_weight: Any = None) -> Any:
        """One call of the program, with numbers from XLA on the host.

        Training: `run(x, y, sample_weight=None)` returns a dict of loss and metrics and advances the model; of several
        outputs `sample_weight` is for all, or for each in a list or by name. Inference: `run(x)` returns the outputs; a
        function: `run(*args)`. Raises `OutOfMemoryError` when the program does not fit; with
        `TF_POPLAR_FLAGS=--use_ipu_model` it warns and runs, as the SDK's model of the IPU does. Calls of threads
        run one after another, each from the state that the one before left.
        """
        self.check_fits()
        with self._running:
            return self._runner.run(*args, sample_weight=sample_weight)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or hasattr(type(self), name):  # an error inside one of its own: told as it was
                return object.__getattribute__(self, name)
            of_profiles = {*dir(Profile), *reports, *methods}
            raise no_attribute("'Executable' object", name, dir(self), on_an_executable(name, of_profiles))

    def __reduce__(self) -> Any:
        """It holds compiled functions and what the front end traced; what is kept of it is its profile."""
        raise KindError(
            "an Executable cannot be pickled or copied: it holds functions of this process",
            expected="its profile, which can be pickled",
            todo="keep executable.profile.save(path) and read it by wb.load_profile(path), or compile again there",
        )

    def __repr__(self) -> str:
        return f"<executable {self.profile.name}: {self.profile.summary.sentence}>"


__all__ = ["Executable", "Kept", "profile_of"]
