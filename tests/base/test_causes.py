"""The words for what cycles go into: each once, told to the views that paint them."""

from __future__ import annotations

from workbench.base.causes import CAUSE_WORDS, CAUSES, IDLE_BY_PHASE, PHASE_BY_IDLE, PHASES, idle_beside
from workbench.widgets.kit import palette


def test_every_cause_has_its_paint_and_its_words() -> None:
    assert tuple(palette.CAUSES) == CAUSES == tuple(CAUSE_WORDS)
    assert {cause: each["label"] for cause, each in palette.CAUSES.items()} == CAUSE_WORDS
    assert not any("_" in words for words in CAUSE_WORDS.values())


def test_every_wait_is_a_cause_and_every_phase_has_one_of_its_own() -> None:
    assert tuple(sorted(IDLE_BY_PHASE)) == tuple(sorted(PHASES))
    assert {PHASE_BY_IDLE[idle] for idle in IDLE_BY_PHASE.values()} == set(PHASES)
    assert {*IDLE_BY_PHASE.values(), *map(idle_beside, CAUSES)} == {each for each in CAUSES if each.startswith("idle")}
