"""What a fresh clone holds: notebooks stored executed and small, a lock that matches, no file that is too big."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_NOTEBOOK_BYTES = 1_000_000
MAX_FILE_BYTES = 2_000_000
GENERATED = re.compile(r"\.(pyc|pkl|pickle|so|whl|wbprofile)$|(^|/)(build|\.venv|__pycache__)/")
EARLIER = "tests/data/profiles/version_"  # what earlier versions wrote, which this one has to read

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@each_notebook
def test_notebook_is_stored_executed(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell["outputs"] for cell in cells)


def test_the_picture_of_the_readme_says_what_the_first_notebook_says() -> None:
    """Its verdict, which `make picture` writes into the file as text, stands in the notebook as it was last run."""
    image = (ROOT / "docs" / "resnet50.png").read_bytes()
    start = image.index(b"tEXtVerdict\0")
    length = int.from_bytes(image[start - 4 : start], "big")
    verdict = image[start + len(b"tEXtVerdict\0") : start + 4 + length].decode("latin-1")
    assert verdict.startswith("Fits: worst tile")
    stored = (ROOT / "notebooks" / "00-first-look.ipynb").read_text(encoding="utf-8")
    assert [part for part in verdict.split(". ") if part not in stored] == []


@each_notebook
def test_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < MAX_NOTEBOOK_BYTES


@each_notebook
def test_notebook_names_its_kernel(path: Path) -> None:
    """Without a kernelspec JupyterLab stops at a dialog."""
    assert read(path)["metadata"]["kernelspec"]["name"] == "python3"


@each_notebook
def test_notebook_shows_no_unmeant_error(path: Path) -> None:
    unmeant = [
        f"cell {cell['execution_count']}: {output['ename']}: {output['evalue']}"
        for cell in code_cells(path)
        if "raises-exception" not in cell["metadata"].get("tags", [])
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]
    assert not unmeant


@each_notebook
def test_notebook_names_no_place_of_this_machine(path: Path) -> None:
    places = rf"(?:/home/|/Users/|/tmp/|/root/|{re.escape(str(ROOT))})\w*"
    assert not re.findall(places, path.read_text(encoding="utf-8"))


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["test"]]


def locked() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_lock_is_within_the_range(requirement: Requirement) -> None:
    assert locked()[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_range_has_two_ends(requirement: Requirement) -> None:
    assert {">=", "<"} <= {part.operator for part in requirement.specifier}


def test_no_generated_and_no_heavy_file() -> None:
    files = tracked_files()
    assert [name for name in files if GENERATED.search(name) and not name.startswith(EARLIER)] == []
    sizes = {name: (ROOT / name).stat().st_size for name in files if (ROOT / name).is_file()}
    assert {name: size for name, size in sizes.items() if size > MAX_FILE_BYTES} == {}


def test_readme_names_only_commands_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", readme, re.MULTILINE))
    commands = {first or second for first, second in named}
    assert {"lab", "test"} <= commands <= targets


# Tests


@cache
def modules(folder: Path) -> dict[str, ast.Module]:
    """Its Python files, read."""
    paths = sorted(path for path in folder.rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def taken_from_tests(tree: ast.Module) -> list[str]:
    """What a module imports from a file of tests, wherever in it."""
    found = []
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found += [name for name in names if re.match(r"tests\.(\w+\.)*test_", name)]
    return found


def test_what_tests_share_is_in_no_file_of_tests() -> None:
    """A helper that several files use has a module of its own beside them."""
    taken = {path: taken_from_tests(tree) for path, tree in modules(ROOT / "tests").items()}
    assert {path: names for path, names in taken.items() if names} == {}


def test_a_helper_from_a_file_of_tests_is_noticed() -> None:
    inside = "def f():\n    from tests.engine.test_run import a, b\n"
    source = inside + "import tests.test_lab\nfrom tests.engine import test_run"
    found = ["tests.test_lab", "tests.engine.test_run", "tests.engine.test_run.a", "tests.engine.test_run.b"]
    assert sorted(taken_from_tests(ast.parse(source))) == sorted(found)
    assert taken_from_tests(ast.parse("from tests.engine.small_graphs import Draft")) == []


# Names of others: Python's named tuples, Jupyter's faces, widgets' protocol, Graphcore's published classes, Keras.
OTHERS_NAMES = re.compile(
    r"_(asdict|replace|repr_\w+_|esm|dom_classes|handle_custom_msg"
    r"|depth|all_metadata|type_spec|from_type_spec|gather_saveables_for_checkpoint|inverted_res_block)$"
)


TAKE_A_NAME = ("setattr", "getattr", "delattr", "hasattr", "object", "multiple")  # the last two of mock.patch


def is_private(name: object) -> bool:
    return isinstance(name, str) and bool(re.match(r"_[a-zA-Z]", name)) and not OTHERS_NAMES.match(name)


def private_names(tree: ast.Module) -> list[str]:
    """Names with an underscore in front that a test imports from the package, reads or patches.

    Modules of `ipu` and `tf` may have one: it keeps them from those who look for what TensorFlow's users know.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("workbench"):
            is_face = str(node.module).startswith(("workbench.ipu", "workbench.tf"))
            parts = [] if is_face else str(node.module).split(".")
            names = [alias.name for alias in node.names if not (is_face and is_module(f"{node.module}.{alias.name}"))]
            found += [name for name in [*parts, *names] if is_private(name)]
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            found += [] if of_itself else [node.attr]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in TAKE_A_NAME:
            given = [each.value for each in node.args if isinstance(each, ast.Constant)]
            found += [name for name in [*given, *(each.arg for each in node.keywords)] if is_private(name)]
    return found


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_no_test_knows_what_is_private() -> None:
    """What a test must reach is a seam: it has a public name. Files of tests use their own names as they like."""
    known = {path: private_names(tree) for path, tree in modules(ROOT / "tests").items()}
    assert {path: names for path, names in known.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from workbench.engine.memory.liveness import _numbers", ["_numbers"]),
        ("from workbench.engine.vertices._popops import supports", ["_popops"]),
        ("from workbench.tf import _graph, _none", ["_none"]),
        ("monkeypatch.setattr(module, '_step', 1)", ["_step"]),
        ("mock.patch.multiple(module, _few=1, FEW=2)", ["_few"]),
        ("found.states._first", ["_first"]),
        ("self._first, row._asdict(), module.__name__", []),
    ],
)
def test_a_private_name_is_noticed(source: str, names: list[str]) -> None:
    assert private_names(ast.parse(source)) == names


TO_WRITE: list[str] = []  # packages whose docstring does not say yet where their tests are


def places_named(docstring: str) -> list[str]:
    """The places after "Tests:" in a package's docstring."""
    return [found.rstrip("./") for found in re.findall(r"tests/[\w/.]*", docstring.partition("Tests:")[2])]


def without_tests(docstring: str) -> str:
    """What is wrong with the places that a package's docstring names, "" if nothing is."""
    named = places_named(docstring)
    if not named:
        return "its docstring ends with no line `Tests: tests/...`"
    for place in named:
        path = ROOT / place
        if not (path.is_file() or any(path.rglob("test_*.py"))):
            return f"there is no test in {place}"
    return ""


def packages_with_code() -> dict[str, str]:
    """Docstrings of the packages that define something; those of TensorFlow's names alone only import."""
    found: dict[str, str] = {}
    for path, tree in modules(ROOT / "workbench").items():
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        if [name for name in defined if name not in ("__getattr__", "__dir__")]:
            package = Path(path).parent
            init = modules(ROOT / "workbench")[str(package / "__init__.py")]
            found[str(package)] = ast.get_docstring(init) or ""
    return found


def test_a_package_says_where_its_tests_are() -> None:
    told = {package: without_tests(docstring) for package, docstring in packages_with_code().items()}
    assert len(told) > 40
    missing = {package: wrong for package, wrong in told.items() if wrong}
    assert {package: wrong for package, wrong in missing.items() if package not in TO_WRITE} == {}
    assert [package for package in TO_WRITE if package not in missing] == []


@pytest.mark.parametrize(
    ("docstring", "wrong"),
    [
        ("Rooms. Tests: tests/engine, and tests/test_tiles.py.", ""),
        ("Rooms. See tests/engine.", "its docstring ends with no line `Tests: tests/...`"),
        ("Tests: tests/nowhere.", "there is no test in tests/nowhere"),
        ("Tests: tests/engine and tests/data/.", "there is no test in tests/data"),
    ],
)
def test_a_package_that_names_no_tests_is_noticed(docstring: str, wrong: str) -> None:
    assert without_tests(docstring) == wrong
