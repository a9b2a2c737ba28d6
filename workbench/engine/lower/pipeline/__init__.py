"""Pipeline: stages that were traced apart become bodies on their IPUs, run column by column over the micro-batches.

`stages` collects what a stage needs, `buffers` and `fifos` hold what goes between, `columns` lay it out in time,
`reuse` runs a body again. Imports `replay`, emit and the pipeline's schedule. Tests: tests/engine/lower/pipeline.
"""

from workbench.engine.lower.pipeline.pipeline import (
    lower_pipeline,
)

__all__ = [
    "lower_pipeline",
]
