"""A configured IPU device: compiles clusters once, runs them, and says what failed in the words of the program."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from workbench.engine.frontends.describe.replicas import check_groups, groups_asked
from workbench.engine.passes.shard import shards_of
from workbench.errors import InputError
from workbench.ipu.config import current_options
from workbench.ipu.config._flags import flags
from workbench.ipu.config.config import in_force
from workbench.ipu.devices import device_number, get_num_of_ipus_in_device
from workbench.tf._graph import Operation
from workbench.tf._session.cluster import Cluster, compile_cluster

LOGGER = logging.getLogger("workbench.tf")


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
        """The executable and the values of the cluster's outputs; variables it writes are kept.

        A cluster that changes nothing is not run, as the SDK's driver leaves out an empty program: no executable.
        """
        if found.idle:
            LOGGER.warning("%s was asked to run a program without results: nothing ran", self.name)
            return None, []
        executable = self.program(found, current_options())
        with failures(found):
            for _ in range(found.repeats):
                results = executable.run(*values)
        return executable, list(results)

    def program(self, found: Cluster, options: Any) -> Any:
        """The executable, compiled the first time."""
        key = (found.operations, found.inputs, found.shapes, found.outputs, options, flags())
        if key not in self.programs:
            # The options speak of all devices; this one's IPUs are shared out here.
            own = options.with_values({"auto_select_ipus": (), "select_ipus": ()})
            with groups_asked() as groups:
                found = self.replicated(found)
                made = compile_cluster(found, own)
            check_groups(groups, found.replicas)
            self.programs[key] = made
            LOGGER.info("Device %s: compiled %s", self.name, self.programs[key])
        return self.programs[key]

    def replicated(self, found: Cluster) -> Cluster:
        """As many copies of the program as fit on the device's IPUs, as the SDK replicates it.

        A copy takes the next power of two of the IPUs it uses; a device of just those runs one copy. Source:
        graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/poplar_compiler.cc (`NumIPUsInShards`).
        """
        config = in_force()
        if config is None or not config.ipus_per_device:
            return found
        have, alone = get_num_of_ipus_in_device(self.name), found.trace_source()
        need = max(shards_of(alone.graph), 1 + max(found.pipeline.asked.devices) if found.pipeline is not None else 1)
        if need > have:
            raise InputError(
                f"the program is sharded over {need} IPUs, but {self.name} has {have}",
                todo=f"set config.auto_select_ipus = {need}",
            )
        whole = need if have == need else 1 << (need - 1).bit_length()
        if found.pipeline is not None and have % whole:
            raise InputError(
                f"a pipeline of {need} IPUs on {self.name}, which has {have}",
                expected=f"a multiple of {whole}: a copy of the program on every {whole}",
                todo=f"set config.auto_select_ipus = {max(1, have // whole) * whole}",
            )
        count = max(1, have // whole)
        return replace(found, replicas=count) if count > 1 else replace(found, traced=alone)


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
    except Exception:  # XLA has several for one that a callback raised
        for queue in queues:
            raised = queue.take_failure()
            if raised is not None:
                raise raised from None
        raise
    finally:
        noisy.disabled = before


__all__ = ["Device", "device_of"]
