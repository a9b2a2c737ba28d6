"""What a profile offers is looked up: reports once, exports and methods by name; the stub says what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_profile
from tests.profiler.stub import PATH, stub
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.profile import Profile
from workbench.profiler.registry import exports, methods, reports
from workbench.profiler.words import ON_PROFILES

ROOT = Path(__file__).parents[2]


def test_a_report_is_made_once() -> None:
    profile = handmade_profile()
    for name in reports:
        assert getattr(profile, name) is getattr(profile, name)
        assert getattr(profile, name).name == name


def test_exports_are_known_by_two_names(tmp_path: Path) -> None:
    profile = handmade_profile()
    assert profile.to("json") == profile.to_json()
    assert profile.to("json", tmp_path / "a.json") == (tmp_path / "a.json").read_text() == profile.to_json()
    with pytest.raises(InputError, match=r"^path is 3\. Expected: "):
        profile.to("json", 3)
    assert profile.to("csv", tmp_path / "a") == [tmp_path / "a" / each.name for each in profile.to_csv(tmp_path / "b")]
    parts = profile.to("chrome_trace", tmp_path / "trace.json", events_per_file=4)
    assert [path.name for path in parts[:2]] == ["trace.json", "trace.2.json"]
    assert json.loads(parts[0].read_text())["traceEvents"]


def test_an_unknown_export_lists_those_there_are() -> None:
    with pytest.raises(WorkbenchError) as caught:
        handmade_profile().to("pdf", "a.pdf")
    assert str(caught.value) == "unknown export 'pdf'. Expected: one of: chrome_trace, csv, html, json, model_explorer."


def test_an_unknown_name_is_no_attribute() -> None:
    profile = handmade_profile()
    meant = "'Profile' object has no attribute 'memori': did you mean 'memory'?"
    with pytest.raises(AttributeError, match=f"^{re.escape(meant)}$"):
        profile.memori  # noqa: B018
    with pytest.raises(AttributeError, match=r"^'Profile' object has no attribute 'nothing_like_it'$"):
        profile.nothing_like_it  # noqa: B018
    with pytest.raises(AttributeError, match=r"'workbench' has no attribute 'profil': did you mean 'profile'\?$"):
        wb.profil  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'PipelinStage': did you mean 'PipelineStage'\?$"):
        wb.ipu.keras.PipelinStage  # noqa: B018
    assert not hasattr(profile, "_repr_png_")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("verdict", "did you mean 'summary'?"),
        ("oom", "did you mean 'fits'?"),
        ("max_memory", "did you mean 'max_tile_bytes'?"),
        ("diagnose", "write wb.diagnose(profile)"),
        ("run", "an executable has it, which wb.compile returns: executable.run"),
    ],
)
def test_what_another_name_has_is_said(name: str, told: str) -> None:
    """By spelling alone `verdict` was taken for `vector`."""
    with pytest.raises(AttributeError) as caught:
        getattr(handmade_profile(), name)
    assert str(caught.value) == f"'Profile' object has no attribute {name!r}: {told}"


def test_the_names_that_are_said_are_there() -> None:
    profile = handmade_profile()
    for name, there in ON_PROFILES.items():
        assert name not in dir(profile)
        assert there in dir(profile)


def test_an_error_inside_a_table_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(profile: Profile) -> None:
        raise AttributeError("'dict' object has no attribute 'rows'")

    monkeypatch.setattr(Profile, "tiles", property(broken))
    with pytest.raises(AttributeError, match="'dict' object has no attribute 'rows'"):
        handmade_profile().tiles  # noqa: B018


def test_completion_lists_everything() -> None:
    found = set(dir(handmade_profile()))
    assert found >= {*reports, *methods, *(f"to_{name}" for name in exports), "tiles", "to", "save", "explain"}


def test_nothing_registered_hides_behind_a_part_of_the_profile() -> None:
    own = {name for kind in Profile.__mro__ for name in vars(kind)} | set(Profile.__dataclass_fields__)
    assert not own & {*reports, *methods}
    assert not set(reports) & set(methods)


def test_help_is_that_of_the_function() -> None:
    assert "interrupted save" in (handmade_profile().save.__doc__ or "")
    assert "Bytes of every tile" in (handmade_profile().memory.__doc__ or "")


def test_the_stub_is_as_new_as_the_registries() -> None:
    assert PATH.read_text(encoding="utf-8") == stub(), "a report, an export or a method was changed: run `make stub`"


def test_editors_complete_from_the_stub() -> None:
    jedi = pytest.importorskip("jedi")
    source = "import workbench as wb\nprofile = wb.load_profile('a')\nprofile.memory.by_c"
    script = jedi.Script(source, project=jedi.Project(ROOT))
    assert [each.name for each in script.complete()] == ["by_category"]
    live = jedi.Interpreter("profile.", [{"profile": handmade_profile()}])
    assert {each.name for each in live.complete()} >= {*reports, *methods}


def test_the_type_checker_knows_reports_and_refuses_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    file.write_text(
        "from workbench.profiler.profile import Profile\n\n\ndef use(profile: Profile) -> None:\n"
        "    reveal_type(profile.memory)\n    reveal_type(profile.to_csv('a'))\n    profile.memori\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", ".mypy_cache"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, cwd=ROOT, timeout=280)
    assert "workbench.profiler.reports.memory.Memory" in done.stdout, done.stdout + done.stderr
    assert "list[pathlib.Path]" in done.stdout
    assert '"Profile" has no attribute "memori"' in done.stdout


def test_a_report_is_loaded_alone_when_it_is_asked_for(tmp_path: Path) -> None:
    handmade_profile().save(tmp_path / "a.wbprofile")
    source = (
        "import sys, workbench as wb\n"
        f"profile = wb.load_profile({str(tmp_path / 'a.wbprofile')!r})\nprofile.tiles\n"
        f"profile.save({str(tmp_path / 'b.wbprofile')!r})\n"
        "assert not [name for name in sys.modules if name.startswith('workbench.profiler.reports.')]\n"
        "profile.summary\nassert 'workbench.profiler.reports.summary' in sys.modules\n"
        "assert 'workbench.profiler.reports.memory' not in sys.modules\n"
        "assert not {'plotly', 'ipywidgets', 'workbench.widgets'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, cwd=ROOT, timeout=120)
