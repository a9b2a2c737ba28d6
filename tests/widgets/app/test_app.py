"""The app without a browser: what its form asks for, how work runs, is stopped and told, and the drawn diagnosis."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import ipywidgets
import pytest

import workbench as wb
from tests.profiler.advice.fake_compiler import FakeCompiler, by_lever, over
from workbench.base.units import bytes_text
from workbench.errors import Cancelled, InputError
from workbench.executable import PHASES
from workbench.ipu.config import IPUConfig, form_options
from workbench.profiler.advice.diagnose import Diagnosis, diagnose
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.app import App, difference
from workbench.widgets.app import app as app_module
from workbench.widgets.app import progress as app_progress
from workbench.widgets.app.builder.layers import Layer
from workbench.widgets.app.form.options import OptionsForm
from workbench.widgets.app.form.run import compiled
from workbench.widgets.app.form.source import READY
from workbench.widgets.app.task import Task
from workbench.widgets.views import diagnosis

AMP = "matmuls.poplar_options.availableMemoryProportion"


def offered(box: Any) -> list[diagnosis.DiagnosisView]:
    """The diagnoses that an app shows."""
    if isinstance(box, diagnosis.DiagnosisView):
        return [box]
    return [view for each in getattr(box, "children", ()) for view in offered(each)]


def press(view: diagnosis.DiagnosisView, message: object) -> None:
    """What ipywidgets does with a message from the browser."""
    view._handle_custom_msg(message, [])


# The options


def test_the_form_has_a_control_for_each_declaration() -> None:
    form = OptionsForm()
    assert list(form.controls) == [each.name for each in form_options()]
    for each in form_options():
        control = form.controls[each.name]
        assert each.form_label in control.description
        assert each.doc in control.tooltip
        assert form.options().get(each.name) == each.default
    assert form.options().changed == ()


def test_a_changed_option_is_marked_and_reset() -> None:
    form = OptionsForm()
    form.controls[AMP].value = 0.3
    assert form.options().changed == ((AMP, 0.3),)
    assert form.controls[AMP].description == "availableMemoryProportion (matmuls) (default 0.6)"
    assert "wb-app-changed" in form.controls[AMP]._dom_classes
    assert "1 changed" in form.count.value
    form.reset_button.click()
    assert form.options().changed == ()
    assert "wb-app-changed" not in form.controls[AMP]._dom_classes


def test_what_a_zero_means_is_read_in_the_form_and_in_the_panel() -> None:
    form = OptionsForm()
    ipus, tiles = form.controls["auto_select_ipus"], form.controls["ipu_model.tiles_per_ipu"]
    assert ipus.value == tiles.value == 0
    assert ipus.description == "IPUs (0: as needed)"
    assert tiles.description == "tiles per IPU (0: all there are)"
    tiles.value = 16
    assert tiles.description == "tiles per IPU (default 0: all there are)"
    rows = {each["name"]: each["zero"] for each in form.panel.rows}
    assert rows["ipu_model.tiles_per_ipu"] == "all there are"
    assert rows["io_tiles.num_io_tiles"] == ""


def test_the_form_begins_with_the_configuration_and_keeps_what_it_does_not_show() -> None:
    config = IPUConfig()
    config.matmuls.poplar_options["availableMemoryProportion"] = 0.2
    config.slices.poplar_options["availableMemoryProportion"] = 0.5
    form = OptionsForm(config)
    assert form.controls[AMP].value == 0.2
    form.controls["ipu_model.tiles_per_ipu"].value = 8
    assert form.options().changed == (
        ("ipu_model.tiles_per_ipu", 8),
        (AMP, 0.2),
        ("slices.poplar_options.availableMemoryProportion", 0.5),
    )


def test_the_form_is_the_request() -> None:
    app = App("cnn")
    app.run.batch_size.value = 16
    app.run.optimizer.value = "adam"
    app.run.precision.value = "float16"
    app.options.controls["pipeline.gradient_accumulation_steps"].value = 4
    app.options.controls["ipu_model.tiles_per_ipu"].value = 64
    request = app.request()
    assert (request.source, request.batch_size, request.mode) == ("cnn", 16, "training")
    assert (request.optimizer, request.precision) == ("adam", "float16")
    assert (request.gradient_accumulation_steps, request.target.tiles_per_ipu) == (4, 64)
    app.run.mode.value = "inference"
    assert app.request().optimizer is None


def test_two_ipus_spread_the_rows_evenly() -> None:
    app = App()
    app.picker.builder.insert(0, Layer.new("Dense"))
    app.options.controls["auto_select_ipus"].value = 2
    assert app.request().stages == [0, 0, 1, 1]


def test_ready_names_are_the_engine_s() -> None:
    from workbench.engine.frontends.ready import READY_NAMES

    assert tuple(READY) == READY_NAMES


def test_sources_that_are_given() -> None:
    import keras

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, name="only")], name="mine")
    choice = App(model).picker.choice()
    assert (choice.source, choice.name, choice.layers) == (model, "mine", 1)
    assert App("resnet50").picker.choice().source == "resnet50"
    with pytest.raises(InputError, match="there is no ready model 'lenet'"):
        App("lenet")
    with pytest.raises(InputError, match=r"did you mean 'resnet50'\?$"):
        App("resnet")


def test_models_of_the_notebook_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython
    import keras

    app = App()
    assert dict(app.picker.models.options) == {"no Keras model found": "no Keras model found"}
    app.picker.box.selected_index = 2
    assert "there is no Keras model in the notebook" in app.code.problem
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)], name="inner")
    cells = {"net": model, "x": 3, "_": model}
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(user_ns=cells))
    app.picker.look.click()
    assert dict(app.picker.models.options) == {"net": "net"}
    assert app.request().source is model
    assert app.request().loss is None  # the compile chooses by the output, and says what it chose
    assert "wb.compile(net, " in app.code.code.replace("(\n    ", "(").replace(",\n    ", ", ")
    del cells["net"]
    other = App(model)  # no variable holds it
    assert "wb.compile(model, " in other.code.code.replace("(\n    ", "(").replace(",\n    ", ", ")


@pytest.mark.parametrize(
    "name",
    [
        "x); __import__('os').system('id')  #",
        "<img src=x onerror=alert(1)>",
        "a\nb",
        "class",
        "1",
        "",
        "no\u202esuch",
        3,
    ],
)
def test_names_that_are_no_variables_are_never_code(monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    import IPython
    import keras

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)], name="inner")
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(user_ns={name: model}))
    app = App()
    app.picker.box.selected_index = 2
    assert dict(app.picker.models.options) == {"no Keras model found": "no Keras model found"}
    given = App(model)
    assert "wb.compile(model, " in given.code.code.replace("(\n    ", "(").replace(",\n    ", ", ")
    assert str(name) not in given.code.code or not name


def test_a_builder_of_a_hostile_name_is_text_everywhere() -> None:
    def builder() -> Any:
        raise AssertionError("never called")

    builder.__name__ = "<img src=x onerror=alert(1)>"
    app = App(builder)
    assert "<img" not in app.code.code
    shown = [each.value for each in _texts(app)]
    assert shown
    assert not any("<img" in text for text in shown)


def _texts(box: Any) -> list[Any]:
    """The widgets of an app that show markup."""
    found = [box] if isinstance(box, ipywidgets.HTML) else []
    return found + [text for each in getattr(box, "children", ()) for text in _texts(each)]


def test_the_form_says_its_changed_options_in_the_words_of_what_is_shown(app: App) -> None:
    """One option, a precision and a loss; then what was compiled says the same."""
    app.run.batch_size.value = 8
    app.run.precision.value = "float16"
    app.run.loss.value = "huber"
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    asked = "batch size 8 (8 samples to a weight update), precision float16, loss huber, "
    sizes = "sizes {layers: 1, hidden: 512, input_size: 256}, ipu_model.tiles_per_ipu = 16"
    assert asked + sizes in app.bar.form.value
    app.compile()
    assert app.wait(120)
    assert app.bar.shown.value.replace("Shown:", "Form:") == app.bar.form.value


def test_a_ready_model_is_called_alike_in_the_form_and_in_what_is_shown() -> None:
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "sequence_length": 8, "vocabulary": 50}
    app = App(wb.ready("bert-base", **sizes))
    app.compile()
    assert app.wait(120)
    assert "bert-base, training" in app.bar.form.value
    assert app.bar.shown.value.replace("Shown:", "Form:") == app.bar.form.value
    assert app.progress.data["text"] == "bert-base fits"


def test_a_model_that_ends_in_logits_is_trained_by_what_the_compile_says() -> None:
    import keras

    app = App(keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)], name="inner"))
    app.compile()
    assert app.wait(120)
    assert app.profile is not None
    assert any("mean squared error, because none was given" in text for text in app.profile.assumptions)


def test_the_bar_says_what_is_shown_and_what_the_form_asks_for(app: App) -> None:
    assert app.bar.shown.value == app.bar.verdict.value == ""
    assert "mlp, training, batch size 256 (256 samples to a weight update)" in app.bar.form.value
    app.run.precision.value = "float32"
    app.run.batch_size.value = 8
    app.options.controls["pipeline.gradient_accumulation_steps"].value = 4
    assert "batch size 8 (32 samples to a weight update)" in app.bar.form.value
    app.compile()
    assert app.wait(120)
    assert app.profile is not None
    assert "mlp, training, batch size 8 (32 samples to a weight update)" in app.bar.shown.value
    assert ">Fits</b>" in app.bar.verdict.value
    assert bytes_text(app.profile.margin_bytes) in app.bar.verdict.value
    assert "changed since" not in app.bar.form.value
    app.run.batch_size.value = 16
    assert "batch size 16 (64 samples" in app.bar.form.value
    assert "the form has changed since" in app.bar.form.value
    assert "batch size 8 (32" in app.bar.shown.value
    app.run.batch_size.value = 8
    assert "changed since" not in app.bar.form.value


def test_the_form_folds_away(app: App) -> None:
    app.run.batch_size.value = 4
    form = app.children[2]
    assert form.layout.display is None
    app.bar.fold.value = False
    assert form.layout.display == "none"
    app.compile()
    assert app.wait(120)
    assert form.layout.display == "none"
    app.bar.fold.value = True
    assert form.layout.display is None


# Work


@pytest.fixture
def app() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=512, input_size=256))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.run.batch_size.value = 256
    app.run.precision.value = "float16"
    return app


def test_from_out_of_memory_to_a_fix_that_fits(app: App) -> None:
    app.compile_button.click()
    assert app.wait(120)
    assert app.profile is not None
    assert app.profile.fits
    assert app.progress.data["state"] == "done"
    assert [phase["name"] for phase in app.progress.data["phases"]] == [*PHASES, "profile"]
    assert all(phase["seconds"] is not None for phase in app.progress.data["phases"])
    whole = app.profile.max_tile_bytes
    app.target = wb.target("ipu2", tiles_per_ipu=16).replace(bytes_per_tile=whole * 7 // 10 // 16 * 16)
    app.compile()
    assert app.wait(120)
    assert not app.profile.fits
    assert app.diagnose_button.button_style == "warning"
    before = app.profile
    app.diagnose_button.click()
    assert app.wait(300)
    assert app.diagnosis.fixes[0].fits
    promised = app.diagnosis.fixes[0].verified_bytes
    (view,) = offered(app)
    press(view, {"apply": 0})
    assert app.wait(120)
    assert app.profile.fits
    assert app.profile.max_tile_bytes == promised
    assert difference(before, app.profile) in app.progress.data["text"]
    assert offered(app) == []
    form, options = app.run.state(), app.options.options()
    app.undo()
    assert app.profile is before
    assert len(offered(app)) == 1
    assert (app.run.state(), app.options.options()) != (form, options)
    assert "form has changed" not in app.bar.form.value
    press(offered(app)[0], {"apply": 0})
    assert app.wait(120)
    assert (app.run.state(), app.options.options()) == (form, options)
    assert app.profile.max_tile_bytes == promised


def test_a_trace_is_used_again_when_only_options_change(app: App) -> None:
    app.compile()
    assert app.wait(120)
    app.options.controls[AMP].value = 0.3
    app.compile()
    assert app.wait(120)
    assert app.executable.passes["changed"][0].endswith("traced before")


def test_cancel_leaves_what_was_there(app: App) -> None:
    app.compile()
    assert app.wait(120)
    first = app.executable
    app.run.batch_size.value = 128
    app.compile()
    app.cancel()
    assert app.wait(120)
    assert isinstance(app.error, Cancelled)
    assert app.executable is first
    assert app.progress.data["state"] == "cancelled"
    assert not any(thread.name == "workbench compile" for thread in threading.enumerate())
    assert not app.compile_button.disabled
    assert app.cancel_button.disabled


@pytest.mark.parametrize("ends", ["well", "cancelled"])
def test_while_a_compile_runs_nobody_is_asked_to_press_compile(
    ends: str, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in (4, 8):
        app.run.batch_size.value = batch
        app.compile()
        assert app.wait(120)
    go_on = threading.Event()
    monkeypatch.setattr(app_module, "compiled", lambda *given: go_on.wait(60) and compiled(*given))
    app.run.batch_size.value = 16
    assert "the form has changed since" in app.bar.form.value
    app.compile()
    try:
        assert app.compile_button.disabled
        assert "batch size 16" in app.bar.form.value
        assert "changed since" not in app.bar.form.value
        app.run.batch_size.value = 32
        assert "changed since" not in app.bar.form.value
        app.history.box.children[0].children[0].click()  # an earlier result is shown meanwhile
        assert (app.compile_button.disabled, app.cancel_button.disabled) == (True, False)
        if ends == "well":
            app.run.batch_size.value = 16
        else:
            app.cancel()
    finally:
        go_on.set()
    assert app.wait(120)
    # Of 16 the results are then; of a compile that was cancelled there are none.
    assert ("the form has changed since" in app.bar.form.value) is (ends == "cancelled")


ASKED = {
    "Compile": lambda app: app.compile(),
    "Diagnose": lambda app: app.diagnose(),
    f"Try of {AMP}": lambda app: app.options.panel._handle_custom_msg({"do": "try", "name": AMP}, []),
    "Apply": lambda app: app.apply(0),
    "Undo": lambda app: app.undo(),
    "Take over": lambda app: app.whatif._handle_custom_msg({"do": "take"}, []),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_for_while_something_runs_is_refused_aloud(
    asked: str, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And changes nothing: neither the form nor what runs."""
    app.compile()
    assert app.wait(120)
    go_on = threading.Event()
    monkeypatch.setattr(app_module, "compiled", lambda *given: go_on.wait(60) and compiled(*given))
    app.run.batch_size.value = 16
    app.compile()
    form = (app.run.state(), app.options.state())
    try:
        ASKED[asked](app)
        assert app.progress.data["state"] == "running"
        told = f"{asked} was not done: Compiling {app.picker.choice().name} goes on. Wait for its end, or press Cancel"
        assert app.progress.data["refused"] == told
        assert (app.run.state(), app.options.state()) == form
    finally:
        go_on.set()
    assert app.wait(120)
    assert app.error is None
    assert app.profile is not None
    assert app.profile.meta["batch_size"] == 16
    app.compile()
    assert app.progress.data["refused"] == ""
    assert app.wait(120)


def test_the_bar_of_several_compiles_is_that_of_each_in_turn() -> None:
    """Phases of one are not over because those of the one before are; how many there will be is only said."""
    progress = app_progress.AppProgress()
    progress.begin("Compiling it", ("trace", "lower", "profile"))
    seen = []
    for heard in (
        "split 1 of at most 8: trace",
        "split 1 of at most 8: lower",
        "split 2 of at most 8: trace",
        "profile",
    ):
        progress.hear(heard)
        data = progress.data
        ended = [each["name"] for each in data["phases"] if each["seconds"] is not None]
        seen.append((data["turn"], data["current"], data["text"], ended))
    assert seen == [
        ("split 1 of at most 8", 0, "trace", []),
        ("split 1 of at most 8", 1, "lower", ["trace"]),
        ("split 2 of at most 8", 0, "trace", []),
        ("split 2 of at most 8", 2, "profile", ["trace"]),
    ]
    progress.hear("lower: a name of an operator: it is none of the phases")
    assert (progress.data["turn"], progress.data["current"]) == ("split 2 of at most 8", -1)


def test_misuse_is_told_in_the_app() -> None:
    app = App()
    app.diagnose()
    assert app.progress.data["problem"]["what"] == "nothing was compiled yet"
    app.apply(0)
    assert app.progress.data["problem"]["what"] == "there is no fix 0"


def test_what_we_did_not_foresee_is_one_line() -> None:
    problem = app_progress.problem_of(RuntimeError("first line\nsecond line"))
    assert problem == {"what": "RuntimeError: first line", "expected": "", "todo": "app.error holds the whole error"}


def test_the_end_is_told_on_the_loop_and_only_once() -> None:
    told: list[str] = []

    async def cell() -> None:
        task = Task(
            lambda progress: 1, lambda phase: None, lambda outcome: told.append(threading.current_thread().name)
        )
        task.start()
        while not told:
            await asyncio.sleep(0.01)
        assert task.wait(1)

    asyncio.run(cell())
    assert told == [threading.current_thread().name]


def test_cancel_is_heard_at_the_next_phase() -> None:
    outcomes: list[Any] = []

    def work(progress: Any) -> None:
        while True:
            progress("lower")
            time.sleep(0.001)

    task = Task(work, lambda phase: None, outcomes.append).start()
    task.cancel()
    assert task.wait(10)
    assert outcomes[0].cancelled


def test_a_builder_that_exits_ends_the_task() -> None:
    outcomes: list[Any] = []

    def work(progress: Any) -> None:
        raise SystemExit(3)

    assert Task(work, lambda phase: None, outcomes.append).start().wait(10)
    assert isinstance(outcomes[0].error, SystemExit)
    assert app_progress.problem_of(outcomes[0].error)["what"] == "the model's own code ended with exit(3)"


# The drawn diagnosis


def test_the_diagnosis_says_what_its_table_says() -> None:
    report = diagnose(over(), FakeCompiler(by_lever))
    found = diagnosis.content(report)
    table = report.to_pandas()
    # 12,000 B are most; a tile has 10,000.
    assert found["limit"] == pytest.approx(10 / 12)
    assert [fix["share"] * 12_000 for fix in found["fixes"]] == pytest.approx(table["verified_bytes"].tolist())
    assert [fix["fits"] for fix in found["fixes"]] == table["fits"].tolist()
    dearest = int(table["verified_cycles"].argmax())
    assert table["verified_cycles"][dearest] == 16_000  # instead of 12,000
    assert found["fixes"][dearest]["change"] == "+33.3 %"
    assert len(found["tried"]) == len(report.tried)


def test_faces_of_a_diagnosis() -> None:
    report = diagnose(over(), FakeCompiler(by_lever))
    drawn = face("diagnosis")
    bundle = drawn.mimebundle(report)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"].count("<img") == 1
    assert drawn.svg(report).count("<rect") >= 2 * (1 + len(report.fixes)) + len(report.tried)
    assert len(drawn.figure(report).data[0].x) == 1 + len(report.fixes)


def test_a_diagnosis_is_shown_while_it_grows() -> None:
    came: list[Diagnosis] = []
    ended = diagnose(over(), FakeCompiler(by_lever), so_far=came.append)
    assert [len(each.tried) for each in came] == list(range(1, len(ended.tried) + 1))
    assert came[-1].to_pandas().equals(ended.to_pandas())
    assert not diagnosis.DiagnosisView(came[0]).live  # nothing is applied while compiles go on
    assert diagnosis.content(came[0])["sentence"].startswith("1 compiled so far. ")
    assert diagnosis.content(ended)["sentence"] == ended.sentence
    shown = {point["text"] for point in diagnosis.content(came[-1])["plot"]["points"]}
    assert len(shown) == len({fix.fix for fix in ended.tried if fix.verified_bytes})


def test_points_of_a_diagnosis_lie_where_their_numbers_are() -> None:
    report = diagnose(over(), FakeCompiler(by_lever))
    plot = diagnosis.content(report)["plot"]
    top = plot["now"]["y"] / report.profile.max_tile_bytes  # of a byte
    assert plot["limit"] == pytest.approx(top * int(report.profile.target["bytes_per_tile"]))
    for fix, point in zip((fix for fix in report.tried if fix.verified_bytes), plot["points"], strict=True):
        assert point["y"] == pytest.approx(top * fix.verified_bytes)
        assert point["fits"] == (point["y"] <= plot["limit"])
        assert 0 <= point["x"] <= 1
    by_cost = sorted((fix.cost, point["x"]) for fix, point in zip(report.tried, plot["points"], strict=True))
    assert [x for _, x in by_cost] == sorted(x for _, x in by_cost)
    assert len(plot["front"]) == len(report.pareto())


def test_a_fix_is_applied_and_taken_back() -> None:
    report = diagnose(over(), FakeCompiler(by_lever))
    shown = face("diagnosis").widget(report)
    shown.apply(0)
    first = shown.executable
    shown.apply(1)
    assert shown.executable.profile.max_tile_bytes == report.fixes[1].verified_bytes
    button = shown.children[1].children[1]
    button.click()
    assert shown.executable is first
    assert report.fixes[0].fix in shown.children[1].children[0].value
    shown.undo()
    assert shown.executable is None
    assert shown.children == (shown.view,)
    shown.undo()
    assert shown.children == (shown.view,)


def test_apply_buttons_call_back_within_bounds() -> None:
    view = diagnosis.DiagnosisView(diagnose(over(), FakeCompiler(by_lever)))
    heard: list[int] = []
    view.on_apply(heard.append)
    for message in ({"apply": 1}, {"apply": 99}, {"apply": "0"}, "apply"):
        press(view, message)
    assert heard == [1]


def test_a_stored_app_shows_text_and_pictures() -> None:
    app = App("mlp")
    assert "run this cell" in app._repr_mimebundle_()["text/html"]
    app.compile()
    assert app.wait(120)
    bundle = app._repr_mimebundle_()
    assert bundle["text/html"].count("<img") == len(linked.shown(app.profile))
    assert bundle["text/plain"].startswith("Fits:")


def test_a_change_that_cannot_be_read_off_is_none() -> None:
    profile = over().profile
    assert difference(profile, profile) == "Against before: as much on the fullest tile, as many cycles per sample"
