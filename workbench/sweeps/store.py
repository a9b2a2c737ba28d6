"""Profiles of points by content, in a folder: a file each, so that a sweep that was interrupted goes on."""

from __future__ import annotations

import tempfile
from pathlib import Path

from workbench.base.files import made_folder, whole_file
from workbench.errors import InputError, ProfileFileError
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile, profile_from

SUFFIX = ".wbprofile"


class Store:
    """A folder of profiles by key; without one, a folder of its own that goes when the sweep does."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="workbench-sweep-") if folder is None else None
        self.folder = Path(folder).expanduser() if folder is not None else Path(self._own.name if self._own else "")
        made_folder(self.folder)
        self._latest: dict[str, Profile] = {}

    def path(self, key: str) -> Path:
        """Where the profile of a key lies."""
        return self.folder / f"{key}{SUFFIX}"

    def get(self, key: str) -> Profile | None:
        """The profile kept under a key; a file that cannot be read counts as not there."""
        if key not in self._latest:
            if not self.path(key).is_file():
                return None
            try:
                self._remember(key, load_profile(self.path(key)))
            except ProfileFileError:
                return None
        return self._latest[key]

    def keep(self, key: str, content: bytes) -> Profile:
        """Write a profile file, whole or not at all, and give its profile.

        Errors: `InputError` where it cannot be written.
        """
        try:
            with whole_file(self.path(key)) as file:
                file.write(content)
        except OSError as error:
            raise InputError(
                f"cannot write {str(self.path(key))!r}: {error}",
                todo="make room and call the sweep again with this folder: what is there is not compiled again",
            ) from None
        found = profile_from(content)
        self._remember(key, found)
        return found

    def _remember(self, key: str, profile: Profile) -> None:
        self._latest[key] = profile
        while len(self._latest) > KEPT:
            del self._latest[next(iter(self._latest))]


KEPT = 8  # profiles in memory; the others are read again

__all__ = ["Store"]
