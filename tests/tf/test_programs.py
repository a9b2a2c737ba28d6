"""Programs of the user guide and the API reference run with only their import lines changed.

In data/programs `tensorflow` became `workbench.tf` and `tensorflow.python.ipu` became `workbench.ipu`; lines that the
published listings lost (configure_ipu_system, set_use_resource, initialisers) are back; what a listing leaves open
(`...`, shapes, a machine of 16 tiles to be quick) is filled in from its own prose.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[1] / "data" / "programs"
# What each prints; the numbers of the tutorial are those printed there.
PRINTED = {
    "tutorial_basic_graph": "[3. 8.]",
    "tutorial_compiled_graph": "[array([3., 8.], dtype=float32)]",
    "tutorial_sharded_graph": "[array([ 4., 14.], dtype=float32)]",
    # 0.5 + x * 0.5, twice; the step counts updates, of which there are none
    "tutorial_variables": "[array([1. , 1.5], dtype=float32)]\n[array([1.5, 2.5], dtype=float32)]\n0",
    # a * a and, with 2 from the host, twice that
    "outside_compilation": "[ 4. 20.]",
    # twenty elements, from 2 to 21
    "outfeed_dequeue_tensor": "(20, 4, 4) 2.0 21.0 21.0",
    # sums of sixteen 2s and sixteen 3s
    "outfeed_dequeue_tuple": "tuple [(20, 4, 4), (20,)] [32. 48.]",
    # the last of forty sums is of sixteen 41s
    "outfeed_dequeue_dictionary": "{'x': (40, 4, 4), 'y': (40,)} 656.0",
    "outfeed_enqueue_tensor": "[1. 2. 3.] 20",
    "outfeed_enqueue_tuple": "[np.float32(20.0), np.float32(40.0)]",
    "outfeed_enqueue_dictionary": "{'output_1': np.float32(20.0), 'output_2': np.float32(40.0)}",
    # Four classes that look alike: the loss goes to ln 4. Elements are below 1: with those up to 3 the loss jumps from
    # update 20 on, and last bits of the sums decide where it ends
    "infeed_training_loop": "True",
    # 0 + 1 + 2 + 3 and four ones
    "selection_order": "[array([6., 4.], dtype=float32)]",
    "select_ipus": "(1,)\n(2, 2)\n(1, 2)\n(1,)\n(1,)\n(1, 1)\n(4, 4)\n(1, 1, 1, 1)",
    "export_dataset": "",
}


def test_every_program_is_run() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.txt")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_program(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    exec(compile(text, name, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed.strip() == PRINTED[name]


@pytest.mark.parametrize("name", PRINTED)
def test_only_modules_that_mirror_the_published_ones_are_imported(name: str) -> None:
    text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    roots = re.findall(r"^(?:from|import) ([\w.]+)", text, re.MULTILINE)
    assert {root.split(".")[0] for root in roots} <= {"workbench", "numpy"}
