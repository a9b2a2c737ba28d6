"""One view a file, with its script and style of the same name."""
