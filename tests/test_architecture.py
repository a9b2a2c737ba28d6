"""Imports point one way, files stay small, and a profile file can never run code: read from the source itself."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "workbench"
MAX_LINES = 600
MAX_FUNCTION_LINES = 60
# Its signature is the SDK's, with 28 parameters, each of which is handed on under a shorter name.
AS_LONG_AS_THE_SDKS = {"workbench/ipu/ops/pipelining_ops.py pipeline"}
MAX_MODULES = 15
REGISTRIES = ("engine/ops", "engine/vertices", "engine/passes", "profiler/reports", "profiler/export", "widgets/views")

# The rooms of the package, lowest first: each may import from itself and from those above it in this list. A room is
# a folder or a module; the longest name that holds a module is its room.
ROOMS = (
    "base.text",
    "base.source.lines",
    "base.source.tracebacks",
    "errors",
    "base",
    "engine.remembered",
    "engine.cost",
    "engine.target",
    "engine.options",
    "engine.mapping",
    "engine.vertices",
    "engine.pipeline_schedule",
    "engine.graph",
    "engine.program",
    "engine.time",
    "engine.memory",
    "engine.emit",
    "engine.planner",
    "engine.ops",
    "engine.passes",
    "engine.lower",
    "engine.by_hand",
    "engine.frontends.describe",
    "engine.frontends.expand",
    "engine.frontends.trace",
    "engine.frontends.numbers",
    "engine.frontends.ready",
    "engine.frontends.step",
    "engine.frontends.staging",
    "engine.frontends",
    "engine.run",
    "engine.compile",
    "engine",
    "datasets",
    "tiles",
    "profiler.schema",
    "profiler.places",
    "profiler.interning",
    "profiler.tables",
    "profiler.fidelity",
    "profiler.memory",
    "profiler.exchanges",
    "profiler.timeline",
    "profiler.operators",
    "profiler.report",
    "profiler.registry",
    "profiler.words",
    "profiler.offers",
    "profiler.validity",
    "profiler.profile",
    "profiler.collect",
    "profiler.storage",
    "profiler.export",
    "profiler.advice",
    "profiler.reports",
    "profiler",
    "ipu.config",
    "ipu.devices",
    "tf",
    "ipu",
    "ipu.keras",
    "ipu.ipu_strategy",
    "executable",
    "splits",
    "sweeps",
    "widgets.kit",
    "widgets.face",
    "widgets.carried",
    "widgets.linked",
    "widgets.views",
    "widgets.app",
    "widgets",
    "lab",
    "api",
    "magics",
    "cli",
    "__main__",
)
RANK = {room: rank for rank, room in enumerate(ROOMS)}

# Analysis reads profiles. One module turns engine types into a profile; three compile again, through a function given.
PROFILER_MAY_IMPORT_ENGINE = ("workbench.profiler.collect",)
FRAMEWORKS = ("jax", "jaxlib", "keras")
FRAMEWORK_FREE = ("errors", "base", "tiles", "datasets", "profiler", "widgets")
ENGINE_WITH_FRAMEWORKS = ("workbench.engine.frontends.", "workbench.engine.run.")
FRAMEWORK_INTERNALS = ("jax._src", "keras.src")
CODE_RUNNING_FORMATS = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import of `target` (a dotted module) by `module`, at `line`."""

    module: str
    target: str
    line: int
    level: int = 0


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(module: str, source: str) -> Iterator[Import]:
    """Every import in the source, at any depth; `from a import b` counts as `a.b`, which may be a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module=module, target=alias.name, line=node.lineno)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                target = f"{node.module or ''}.{alias.name}"
                yield Import(module=module, target=target, line=node.lineno, level=node.level)


def room(module: str) -> str:
    """The longest room that holds a module: `workbench.engine.graph.flow` is in `engine.graph`."""
    name = module.removeprefix("workbench").removeprefix(".")
    while name and name not in RANK:
        name = name.rpartition(".")[0]
    return name


def layer(module: str) -> str:
    """`workbench.engine.graph` is in layer `engine`; the package itself is above all and in none."""
    parts = module.split(".")
    return parts[1] if parts[0] == "workbench" and len(parts) > 1 else ""


def within(target: str, names: tuple[str, ...]) -> bool:
    return any(target == name or target.startswith(name + ".") for name in names)


def upward(item: Import) -> str | None:
    if item.module == "workbench" or not within(item.target, ("workbench",)):
        return None
    own, other = room(item.module), room(item.target)
    if not other:
        return "imports the package itself, or a name only its front door has"
    if RANK[other] > RANK[own]:
        return f"points up, from {own} to {other}"
    return None


def past_the_profile(item: Import) -> str | None:
    if layer(item.target) != "engine" or layer(item.module) not in ("profiler", "widgets"):
        return None
    if within(item.module, PROFILER_MAY_IMPORT_ENGINE):
        return None
    return "sees the engine; reports and views see the profile only"


def framework(item: Import) -> str | None:
    if within(item.target, FRAMEWORK_INTERNALS) and item.module != "workbench.engine.frontends.trace.jaxpr":
        return "reaches what is not public; only frontends/trace/jaxpr.py may"
    if not within(item.target, FRAMEWORKS):
        return None
    if layer(item.module) == "engine" and not (item.module + ".").startswith(ENGINE_WITH_FRAMEWORKS):
        return "in the engine only frontends/ and run.py import jax or keras"
    if layer(item.module) in FRAMEWORK_FREE:
        return "must work without jax and keras"
    return None


def code_running(item: Import) -> str | None:
    return "reads or writes a format that can run code" if within(item.target, CODE_RUNNING_FORMATS) else None


def relative(item: Import) -> str | None:
    return "is relative; write the full path" if item.level else None


RULES = {rule.__name__: rule for rule in (upward, past_the_profile, framework, code_running, relative)}
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]


def breaches(rule: str, module: str, source: str) -> list[str]:
    found = ((item, RULES[rule](item)) for item in imports_of(module, source))
    return [f"line {item.line}: {item.target} {reason}" for item, reason in found if reason is not None]


@pytest.mark.parametrize("rule", RULES)
def test_imports(rule: str) -> None:
    found = [
        f"{name} {text}"
        for name, path in zip(NAMES, FILES, strict=True)
        for text in breaches(rule, module_name(path), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [
        ("upward", "workbench.engine.graph", "from workbench.profiler import collect"),
        ("upward", "workbench.profiler.profile", "def f():\n    import workbench.widgets.views.trace"),
        ("upward", "workbench.tiles", "import workbench"),
        ("past_the_profile", "workbench.profiler.profile", "from workbench.engine.time.trace import Trace"),
        ("past_the_profile", "workbench.profiler.reports.memory", "from workbench import engine"),
        ("past_the_profile", "workbench.widgets.views.trace", "from workbench.engine import liveness"),
        ("framework", "workbench.engine.passes.plan", "import jax.numpy as jnp"),
        ("framework", "workbench.engine.running", "import jax"),
        ("framework", "workbench.tiles", "from keras import ops"),
        ("framework", "workbench.engine.frontends.keras", "from keras.src import backend"),
        ("code_running", "workbench.profiler.profile", "import pickle"),
        ("relative", "workbench.engine.graph", "from . import origin"),
    ],
)
def test_each_rule_can_fail(rule: str, module: str, source: str) -> None:
    assert len(breaches(rule, module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("workbench.api", "from workbench.engine.compile import compile_graph"),
        ("workbench.profiler.collect", "from workbench.engine.time.trace import Trace"),
        ("workbench.engine.frontends.trace.jaxpr", "from jax._src import core"),
        ("workbench.engine.run", "import jax"),
        ("workbench.base.registry", "from workbench.errors import WorkbenchError"),
    ],
)
def test_rules_allow_what_the_design_allows(module: str, source: str) -> None:
    assert [text for rule in RULES for text in breaches(rule, module, source)] == []


def test_every_module_has_a_room() -> None:
    lost = [module for path in FILES if (module := module_name(path)) != "workbench" and not room(module)]
    assert not lost, f"in no room of ROOMS: {lost}"


def test_every_room_is_there() -> None:
    modules = set(map(module_name, FILES))
    assert not [name for name in ROOMS if f"workbench.{name}" not in modules]


def named_in_text(module: str, source: str) -> Iterator[tuple[str, str]]:
    """Room of the file and room of a module of ours that a string in it names; f-strings count up to their value."""
    named = re.compile(r"workbench(\.\w+)+\.?")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value):
            yield room(module), room(node.value.rstrip("."))


def test_no_string_names_a_module_above() -> None:
    found = {
        (own, other)
        for path in FILES
        for own, other in named_in_text(module_name(path), path.read_text(encoding="utf-8"))
        if own and other and RANK[other] > RANK[own]
    }
    assert not found


def test_a_string_that_names_a_module_above_would_be_seen() -> None:
    source = 'import_module("workbench.ipu.utils"); f"workbench.widgets.{name}"; "workbench is light"'
    assert set(named_in_text("workbench.tf.session", source)) == {("tf", "ipu"), ("tf", "widgets")}


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of files that import each other, directly or not (strongly connected components of more than one)."""
    order = finishing_order(edges)
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            back[target].add(name)
    found, seen = [], set[str]()
    for name in reversed(order):
        group, waiting = [], [name]
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen.add(each)
                group.append(each)
                waiting += back[each]
        found += [sorted(group)] if len(group) > 1 else []
    return found


def finishing_order(edges: Mapping[str, set[str]]) -> list[str]:
    """The files, each after all it reaches for the first time: finishing order of a walk in depth."""
    order, seen = list[str](), set[str]()
    for start in edges:
        walk = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while walk:
            rest = walk[-1][1]
            fresh = next((target for target in rest if target not in seen), None)
            if fresh is None:
                order.append(walk.pop()[0])
            else:
                seen.add(fresh)
                walk.append((fresh, iter(edges[fresh])))
    return order


def arrows() -> dict[str, set[str]]:
    """Every file with the files of ours it imports, at any depth and for types only too."""
    modules = {module_name(path): path for path in FILES}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        items = imports_of(name, path.read_text(encoding="utf-8"))
        targets = {item.target if item.target in modules else item.target.rpartition(".")[0] for item in items}
        found[name] = (targets & set(modules)) - {name}
    return found


def test_no_circle_of_files() -> None:
    assert not circles(arrows())


def test_a_circle_would_be_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_nothing_allows_or_calls_pickle() -> None:
    found = []
    for name, path in zip(NAMES, FILES, strict=True):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                allowed = not (isinstance(node.value, ast.Constant) and node.value.value is False)
                found += [f"{name}:{node.value.lineno} allow_pickle"] * allowed
            if isinstance(node, ast.Attribute) and node.attr in ("read_pickle", "to_pickle"):
                found.append(f"{name}:{node.lineno} {node.attr}")
    assert not found, "\n".join(found)


def test_files_stay_readable() -> None:
    sources = [path for suffix in ("py", "js", "css") for path in PACKAGE.rglob(f"*.{suffix}")]
    counts = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert not {str(name): count for name, count in counts.items() if count > MAX_LINES}


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: saying more of it makes it no longer."""
    first = node.body[0]
    doc = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - doc


def test_functions_stay_readable() -> None:
    found = {
        f"{name} {node.name}"
        for name, path in zip(NAMES, FILES, strict=True)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > MAX_FUNCTION_LINES
    }
    assert found == AS_LONG_AS_THE_SDKS


def test_a_docstring_makes_no_function_longer() -> None:
    (node,) = ast.parse('def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x').body
    assert isinstance(node, ast.FunctionDef)
    assert lines_of(node) == 4


def test_folders_stay_small() -> None:
    """A growth gets a room, not a longer prefix; a registry's folder has as many files as there are kinds of things."""
    folders = {path.parent for path in FILES}
    counts = {
        str(folder.relative_to(PACKAGE)): sum(path.stem != "__init__" for path in folder.glob("*.py"))
        for folder in folders
    }
    full = {name for name, count in counts.items() if count > MAX_MODULES and name not in REGISTRIES}
    assert not full


def modules_loaded_by(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter after `statement`."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_workbench_is_light() -> None:
    loaded = modules_loaded_by("import workbench")
    assert loaded & {*FRAMEWORKS, "pandas", "plotly", "ipywidgets"} == set()


def test_all_that_needs_no_framework_loads_none() -> None:
    """All but the frontends, `run`, the mirrored API and the calls of a notebook work where jax and keras do not."""
    modules = [
        module
        for module in map(module_name, FILES)
        if layer(module) in (*FRAMEWORK_FREE, "engine", "cli", "lab")
        and not (module + ".").startswith(ENGINE_WITH_FRAMEWORKS)
    ]
    assert modules_loaded_by("import " + ", ".join(modules)) & set(FRAMEWORKS) == set()


def test_a_heavy_import_would_be_seen() -> None:
    assert "json" in modules_loaded_by("import json")
    assert "keras" not in modules_loaded_by("import json")
