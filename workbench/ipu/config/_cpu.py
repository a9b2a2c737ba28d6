"""The CPU beside the IPUs, which calls of the SDK name: there is one."""

from __future__ import annotations

import re

from workbench.base.text import short
from workbench.errors import InputError

_CPU = re.compile(r"(?:.*/)?(?:device:)?CPU(?::0)?", re.IGNORECASE)


def check_cpu(name: str, device: object) -> None:
    """An `InputError` that calls it `name` for what is not the CPU."""
    if not isinstance(device, str) or _CPU.fullmatch(device) is None:
        raise InputError(f"{name} is {short(device)}", expected='the CPU beside the IPUs, "cpu" or "/device:CPU:0"')
