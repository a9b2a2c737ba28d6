"""From an assignable configuration to the frozen options of a compile: what must agree, and what follows from what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.engine.options import Options, find_option
from workbench.engine.options.enums import DeviceConnectionType, StochasticRoundingBehaviour
from workbench.errors import OptionError, OptionValueError
from workbench.ipu.config import _systems
from workbench.ipu.config._attributes import LOGGER
from workbench.ipu.config._base import ConfigBase
from workbench.ipu.config._engine_options import ACTING, EXCHANGE_AIM, exchange_aim, execution_profile
from workbench.ipu.config._flags import CATEGORIES, flags
from workbench.ipu.config._told import without_effect


def on_model() -> bool:
    """Whether `TF_POPLAR_FLAGS` asks for the IPU model."""
    return flags().use_ipu_model


def as_tuple(value: Any) -> tuple[int, ...]:
    """IPU selections in one form: an int is one device, and 0 of `auto_select_ipus` none."""
    return (value,) if isinstance(value, int) else tuple(value)


def ipus_per_device(config: ConfigBase) -> tuple[int, ...]:
    """IPUs of each device that the configuration selects; empty when it leaves them to the program."""
    if isinstance(config.auto_select_ipus, int) and config.auto_select_ipus == 0:
        auto: tuple[int, ...] = ()
    else:
        auto = as_tuple(config.auto_select_ipus)
    system = _systems.current()
    return auto or tuple(len(system.device(id).ipus) for id in as_tuple(config.select_ipus))


def _selections(config: ConfigBase) -> None:
    selected = as_tuple(config.select_ipus)
    auto = config.auto_select_ipus not in (0, [], ())
    if auto and selected:
        raise OptionError(
            "auto_select_ipus and select_ipus are both set", expected="only one of them", todo="set the other to []"
        )
    if len(set(selected)) != len(selected):
        raise OptionValueError(f"select_ipus {list(selected)} names a device twice", expected="unique numbers")
    if selected and on_model():
        raise OptionError(
            "select_ipus is set, but the IPU model has no devices to choose from",
            expected="auto_select_ipus, while TF_POPLAR_FLAGS contains --use_ipu_model",
        )
    if auto and min(as_tuple(config.auto_select_ipus)) < 1:
        raise OptionValueError(f"auto_select_ipus is {config.auto_select_ipus!r}", expected="at least one IPU a device")
    _within_system(config)


def _within_system(config: ConfigBase) -> None:
    system = _systems.current()
    taken = [ipu for id in as_tuple(config.select_ipus) for ipu in system.device(id).ipus]
    twice = sorted({ipu for ipu in taken if taken.count(ipu) > 1})
    if twice:
        raise OptionValueError(
            f"the devices in select_ipus {list(as_tuple(config.select_ipus))} share IPU {twice[0]}",
            expected="devices without a common IPU",
        )
    wanted = sum(ipus_per_device(config))
    if wanted > system.ipus and not on_model():
        raise OptionValueError(
            f"the configuration selects {wanted} IPUs, but the {system.title} has {system.ipus}",
            todo='ipu.devices.use("pod64") describes a larger system',
        )


def _connection(config: ConfigBase) -> None:
    kind = config.device_connection.type
    if kind in (DeviceConnectionType.PRE_COMPILE, DeviceConnectionType.NEVER) and not config.device_connection.version:
        raise OptionValueError(
            f"device_connection.version must be set when device_connection.type is {kind}",
            expected="ipu1, ipu2 or ipu21: without an IPU to ask, nothing else says what to compile for",
        )


def _distribution(config: ConfigBase) -> None:
    distribution = config.experimental.multi_replica_distribution
    if distribution.process_count > 0 and on_model():
        raise OptionError(
            "multi-replica distribution is not supported on the IPU model",
            todo="leave experimental.multi_replica_distribution.process_count at 0",
        )
    if distribution.process_count < 0:
        raise OptionValueError(
            f"experimental.multi_replica_distribution.process_count is {distribution.process_count}",
            expected="a number of processes, or 0 for none",
        )
    if distribution.process_count and not 0 <= distribution.process_index < distribution.process_count:
        raise OptionValueError(
            f"experimental.multi_replica_distribution.process_index is {distribution.process_index}",
            expected=f"a number in the range [0, process_count), here 0 to {distribution.process_count - 1}",
        )


def _io_tiles(config: ConfigBase) -> None:
    tiles = config.io_tiles
    if tiles.place_ops_on_io_tiles and tiles.num_io_tiles == 0:
        raise OptionValueError(
            "operations cannot be placed on I/O tiles when io_tiles.num_io_tiles is 0",
            todo="set io_tiles.num_io_tiles, or io_tiles.place_ops_on_io_tiles = False",
        )
    group = config.norms.experimental.distributed_batch_norm_replica_group_size
    if group < 1:
        raise OptionValueError(
            f"norms.experimental.distributed_batch_norm_replica_group_size is {group}", expected="at least 1"
        )
    if tiles.num_io_tiles > 0 and group > 1:
        raise OptionValueError(
            "norms.experimental.distributed_batch_norm_replica_group_size is not supported with I/O tiles",
            todo="set it to 1, or io_tiles.num_io_tiles to 0",
        )


def _model(config: ConfigBase) -> None:
    if config.ipu_model.version == "" and on_model():
        raise OptionValueError("ipu_model.version must be set on the IPU model", expected="ipu1, ipu2, bow or ipu21")


_RULES: tuple[Callable[[ConfigBase], None], ...] = (_selections, _connection, _distribution, _io_tiles, _model)


def validate(config: ConfigBase) -> None:
    """Raise an `OptionError` for options that cannot be together, or not on the described system."""
    for rule in _RULES:
        rule(config)


def freeze(config: ConfigBase) -> Options:
    """The options of a compile: checked, with set_all, the selected devices and the system's IPU carried through."""
    validate(config)
    values = {name: value for name, value in config._named_values() if name != "select_ipus"}
    values["select_ipus"] = as_tuple(config.select_ipus)
    values["auto_select_ipus"] = ipus_per_device(config)
    if config.floating_point_behaviour.set_all:
        on = {f"floating_point_behaviour.{each}": True for each in ("inv", "div0", "oflo", "nanoo")}
        values |= {**on, "floating_point_behaviour.esr": StochasticRoundingBehaviour.ON}
    if config.optimizations.enable_fast_math:
        values["optimizations.math.fast"] = True
    values |= _model_values(config)
    values["synthetic_data"] = tuple(each for each in CATEGORIES if flags().synthetic(each))
    without_effect("compilation_poplar_options", config.compilation_poplar_options, ACTING)
    kept = execution_profile(config.compilation_poplar_options)
    if kept is not None:
        values["profile.execution"] = kept
    aim = exchange_aim(config.compilation_poplar_options)
    if aim is not None:
        values[EXCHANGE_AIM] = aim
        values["compilation_poplar_options"] = {
            name: value for name, value in config.compilation_poplar_options.items() if name != EXCHANGE_AIM
        }
    frozen = Options().with_values(values)
    for name, why in frozen.without_effect():
        if not find_option(name).reason:
            LOGGER.warning("%s is set, but %s", name, why)
    return frozen


def _model_values(config: ConfigBase) -> dict[str, Any]:
    """The modelled IPU: the described system's unless the configuration says; tiles as the flags have them."""
    values: dict[str, Any] = {}
    if not on_model() and config.ipu_model.version in ("", find_option("ipu_model.version").default):
        values["ipu_model.version"] = _systems.current().target_name
    if on_model() and flags().ipu_model_tiles:
        values["ipu_model.tiles_per_ipu"] = flags().ipu_model_tiles
    return values
