"""The interactive workbench: choose a model and options, compile, look, and mend what does not fit, all by clicks."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import Any

import ipywidgets

from workbench.base.text import shown
from workbench.errors import InputError, WorkbenchError
from workbench.executable import PHASES, compile_request
from workbench.profiler.advice.compare import compare
from workbench.profiler.advice.diagnose import COMPILES, diagnose
from workbench.profiler.export.html import page
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.profiler.storage import profile_bytes
from workbench.splits.by_hand import ByHand
from workbench.widgets import linked
from workbench.widgets.app.bar import Bar
from workbench.widgets.app.form import Form
from workbench.widgets.app.form.changes import Asked, some_changes
from workbench.widgets.app.form.code import code_of
from workbench.widgets.app.form.run import AUTO, compiled
from workbench.widgets.app.history import KEPT, Entry, History, difference
from workbench.widgets.app.progress import AppProgress
from workbench.widgets.app.reference import ReferencePanel
from workbench.widgets.app.ribbon import Ribbon
from workbench.widgets.app.share import Kept, SharePanel
from workbench.widgets.app.share.panel import file_name
from workbench.widgets.app.task import Outcome, Progress, Task
from workbench.widgets.app.trial import Tries, tried
from workbench.widgets.app.whatif import Basis, WhatIf
from workbench.widgets.carried import carried
from workbench.widgets.kit.base import with_html
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views.diagnosis import DiagnosisView

_COMPILE = "Compile the model for the IPU that is described, without hardware"
_DIAGNOSE = "Try what may make it fit, or faster: each change is compiled and measured"
_OF_LAST = "Only of the last compile: show that again, or use the settings of this one and compile"
_RESTS = "Nothing runs that could be stopped"
_STOP_COMPILE = "Stop the compile: nothing of it is kept, and what is shown stays"
_STOP_DIAGNOSIS = "Stop the diagnosis: what it has measured stays, and can be applied"
_STOP_AGAIN = "Stop the diagnosis: the one of before stands again, nothing of this one is kept"
_STOP_TRIES = "Stop trying values: none of this try is kept, and what is shown stays"
_UNDO = "Take back: {}. The form, the results and the diagnosis are then as they were"


@dataclass(frozen=True, slots=True)
class _Before:
    """What a fix was applied to: its name, results, and where the controls stood."""

    fix: str
    executable: Any
    diagnosis: Any
    of: tuple[str, Any, Asked | None]
    by_hand: ByHand | None
    form: Any


class App(ipywidgets.VBox):
    """The workbench as one widget.

    `source`: a ready name, a Keras model or a function that builds one, chosen at the start; `config`: an `IPUConfig`,
    default the one configured last. State: `executable`, `profile` and `diagnosis` of the last work that ended well (of
    a diagnosis that was cancelled, what it had measured), `error` of the last that did not, else None; `target`: a
    machine in place of the one the options describe; `bar` says what the results are of and what the form asks for,
    `mending` is what may mend them. `compile()`, `diagnose()`, `apply(i)` and `cancel()` are what the buttons do;
    `wait()` waits for their end.
    """

    def __init__(self, source: Any = None, config: Any = None) -> None:
        self.executable: Any = None
        self.diagnosis: Any = None
        self.error: BaseException | None = None
        self.target: Any = None
        self._task: Task | None = None
        self._before: Profile | None = None
        self._undone: _Before | None = None
        self._by_hand: ByHand | None = None
        self._offering = threading.RLock()
        self._found: Any = None  # a diagnosis of the last compile, which may still go on
        self._of: tuple[str, Any, Asked | None] = ("", None, None)  # code, stands and given of the last compile
        self._set_for_stages = ""  # what the last compile set besides, in words
        self._keeping = False
        self._kept = uuid.uuid4().hex  # under it, a page remembers where the views of this app were zoomed to
        self.form = Form(source, config, self._show_code, self.try_option)
        self.picker, self.run, self.options = self.form.picker, self.form.run, self.form.options
        self.code, self.stands = self.form.code, self.form.stands
        self.progress = AppProgress(self._mend)
        self.compile_button = self._button("Compile", "play", _COMPILE, self.compile, "primary")
        self.cancel_button = self._button("Cancel", "stop", _RESTS, self.cancel)
        self.diagnose_button = self._button("Diagnose", "stethoscope", _DIAGNOSE, self.diagnose)
        self.history = History(self._show_again, self.progress.bring)
        self.kept = Kept()
        files = {"html": self._html_file, "profile": self._profile_file}
        self.share = SharePanel(files, self.bring, self.keep, f"{self.kept.folder}")
        self.reference = ReferencePanel()
        self.whatif = WhatIf(self._take_over, lambda: self.running)
        self.results = ipywidgets.VBox()
        self.results.add_class("wb-app-results")
        self.mending = ipywidgets.VBox()
        self.mending.add_class("wb-app-mending")  # the page gives the focus of what was here to what comes
        buttons = [self.compile_button, self.cancel_button, self.diagnose_button]
        self.bar = Bar(buttons, self.progress, [self.form.box], self.use_shown)
        kept = [self.history.box, self.share, self.history.comparison, self.whatif]
        super().__init__([self.bar.box, self.reference, self.form.box, *kept, self.mending, self.results])
        self.add_class("wb-app")
        self._show_code()
        self._enable()

    @property
    def profile(self) -> Profile | None:
        """The profile of the last compile that ended well."""
        return None if self.executable is None else self.executable.profile

    def request(self) -> Any:
        """What a press of Compile asks for; `InputError` or `OptionError` when that is not possible."""
        return self.form.request(self.target)

    def compile(self) -> None:
        """Compile what the form says, in a thread."""
        if self._busy("Compile"):
            return
        self._before = self._undone = None
        self._compile()

    def diagnose(self) -> None:
        """Try the levers on what was compiled last, in a thread."""
        if self._busy("Diagnose"):
            return None
        if self.executable is None:
            return self.progress_of(InputError("nothing was compiled yet", todo="press Compile first"))
        executable = self.executable

        def grown(found: Any) -> None:
            self.progress.count(len(found.tried))
            self._grown(found)

        def work(progress: Progress) -> Any:
            return diagnose(executable, compile_request, progress=progress, so_far=grown)

        stop, left = (
            (_STOP_DIAGNOSIS, "") if self.diagnosis is None else (_STOP_AGAIN, "the one of before stands below")
        )
        return self._start("Diagnosing", (), work, self._diagnosed, stop, most=COMPILES, left=left)

    def try_option(self, name: str) -> None:
        """Compile the values beside an option's, in a thread, and show at the option what they change."""
        if self._busy(f"Try of {name}"):
            return
        request = self.request()
        if request.stages == AUTO:  # those that were found, if any were
            request = request.replace(stages=None if self.executable is None else self.executable.request.stages)
        of = Tries(name, request.options.get(name), self._tries_of(name, request.options.get(name)))
        self._start(
            f"Trying values of {name}",
            PHASES,
            lambda progress: tried(request, name, progress, self.executable),
            lambda rows: self._tried(of, rows),
            _STOP_TRIES,
            left="none of its values is kept",
        )

    def apply(self, index: int) -> None:
        """Set the form to a fix of the last diagnosis and compile that."""
        if self._busy("Apply"):
            return None
        if self.diagnosis is None or not 0 <= index < len(self.diagnosis.fixes):
            return self.progress_of(InputError(f"there is no fix {index}", todo="press Diagnose first"))
        fix = self.diagnosis.fixes[index]
        change = fix.change
        before = _Before(fix.fix, self.executable, self.diagnosis, self._of, self._by_hand, self.stands.state())
        try:
            self._stand_as_shown()
            self.form.take(dict(change.arguments), dict(change.options))
        except WorkbenchError as error:  # of options that were set since
            return self.progress_of(error)
        self._before, self._undone = self.profile, before
        return self._compile()

    def undo(self) -> None:
        """Take the last fix back: the form, the results and the diagnosis as they were."""
        if self._busy("Undo"):
            return
        before, self._undone = self._undone, None
        if before is None:
            return
        self.stands.restore(before.form)
        self._before, self._of = None, before.of
        self._compiled(before.executable, before.executable.profile, before.by_hand)
        self._diagnosed(before.diagnosis)

    def use_shown(self) -> None:
        """Set the form to what was asked for what is shown; where it was set so, back to where it stood before."""
        entry = self.history.current
        if entry is None or entry.stands is None or self._busy("Use of its settings"):
            return
        try:
            if self._changes(entry) is None and self.stands.undoes:
                self.stands.undo()
            else:
                self.stands.use(entry.stands)
        except WorkbenchError as error:  # of a model that the notebook has no more
            self.progress_of(error)
        self._show_code()

    def cancel(self) -> None:
        """Stop what runs."""
        if self._task is not None:
            self._task.cancel()

    def bring(self, profile: Profile) -> None:
        """Show a profile that comes from a file, and put it into the history."""
        if self.running:
            raise InputError("a compile is running", todo="wait for its end, or press Cancel")
        self._draw(profile)  # before anything holds it: what cannot be drawn is not brought
        self.history.add(profile, "")
        self._say_again(self.history.entries[-1])

    def keep(self, on: bool) -> str:
        """Keep every result, those of now too, in the notebook's folder, and show those that were kept before; or keep
        no more. What could not be read, a line each."""
        if not on:
            self._keeping = False
            return ""
        earlier, problems = self.kept.read(KEPT)
        for each in self.history.entries:
            self.kept.keep(each.profile)
        self._keeping = True
        self.history.take(earlier)
        return "\n".join(problems)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing runs; False when it still does after so many seconds."""
        return self._task is None or self._task.wait(seconds)

    # Parts

    @staticmethod
    def _button(text: str, icon: str, tooltip: str, pressed: Any, style: str = "") -> Any:
        button = ipywidgets.Button(description=text, icon=icon, tooltip=tooltip, button_style=style)
        button.on_click(lambda _: pressed())
        return button

    @property
    def running(self) -> bool:
        """Whether a compile or a diagnosis goes on."""
        return self._task is not None and self._task.running

    def _busy(self, what: str) -> bool:
        """Whether something runs, which is then said where its progress is: nothing of `what` is done."""
        if self.running:
            self.progress.refuse(what)
        return self.running

    def _show_code(self) -> None:
        asked = self.form.show_code(self.target)
        self.options.panel.forget_tried(lambda of: self._tries_of(of.name, of.value) != of.asked)
        current = self.history.current
        self.share.say(ready=current is not None, code=self.code.code if not self.code.problem else "")
        changes = None if current is None else self._changes(current)
        self.bar.say_form(asked, _told(current, changes))
        changed = changes is not None
        kept = current is not None and current.stands is not None
        self.bar.offer(use=kept and changed, undo=kept and not changed and self.stands.undoes)
        self.bar.say_shown(None if current is None else current.profile)

    def _changes(self, entry: Entry) -> list[str] | None:
        """What the form asks for otherwise than a result, by name; None where that is the same."""
        return self.form.changes(entry.given or Asked.of_profile(entry.profile), same=entry.given is not None)

    # Work

    def _compile(self) -> None:
        try:
            request = self.request()
        except WorkbenchError as error:
            return self.progress_of(error)
        self.form.settle()
        like = self.executable

        def work(progress: Progress) -> Any:
            executable = compiled(request, progress, like)
            progress("profile")
            return executable, executable.profile, ByHand.of(executable)

        choice = self.picker.choice()
        of = code_of(choice, request), self.stands.state(), Asked.of(choice, request)

        def succeeded(result: tuple[Any, Profile, ByHand | None]) -> None:
            self._of, self._set_for_stages = of, ""
            if request.stages == AUTO:
                taken = self.form.take_found(result[0].request.options)
                self._set_for_stages = f". Set for these stages, in the form too: {taken}" if taken else ""
                self._of = self.code.code, self.stands.state(), self.form.asked
            self._compiled(*result)

        return self._start(f"Compiling {choice.name}", (*PHASES, "profile"), work, succeeded, _STOP_COMPILE)

    def _mend(self) -> None:
        """Set what the last error says would mend it, and compile."""
        if self._busy("What mends it"):
            return None
        if isinstance(self.error, WorkbenchError) and self.error.mends:
            try:
                self.form.take(self.error.mends)
            except WorkbenchError as error:
                return self.progress_of(error)
            self.compile()
        return None

    def _stand_as_shown(self) -> None:
        """Move the controls to where what is shown was asked for: a change of it was measured with these, not with what
        the form was moved to since. Errors: `InputError` where the form has another model."""
        entry = self.history.current
        source = None if entry is None or entry.basis is None else entry.basis.request.source
        if entry is None or source is None or self.picker.choice().source != source:
            raise InputError(
                "the form has another model than what is shown", todo=f"choose {self._name_shown} in the form again"
            )
        if self._changes(entry) is not None:
            self.stands.restore(entry.stands)

    @property
    def _name_shown(self) -> str:
        return "a model" if self.history.current is None else self.history.current.profile.name

    def _cut(self, names: list[str]) -> None:
        """Compile the cuts that were moved by hand."""
        if self._busy("Compile of these stages"):
            return
        self.run.cut_by_hand(names)
        self.compile()

    def _take_over(self, arguments: dict[str, Any], options: dict[str, Any]) -> None:
        """Set what was moved in the form, and show it as a result."""
        if self._busy("Take over"):
            return
        self._stand_as_shown()
        self.form.take(arguments, options)
        self.compile()

    def _start(
        self, title: str, phases: tuple[str, ...], work: Any, succeeded: Any, stop: str, most: int = 0, left: str = ""
    ) -> None:
        """Begin work; `stop` says what a press of Cancel does and leaves, `left` what it has left where a compile would
        say otherwise."""
        self.whatif.stop()
        self.error = None
        self.progress.begin(title, phases, most, left)
        self.cancel_button.tooltip = stop
        self._task = Task(work, self.progress.hear, lambda outcome: self._ended(outcome, succeeded))
        self._enable(running=True)
        self._task.start()

    def _ended(self, outcome: Outcome, succeeded: Any) -> None:
        self._enable()
        if outcome.error is not None:
            self._leave_off()
            return self.progress_of(outcome.error)
        try:
            succeeded(outcome.result)
        except Exception as error:
            # What cannot be drawn is told like what cannot be compiled.
            self.progress_of(error)
        return None

    def progress_of(self, error: BaseException) -> None:
        """Tell an error in the app."""
        self.error = error
        if self._task is None:
            self.progress.begin("")
        self.progress.fail(error)

    def _compiled(self, executable: Any, profile: Profile, by_hand: ByHand | None = None) -> None:
        self.executable, self._by_hand = executable, by_hand
        self.diagnosis = self._found = None
        self._draw(profile)
        known = any(each.profile is profile for each in self.history.entries)
        code, stands, given = self._of
        self.history.add(profile, code, Basis.of(executable), stands, given)
        self.options.panel.forget_tried()
        self._follow_shown()
        if self._keeping and not known:
            self._keep_on_disk(profile)
        text = "fits" if profile.fits else "does not fit; Diagnose looks for what makes it fit"
        text += self._set_for_stages
        if self._before is not None:
            text += f". {difference(self._before, profile)}"
        self.progress.end(f"{profile.name} {text}", {"text": "Show the result", "name": "wb-app-results"})
        self._enable()

    def _follow_shown(self) -> None:
        """All that stands beside the results is of the one that is shown: what mends it, what if, and what it read."""
        entry = self.history.current
        basis = None if entry is None else entry.basis
        self._offer_what_mends()
        self.options.panel.show_reads(None if basis is None else basis.reads)
        self.whatif.of(basis, self.executable)
        self._show_code()

    def _keep_on_disk(self, profile: Profile) -> None:
        try:
            self.kept.keep(profile)
        except (WorkbenchError, OSError) as error:
            self._keeping = False
            self.share.say(keeping=False, problem=f"results are kept no more: {shown(str(error))}")

    def _html_file(self) -> tuple[str, str, bytes]:
        entry = self._shown_entry()
        besides: dict[str, Any] = {}
        if self.diagnosis is not None and entry.profile is self.profile:
            besides["diagnosis"] = self.diagnosis
        if self.history.compared is not None:
            besides["comparison"] = compare(*(each.profile for each in self.history.compared))
        text = page(entry.profile, besides, entry.asked)
        return file_name(entry.profile.name, "html"), "text/html", text.encode("utf-8")

    def _profile_file(self) -> tuple[str, str, bytes]:
        profile = self._shown_entry().profile
        return file_name(profile.name, "wbprofile"), "application/octet-stream", profile_bytes(profile)

    def _shown_entry(self) -> Entry:
        if self.history.current is None:
            raise InputError("there is no result yet", todo="press Compile, or load a profile")
        return self.history.current

    def _tries_of(self, name: str, value: Any) -> str:
        """What the form asks for but for one option, which has this value: trials of the same are of it."""
        try:
            return code_of(self.picker.choice(), self.request().replace(options={name: value}))
        except WorkbenchError as error:
            return str(error)

    def _tried(self, of: Tries, rows: list[dict[str, Any]]) -> None:
        told = f"{len(rows)} {'value' if len(rows) == 1 else 'values'} beside {of.name} compiled"
        if self._tries_of(of.name, of.value) == of.asked:
            self.options.panel.show_tried(of, rows)
        else:
            told += ", of what the form said then: it has changed since, so press Try again"
        self.progress.end(told)

    def _draw(self, profile: Profile) -> None:
        """Show a result where the last one was looked at: its tab, what was chosen, and the part that was zoomed to."""
        shown = self.results.children[0] if self.results.children else None
        if shown is None:
            self.results.children = [linked.profile_view(profile, selection=Selection(kept=self._kept))]
            return
        before, tab, chosen = shown.profile, shown.tab, shown.selection.chosen()
        opened = tab if profile.fits or not before.fits else ""
        found = Selection(kept=self._kept, **carried(chosen, before, profile))
        try:
            if not shown.take(profile, opened, found):
                self._replace(shown, linked.profile_view(profile, opened, found))
        except Exception:
            if shown.profile is not before:  # half of it is drawn
                self._replace(shown, linked.profile_view(before, tab, Selection(kept=self._kept, **chosen)))
            raise

    def _replace(self, shown: linked.Linked, view: linked.Linked) -> None:
        self.results.children = [view]
        linked.close(shown)

    def _show_again(self, entry: Entry) -> None:
        """Show an earlier result; diagnosis and fixes stay with the one that was compiled last."""
        self._draw(entry.profile)
        self._say_again(entry)

    def _say_again(self, entry: Entry) -> None:
        self.history.mark(entry)
        self._follow_shown()
        verdict = "fits" if entry.profile.fits else "does not fit"
        self.progress.rest(f"Result {entry.number} is shown: {entry.profile.name} {verdict}")
        self._enable(running=self.running)

    @property
    def _last_is_shown(self) -> bool:
        """Whether the results are of the last compile, not of an earlier one or of a file."""
        return self.history.current is not None and self.history.current.profile is self.profile

    def _offer_what_mends(self) -> None:
        """Of the last compile its diagnosis, or how to take its fix back and to cut it by hand; of others nothing."""
        with self._offering:
            if not self._last_is_shown:
                return self._offer()
            if self._found is not None:
                return self._grown(self._found)
            return self._offer(
                *self._undo_button(), *([] if self._by_hand is None else [Ribbon(self._by_hand, self._cut)])
            )

    def _undo_button(self) -> list[Any]:
        """What takes the last fix back, and says which."""
        if self._undone is None:
            return []
        fix = shown(self._undone.fix)
        button = self._button(f"Undo: {fix}", "undo", _UNDO.format(fix), self.undo)
        button.add_class("wb-app-undo")
        return [button]

    def _offer(self, *children: Any) -> None:
        """Put what may mend the result above it, in place of what was there."""
        gone, self.mending.children = self.mending.children, list(children)
        for each in gone:
            linked.close(each)

    def _grown(self, found: Any) -> None:
        """Show a diagnosis that still goes on, or its end, beside what it is of: who reads it keeps the place."""
        with self._offering:  # it comes from the thread that compiles
            self._found, shown = found, self.mending.children
            if not self._last_is_shown:
                return
            if shown and isinstance(shown[0], DiagnosisView):
                view = shown[0]
                view.grow(found)
            else:
                view = DiagnosisView(found)
                view.on_apply(self.apply)
                self._offer(view)
            if not found.ended and found is self.diagnosis:
                view.stop()

    def _leave_off(self) -> None:
        """A diagnosis that came to no end: one of before stands again, else what it has measured, which is all there
        will be and can be applied."""
        if self._found is not None and not self._found.ended:
            self.diagnosis = self._found if self.diagnosis is None else self.diagnosis
            self._grown(self.diagnosis)

    def _diagnosed(self, found: Any) -> None:
        self.diagnosis, self._undone = found, None
        self._grown(found)
        of = next((each.number for each in self.history.entries if each.profile is self.profile), 0)
        if not self._last_is_shown:
            return self.progress.end(f"Of result {of}, not of what is shown: {found.sentence}")
        return self.progress.end(found.sentence, {"text": "Show the diagnosis", "name": "wb-app-mending"})

    def _enable(self, *, running: bool = False) -> None:
        self.bar.say_running(running)
        self.compile_button.disabled = running
        self.cancel_button.disabled = not running
        if not running:
            self.cancel_button.tooltip = _RESTS
        self.diagnose_button.disabled = running or not self._last_is_shown
        self.diagnose_button.tooltip = _DIAGNOSE if self.history.current is None or self._last_is_shown else _OF_LAST
        over = self.profile is not None and not self.profile.fits
        self.diagnose_button.button_style = "warning" if over else ""

    # Faces

    def html(self) -> str:
        """The stored faces of the result that is shown, and of its diagnosis."""
        mended = self.diagnosis is not None and self._last_is_shown
        parts = [face("diagnosis").html(self.diagnosis)] if mended else []
        if self.history.current is not None:
            profile = self.history.current.profile
            parts += [face(name).html(getattr(profile, name)) for name in linked.shown(profile)]
        return "".join(parts) or "<p>The workbench: run this cell to choose a model and compile it.</p>"

    def __str__(self) -> str:
        return "The workbench" if self.history.current is None else str(self.history.current.profile)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return with_html(super()._repr_mimebundle_(**kwargs), self.html(), str(self))


def _told(shown: Entry | None, changes: list[str] | None) -> str:
    """What the form's line says of its changes since what is shown."""
    if shown is None or changes is None:
        return ""
    named = f": {some_changes(changes)}" if changes else ""
    if shown.given is None:
        return f"what is shown was not compiled here{named and f'; the form says otherwise{named}'}"
    return f"the form has changed since{named}"
