"""Reports, one per file: what a profile says, as data, table, text and a sentence; never a drawing."""
