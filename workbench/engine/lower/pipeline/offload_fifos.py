"""FIFOs in streaming memory: the slots of what waits for its backward pass are rows of a remote buffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.engine.emit import Emitter
from workbench.engine.emit.links import remote_copy
from workbench.engine.lower.pipeline.stages import Fifo
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.options import Options
from workbench.engine.program.remote_buffers import RemoteBuffer


def is_offloaded(size_bytes: int, options: Options) -> bool:
    """Whether a value of so many bytes waits in streaming memory."""
    least_bytes = int(options.get("optimizations.minimum_remote_tensor_size"))
    return bool(options.get("pipeline.offload_activations")) and size_bytes >= least_bytes


def settle(emit: Emitter, stash: int) -> None:
    """Move the slots of a FIFO off the chip."""
    held = emit.variables[stash]
    emit.settled[stash] = RemoteBuffer(
        variable=stash, name=held.name, ipu=held.ipu, dtype=held.dtype, shape=held.shape, size_bytes=held.size_bytes
    )
    emit.variables[stash] = replace(held, bytes_per_tile=frozen(np.zeros_like(held.bytes_per_tile)))


def turn(emit: Emitter, fifos: Sequence[Fifo]) -> None:
    """The oldest rows come, the newest values go: one copy each for all FIFOs of a stage."""
    if not fifos:
        return
    stash = next(fifo.stash for fifo in fifos if fifo.stash is not None)
    left, current = [fifo.left for fifo in fifos], [fifo.current for fifo in fifos]
    remote_copy(emit, "fifo/from_remote", _bytes(emit, left), "to_device", _names(left), stash)
    remote_copy(emit, "fifo/to_remote", _bytes(emit, current), "to_host", _names(current), stash)


def _bytes(emit: Emitter, tensors: Iterable[Tensor]) -> IntArray:
    return frozen(np.sum([each.mapping.bytes_per_tile(each.itemsize_bytes, emit.tiles) for each in tensors], axis=0))


def _names(tensors: Iterable[Tensor]) -> list[int]:
    return [name for tensor in tensors for name in tensor.variables]
