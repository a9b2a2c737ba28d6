"""A configured IPU device: compiles clusters once, runs them, and says what failed in the words of the program."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax

from workbench.ipu._flags import flags
from workbench.ipu.config import current_options
from workbench.ipu.utils import device_number
from workbench.tf._compiled import Cluster, compile_cluster
from workbench.tf._graph import Operation

LOGGER = logging.getLogger("workbench.ipu")


def device_of(operation: Operation) -> str:
    """ "/device:IPU:0" and so on; empty for the host. What is outside compilation is called from the IPU's program."""
    device = operation.scopes.device
    return f"/device:IPU:{device_number(device)}" if "IPU" in device.upper() else ""


@dataclass(slots=True, eq=False)
class Device:
    """Programs of one device by what was compiled and how it was configured."""

    name: str
    programs: dict[Any, Any] = field(default_factory=dict)

    def run(self, found: Cluster, values: list[Any]) -> tuple[Any, list[Any]]:
        """The executable and the values of the cluster's outputs; variables it writes are kept."""
        executable = self.program(found, current_options())
        with failures(found):
            results = executable.run(*values)
        return executable, list(results)

    def program(self, found: Cluster, options: Any) -> Any:
        """The executable, compiled the first time."""
        key = (found.operations, found.inputs, found.outputs, options, flags())
        if key not in self.programs:
            # The device's IPUs are shared out below: what the program needs says how many it uses.
            self.programs[key] = compile_cluster(
                found, options.with_values({"auto_select_ipus": (), "select_ipus": ()})
            )
            LOGGER.info("Device %s: compiled %s", self.name, self.programs[key])
        return self.programs[key]


@contextmanager
def failures(found: Cluster) -> Iterator[None]:
    """An error of the host's side of a program, raised inside XLA, as it was raised."""
    queues = [queue for operation in found.operations for queue in operation.effects.queues]
    noisy = logging.getLogger("jax._src.callback")
    before = noisy.disabled
    noisy.disabled = True
    try:
        yield
        jax.effects_barrier()
    except jax.errors.JaxRuntimeError:
        for queue in queues:
            raised = queue.take_failure()
            if raised is not None:
                raise raised from None
        raise
    finally:
        noisy.disabled = before


__all__ = ["Device", "device_of"]
