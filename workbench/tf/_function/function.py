"""`tf.function`: a Python function whose calls run as programs, recorded once for each kind of arguments."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError
from workbench.tf import _graph
from workbench.tf._function import autograph, lines
from workbench.tf._function.recording import Recording, Where, record
from workbench.tf._function.signature import Asked, TensorSpec, asked, check_signature, of_signature
from workbench.tf.distribute import get_strategy

LOGGER = logging.getLogger("workbench.tf")
_HOST = "/device:CPU:0"
_OPEN: ContextVar[tuple[Any, ...]] = ContextVar("functions being recorded", default=())


@checked
def function(
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    experimental_compile: bool | None = None,
    reduce_retracing: bool = False,
) -> Any:
    """A function that is recorded at its first call with arguments of a kind, and run whole: on the IPU of the
    strategy whose scope is open or of the `tf.device` around the call, else on the host.

    Arrays and numbers of NumPy are tensors, a kind of which is its shape and type; numbers of Python and texts are
    part of the recording by value, all else (models, optimizers, iterators) as the object it is. `input_signature`: a
    list of `tf.TensorSpec` that all calls keep to, numbers of Python too. `autograph`: whether `if`, `while` and `for`
    on tensors become `tf.cond` and `ipu.loops`. `jit_compile`, once `experimental_compile`: whether XLA compiles it
    whole on the host; on an IPU programs always are. Errors: `InputError` for `reduce_retracing`, as programs have
    fixed shapes, for `jit_compile=False` on an IPU, and for what cannot be recorded.
    """
    if reduce_retracing:
        raise InputError(
            "reduce_retracing is True", expected="False: a program is compiled for fixed shapes, each of its own"
        )
    if jit_compile is not None and experimental_compile is not None and jit_compile != experimental_compile:
        raise InputError(f"experimental_compile is {experimental_compile}", expected=f"jit_compile, {jit_compile}")
    compiled = experimental_compile if jit_compile is None else jit_compile
    signature = check_signature(input_signature)
    if func is None:
        return lambda given: Function(given, signature, autograph, compiled)
    return Function(func, signature, autograph, compiled)


class Function:
    """What `tf.function` makes of a Python function, which is its `python_function`."""

    is_tf_function = True

    def __init__(
        self, func: Callable[..., Any], signature: Sequence[Any] | None, autograph: bool, compiled: bool | None
    ) -> None:
        if isinstance(func, Function):
            func = func.python_function
        if not callable(func):
            raise KindError(f"func is {short(func)}", expected="a Python function")
        if inspect.iscoroutinefunction(func) or inspect.isgeneratorfunction(func):
            raise KindError(
                f"func is {short(func)}, whose call gives no tensors but what makes them one by one",
                expected="a Python function that returns tensors",
                todo="return a list of them",
            )
        functools.update_wrapper(self, func, updated=())
        self.python_function: Callable[..., Any] = func
        self.input_signature = signature
        self._name = getattr(func, "__name__", type(func).__name__)
        self._autograph, self._compiled = autograph, compiled
        self._recordings: dict[Any, Recording] = {}
        self._methods: dict[int, tuple[Any, Function]] = {}

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._name

    def experimental_get_tracing_count(self) -> int:
        """How often it was recorded."""
        return len(self._recordings)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """A method of an object is a function of its own, which makes its own variables."""
        if owner is None:
            return self
        if id(owner) not in self._methods:
            bound = self.python_function.__get__(owner, kind)
            self._methods[id(owner)] = (owner, Function(bound, self.input_signature, self._autograph, self._compiled))
        return self._methods[id(owner)][1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; what it returns, as arrays. Inside another function it is recorded as part of that one."""
        call = self._asked(args, kwargs)
        if _graph.in_function():
            return self._inside(call)
        if any(isinstance(each, _graph.Tensor) for each in call.leaves):
            raise InputError(f"{self._name} was called with a tensor of a graph", expected="arrays, as it runs at once")
        return self._recording(call).run(call.tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The recording for arguments of these kinds, or `tf.TensorSpec` of them, as a function of its tensors."""
        given = args if args or kwargs or self.input_signature is None else self.input_signature
        return ConcreteFunction(self._recording(self._asked(given, kwargs)))

    def _asked(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Asked:
        try:
            bound = inspect.signature(self.python_function).bind(*args, **kwargs)
        except TypeError as error:
            raise KindError(f"{self._name} cannot be called so: {error}.") from None
        except ValueError:  # a function of C does not say what it takes
            return asked(self._name, tuple(args), dict(kwargs))
        if self.input_signature is not None:
            named = [*bound.args, *bound.kwargs.values()]
            return asked(self._name, tuple(of_signature(self._name, self.input_signature, named)), {})
        bound.apply_defaults()
        return asked(self._name, bound.args, bound.kwargs, list(bound.arguments))

    def _where(self) -> Where:
        strategy, scopes = get_strategy(), _graph.current_scopes()
        if "IPU" in scopes.device.upper() or (scopes.device and strategy is None):
            return Where(device=scopes.device, strategy=strategy)
        return Where(device=_HOST if strategy is None else strategy.extended.worker_devices[0], strategy=strategy)

    def _recording(self, call: Asked) -> Recording:
        where = self._where()
        if where.on_ipu and self._compiled is False:
            raise InputError(
                f"jit_compile is False for {self._name}, which runs on {where.device}",
                expected="True or None: programs for an IPU are compiled whole",
            )
        key = (call.key, where.key)
        if key not in self._recordings:
            with self._once(call):
                made = record(
                    self._name, self._body(), call, where, whole=bool(self._compiled), first=not self._recordings
                )
            self._recordings[key] = made
            LOGGER.info("%s was recorded for the %d. time", self._name, len(self._recordings))
        return self._recordings[key]

    def _inside(self, call: Asked) -> Any:
        args, kwargs = call.filled(call.tensors)
        with self._once(call):
            return self._body()(*args, **kwargs)

    def _body(self) -> Callable[..., Any]:
        return autograph.converted(self.python_function) if self._autograph else self.python_function

    @contextmanager
    def _once(self, call: Asked) -> Any:
        """A function that calls itself with arguments of the same kinds would be recorded without end."""
        here = (self, call.key)
        if any(here[0] is other[0] and here[1] == other[1] for other in _OPEN.get()):
            raise InputError(
                f"{self._name} calls itself with tensors of the same shapes: it would be recorded without end",
                todo="write a while loop over tensors, or recur over a Python number that is counted down",
            )
        token = _OPEN.set((*_OPEN.get(), here))
        try:
            yield
        except Exception as error:
            if _endless(error):
                raise InputError(
                    f"{self._name} recurs too deep to be recorded",
                    expected="a recursion that ends while the function is recorded, so one over Python numbers",
                    todo="write a while loop over tensors",
                ) from None
            lines.tell_line(error, self._name)
            raise
        finally:
            _OPEN.reset(token)

    def __repr__(self) -> str:
        return f"<tf.function {self._name}>"


def _endless(error: BaseException | None) -> bool:
    """Whether an error is that of a recursion without end, or was made of one."""
    while error is not None:
        if isinstance(error, RecursionError):
            return True
        error = error.__cause__
    return False


class ConcreteFunction:
    """A recording of a `tf.function`, called with its tensors alone."""

    is_tf_function = True

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._recording.name

    @property
    def graph(self) -> _graph.Graph:
        """What was recorded."""
        return self._recording.graph

    @property
    def inputs(self) -> list[Any]:
        """Its tensors, in the order of the arguments."""
        return list(self._recording.params)

    @property
    def outputs(self) -> list[Any]:
        """The tensors it returns."""
        return [each for each in self._recording.results if isinstance(each, _graph.Tensor)]

    @property
    def structured_input_signature(self) -> Any:
        """Arguments and keyword arguments, with a `tf.TensorSpec` for each tensor."""
        specs = [TensorSpec(tuple(each.shape), str(each._dtype)) for each in self._recording.params]
        return self._recording.asked.filled(specs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on these values of its tensors, in order or by their names."""
        given = [*args, *kwargs.values()]
        wanted = self._recording.params
        if len(given) != len(wanted):
            raise KindError(
                f"{self.name} was called with {things_text(len(given), 'tensor')}", expected=f"{len(wanted)}"
            )
        call = asked(self.name, tuple(given), {})
        for place, (param, leaf) in enumerate(zip(wanted, call.leaves, strict=False)):
            spec = TensorSpec(tuple(param.shape), str(param._dtype))
            of_signature(f"{self.name} (tensor {place})", [spec], [leaf])
        return self._recording.run(call.leaves)


__all__ = ["ConcreteFunction", "Function", "function"]
