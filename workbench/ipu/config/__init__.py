"""`tensorflow.python.ipu.config`: the configuration of the IPU system.

`config` is what a user assigns to: nested attributes (`_base`, `_attributes`) made of the engine's declared options.
`_freeze` makes of it the options of a compile, with what the environment says (`_flags`, `_engine_options`) and the
described system (`_systems`). `_state` is what a process has at a time. Imports the engine's options and targets, and
nothing else of `ipu`. Tests: tests/ipu/config.
"""

from workbench.ipu.config.config import (
    AttributeMetadata,
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
    configure_ipu_system,
    current_options,
    form_options,
    get_ipu_config,
    reset_ipu_configuration,
    running_on_ipu_model,
    use_emulation,
)

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
