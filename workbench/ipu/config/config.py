"""`tensorflow.python.ipu.config`: the configuration of the IPU system."""

from __future__ import annotations

import copy
from typing import Any

from workbench.base.text import short
from workbench.engine.options import CATEGORIES, Options, attributes, form_options
from workbench.engine.options.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from workbench.errors import OptionValueError, StateError
from workbench.ipu.config import _freeze
from workbench.ipu.config._attributes import LOGGER, Attribute, AttributeMetadata, OptionTypeError
from workbench.ipu.config._base import ConfigBase, document
from workbench.ipu.config._cpu import check_cpu
from workbench.ipu.config._engine_options import engine_options
from workbench.ipu.config._flags import Flags, flags
from workbench.ipu.config._state import STATE


def _declared() -> tuple[Attribute, ...]:
    """The attributes of the engine's declarations, each category just before the first that it holds."""
    found: dict[str, Attribute] = {}
    for each in attributes():
        parts = each.name.split(".")
        for name in (".".join(parts[:count]) for count in range(1, len(parts))):
            found.setdefault(name, Attribute(name=name, doc=CATEGORIES.get(name)))
        found[each.name] = Attribute(
            name=each.name,
            default=each.initial,
            annotation=each.annotation,
            doc=each.doc,
            deprecated=each.deprecated,
        )
    return tuple(found.values())


_ATTRIBUTES = _declared()


class IPUConfig(ConfigBase):
    """The options of an IPU system, in categories. Assign to an option, then call `configure_ipu_system`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_ATTRIBUTES)

    def __reduce__(self) -> Any:
        """Pickled as `to_dict` says it: what checks its options holds functions."""
        return _restored, (type(self), self.to_dict())

    def configure_ipu_system(self, device: str = "cpu") -> None:
        """Configure the IPU system with this configuration as it is now; later assignments do not change it."""
        configure_ipu_system(self, device)

    def freeze(self) -> Options:
        """A frozen copy for one compile; an `OptionError` when options do not agree or PopLibs knows no such key."""
        return _freeze.freeze(self)

    @property
    def ipus_per_device(self) -> tuple[int, ...]:
        """IPUs of /device:IPU:0, /device:IPU:1 and so on; empty when none are selected."""
        return _freeze.ipus_per_device(self)


def _restored(kind: type[IPUConfig], values: dict[str, Any]) -> IPUConfig:
    """The configuration that was pickled."""
    config = kind()
    config.from_dict(values)
    return config


_in_force: list[IPUConfig] = []  # the one that was configured last, if one was
# Its options, and all they were made of.
_frozen: list[tuple[tuple[IPUConfig | None, Flags, str, dict[str, Any]], Options]] = []
IPUConfig.__doc__ = f"{IPUConfig.__doc__}\n\n{document(IPUConfig())}"


def configure_ipu_system(config: IPUConfig, device: str = "cpu", reset_configuration: bool = True) -> None:
    """Configure the IPU system with a copy of `config`, in place of the one in force.

    `device`: the CPU beside the IPUs; there is one. With `reset_configuration=False`, a configuration other than the
    one in force is an `OptionError`. Anything but an `IPUConfig` is a `TypeError`.
    """
    if not isinstance(reset_configuration, bool):
        raise OptionTypeError(f"reset_configuration is {short(reset_configuration)}", expected="True or False")
    check_cpu("device", device)
    if not isinstance(config, IPUConfig):
        raise OptionTypeError(f"config is {short(config)}", expected="an IPUConfig instance")
    _freeze.validate(config)
    changed = in_force() not in (None, config)
    if changed and not reset_configuration:
        raise OptionValueError(
            "the IPU system is already configured otherwise",
            todo="call ipu.config.reset_ipu_configuration() first, or leave reset_configuration at True",
        )
    if changed:
        LOGGER.warning("Resetting the existing IPU configuration before applying the new one")
    _in_force[:] = [copy.deepcopy(config)]


def reset_ipu_configuration() -> None:
    """Forget the configuration in force, so that the system can be configured anew."""
    _in_force.clear()


def get_ipu_config(session: Any = None) -> list[IPUConfig]:
    """The configuration in force, a copy for each device it selects; a `RuntimeError` when no device is selected."""
    if session is not None and not hasattr(session, "executables"):
        raise OptionTypeError(f"session is {short(session)}", expected="a session, or None: they share one system")
    config = in_force()
    if config is None or not config.ipus_per_device:
        raise StateError(
            "No IPU devices configured. To mend it: set config.auto_select_ipus and call config.configure_ipu_system()."
        )
    return [copy.deepcopy(config) for _ in config.ipus_per_device]


def current_options() -> Options:
    """The frozen options of the configuration configured last; defaults when none was."""
    read = (in_force(), flags(), STATE.system, engine_options())
    if not _frozen or _frozen[0][0][0] is not read[0] or _frozen[0][0][1:] != read[1:]:
        _frozen[:] = [(read, (read[0] or IPUConfig()).freeze())]
    return _frozen[0][1]


def in_force() -> IPUConfig | None:
    """The configuration that was configured last, itself; None when none was."""
    return _in_force[0] if _in_force else None


def use_emulation() -> bool:
    """Whether `TF_POPLAR_FLAGS` asks for the IPU model, which runs programs that do not fit."""
    return _freeze.on_model()


running_on_ipu_model = use_emulation


__all__ = [
    "AttributeMetadata",
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "configure_ipu_system",
    "current_options",
    "form_options",
    "get_ipu_config",
    "reset_ipu_configuration",
    "running_on_ipu_model",
    "use_emulation",
]
