"""Pipeline: stages that were traced apart become bodies on their IPUs, run column by column over the micro-batches."""

from workbench.engine.lower.pipeline.pipeline import (
    lower_pipeline,
)

__all__ = [
    "lower_pipeline",
]
