"""Which bytes are alive on which tile at which step, and where they lie."""
