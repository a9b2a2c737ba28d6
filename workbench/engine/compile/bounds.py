"""What no table or view could tell any more is refused with its number, before it is tried.

Whole numbers up to 2^53 are exact as the doubles of JSON and of a view's script; 2^53 bytes are 9 petabytes, as many
cycles are 78 days.
"""

from __future__ import annotations

from workbench.base.whole import MOST_EXACT
from workbench.engine.graph import Graph
from workbench.engine.time.trace import Trace
from workbench.errors import InputError


def refuse_large_values(graph: Graph) -> None:
    """An `InputError` for a value of more than 2^53 bytes, by what makes it and its layer."""
    for function in graph.functions.values():
        for value in function.params:
            if value.size_bytes > MOST_EXACT:
                raise _too_large(f"an input of shape {value.shape}", value.size_bytes)
        for node in function.nodes:
            for value in node.results:
                if value.size_bytes > MOST_EXACT:
                    where = f" in {node.origin.layer}" if node.origin.layer else ""
                    raise _too_large(f"{node.op}{where} makes an array of shape {value.shape}", value.size_bytes)


def refuse_long_runs(trace: Trace) -> None:
    """An `InputError` for a program that takes more than 2^53 cycles or runs a step more often."""
    if trace.total_cycles > MOST_EXACT:
        raise _too_long(f"one run takes {trace.total_cycles:,} cycles")
    runs = max(trace.executions.values(), default=0)
    if runs > MOST_EXACT:
        raise _too_long(f"one run runs a step {runs:,} times")


def _too_large(what: str, size_bytes: int) -> InputError:
    return InputError(f"{what} of {size_bytes:,} B", expected=f"at most {MOST_EXACT:,} B", todo="make it smaller")


def _too_long(what: str) -> InputError:
    return InputError(what, expected=f"at most {MOST_EXACT:,}", todo="repeat less in one run")
