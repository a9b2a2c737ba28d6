"""The passes of the compiler, one per file; `pipeline` lists them with their reasons."""
