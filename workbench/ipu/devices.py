"""Described systems: which IPUs there are to select, without any being there. `use("bow-pod64")` describes another."""

from __future__ import annotations

import re

from workbench.base.checked import checked
from workbench.engine.target import Target
from workbench.errors import InputError
from workbench.ipu.config._cpu import check_cpu
from workbench.ipu.config._state import STATE
from workbench.ipu.config._systems import Device, System, current, systems
from workbench.ipu.config.config import in_force

_DEVICE = re.compile(r"(?:.*/)?(?:device:)?IPU:(\d+)$", re.IGNORECASE)


@checked
def use(name: str) -> System:
    """Describe the system this process has from now on; names in `systems`. Returns it."""
    if name not in systems:
        raise InputError(f"no system is called {name!r}", expected=f"one of: {', '.join(systems)}")
    STATE.system = name
    return systems.get(name)


def names() -> tuple[str, ...]:
    """Names that `use` takes."""
    return tuple(systems)


def number_of_ipus() -> int:
    """IPUs of the system in use."""
    return current().ipus


@checked
def check_ipus(wanted: int, target: Target, *, what: str) -> None:
    """Raise an `InputError` when a program needs more IPUs than the system in use has.

    A target of another kind than the system's describes its own, of up to 64 IPUs (`Target.ipus_limit`).
    """
    system = current()
    own = target.name != system.target_name
    limit, name = (target.ipus_limit, f"a system of {target.name}") if own else (system.ipus, f"the {system.title}")
    if wanted > limit:
        larger = [each for each in systems.values() if each.ipus >= wanted and each.target_name == target.name]
        todo = f'ipu.devices.use("{larger[0].name}") describes a larger system' if larger else "use fewer of them"
        raise InputError(f"{what} need {wanted} IPUs, but {name} has {limit}", todo=todo)


@checked
def device_number(ipu_device: str) -> int:
    """The number in "/device:IPU:1"; an `InputError` for anything else."""
    found = _DEVICE.match(ipu_device)
    if found is None:
        raise InputError(f"{ipu_device!r} is no IPU device", expected='a name such as "/device:IPU:0"')
    return int(found[1])


@checked
def get_num_of_ipus_in_device(ipu_device: str, device: str = "cpu") -> int:
    """IPUs of a configured device, "/device:IPU:0" being the first. `device`: the CPU beside the IPUs.

    A device is one IPU when the configuration selects none.
    """
    check_cpu("device", device)
    number, config = device_number(ipu_device), in_force()
    counts = (config.ipus_per_device if config is not None else ()) or (1,)
    if number >= len(counts):
        raise InputError(
            f"{ipu_device!r} is not configured", expected=f"/device:IPU:0 to /device:IPU:{len(counts) - 1}"
        )
    return counts[number]


__all__ = [
    "Device",
    "System",
    "check_ipus",
    "current",
    "device_number",
    "get_num_of_ipus_in_device",
    "names",
    "number_of_ipus",
    "systems",
    "use",
]
