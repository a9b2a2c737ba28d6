"""What the call stack of an equation tells: the named library function it is part of, and the user's line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from workbench.base.source.lines import is_library, line_name

# The functions of JAX whose equations one kernel computes; aliases of one function share a region.
KNOWN_REGIONS: Mapping[str, str] = {
    "softmax": "softmax",
    "_softmax": "softmax",
    "_softmax_deprecated": "softmax",
    "log_softmax": "log_softmax",
    "logsumexp": "logsumexp",
    "batch_normalization": "batch_normalization",
    "relu": "relu",
    "relu6": "relu6",
    "gelu": "gelu",
    "silu": "silu",
    "swish": "silu",
    "sigmoid": "sigmoid",
    "softplus": "softplus",
    "elu": "elu",
    "leaky_relu": "leaky_relu",
    "selu": "selu",
    "hard_swish": "hard_swish",
    "hard_sigmoid": "hard_sigmoid",
    "hard_silu": "hard_silu",
    "mish": "mish",
    "celu": "celu",
    "_var": "_var",
    "_std": "_std",
    "one_hot": "one_hot",
    "_one_hot": "one_hot",
    "_uniform": "_uniform",
    "_bernoulli": "_bernoulli",
    "_normal": "_normal",
    "_truncated_normal": "_truncated_normal",
}

_NAMED_FILES = ("/jax/_src/nn/functions.py", "/jax/_src/ops/special.py", "/jax/_src/random.py")


@dataclass(slots=True)
class Frames:
    """Reads tracebacks, remembering what it learned about each code object."""

    regions: dict[CodeType, str] = field(default_factory=dict)
    library: dict[CodeType, bool] = field(default_factory=dict)
    known: dict[Any, tuple[str, str]] = field(default_factory=dict)

    def _region(self, code: CodeType) -> str:
        if code.co_filename.replace(os.sep, "/").endswith(_NAMED_FILES):
            return KNOWN_REGIONS.get(code.co_name, "")
        return ""

    def read(self, traceback: Any) -> tuple[str, str]:
        """Region (the outermost known function) and source line (the innermost frame outside the libraries)."""
        if traceback is None:
            return "", ""
        if traceback not in self.known:  # equal stacks are equal: every call of a layer class has the same
            self.known[traceback] = self._read(traceback)
        return self.known[traceback]

    def _read(self, traceback: Any) -> tuple[str, str]:
        codes, offsets = traceback.raw_frames()
        region, source = "", ""
        regions, library = self.regions, self.library
        for code, offset in zip(codes, offsets, strict=True):
            if code not in library:
                library[code] = is_library(code.co_filename)
                regions[code] = self._region(code)
            region = regions[code] or region
            if not library[code]:
                source = line_name(code.co_filename, _line(code, offset))
                break
        return region, source


def _line(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
