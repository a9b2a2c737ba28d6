"""Which primitives compute each element of the result from the same element of the operands, and as which PopLibs op.

The table serves the fusion pass, the elementwise family and the generic rule.
"""

from __future__ import annotations

from functools import lru_cache

from workbench.engine.graph import Node
from workbench.engine.graph.primitives import Kind, names

# primitive → PopLibs expression op (popops/ExprOp.hpp); the first four groups are unary, binary, comparison, other
UNARY = {
    "abs": "ABSOLUTE",
    "neg": "NEGATE",
    "exp": "EXPONENT",
    "exp2": "EXPONENT2",
    "expm1": "EXPONENT_MINUS_ONE",
    "log": "LOGARITHM",
    "log1p": "LOGARITHM_ONE_PLUS",
    "tanh": "TANH",
    "logistic": "SIGMOID",
    "sqrt": "SQRT",
    "rsqrt": "RSQRT",
    "cbrt": "CBRT",
    "square": "SQUARE",
    "sign": "SIGNUM",
    "sin": "SIN",
    "cos": "COS",
    "tan": "TAN",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "round": "ROUND",
    "erf": "ERF",
    "not": "BITWISE_NOT",
    "is_finite": "IS_FINITE",
    "population_count": "POPCOUNT",
    "clz": "COUNT_LEADING_ZEROS",
    "asin": "ASIN",
}
BINARY = {
    "add": "ADD",
    "add_any": "ADD",
    "sub": "SUBTRACT",
    "mul": "MULTIPLY",
    "div": "DIVIDE",
    "max": "MAXIMUM",
    "min": "MINIMUM",
    "pow": "POWER",
    "rem": "REMAINDER",
    "atan2": "ATAN2",
    "and": "BITWISE_AND",
    "or": "BITWISE_OR",
    "xor": "BITWISE_XOR",
    "shift_left": "SHIFT_LEFT",
    "shift_right_logical": "SHIFT_RIGHT",
    "shift_right_arithmetic": "SHIFT_RIGHT_SIGN_EXTEND",
}
COMPARE = {
    "eq": "EQUAL",
    "ne": "NOT_EQUAL",
    "lt": "LESS_THAN",
    "le": "LESS_THAN_EQUAL",
    "gt": "GREATER_THAN",
    "ge": "GREATER_THAN_EQUAL",
    "eq_to": "EQUAL",
    "lt_to": "LESS_THAN",
    "le_to": "LESS_THAN_EQUAL",
}
OF_BOOLEANS = {"and": "LOGICAL_AND", "or": "LOGICAL_OR", "not": "LOGICAL_NOT"}  # in place of those of bits
OTHER = {
    "select_n": "SELECT",
    "clamp": "CLAMP",
    "convert_element_type": "CAST",
    "integer_pow": "POWER_INTEGER",
    "reduce_precision": "CAST",
}
# Functions PopLibs has no operation for, as the operations that compute them.
_POLYNOMIAL = ("MULTIPLY", "ADD")
_ZETA = (
    "NEGATE",
    *("ADD", "POWER", "ADD") * 9,
    "MULTIPLY",
    "SUBTRACT",
    "DIVIDE",
    "MULTIPLY",
    *("MULTIPLY", "DIVIDE", "ADD", "MULTIPLY") * 12,
)
COMPOSED = {
    "erfc": ("ERF", "SUBTRACT"),
    "acos": ("ASIN", "SUBTRACT"),
    "atan": ("ATAN2",),
    "sinh": ("EXPONENT", "INVERSE", "SUBTRACT", "MULTIPLY"),
    "cosh": ("EXPONENT", "INVERSE", "ADD", "MULTIPLY"),
    "asinh": ("SQUARE", "ADD", "SQRT", "ADD", "LOGARITHM"),
    "acosh": ("SQUARE", "SUBTRACT", "SQRT", "ADD", "LOGARITHM"),
    "atanh": ("ADD", "SUBTRACT", "DIVIDE", "LOGARITHM", "MULTIPLY"),
    "nextafter": ("EQUAL", "LESS_THAN", "SELECT", "ADD", "SELECT"),
    # Lanczos' approximation with eight coefficients, as XLA expands both; the reflection for negative arguments.
    "lgamma": (
        "LOGARITHM_ONE_PLUS",
        *("ADD", "DIVIDE", "ADD") * 8,
        "LOGARITHM",
        "MULTIPLY",
        "ADD",
        "ADD",
        "ABSOLUTE",
        "FLOOR",
        "SUBTRACT",
        "SIN",
        "LOGARITHM",
        "SUBTRACT",
        "SELECT",
    ),
    "digamma": (
        "LOGARITHM_ONE_PLUS",
        *("ADD", "DIVIDE", "ADD", "DIVIDE", "ADD") * 8,
        "DIVIDE",
        "SUBTRACT",
        "ADD",
        "FLOOR",
        "SUBTRACT",
        "TAN",
        "DIVIDE",
        "SUBTRACT",
        "SELECT",
    ),
    # The upper half of a product of 32 bits, from four products of halves.
    "mulhi": (
        *("SHIFT_RIGHT", "BITWISE_AND") * 2,
        *("MULTIPLY",) * 4,
        *("ADD", "SHIFT_RIGHT") * 3,
        "ADD",
    ),
    # Polynomials of degree 6 near zero, 8 beyond (Abramowitz and Stegun 9.8.1 to 9.8.4), times a power of e or a root.
    "bessel_i0e": (
        "ABSOLUTE",
        "SQUARE",
        *_POLYNOMIAL * 6,
        "EXPONENT",
        "MULTIPLY",
        "INVERSE",
        *_POLYNOMIAL * 8,
        "RSQRT",
        "MULTIPLY",
        "SELECT",
    ),
    "bessel_i1e": (
        "ABSOLUTE",
        "SQUARE",
        *_POLYNOMIAL * 6,
        "MULTIPLY",
        "EXPONENT",
        "MULTIPLY",
        "INVERSE",
        *_POLYNOMIAL * 8,
        "RSQRT",
        "MULTIPLY",
        "SELECT",
        "SIGNUM",
        "MULTIPLY",
    ),
    # Nine terms and twelve of Euler and Maclaurin's correction, as XLA expands it (openxla/xla xla/hlo/builder/lib/
    # math.cc Zeta); polygamma is it times a factorial.
    "zeta": (*_ZETA, "SELECT"),
    "polygamma": (*_ZETA, "SELECT", "ADD", "LOGARITHM", "EXPONENT", "MULTIPLY", "REMAINDER", "SELECT"),
    # Giles, "Approximating the erfinv function" (2010): a logarithm, then a polynomial of degree 8.
    "erf_inv": ("SQUARE", "SUBTRACT", "LOGARITHM", "NEGATE", "SUBTRACT", *_POLYNOMIAL * 8, "MULTIPLY"),
}
COMPUTE = names(Kind.POINTWISE)
RESHAPES = names(reshapes=True)
FREE = names(Kind.FREE)  # say where a value comes from: constants, broadcasts, counters


def is_pointwise(node: Node) -> bool:
    """Whether the node computes element by element over its result's shape.

    Operands may be scalars, or have axes of size 1 that repeat.
    """
    if node.op not in COMPUTE:
        return False
    wanted = node.results[0].shape
    others = [shape for value in node.operands if (shape := value.shape) and shape != wanted]
    return not others or all(_repeats_to(shape, wanted) for shape in others)


def _repeats_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(own in (1, size) for own, size in zip(shape, wanted, strict=True))


def is_unit_reshape(node: Node) -> bool:
    """Whether the node only adds or drops axes of size 1."""
    if node.op not in RESHAPES or not node.operands:
        return False
    return squeezed(node.operands[0].shape) == squeezed(node.results[0].shape)


@lru_cache(maxsize=1024)
def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without its axes of size 1."""
    return tuple(size for size in shape if size != 1)


def is_free(node: Node) -> bool:
    """Whether the node only says where a value comes from (a constant, a broadcast, a counter)."""
    return node.op in FREE


def expression_ops(node: Node) -> list[tuple[str, str]]:
    """The (PopLibs op, operand dtype) pairs that one execution per element costs."""
    dtype = node.operands[-1].dtype if node.operands else node.results[0].dtype
    if node.op == "integer_pow":
        exponent = abs(int(node.attr("y", 2)))
        multiplies = max(0, exponent.bit_length() - 1 + bin(exponent).count("1") - 1)
        inverse = [("INVERSE", dtype)] if int(node.attr("y", 2)) < 0 else []
        squares = [("SQUARE", dtype)] if exponent == 2 else [("MULTIPLY", dtype)] * multiplies
        return squares + inverse
    if node.op in COMPOSED:
        return [(op, dtype) for op in COMPOSED[node.op]]
    if dtype == "bool" and node.op in OF_BOOLEANS:
        return [(OF_BOOLEANS[node.op], dtype)]
    for table in (UNARY, BINARY, COMPARE, OTHER):
        if node.op in table:
            return [(table[node.op], dtype)]
    return []
