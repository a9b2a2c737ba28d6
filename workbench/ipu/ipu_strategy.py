"""`tensorflow.python.ipu.ipu_strategy`: what is made in the scope of a strategy runs on the IPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import InputError
from workbench.ipu.devices import device_number
from workbench.tf.distribute import get_strategy, opened


class IPUStrategyV1:
    """A strategy for a system with one or more IPUs.

    `ipu_device`: where programs run; `cpu_device`: the host beside it. `enable_dataset_iterators`: datasets iterated
    over in a `tf.function` are infeeds. `enable_keras_extensions`: Keras models made in the scope run on the IPU.
    `profile` and `executables` hold what was compiled for its models.
    """

    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        cpu_device: str = "/device:CPU:0",
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        device_number(ipu_device)
        self._ipu_device, self._cpu_device = str(ipu_device), str(cpu_device)
        self._enable_dataset_iterators = bool(enable_dataset_iterators)
        self._enable_keras_extensions = bool(enable_keras_extensions)
        self._executables: list[Any] = []

    @contextmanager
    def scope(self) -> Iterator[IPUStrategyV1]:
        """Keras models made inside run on the IPU."""
        if not self._enable_keras_extensions:
            with opened(self):
                yield self
            return
        from workbench.ipu.keras._extensions.base import alike, with_options
        from workbench.ipu.keras._extensions.inject import Making, injected

        with opened(self), injected(Making(kind=_class_of, made=_made, read=with_options, alike=alike)):
            yield self

    @property
    def executables(self) -> tuple[Any, ...]:
        """What was compiled for models of this strategy, in order."""
        return tuple(self._executables)

    @property
    def profile(self) -> Any:
        """The profile of what was compiled last. An `InputError` before anything is."""
        if not self._executables:
            raise InputError(
                "nothing was compiled yet", todo="call fit, evaluate or predict of a model made in scope()"
            )
        return self._executables[-1].profile

    @property
    def num_replicas_in_sync(self) -> int:
        """Always 1: replicas of a program are inside it."""
        return 1

    @property
    def supports_loss_scaling(self) -> bool:
        """Always true."""
        return True

    def _keep(self, executable: Any) -> None:
        self._executables.append(executable)


def _class_of(kind: type) -> type | None:
    """The class of a model made now: with its extension where a scope with Keras extensions is open."""
    strategy = get_strategy()
    if not isinstance(strategy, IPUStrategyV1) or not strategy._enable_keras_extensions:
        return None
    from workbench.ipu.keras._extensions.base import extension_of
    from workbench.ipu.keras._extensions.inject import extended

    extension = extension_of(kind)
    return None if extension is None else extended(kind, extension)


def _made(model: Any) -> None:
    """A model of the open strategy, with options as they are at first."""
    from workbench.ipu.keras._extensions.model_options import ModelOptions

    object.__setattr__(model, "_ipu_strategy", get_strategy())
    object.__setattr__(model, "_ipu_options", ModelOptions())
    object.__setattr__(model, "_ipu_hear", None)
    object.__setattr__(model, "_ipu_stages_set", None)


IPUStrategy = IPUStrategyV1

__all__ = ["IPUStrategy", "IPUStrategyV1"]
