"""Compile a source for the IPU: what a notebook asks for becomes an `Executable` with a profile and numbers."""

from workbench.executable.executable import (
    PHASES,
    Executable,
    Progress,
    compile_and_write,
    compile_request,
    compile_traced,
    layered_source,
    make_request,
)

__all__ = [
    "PHASES",
    "Executable",
    "Progress",
    "compile_and_write",
    "compile_request",
    "compile_traced",
    "layered_source",
    "make_request",
]
