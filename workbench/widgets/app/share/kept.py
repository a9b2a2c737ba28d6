"""Results that are kept in a folder beside the notebook, as profile files: read as data, never run.

Names of files are a time and a random part, nothing of what was compiled.
"""

from __future__ import annotations

import re
import time
import uuid
from pathlib import Path

from workbench.base.files import made_folder
from workbench.base.text import shown
from workbench.errors import WorkbenchError
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile, save_profile

FOLDER = "workbench-history"
MOST_FILES = 48  # the latest; the earliest of those we named gives way to a new one
_NAMED = re.compile(r"\d{8}-\d{6}-\d{3}-[0-9a-f]{8}\.wbprofile")


class Kept:
    """Profiles in `folder`, by default `workbench-history` where the kernel runs, which is where its notebook lies."""

    def __init__(self, folder: str | Path = FOLDER) -> None:
        self.folder = Path(folder)
        self._known: set[str] = set()  # files that were read or written
        self._held: list[Profile] = []  # what is in them

    def files(self) -> list[Path]:
        """The files that were kept here, the earliest first; others, links too, are none of ours."""
        if not self.folder.is_dir():
            return []
        found = (each for each in self.folder.iterdir() if _NAMED.fullmatch(each.name))
        return sorted(each for each in found if each.is_file() and not each.is_symlink())

    def keep(self, profile: Profile) -> None:
        """Write a profile beside those that are there, unless it is one of them."""
        if any(each is profile for each in self._held):
            return
        made_folder(self.folder)
        now = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now * 1000) % 1000:03d}"
        path = save_profile(profile, self.folder / f"{name}-{uuid.uuid4().hex[:8]}.wbprofile")
        self._note(path, profile)
        for each in self.files()[:-MOST_FILES]:
            each.unlink(missing_ok=True)

    def read(self, most: int) -> tuple[list[Profile], list[str]]:
        """The latest profiles that were not read or written before, the earliest first; and a line for each file that
        holds none. The folder is made, so that one that cannot be is told before there is anything to keep."""
        made_folder(self.folder)
        profiles: list[Profile] = []
        problems: list[str] = []
        for path in [each for each in self.files() if each.name not in self._known][-most:]:
            try:
                profile = load_profile(path)
            except (WorkbenchError, OSError) as error:
                problems.append(shown(str(error)))
                continue
            profiles.append(profile)
            self._note(path, profile)
        return profiles, problems

    def _note(self, path: Path, profile: Profile) -> None:
        self._known.add(path.name)
        self._held = [*self._held, profile][-MOST_FILES:]


__all__ = ["FOLDER", "Kept"]
