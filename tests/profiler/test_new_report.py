"""Adding a report or an export touches one file: dropped into its folder, a profile has it by its name."""

from __future__ import annotations

from pathlib import Path

from tests.extended import extended, run
from tests.profiler.added import EXPORT, REPORT
from tests.profiler.handmade import handmade_profile

SCRIPT = """
import sys
import workbench as wb

profile = wb.load_profile(sys.argv[1])
print(profile.longest.name, profile.longest is profile.longest, {"longest", "to_names"} <= set(dir(profile)))
print(profile.longest.sentence)
print(len(profile.longest.data["steps"]), "<pre>" in profile.longest._repr_mimebundle_()["text/html"])
profile.to("names", sys.argv[2], mark="*")
profile.to_names(sys.argv[3])
"""


def test_a_report_and_an_export_are_one_file_each(tmp_path: Path) -> None:
    profile = handmade_profile()
    added = {"profiler/reports/longest.py": REPORT, "profiler/export/names.py": EXPORT}
    saved, marked, plain = profile.save(tmp_path / "a.wbprofile"), tmp_path / "marked", tmp_path / "plain"
    lines = run(extended(tmp_path, added), SCRIPT, str(saved), str(marked), str(plain))
    longest = profile.steps.nlargest(3, "cycles")["name"].iloc[0]
    assert lines == ["longest True True", f"{longest} is the longest step", "3 True"]
    assert marked.read_text().splitlines() == [f"* {name}" for name in profile.steps["name"]]
    assert plain.read_text().startswith("- ")
