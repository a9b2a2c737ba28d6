"""Numbers as the IPU makes them, on the host: halves that overflow, rounding, checks, replicated runs."""
