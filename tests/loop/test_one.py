"""Loops that show one item: what is drawn, and how probably; what is said of how sure that is."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings
from heedful.evaluation.answers import Answer, judged
from heedful.learners.coactive.posterior import MODEST
from heedful.loop.interactions.one.model import DRAWS, FLOOR, Draw
from loops import LIKED, banners, small_loop


def draw(loop: Loop, device: str, spread: float = 0.5) -> Draw:
    """What would be drawn for somebody with this device."""
    request, _, view = loop.decider.look(None, None, {"device": device}, None)
    return Draw(view.model, view, request.x, spread)


@pytest.mark.parametrize("form", ["clicks", "thumb", "reward"])
def test_clicks_thumbs_and_rewards_teach_the_same(tmp_path: Path, form: str) -> None:
    """Of a click and none, of thumbs, of rewards: what is learned is what each device likes."""
    with banners(tmp_path / "l") as loop:
        for i in range(150):
            device = list(LIKED)[i % 3]
            d = loop.decide(context={"device": device}, id=f"d{i}")
            good = d.shown[0] == LIKED[device]
            said: dict[str, dict[str, Any]] = {
                "clicks": {"clicks": list(d.shown)} if good else {"none": True},
                "thumb": {"thumb": "up" if good else "down"},
                "reward": {"reward": float(good)},
            }
            assert loop.feedback(d.id, id=f"e{i}", **said[form]).learned
        for device, liked in LIKED.items():
            assert loop.rank(context={"device": device})[0] == liked
            predicted = loop.predict(context={"device": device})
            assert predicted[liked].value > 0.8
            assert all(each.value < 0.3 for name, each in predicted.items() if name != liked)
        assert loop.report().learned.answered == 150
        assert loop.evaluate("perceptron").measures[0].name in ("reward", "squared error")


def test_what_is_drawn_is_the_share_of_draws_that_it_wins(tmp_path: Path) -> None:
    """By other draws than the loop's, from the same posterior; and over many decisions it is shown as often."""
    with banners(tmp_path / "l") as loop:
        for i, (name, reward) in enumerate((("news", 0.9), ("sport", 0.6), ("food", 0.2)) * 3):
            loop.record(None, [name], id=f"r{i}", context={"device": "phone"})
            loop.feedback(f"r{i}", id=f"e{i}", reward=reward)
        drawn = draw(loop, "phone")
        assert drawn.chances.sum() == pytest.approx(1.0)
        assert drawn.chances.min() >= FLOOR / 3
        request, _, view = loop.decider.look(None, None, {"device": "phone"}, None)
        state, x = view.shared, np.array(request.x, np.float64)
        P = np.tril(state.P) + np.tril(state.P, -1).T
        n = x.shape[1]
        spread = x @ P[:n, :n] @ x.T
        others = np.random.default_rng(7).multivariate_normal(x @ state.m[:n], 0.25 * spread, 100_000)
        wins = np.bincount(others.argmax(axis=1), minlength=3) / 100_000
        assert drawn.chances == pytest.approx((1 - FLOOR) * wins + FLOOR / 3, abs=4 * 0.5 / math.sqrt(DRAWS))
        shown = [loop.decide(context={"device": "phone"}, id=f"d{i}") for i in range(400)]
        names = list(request.called)
        for j, name in enumerate(names):
            times = [d for d in shown if d.shown == (name,)]
            assert {d.probability for d in times} <= {float(drawn.chances[j])}
            assert len(times) / 400 == pytest.approx(drawn.chances[j], abs=4 * 0.5 / 20)


def test_without_exploration_the_best_is_shown(tmp_path: Path) -> None:
    with banners(tmp_path / "l", exploration=0.0) as loop:
        assert any(told.startswith("exploration 0") for told in loop.caveats)
        loop.record(None, ["food"], id="r", context={"device": "desk"})
        loop.feedback("r", thumb="up")
        d = loop.decide(context={"device": "desk"})
        assert (d.shown, d.probability) == (("food",), 1.0)


def test_among_more_than_a_hundred_any_may_be_shown(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "posterior", n_items=150, k=1, control=0.0) as loop:
        request, _, view = loop.decider.look(None, None, None, None)
        chances = Draw(view.model, view, request.x, 0.5).chances
        assert chances.size == 150
        assert chances.sum() == pytest.approx(1.0)
        assert np.sum(chances == FLOOR / 150) >= 50


def test_rewards_have_a_range(tmp_path: Path) -> None:
    """A reward of 30 in a range from -10 to 40 is one of .8 from 0 to 1; predictions are rewards."""
    with banners(tmp_path / "a", rewards=(-10, 40)) as wide, banners(tmp_path / "b") as unit:
        for loop, reward in ((wide, 30), (unit, 0.8)):
            loop.record(None, ["news"], id="d", context={"device": "desk"})
            loop.feedback("d", id="e", reward=reward)
        wider, other = (loop.predict(context={"device": "desk"})["news"].value for loop in (wide, unit))
        assert wider == pytest.approx(-10 + 50 * other)
        assert wide.report().learned.mean is None  # somebody else showed it
        for i in range(40):
            d = wide.decide(context={"device": "desk"}, id=f"d{i}", person=f"p{i}")
            wide.feedback(d.id, id=f"e{i}", reward=35 if d.shown[0] == "food" else -5)
        values = wide.evaluate().learners[0].values
        [earned] = [each for each in values if each.measure == "reward"]
        assert earned.value is not None
        assert earned.low is not None
        assert earned.high is not None
        assert -10 <= earned.low <= earned.value <= earned.high <= 40
        assert earned.value > 1.0  # which one reward from 0 to 1 could not be
        with pytest.raises(ValueError, match=r"reward: expected a number from -10 to 40, got 50"):
            wide.feedback("d", reward=50)
    for wrong in ((1, 1), (2, 1), "0..1", (0, math.nan)):
        with pytest.raises(ValueError, match="rewards: expected the lowest and the highest"):
            Settings(k=1, rewards=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rewards: expected none in a loop of rankings"):
        Settings(rewards=(0, 1))


def test_what_judges_the_only_item_by_hand() -> None:
    for answer, reward in (
        (Answer(best=(4,), picked=True), 3.0), (Answer(best=(), picked=True), -1.0), (Answer(best=()), -1.0),
        (Answer(verdict=((), -1.0)), -1.0), (Answer(verdict=((4,), 0.5)), 2.0), (Answer(weights={4: 0.25}), 0.0),
        (Answer(weights={4: -1.0}), -1.0), (Answer(values={4: 2.5}), 2.5),
    ):  # fmt: skip
        assert judged([4], answer, -1.0, 3.0) == (4, reward), answer
    for answer in (
        Answer(),
        Answer(best=(4,)),
        Answer(best=(-1,), picked=True),
        Answer(pairs=((4, 2),)),
        Answer(tied=True),
    ):
        assert judged([4], answer, -1.0, 3.0) is None, answer
    assert judged([4, 2], Answer(best=(4,), picked=True), 0.0, 1.0) is None
    assert judged([4, 2], Answer(verdict=((2,), 1.0)), 0.0, 1.0) == (2, 1.0)


def test_it_is_as_sure_as_the_posterior(tmp_path: Path) -> None:
    """Phi of the lead in standard deviations, 1.2 times those of the posterior, of a decision, a ranking and an
    item that is asked about; a person's own weights make it less sure."""
    with small_loop(tmp_path / "l", "posterior:swap=0", control=0.0, shrink=2.0) as loop:
        for i in range(12):
            d = loop.decide([f"i{(i + j) % 12}" for j in range(5)], id=f"d{i}", person="p" if i % 2 else None)
            loop.feedback(d.id, id=f"e{i}", better=[d.shown[-1]])
        request, _, view = loop.decider.look(None, None, None, None)
        state, x = view.shared, np.array(request.x, np.float64)
        n = x.shape[1]
        P = (np.tril(state.P) + np.tril(state.P, -1).T)[:n, :n]
        order = [request.called.index(name) for name in loop.rank()]
        w, found = view.model.effective(view), loop.ranking().sure
        assert found is not None
        for a, b, sure in zip(order, order[1:], found):
            gap = x[a] - x[b]
            assert sure == pytest.approx(NormalDist().cdf(gap @ w / (MODEST * math.sqrt(gap @ P @ gap))))
        assert len(found) == 10
        d = loop.decide(id="last")
        assert d.sure == round(found[0], 3)
        assert loop.why("last").sure == pytest.approx(found[0])
        assert loop.decide(id="last").sure == d.sure
        spreads, own = loop.spreads_of(None), loop.spreads_of("p")
        assert list(spreads.values()) == pytest.approx(MODEST * np.sqrt(np.diag(P)))
        assert all(own[name] > spreads[name] for name in list(own)[:-1])
    with small_loop(tmp_path / "paper", "perceptron") as loop:
        assert (loop.decide(id="d").sure, loop.ranking().sure, loop.spreads_of(None)) == (None, None, {})
