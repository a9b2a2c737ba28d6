"""`tensorflow.python.ipu.utils`: what concerns the configured devices."""

from __future__ import annotations

import re

from workbench.errors import InputError
from workbench.ipu._state import STATE
from workbench.ipu.config import (
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
    configure_ipu_system,
    get_ipu_config,
    reset_ipu_configuration,
    use_emulation,
)

_DEVICE = re.compile(r"(?:.*/)?(?:device:)?IPU:(\d+)$", re.IGNORECASE)


def device_number(ipu_device: str) -> int:
    """The number in "/device:IPU:1"; an `InputError` for anything else."""
    found = _DEVICE.match(str(ipu_device))
    if found is None:
        raise InputError(f"{ipu_device!r} is no IPU device", expected='a name such as "/device:IPU:0"')
    return int(found[1])


def get_num_of_ipus_in_device(ipu_device: str, device: str = "cpu") -> int:
    """IPUs of a configured device, "/device:IPU:0" being the first. `device`: the CPU beside the IPUs.

    A device is one IPU when the configuration selects none.
    """
    number = device_number(ipu_device)
    counts = STATE.configured[0].ipus_per_device if STATE.configured else ()
    counts = counts or (1,)
    if number >= len(counts):
        raise InputError(
            f"{ipu_device!r} is not configured", expected=f"/device:IPU:0 to /device:IPU:{len(counts) - 1}"
        )
    return counts[number]


def is_running_on_ipu_model() -> bool:
    """Whether `TF_POPLAR_FLAGS` asks for the IPU model."""
    return use_emulation()


running_on_ipu_model = is_running_on_ipu_model

__all__ = [
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "configure_ipu_system",
    "device_number",
    "get_ipu_config",
    "get_num_of_ipus_in_device",
    "is_running_on_ipu_model",
    "reset_ipu_configuration",
    "running_on_ipu_model",
]
