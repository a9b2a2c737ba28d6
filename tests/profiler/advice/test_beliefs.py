"""What a search expects: by estimates first, by what was measured then; which levers it goes on with, and how far."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.profiler.handmade import handmade_profile
from workbench.profiler.advice.levers import Change
from workbench.profiler.advice.search.beliefs import Beliefs
from workbench.profiler.advice.search.candidates import candidates
from workbench.profiler.advice.search.trial import Budget, Outcome, Search, Trial

BYTES = 1000
DOUBTS = {"batch": (0.1, 0.1), "order": (0.1, 0.1), "plans": (0.1, 0.1)}


def change(lever: str, title: str, steps: float = 1.0, to: str = "") -> Change:
    return Change(lever=lever, title=title, estimated_bytes=BYTES, steps=steps, to=to)


BATCH = [change("batch", f"batch {size}", steps) for steps, size in enumerate((16, 8, 4, 2, 1), 1)]
ORDER = [change("order", name, to=name) for name in ("a", "b", "c")]
PLANS = [change("plans", "less", to="down"), change("plans", "more", to="up")]
CANDIDATES = candidates([BATCH, ORDER, PLANS], "any")
PLACES = {parts: place for place, parts in enumerate(CANDIDATES)}


def believed() -> Beliefs:
    return Beliefs(BYTES, DOUBTS, CANDIDATES)


def test_before_anything_is_measured_a_lever_is_doubted_as_it_says() -> None:
    found = believed().expected()
    assert found.cost_deviation[PLACES[(BATCH[0],)]] == pytest.approx(0.1)
    assert found.cost_deviation[PLACES[(BATCH[3],)]] == pytest.approx(0.1 * math.sqrt(4))  # of four halvings
    assert not found.bytes_mean.any()


def test_a_lever_that_did_nothing_is_expected_to_do_nothing_the_other_ways_too() -> None:
    beliefs, other = believed(), PLACES[(ORDER[2],)]
    before = beliefs.expected().cost_deviation[other]
    for tried in (ORDER[0], ORDER[1]):
        beliefs.learn(PLACES[(tried,)], 1.0, 1.0)
    after = beliefs.expected()
    assert after.cost_deviation[other] < before / 2
    assert after.cost_deviation[PLACES[(PLANS[0],)]] > before / 2  # another lever is as doubtful as it was


def test_a_lever_that_did_much_may_do_as_much_the_other_way() -> None:
    beliefs, other = believed(), PLACES[(PLANS[1],)]
    before = beliefs.expected().cost_deviation[other]
    beliefs.learn(PLACES[(PLANS[0],)], 0.9, 3.0)
    after = beliefs.expected()
    assert after.cost_deviation[other] > 3 * before
    assert after.cost_mean[other] == pytest.approx(0.0)
    assert after.cost_mean[PLACES[(PLANS[0],)]] == pytest.approx(math.log(3.0), rel=1e-3)


def test_what_was_measured_is_known_and_halves_of_it_are_shared() -> None:
    beliefs = believed()
    beliefs.learn(PLACES[(BATCH[3],)], 0.25, 1.4)
    found = beliefs.expected()
    whole = PLACES[(BATCH[3],)]
    assert found.bytes_mean[whole] == pytest.approx(math.log(0.25), rel=1e-3)
    assert found.bytes_deviation[whole] == pytest.approx(0.0, abs=5e-3)
    assert found.bytes_mean[PLACES[(BATCH[1],)]] == pytest.approx(math.log(0.25) / 2, rel=1e-2)


def test_beside_the_best_lies_a_change_less_a_step_either_way_and_halfway_to_what_does_not_fit() -> None:
    search = Search(beliefs=believed(), open=np.ones(len(CANDIDATES), dtype=bool), last=9)
    best = (BATCH[4], PLANS[0])
    known = {best: True, (BATCH[0], PLANS[0]): False}
    found = [CANDIDATES[place] for place in search.beside(best, known)]
    assert found == [
        (PLANS[0],),
        (BATCH[4],),
        (BATCH[3], PLANS[0]),
        (BATCH[2], PLANS[0]),  # between 16, which does not fit, and 1, which does
        (BATCH[4], PLANS[1]),
    ]
    known[(BATCH[2], PLANS[0])] = True
    assert (BATCH[1], PLANS[0]) in [CANDIDATES[place] for place in search.beside(best, known)]
    known[(BATCH[1], PLANS[0])] = False
    assert (BATCH[1], PLANS[0]) not in [CANDIDATES[place] for place in search.beside(best, known)]


def test_a_change_that_fits_alone_is_halved_towards_what_does_not() -> None:
    search = Search(beliefs=believed(), open=np.ones(len(CANDIDATES), dtype=bool), last=9)
    way = (BATCH[0].lever, BATCH[0].to)
    assert way in search.ways
    known = {(BATCH[4],): True}
    assert search.halfway(way, known) == PLACES[(BATCH[1],)]  # halfway from the last of five to as it is
    known[(BATCH[1],)] = False
    assert search.halfway(way, known) == PLACES[(BATCH[2],)]
    known[(BATCH[2],)] = True
    assert search.halfway(way, known) is None  # the third fits, the second does not
    assert search.halfway(way, {(BATCH[4],): False}) is None


def test_once_some_do_not_fit_each_lever_is_looked_at_alone() -> None:
    sizes = [change("micro_batch", f"batch {size}", steps) for steps, size in enumerate((16, 8), 1)]
    half = Change(lever="half_precision", title="float16", estimated_bytes=BYTES // 2)
    every = candidates([sizes, [half]], "any")
    beliefs = Beliefs(BYTES, {"micro_batch": (0.1, 0.1), "half_precision": (0.1, 0.1)}, every)
    over = handmade_profile(fits=False)
    trial = Trial(
        executable=SimpleNamespace(profile=over), compile=lambda *_: None, progress=print, budget=Budget(compiles=9)
    )
    search = Search(beliefs=beliefs, open=np.ones(len(every), dtype=bool), last=9)
    for size in sizes:
        assert trial.alone(search).all()
        trial.outcomes.append(Outcome(parts=(size, half), profile=over))
    trial.outcomes.append(Outcome(parts=(sizes[0],), profile=over))
    assert [every[place] for place in np.flatnonzero(trial.alone(search))] == [(half,)]
    trial.outcomes.append(Outcome(parts=(half,), profile=over))
    assert trial.alone(search).all()  # each is known


def test_after_four_that_do_not_fit_the_next_lacks_what_they_share() -> None:
    sizes = [change("micro_batch", f"batch {size}", steps) for steps, size in enumerate((16, 8, 4, 2), 1)]
    half = change("half_precision", "float16")
    every = candidates([sizes, [half]], "any")
    beliefs = Beliefs(BYTES, {"micro_batch": (0.1, 0.1), "half_precision": (0.1, 0.1)}, every)
    over = handmade_profile(fits=False)
    trial = Trial(
        executable=SimpleNamespace(profile=over), compile=lambda *_: None, progress=print, budget=Budget(compiles=9)
    )
    open_ = np.ones(len(every), dtype=bool)
    for count, parts in enumerate([(half,), *((size, half) for size in sizes[:3])], 1):
        assert trial.without_shared(beliefs, open_).all(), count
        trial.outcomes.append(Outcome(parts=parts, profile=over))
    left = [every[place] for place in np.flatnonzero(trial.without_shared(beliefs, open_))]
    assert left == [(size,) for size in sizes]
    trial.outcomes.append(Outcome(parts=(sizes[3],), profile=over))  # now the last four share the micro-batches
    assert [every[place] for place in np.flatnonzero(trial.without_shared(beliefs, open_))] == [(half,)]
    open_[every.index((half,))] = False  # but there is nothing left without them
    assert trial.without_shared(beliefs, open_).all()
    trial.outcomes.append(Outcome(parts=(sizes[3],), profile=handmade_profile()))
    assert trial.without_shared(beliefs, np.ones(len(every), dtype=bool)).all()  # something fits
