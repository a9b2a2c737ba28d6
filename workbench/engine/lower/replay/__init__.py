"""Bodies of pipeline stages that are lowered once, recorded, and played again for stages alike."""
