"""The JavaScript of the views under node."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from workbench.widgets.kit import assets


def run(node: str, *arguments: str, text: str = "") -> str:
    done = subprocess.run([node, *arguments], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluate(node: str, source: str) -> Any:
    """The JSON that a module prints; it may import from the folder of the widgets as `from WIDGETS/...`."""
    folder = assets.FOLDER.as_uri()
    return json.loads(run(node, "--input-type=module", "-", text=source.replace("WIDGETS", folder)))
