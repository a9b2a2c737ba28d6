"""From what a user asks to what they hold: a request, its compile, an `Executable` with a profile and numbers.

`values` reads what is asked, `request` freezes it, `sources` lists what can be compiled, `arguments` refuses what acts
on nothing, `compile` traces and compiles, `cache` keeps what was compiled, `pipelines` reads and writes options of
stages, `executable` is what a user holds.
Imports every room below; the API, the views and, by a hook, `tf` compile through it.
Tests: tests/executable.
"""

from workbench.executable.compile import (
    PHASES,
    Progress,
    compile_and_write,
    compile_request,
    compile_traced,
)
from workbench.executable.executable import Executable
from workbench.executable.pipelines import OFFLOAD
from workbench.executable.request import make_request, options_of
from workbench.executable.sources import layered_source, ready_source

__all__ = [
    "OFFLOAD",
    "PHASES",
    "Executable",
    "Progress",
    "compile_and_write",
    "compile_request",
    "compile_traced",
    "layered_source",
    "make_request",
    "options_of",
    "ready_source",
]
