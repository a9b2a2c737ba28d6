"""Files other tools read, made from a profile."""
