"""`tensorflow.python.ipu.config`: the configuration of the IPU system."""

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
