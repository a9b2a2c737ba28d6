"""An argument acts or is refused: one that a public function never reads is named here, with what that is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import workbench as wb

PACKAGE = Path(wb.__path__[0])
HOME = ("engine", "widgets")  # their functions are told what each of a kind is told, and read what theirs needs

# Nothing here depends on them, and a program that says them means what happens anyway.
UNREAD = {
    **dict.fromkeys(
        (
            f"{file} find_spec {name}"
            for file in ("base/source/made_at.py", "ipu/_names.py", "tf/python/_imports.py")
            for name in ("path", "target")
        ),
        "the interface of Python's finders",
    ),
    "ipu/dataset_extractor.py import_variables is_input": "variables are inputs and outputs of a program both",
    "ipu/ipu_outfeed_queue.py dequeue wait_for_completion": "no program is running when Python goes on",
    "ipu/ipu_strategy.py non_slot_devices var_list": "one device has all variables",
    **dict.fromkeys(
        (
            f"ipu/keras/layers/{layer} training"
            for layer in (
                *("norms.py call", "norms.py compute_output_spec"),
                *("dropout.py compute_output_spec", "embedding.py call"),
            )
        ),
        "the interface of Keras' layers: training and inference are alike",
    ),
    "ipu/keras/_extensions/pipelined.py set_pipeline_stage_assignment pipeline_stage_assignment": (
        "a model whose layers call each other in Python refuses whatever it is given"
    ),
    "ipu/utils.py export_dataset_to_file apply_options": "a dataset's options change no element",
    **{
        f"ipu/keras/_execution/polling.py on_{mode}_batch_{at} {name}": "the interface of Keras' callbacks"
        for mode in ("train", "test", "predict")
        for at in ("begin", "end")
        for name in ("batch", "logs")
        if (at, name) != ("begin", "batch")
    },
    **dict.fromkeys(
        (f"tf/_graph/variables.py {name} use_locking" for name in ("assign", "assign_add", "assign_sub")),
        "an update is one step of a program",
    ),
    "tf/_ops/gradients.py gradients colocate_gradients_with_ops": "gradients always run where the operation does",
    "tf/_ops/gradients.py gradients gate_gradients": "the order of a program is the compiler's",
    "tf/_ops/gradients.py rule kept": "the interface of rules: this one keeps nothing",
    "tf/_ops/gradients.py slot first": "the interface of slots: this one begins at one or at zero",
    **dict.fromkeys(
        (f"tf/data/__init__.py {name} deterministic" for name in ("map", "batch")), "one element at a time, in order"
    ),
    "tf/data/__init__.py with_options options": "options of datasets change no element",
    "tf/data/_of_keras.py adapter shuffle": "Keras' fit always gives it, and a dataset is shuffled where it is made",
}


def unread(path: Path) -> Iterator[tuple[str, str, str]]:
    """Function, argument and annotation of what no line of a public function reads."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {
        id_of(each)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef)
        for each in ast.walk(outer)
        if each is not outer
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or id_of(function) in inner:
            continue
        if function.name.startswith("_") and function.name not in ("__init__", "__call__"):
            continue
        body = [each for each in function.body if not _says_nothing(each)]
        if not body or all(isinstance(each, ast.Raise | ast.Pass) for each in body):
            continue
        read = {each.id for line in body for each in ast.walk(line) if isinstance(each, ast.Name)}
        for given in _arguments(function):
            if given.arg not in read and given.arg not in ("self", "cls"):
                yield function.name, given.arg, ast.unparse(given.annotation) if given.annotation else ""


def id_of(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _says_nothing(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _arguments(function: ast.FunctionDef) -> Iterator[ast.arg]:
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from (each for each in (given.vararg, given.kwarg) if each is not None)


def found() -> dict[str, str]:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in HOME]
    return {
        f"{path.relative_to(PACKAGE)} {function} {argument}": annotation
        for path in paths
        for function, argument, annotation in unread(path)
    }


def test_no_argument_of_a_public_function_goes_unread_but_those_named() -> None:
    """One that is only ever None is refused by its annotation when it is anything else."""
    of_one_value = re.compile(r"None|Literal\[[^,]*\]")  # any other is refused where arguments are checked
    assert {name for name, annotation in found().items() if not of_one_value.fullmatch(annotation)} == set(UNREAD)


def test_what_is_only_ever_none_is_refused_when_it_is_not() -> None:
    """Functions with an argument annotated None check their arguments by annotation."""
    for name in (name for name, annotation in found().items() if annotation == "None"):
        path, function, _ = name.split(" ")
        tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
        for each in ast.walk(tree):
            if (
                isinstance(each, ast.FunctionDef)
                and each.name == function
                and name.split(" ")[2] in ast.dump(each.args)
            ):
                assert "checked" in {ast.unparse(decorator) for decorator in each.decorator_list}, name


def test_an_argument_that_is_not_read_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("def f(a, b, *c, d: None = None, **e):\n '''text'''\n return a + c[0]\ndef g(a):\n raise TypeError")
    assert list(unread(path)) == [("f", "b", ""), ("f", "d", "None"), ("f", "e", "")]
