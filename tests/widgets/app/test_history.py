"""Results of an app, kept as chips that are shown again and compared."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import comm
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.advice.diagnose import diagnose
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.app import App
from workbench.widgets.app import app as app_module
from workbench.widgets.app.form.run import OPTIMIZERS, OWN
from workbench.widgets.app.history import KEPT, History, told_apart
from workbench.widgets.views.diagnosis import DiagnosisView


@pytest.fixture
def app() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    return app


def compiled(app: App, batch_size: int) -> Any:
    app.run.batch_size.value = batch_size
    app.compile()
    assert app.wait(120)
    assert app.error is None
    return app.profile


def looked_at(app: App) -> None:
    """What a page says when it has loaded the results' rooms, and has two of them in sight."""
    rooms = [later.room for later in app.results.children[0].children[-1].children if later.room is not None]
    for number, room in enumerate(rooms):
        room._handle_custom_msg({"loaded": True}, [])
        if number < 2:
            room._handle_custom_msg({"seen": True}, [])


def texts(app: App) -> list[str]:
    return [each.children[0].description for each in app.history.box.children]


def test_a_second_result_makes_chips_that_say_what_changed(app: App) -> None:
    first = compiled(app, 4)
    assert texts(app) == []  # the results say it
    second = compiled(app, 8)
    named, changed = texts(app)
    assert named.startswith("1 · mlp\nfits, ")
    assert changed.startswith("2 · batch size 8\nfits, ")
    assert [each.profile for each in app.history.entries] == [first, second]


def test_a_chip_shows_its_result_and_the_last_compile_stays_the_state(app: App) -> None:
    compiled(app, 4)
    second = compiled(app, 8)
    app.history.box.children[0].children[0].click()
    assert "batch size 4" in app.bar.shown.value
    assert "the form has changed since" in app.bar.form.value
    assert app.profile is second
    assert app.diagnose_button.disabled  # it would be of the other
    assert app.diagnose_button.tooltip.startswith("Only of the last compile")
    app.history.box.children[1].children[0].click()
    assert "changed since" not in app.bar.form.value
    assert not app.diagnose_button.disabled
    assert app.diagnose_button.tooltip.startswith("Try what may")


def chip(app: App, place: int) -> Any:
    return app.history.box.children[place].children[0]


def test_a_stored_app_is_of_the_result_that_is_shown(app: App) -> None:
    first = compiled(app, 4)
    app.run.mode.value = "inference"
    compiled(app, 8)
    app.diagnose()
    assert app.wait(300)
    second, diagnosis = app.html(), face("diagnosis").html(app.diagnosis)
    assert diagnosis in second
    chip(app, 0).click()
    assert app.html() == "".join(face(name).html(getattr(first, name)) for name in linked.shown(first))
    assert str(app) == str(first)
    chip(app, 1).click()
    assert app.html() == second
    other = App()
    other.bring(first)  # nothing was compiled there
    assert str(other) == str(first)


def batch_of_what_if(app: App) -> str:
    """The batch size that What if says it begins from, of its sentence, its slider and its picture."""
    knob = next(each for each in app.whatif.knobs if each["name"] == "batch_size")
    (bytes_now,) = (each for each in app.whatif.data["heads"] if each["label"] == "Fullest tile")
    assert bytes_now["before"] == bytes_now["after"]
    batch: str = knob["texts"][knob["compiled"]]
    assert f"batch size {batch} " in app.whatif.state["from"]
    (of,) = (each for each in app.history.entries if each.profile.meta["batch_size"] == int(batch))
    assert of.profile.max_tile_bytes == bytes_now["before"]
    return batch


def test_what_if_begins_from_the_result_that_is_shown(app: App) -> None:
    compiled(app, 4)
    app.whatif._handle_custom_msg({"do": "open"}, [])
    compiled(app, 64)
    assert batch_of_what_if(app) == "64"
    chip(app, 0).click()
    assert batch_of_what_if(app) == "4"
    app.whatif._handle_custom_msg({"do": "move", "name": "batch_size", "at": 0, "done": True}, [])
    assert app.whatif.wait(60)
    assert app.whatif.profile.meta["batch_size"] == 1
    assert app.whatif.profile.meta["config_changed"] == {"ipu_model.tiles_per_ipu": 16}
    chip(app, 1).click()
    assert batch_of_what_if(app) == "64"


def test_what_was_not_compiled_here_has_no_what_if(app: App) -> None:
    profile = compiled(app, 4)
    other = App()
    other.whatif._handle_custom_msg({"do": "open"}, [])
    other.bring(profile)
    assert (other.whatif.state["from"], other.whatif.knobs, other.whatif.data) == ("", [], {})


def test_the_end_of_the_last_work_is_not_said_beside_another_result(app: App) -> None:
    compiled(app, 4)
    compiled(app, 8)
    chip(app, 0).click()
    assert app.progress.data["state"] == "shown"
    assert app.progress.data["text"] == "Result 1 is shown: mlp fits"
    app.run.stages.value = app.run.stages.options[-1]
    app.options.controls["auto_select_ipus"].value = 2
    app.run.replicas.value = 3
    app.compile()  # which is refused: two IPUs are not three replicas
    chip(app, 1).click()
    assert app.progress.data["state"] == "failed"


def test_the_diagnosis_stands_beside_what_it_is_of_alone(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(app, 4)
    compiled(app, 8)
    go_on, came = threading.Event(), threading.Event()

    def held(executable: Any, request: Any, *, progress: Any, so_far: Any) -> Any:
        def heard(found: Any) -> None:
            so_far(found)
            came.set()
            assert go_on.wait(60)

        return diagnose(executable, request, progress=progress, so_far=heard)

    monkeypatch.setattr(app_module, "diagnose", held)
    app.diagnose()
    try:
        assert came.wait(60)
        assert isinstance(app.mending.children[0], DiagnosisView)
        chip(app, 0).click()
        assert app.mending.children == ()
    finally:
        go_on.set()
    assert app.wait(300)
    assert app.mending.children == ()  # what came since is not of what is shown either
    assert app.progress.data["text"].startswith("Of result 2, not of what is shown: ")
    chip(app, 1).click()
    (view,) = app.mending.children
    assert view.data["sentence"] == app.diagnosis.sentence


def test_how_a_fix_is_taken_back_and_what_was_read_come_back_with_their_result(app: App) -> None:
    compiled(app, 4)
    app.run.mode.value = "inference"
    compiled(app, 4)
    app.diagnose()
    assert app.wait(300)
    applied = app.diagnosis.fixes[0].fix
    app.apply(0)
    assert app.wait(120)
    reads = app.options.panel.state["reads"]
    assert [each.description for each in app.mending.children] == [f"Undo: {applied}"]
    assert app.mending.children[0].tooltip.startswith(f"Take back: {applied}. ")
    chip(app, 0).click()
    assert app.mending.children == ()
    assert app.options.panel.state["reads"] == app.history.entries[0].basis.reads
    chip(app, 2).click()
    assert [each.description for each in app.mending.children] == [f"Undo: {applied}"]
    assert app.options.panel.state["reads"] == reads
    app.undo()
    assert isinstance(app.mending.children[0], DiagnosisView)
    assert app.profile is app.history.entries[1].profile


def test_what_was_moved_is_taken_over_from_what_is_shown_not_from_the_form_since(app: App) -> None:
    compiled(app, 4)
    app.run.optimizer.value = "adam"
    compiled(app, 8)
    app.run.precision.value = "float16"
    chip(app, 0).click()
    app.whatif._handle_custom_msg({"do": "move", "name": "batch_size", "at": 1, "done": True}, [])
    assert app.whatif.wait(60)
    drawn = app.whatif.profile
    app.whatif._handle_custom_msg({"do": "take"}, [])
    assert app.wait(120)
    assert (drawn.meta["batch_size"], app.run.optimizer.value, app.run.precision.value) == (2, OPTIMIZERS[0], OWN)
    assert app.profile is not None
    assert (app.profile.max_tile_bytes, app.profile.total_cycles) == (drawn.max_tile_bytes, drawn.total_cycles)
    app.picker.box.selected_index = 1
    app.whatif._handle_custom_msg({"do": "take"}, [])
    assert "the form has another model than what is shown" in app.whatif.state["problem"]


def test_a_fix_is_applied_to_what_was_diagnosed(app: App) -> None:
    app.run.mode.value = "inference"
    compiled(app, 4)
    app.diagnose()
    assert app.wait(300)
    fix = app.diagnosis.fixes[0]
    app.run.batch_size.value = 64
    app.apply(0)
    assert app.wait(120)
    assert app.error is None
    assert app.profile is not None
    assert app.profile.max_tile_bytes == fix.verified_bytes
    app.undo()
    assert app.run.batch_size.value == 64  # the form as it was
    app.picker.box.selected_index = 1
    app.apply(0)
    assert "the form has another model" in str(app.error)
    assert app.run.batch_size.value == 64


def test_two_results_are_compared_the_earlier_first_and_closed_again(app: App) -> None:
    compiled(app, 4)
    compiled(app, 8)
    app.history.box.children[0].children[1].click()
    before, after = app.history.compared or (None, None)
    assert before is not None
    assert after is not None
    assert (before.number, after.number) == (1, 2)
    head, view = app.history.comparison.children
    assert "1 against 2: batch size 8" in head.children[0].value
    named, numbers = view.data["sentences"][0].split(": ", 1)
    assert named.startswith("2 · batch size 8 against 1 · ")
    assert wb.compare(before.profile, after.profile).sentence.endswith(f": {numbers}")
    head.children[1].click()
    assert app.history.comparison.children == ()


def compared(app: App) -> list[bool]:
    """Of every chip whether it offers to compare its result."""
    return [each.children[1].layout.visibility != "hidden" for each in app.history.box.children]


def test_a_chip_that_is_pressed_as_the_row_is_drawn_again_is_told_of_it(app: App) -> None:
    compiled(app, 4)
    compiled(app, 8)
    pressed = app.history.box.children[0].children[0]
    app.history.box.children[0].children[1].click()
    app.history.close()
    assert app.history.box.children[0].children[0] is pressed
    pressed.click()
    assert compared(app) == [False, True]
    app.history.box.children[1].children[0].click()
    assert compared(app) == [True, False]


def test_what_is_shown_no_more_is_closed_with_all_its_parts(app: App) -> None:
    counts = []
    for turn in range(KEPT + 6):
        compiled(app, 4 + turn % 3)
        looked_at(app)
        counts.append(len(comm.get_comm_manager().comms))
    assert counts[-1] == counts[-4]


def test_the_open_tab_stays_over_compiles(app: App) -> None:
    compiled(app, 4)
    shown = app.results.children[0]
    tabs = shown.children[-1]
    tabs.selected_index = tabs.titles.index("Trace")
    compiled(app, 8)
    assert app.results.children[0].tab == "Trace"


def test_what_was_chosen_and_where_one_looked_stay_over_compiles(app: App) -> None:
    compiled(app, 4)
    assert app.profile is not None
    variables = app.profile.variables
    kernel = variables[variables["name"].str.endswith("kernel")].iloc[0]
    shown = app.results.children[0]
    before = shown.selection
    shown.selection.set_trait("variable", int(kernel["id"]))
    shown.selection.set_trait("layer", kernel["layer"])
    shown.selection.set_trait("tile", 3)
    compiled(app, 8)
    after = app.results.children[0]
    assert after.selection is not before
    chosen = after.selection.chosen()
    assert app.profile.variables.set_index("id").loc[chosen["variable"], "name"] == kernel["name"]
    assert (chosen["layer"], chosen["tile"]) == (kernel["layer"], 3)
    assert after.selection.kept == before.kept != ""


def test_a_compile_is_shown_by_the_widgets_of_the_one_before(app: App) -> None:
    """A page keeps something of every widget there ever was: only the selection is one of its own, and the first
    chips."""
    compiled(app, 4)
    shown, made = app.results.children[0], set()
    for turn in range(2 * KEPT):
        known = set(comm.get_comm_manager().comms)
        compiled(app, 4 + turn % 3)
        looked_at(app)
        made |= {(turn, each) for each in set(comm.get_comm_manager().comms) - known}
        assert app.results.children[0] is shown
        assert shown.profile is app.profile
    late = [turn for turn, _ in made if turn >= KEPT]
    assert sorted(late) == list(range(KEPT, 2 * KEPT))
    assert shown.selection.comm.comm_id in {each for _, each in made}


def test_a_forgotten_result_s_chip_is_the_newest_one_s(app: App) -> None:
    for turn in range(KEPT + 1):
        compiled(app, 4 + turn % 3)
    boxes = app.history.box.children
    assert len(boxes) == KEPT
    assert [each.children[0].description.split(" ")[0] for each in boxes] == [f"{n}" for n in range(2, KEPT + 2)]
    boxes[-2].children[0].click()
    assert app.history.current is app.history.entries[-2]
    boxes[-1].children[0].click()
    assert app.history.current is app.history.entries[-1]


def test_a_result_that_cannot_be_drawn_leaves_what_was_shown(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though half of it is drawn."""
    compiled(app, 4)
    was = app.profile
    shown = app.results.children[0]
    opened, drawn = shown.children[-1].children[0].see(), shown.view("summary").data
    again = linked.profile_view
    monkeypatch.setattr(f"{type(opened).__module__}.payload", lambda *given: 1 / 0)
    monkeypatch.setattr(linked, "profile_view", lambda *given: monkeypatch.undo() or again(*given))
    app.run.batch_size.value = 8
    app.compile()
    assert app.wait(120)
    assert isinstance(app.error, ZeroDivisionError)
    kept = app.results.children[0]
    assert kept.profile is was
    assert kept.view("summary").data == drawn
    assert kept.view(kept.names[-1]).selection is kept.selection
    assert shown.comm is None


def test_a_result_that_is_kept_is_marked_and_not_kept_twice() -> None:
    one, two = handmade_profile(), handmade_pipeline()
    history = History(lambda entry: None)
    for profile in (one, two, one):
        history.add(profile, "")
    assert [each.profile for each in history.entries] == [one, two]
    assert history.current is history.entries[0]
    history.compare(history.entries[0])
    assert history.compared is None  # with itself


def test_the_latest_are_kept() -> None:
    history = History(lambda entry: None)
    for _ in range(KEPT + 3):
        history.add(handmade_profile(), "")
    assert [each.number for each in history.entries] == list(range(4, KEPT + 4))


def test_what_tells_results_apart() -> None:
    one = handmade_profile()
    assert told_apart(None, one) == one.name
    assert told_apart(one, handmade_profile()) == "the same again"
    assert told_apart(one, handmade_pipeline()) == handmade_pipeline().name


def with_options(**changed: str) -> Profile:
    """The hand-made profile as if compiled with these options, whose dots are given as double underscores."""
    one = handmade_profile()
    options = {name.replace("__", "."): value for name, value in changed.items()}
    return replace(one, meta={**one.meta, "config_changed": {**one.meta["config_changed"], **options}})


def test_options_of_one_last_name_are_told_apart() -> None:
    matmuls, convolutions = with_options(matmuls__partialsType="half"), with_options(convolutions__partialsType="half")
    assert told_apart(handmade_profile(), matmuls) == "partialsType half"
    said = "convolutions.partialsType half, matmuls.partialsType as by default"
    assert told_apart(matmuls, convolutions) == said  # not "the same again"


def test_a_comparison_calls_its_results_as_their_chips_do(app: App) -> None:
    for batch_size in (2, 4, 8):
        compiled(app, batch_size)
    app.history.box.children[1].children[1].click()  # 2, with 3 that is shown
    view = app.history.comparison.children[1]
    assert view.data["labels"] == ["2 · batch size 4", "3 · batch size 8"]


def test_another_loss_optimizer_or_precision_is_told(app: App) -> None:
    compiled(app, 4)
    app.run.loss.value = "huber"
    compiled(app, 4)
    app.run.optimizer.value, app.run.precision.value = "adam", "float16"
    compiled(app, 4)
    app.run.loss.value = app.run.loss.options[0]
    compiled(app, 4)
    changes = [each.change for each in app.history.entries]
    assert changes == ["mlp", "loss huber", "precision float16, optimizer adam", "loss as by default"]
    earlier, later = (each.profile for each in app.history.entries[:2])
    options = wb.compare(earlier, later).options
    assert options[["option", "after"]].values.tolist() == [["loss", "huber"]]


def test_a_file_of_an_earlier_version_says_nothing_of_the_loss_and_none_is_told(app: App) -> None:
    app.run.loss.value = "huber"
    new = compiled(app, 4)
    old = replace(new, meta={name: value for name, value in new.meta.items() if name != "asked"})
    assert told_apart(old, new) == told_apart(new, old) == "the same again"
    assert wb.compare(old, new).options.empty


def test_another_machine_or_cut_is_told() -> None:
    """No option says them: a target that was given, and stages."""
    source, target = wb.ready("mlp", layers=3, hidden=16, input_size=16), wb.target("ipu2", tiles_per_ipu=8)
    given: dict[str, Any] = {"batch_size": 2, "target": target}
    plain = wb.profile(source, **given)
    bow = wb.profile(source, **{**given, "target": wb.target("bow", tiles_per_ipu=8)})
    small = wb.profile(source, **{**given, "target": target.replace(bytes_per_tile=64_000)})
    assert told_apart(plain, bow) == "target bow, 8 tiles"
    assert told_apart(plain, small) == "target ipu2, 8 tiles, bytes_per_tile=64000"
    options = wb.compare(plain, bow).options[["option", "before", "after"]].values.tolist()
    assert options == [["target", "ipu2, 8 tiles", "bow, 8 tiles"]]
    given["gradient_accumulation_steps"] = 2
    cuts = [wb.profile(source, **given, stages=[name]) for name in ("hidden_0", "hidden_1")]
    assert told_apart(*cuts) == "stages [hidden_1]"


def test_a_chip_of_other_layers_says_so() -> None:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    compiled(app, 4)
    first = app.picker.builder.layers()[0]
    app.picker.builder.insert(1, first)
    compiled(app, 4)
    app.picker.builder.insert(1, first)
    compiled(app, 4)
    compiled(app, 4)
    assert [each.change for each in app.history.entries] == ["mlp", "mlp_edited", "layers", "the same again"]


def test_samples_that_follow_from_micro_batches_are_told_where_they_change() -> None:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    compiled(app, 16)
    app.options.set({"pipeline.gradient_accumulation_steps": 4})
    compiled(app, 4)
    compiled(app, 8)
    assert [each.change for each in app.history.entries] == [
        "mlp",
        "batch size 4, gradient_accumulation_steps 4",  # 4 micro-batches of 4 are the 16 samples of before
        "batch size 8, samples a call 32",
    ]


def test_an_option_that_two_libraries_have_is_named_on_a_chip_as_in_the_form() -> None:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    compiled(app, 4)
    app.options.set({f"{group}.poplar_options.partialsType": "half" for group in ("matmuls", "convolutions")})
    compiled(app, 4)
    told = {"partialsType (matmuls) half", "partialsType (convolutions) half"}
    assert set(app.history.entries[1].change.split(", ")) == told
