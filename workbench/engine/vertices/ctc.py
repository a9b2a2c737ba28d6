"""PopNN connectionist temporal classification: one step in time over the symbols of a label, in the log domain."""

from __future__ import annotations

from workbench.engine.vertices import codelet

_SOURCE = "poplibs@7eac0f26 lib/popnn/PerformanceEstimation.hpp"
_LOG_ADD = 4 + 1 + 3 + 1 + 6 + 1  # order both, subtract, exp, add one, log, add
_LOG_MULTIPLY = 1
# A symbol and the blank before it: a write and three reads each, two sums, two products, the test of a repetition.
_STEP = 2 * 4 + 2 * (_LOG_ADD + _LOG_MULTIPLY) + 2
# The gradient of both besides: two writes and a read each, one product, one sum.
_GRADIENT = 2 * 3 + 2 * (_LOG_MULTIPLY + _LOG_ADD)
_FLOPS = 2 * (6 + 1)


def _ctc_codelet(name: str, line: int, each: int, flops_each: int, pointers: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{_SOURCE}:{line}",
        formula=f"{each} a symbol of the label",
        state_bytes=lambda **_: 8 + 4 * pointers + 24,
        code_bytes=1200,
        flops=lambda *, label: flops_each * label,
    )
    def ctc_cycles(*, label: int) -> int:
        """Worker cycles of one time step over `label` symbols (the field holds a neighbour more)."""
        return each * label


_ctc_codelet("popnn::CTCAlpha", 388, _STEP, _FLOPS, 10)
_ctc_codelet("popnn::CTCBeta", 409, _STEP, _FLOPS, 10)
_ctc_codelet("popnn::CTCGradGivenAlpha", 415, _STEP + _GRADIENT, 2 * _FLOPS, 13)
_ctc_codelet("popnn::CTCGradGivenBeta", 441, _STEP + _GRADIENT, 2 * _FLOPS, 13)
