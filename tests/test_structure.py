"""What an operation is stands in one table and in its family: lists of operator names elsewhere say why they are."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import workbench
from workbench.engine import ops
from workbench.engine.graph.primitives import PRIMITIVES

PACKAGE = Path(workbench.__file__).parent
TABLE = "engine/graph/primitives.py"
FILES = [str(path.relative_to(PACKAGE)) for path in sorted((PACKAGE / "engine").rglob("*.py"))]


@cache
def claimed() -> dict[str, frozenset[str]]:
    """The operations that the families of each file look at."""
    found: dict[str, frozenset[str]] = {}
    for _, family in ops.load().items():
        file = str(Path(inspect.getfile(type(family))).relative_to(PACKAGE))
        found[file] = found.get(file, frozenset()) | family.ops
    return found


@cache
def operators() -> frozenset[str]:
    return frozenset(PRIMITIVES).union(*claimed().values())


def lists_of_operators(source: str, own: frozenset[str] = frozenset()) -> Iterator[tuple[int, list[str]]]:
    """Lines with a set, tuple or list of operator names alone, but for a family's own and those named for their reason.

    That is: the comment right above the statement holds "because".
    """
    lines = source.splitlines()
    for statement in statements(ast.parse(source)):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
            continue  # each of several names is given its own
        for node in ast.walk(statement):
            if not isinstance(node, ast.Set | ast.Tuple | ast.List) or len(node.elts) < 2:
                continue
            found = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(found) < len(node.elts) or not operators().issuperset(found) or own.issuperset(found):
                continue
            if "because" not in comment_above(lines, statement.lineno).lower():
                yield node.lineno, found


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of a module and of what is defined in it, each with no other inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not any(isinstance(each, ast.stmt) for each in ast.iter_child_nodes(node)):
            yield node
        elif isinstance(node, ast.If | ast.While | ast.For):
            yield ast.copy_location(ast.Expr(node.iter if isinstance(node, ast.For) else node.test), node)


def comment_above(lines: list[str], number: int) -> str:
    found: list[str] = []
    while number >= 2 and lines[number - 2].lstrip().startswith("#"):
        found.append(lines[number - 2].strip())
        number -= 1
    return " ".join(reversed(found))


def test_no_list_of_operator_names_stands_beside_the_table() -> None:
    found = [
        f"{name}:{line} {names}"
        for name in FILES
        if name != TABLE
        for line, names in lists_of_operators((PACKAGE / name).read_text(), claimed().get(name, frozenset()))
    ]
    assert not found, "\n".join(
        ["take kinds and traits of the table, or say in the comment above because of what these and no others:", *found]
    )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('VIEWS = frozenset({"reshape", "squeeze"})', [(1, ["reshape", "squeeze"])]),
        ('def f(node):\n    if node.op in ("mul", "div"):\n        return 1', [(2, ["mul", "div"])]),
        ('def f(node):\n    return node.op in ["mul", "div"]', [(2, ["mul", "div"])]),
        ('# Because the driver has these alone.\nWEAK = {"mul", "div"}', []),
        ('# what divides\nWEAK = {"mul", "div"}', [(2, ["mul", "div"])]),
        ('for name in ("mul", "div"):\n    pass', [(1, ["mul", "div"])]),
        ('LOAD, STORE = "remote_load", "remote_store"', []),
        ('OWN = ("dot_general", "scan")', [(1, ["dot_general", "scan"])]),
        ('NAMED = {"mul": 1, "div": 2}', []),
        ('DIRECTIONS = ("forward", "backward")', []),
    ],
)
def test_the_count_finds_them(source: str, found: list[tuple[int, list[str]]]) -> None:
    assert sorted(lists_of_operators(source)) == found


def test_a_familys_own_names_may_stand_in_its_file() -> None:
    assert not list(lists_of_operators('if op in ("split", "unstack"): pass', claimed()["engine/ops/views.py"]))


def test_nobody_asks_a_family_for_its_name() -> None:
    asked = re.compile(r"family(?:_of\(\w+\))?\.name (?:==|!=|in|not in) ")
    files = [name for name in FILES if name != "engine/ops/__init__.py"]  # the registry, which ranks them by name
    found = [name for name in files if asked.search((PACKAGE / name).read_text())]
    assert not found, f"{found} ask what a family is called; give it a trait"


# Public classes of the engine that have a name twice, and why a reader is not led into the wrong room.
HOMONYMS = dict.fromkeys(
    ("ComputeSet", "Function", "If", "Repeat", "Sequence", "Step", "Tensor"),
    "`by_hand` is the face of `wb.tiles`, whose words are Poplar's as those of programs and mappings are",
)


def public_classes() -> dict[str, list[str]]:
    """Files of the engine by the name of a class that they define at their top."""
    found: dict[str, list[str]] = {}
    for name in FILES:
        for node in ast.parse((PACKAGE / name).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    return found


def test_no_two_public_classes_of_the_engine_have_one_name() -> None:
    found = {name: files for name, files in public_classes().items() if len(files) > 1}
    assert {name: files for name, files in found.items() if name not in HOMONYMS} == {}, "rename one of each"
    assert set(HOMONYMS) <= set(found), "what is no longer there twice is taken from the list"


DTYPE_TABLE = "base/dtypes.py"
WORDS = {"float32", "float16", "int32", "uint32", "float", "half", "unsigned int"}


def tables_of_types(source: str) -> list[int]:
    """Lines of dictionaries from names of element types to their bytes, or to another name of theirs."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Dict) or len(node.keys) < 2:
            continue
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        values = [value.value if isinstance(value, ast.Constant) else None for value in node.values]
        named = all(value in WORDS for value in values) or (values, keys) == ([4, 2], ["float", "half"])
        sized = all(value in (1, 2, 4, 8) for value in values) and len(values) > 2
        if all(isinstance(key, str) and key in WORDS | {"quarter", "bool"} for key in keys) and (named or sized):
            found.append(node.lineno)
    return found


def test_element_types_stand_in_one_table() -> None:
    files = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))]
    found = [f"{name}:{line}" for name in files for line in tables_of_types((PACKAGE / name).read_text())]
    assert found == [], f"take it from {DTYPE_TABLE}"
    assert 'ElementType(name="float32"' in (PACKAGE / DTYPE_TABLE).read_text()


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('WORDS = {"float32": "float", "float16": "half"}', [1]),
        ('BYTES = {"float": 4, "half": 2, "quarter": 1}', [1]),
        ('CYCLES = {"float": (15, 8), "half": (36, 23)}', []),
    ],
)
def test_the_count_finds_tables_of_types(source: str, lines: list[int]) -> None:
    assert tables_of_types(source) == lines


def calls_of_id(source: str) -> list[int]:
    """Lines where an object's number is taken in place of the object, called or handed on."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    taken = [name for call in calls for name in (call.func, *_handed_to_a_mapper(call))]
    return sorted(name.lineno for name in taken if isinstance(name, ast.Name) and name.id == "id")


def _handed_to_a_mapper(call: ast.Call) -> list[ast.expr]:
    mappers = ("map", "filter", "sorted", "min", "max")
    asked = isinstance(call.func, ast.Name) and call.func.id in mappers
    return [*call.args, *(keyword.value for keyword in call.keywords)] if asked else []


def test_nothing_is_known_by_its_number() -> None:
    """Values, nodes and functions are keys themselves; what does not hash by itself stands in `base/identity.py`."""
    found = [f"{name}:{line}" for name in FILES for line in calls_of_id((PACKAGE / name).read_text())]
    assert not found, found


def test_a_number_would_be_found() -> None:
    assert calls_of_id("table = {id(value): 1}\nnames = map(id, nodes)\nstep.id\nid: int = 0") == [1, 2]
