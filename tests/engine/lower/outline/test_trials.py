"""Trials of bodies: bounds end most before their copies are made, and a refusal is known to the next lowering."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import workbench as wb
from workbench.engine.lower.outline import calls
from workbench.executable import Executable, compile_request, make_request

PROPORTION = "convolutions.poplar_options.availableMemoryProportion"


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", "off")


def equal_layers() -> Any:
    """A request for the training step of four equal layers."""
    import keras

    layers = keras.layers
    x = given_to = keras.Input((8, 8, 4))
    for _ in range(4):
        x = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
    model = keras.Model(given_to, layers.Dense(10, activation="softmax")(layers.Flatten()(x)))
    target = wb.target("ipu2", tiles_per_ipu=12)
    return make_request(model, mode="training", batch_size=4, optimizer="adam", target=target)


class Trials:
    """Counts the bodies that are tried, by whether they were kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept = self.refused = 0
        first_body = calls.first_body

        def counted(*arguments: Any) -> Any:
            body, verdict = first_body(*arguments)
            self.kept += body is not None
            self.refused += body is None
            return body, verdict

        monkeypatch.setattr(calls, "first_body", counted)

    def of(self, asked: Any, like: Executable | None = None) -> tuple[int, int]:
        """How many a compile tries: kept, refused."""
        self.kept = self.refused = 0
        assert compile_request(asked, like=like).profile.total_cycles
        return self.kept, self.refused


def test_what_was_refused_is_not_tried_again_where_it_would_be_refused_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, asked = Trials(monkeypatch), equal_layers()
    first = compile_request(asked)
    assert trials.refused > trials.kept > 0
    kept, refused = trials.kept, trials.refused
    # All plans stay, so that all lies as before.
    again = asked.replace(options={"matmuls.clear_pass_type": True})
    assert trials.of(again, like=first)[0] == kept
    assert trials.refused < refused
    assert trials.of(again) == (kept, refused)  # a fresh compile knows of none


def test_what_lies_otherwise_is_tried_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, asked = Trials(monkeypatch), equal_layers()
    first = compile_request(asked)
    _, same = trials.of(asked.replace(options={"matmuls.clear_pass_type": True}), like=first)
    _, moved = trials.of(asked.replace(options={PROPORTION: 0.004}), like=first)
    assert moved > same


def test_what_was_refused_for_one_machine_is_tried_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, asked = Trials(monkeypatch), equal_layers()
    first = compile_request(asked)
    code = replace(asked.target.code, control_bytes_per_run=asked.target.code.control_bytes_per_run + 4)
    other = asked.replace(target=asked.target.replace(code=code))
    after = trials.of(other, like=first)
    assert after == trials.of(other)  # as a fresh compile


def test_the_bounds_hold_wherever_they_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept at least is not above what is kept, and what is kept at most not below it."""
    compared = []
    copies_of, worth = calls.copies_of, calls.are_worth_it
    worth_calling = calls.is_worth_calling

    def checked(body: Any, shared: Any, run: Any, lowering: Any, count: int, runs: Any) -> Any:
        back = lowering.marked()
        copies = copies_of(body, shared, run, lowering)
        if copies is not None:
            copied = calls.code_bytes((*copies.before, *copies.after), lowering, runs.sizes_of(lowering))
            least = calls.least_kept_bytes(body, shared, count, lowering.emit.target)
            assert (least <= body.code_bytes + count * copied).all()
            compared.append(int(copied.max()))
        back()
        return worth_calling(body, shared, run, lowering, count, runs)

    def weighed(copies: Any, body: Any, lowering: Any, sizes: Any) -> bool:
        steps = (*copies.before, *copies.after)
        assert int(calls.code_bytes(steps, lowering, sizes).max()) <= calls.most_kept_bytes(steps, sizes)
        compared.append(0)
        return worth(copies, body, lowering, sizes)

    monkeypatch.setattr(calls, "is_worth_calling", checked)
    monkeypatch.setattr(calls, "are_worth_it", weighed)
    assert compile_request(equal_layers()).profile.total_cycles
    assert compared.count(0) > 3
    assert len(compared) - compared.count(0) > 3


def test_a_copy_inside_a_tile_keeps_its_vertex_and_its_run() -> None:
    """A vertex of two pointers of 4 bytes and a length of 4, and what one run takes of control code."""
    machine = wb.target("ipu2", tiles_per_ipu=12)
    assert calls.copy_code_bytes(machine) == 2 * 4 + 4 + machine.code.control_bytes_per_run
