"""What leaves the app and comes back: the page, profile files by drop, the kept history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.evil import EVIL
from workbench.profiler.export.html import MAX_BYTES
from workbench.profiler.storage import profile_bytes, save_profile
from workbench.widgets import linked
from workbench.widgets.app import App
from workbench.widgets.app.share import FOLDER, Kept
from workbench.widgets.app.share import kept as kept_module
from workbench.widgets.app.share.panel import MOST_BYTES, SharePanel, file_name


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.chdir(tmp_path)
    return App("mlp")


def send(panel: SharePanel, content: Any, *buffers: bytes) -> None:
    """What ipywidgets does with a message from the browser."""
    panel._handle_custom_msg(content, list(buffers))


def drop(panel: SharePanel, data: bytes, name: str = "a.wbprofile", part: int = 1_000) -> None:
    for offset in range(0, len(data), part):
        message = {"do": "load", "name": name, "size": len(data), "offset": offset}
        send(panel, message, data[offset : offset + part])


def heard(panel: SharePanel, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    sent: list[tuple[Any, Any]] = []
    monkeypatch.setattr(panel, "send", lambda content, buffers=None: sent.append((content, buffers)))
    return sent


def test_a_dropped_profile_is_shown_and_stands_in_the_history(app: App) -> None:
    profile = handmade_profile()
    drop(app.share, profile_bytes(profile))
    assert [each.profile.name for each in app.history.entries] == [profile.name]
    assert app.results.children[0].profile.total_cycles == profile.total_cycles
    assert profile.name in app.bar.shown.value
    assert app.share.state["said"] == "a.wbprofile is shown"
    assert app.diagnose_button.disabled  # it was not compiled here
    drop(app.share, profile_bytes(handmade_pipeline()))
    assert len(app.history.entries) == 2
    app.history.compare(app.history.entries[0])
    assert app.history.compared is not None


@pytest.mark.parametrize("data", [b"no profile", b"PK\x03\x04 broken", b"{}"])
def test_what_is_no_profile_is_told_and_changes_nothing(app: App, data: bytes) -> None:
    drop(app.share, profile_bytes(handmade_profile()))
    before = app.results.children[0]
    drop(app.share, data)
    assert "is not a whole profile file" in app.share.state["problem"]
    assert app.results.children[0] is before
    assert len(app.history.entries) == 1


@pytest.mark.parametrize(
    "message",
    [
        "drop",
        {"do": "load", "name": "a", "size": "10", "offset": 0},
        {"do": "load", "name": "a", "size": 10, "offset": 5},
        {"do": "load", "name": "a", "size": 2, "offset": 0},
        {"do": "load", "size": True, "offset": False},
        {"do": "file", "kind": "../../etc/passwd"},
        {"do": "nothing"},
    ],
)
def test_other_messages_change_nothing(app: App, message: Any) -> None:
    before = app.share.state
    send(app.share, message, b"12345")
    assert app.share.state == before
    assert app.history.entries == []


def test_a_file_that_is_too_large_is_refused_at_its_first_part(app: App) -> None:
    send(app.share, {"do": "load", "name": EVIL, "size": MOST_BYTES + 1, "offset": 0}, b"x")
    assert f"expected: at most {MOST_BYTES:,}".lower() in app.share.state["problem"].lower()


def test_the_page_has_the_diagnosis_the_comparison_and_the_code(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    for profile in (handmade_profile(), handmade_pipeline()):
        drop(app.share, profile_bytes(profile))
    app.history.compare(app.history.entries[0])
    sent = heard(app.share, monkeypatch)
    send(app.share, {"do": "file", "kind": "html"})
    (content, (data,)) = sent[0]
    text = data.decode("utf-8")
    assert content == {"file": file_name(app.history.entries[1].profile.name, "html"), "type": "text/html"}
    assert len(data) <= MAX_BYTES
    assert 'id="view-comparison"' in text
    assert 'id="view-summary"' in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    send(app.share, {"do": "file", "kind": "profile"})
    name, (data,) = sent[1][0]["file"], sent[1][1]
    assert name.endswith(".wbprofile")
    assert data == profile_bytes(app.history.entries[1].profile)


def test_nothing_is_shared_before_there_is_a_result(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = heard(app.share, monkeypatch)
    send(app.share, {"do": "file", "kind": "html"})
    assert [content for content, _ in sent] == [{"refused": True}]
    assert "there is no result yet" in app.share.state["problem"]
    assert not app.share.state["ready"]


@pytest.mark.parametrize("name", [EVIL, "../../../etc/passwd", "", "...", "a/b\\c", "x" * 500, "ü" * 20])
def test_names_of_files_are_plain(name: str) -> None:
    found = file_name(name, "html")
    assert found.endswith(".html")
    assert len(found) <= 65
    assert not set(found) & set("/\\<>&\"'\0")
    assert not found.startswith(".")


# The history in the notebook's folder


def test_results_are_kept_when_the_user_says_so_and_read_again(app: App, tmp_path: Path) -> None:
    drop(app.share, profile_bytes(handmade_profile()))
    assert not (tmp_path / FOLDER).exists()
    send(app.share, {"do": "keep", "on": True})
    assert app.share.state["keeping"]
    assert len(Kept(tmp_path / FOLDER).files()) == 1
    other = App("mlp")
    drop(other.share, profile_bytes(handmade_pipeline()))
    shown = other.history.current
    assert shown is not None
    send(other.share, {"do": "keep", "on": True})
    assert [each.number for each in other.history.entries] == [1, 2]
    assert [each.profile.name for each in other.history.entries] == [handmade_profile().name, handmade_pipeline().name]
    assert other.history.current is other.history.entries[1]
    assert other.history.current.profile is shown.profile
    assert len(Kept(tmp_path / FOLDER).files()) == 2
    for on in (False, True):  # nothing is read or written twice
        send(other.share, {"do": "keep", "on": on})
    assert len(other.history.entries) == len(Kept(tmp_path / FOLDER).files()) == 2


def test_what_is_no_profile_in_the_folder_is_told_and_the_others_are_read(app: App, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    good = save_profile(handmade_profile(), folder / "20260101-000000-000-00000000.wbprofile")
    (folder / "20260101-000001-000-00000000.wbprofile").write_bytes(good.read_bytes()[:200])
    (folder / "20260101-000002-000-00000000.wbprofile").symlink_to(good)
    (folder / "notes.wbprofile").write_text("mine", encoding="utf-8")
    send(app.share, {"do": "keep", "on": True})
    assert len(app.history.entries) == 1
    assert app.share.state["problem"].count("is not a whole profile file") == 1


def test_a_folder_that_cannot_be_made_is_told_and_nothing_is_kept(app: App, tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file", encoding="utf-8")
    for results in (0, 1):
        assert len(app.history.entries) == results
        send(app.share, {"do": "keep", "on": True})
        assert "is no folder" in app.share.state["problem"]
        assert not app.share.state["keeping"]
        drop(app.share, profile_bytes(handmade_profile()))


def test_whatever_the_folder_s_system_says_is_told_each_time(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(most: int) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(app.kept, "read", refuse)
    sent = heard(app.share, monkeypatch)
    for turn in (1, 2):  # the box is unticked again, though the state says what it said before
        send(app.share, {"do": "keep", "on": True})
        assert "Permission denied" in app.share.state["problem"]
        assert not app.share.state["keeping"]
        assert [content for content, _ in sent] == [{"refused": True}] * turn


def test_a_profile_that_cannot_be_drawn_is_told_and_not_brought(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(app.share, profile_bytes(handmade_profile()))
    before, entry = app.results.children, app.history.current

    def refuse(*arguments: Any) -> Any:
        raise KeyError(EVIL)

    monkeypatch.setattr(linked, "profile_view", refuse)
    drop(app.share, profile_bytes(handmade_pipeline()))
    assert "KeyError" in app.share.state["problem"]
    assert (app.results.children, app.history.current, len(app.history.entries)) == (before, entry, 1)


def test_the_earliest_of_our_files_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "MOST_FILES", 3)
    kept = Kept(tmp_path / "here")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.txt").write_text("stays", encoding="utf-8")
    names = []
    for _ in range(5):
        kept.keep(handmade_profile())
        names += [each.name for each in kept.files() if each.name not in names]
    assert len(names) == 5
    assert {each.name for each in kept.files()} < set(names)
    assert len(kept.files()) == 3
    assert (tmp_path / "here" / "mine.txt").exists()
