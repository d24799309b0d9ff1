"""An answer that cannot teach anything is not called learned, and says why; one that can is, at each form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop
from heedful.loop.feedback import FeedbackReader
from heedful.loop.log import Event, now
from heedful.loop.pending import PendingEvent
from loops import choice_loop, rating_loop, small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]
ALONE = "a single item was shown, which compares it with nothing: {} two or more"
AGREES = "it puts no item above one that was shown above it"
PAPERS = ("perceptron", "second-order", "exponentiated:bound=6", "convex:radius=5")


def weights(loop: Loop) -> bytes:
    return np.array(list(loop.weights.values())).tobytes()


def answer(loop: Loop, candidates: Any = FIVE, **form: Any) -> Any:
    """What becomes of an answer to a new decision; "first" and "last" stand for what was shown there."""
    d = loop.decide(candidates)
    names = {"first": d.shown[0], "last": d.shown[-1]} if "choice" not in form else {}

    def named(value: Any) -> Any:
        if value == "same":
            return list(d.shown)
        if isinstance(value, list):
            return [named(each) for each in value]
        return (
            {named(name): number for name, number in value.items()}
            if isinstance(value, dict)
            else names.get(value, value)
        )

    return loop.feedback(d.id, **{name: named(value) for name, value in form.items()})


@pytest.mark.parametrize("spec", [*PAPERS, "perceptron:batch=3"])
def test_an_answer_about_the_only_item_teaches_a_papers_learner_nothing(tmp_path: Path, spec: str) -> None:
    alone = ALONE.format("show")
    forms: list[dict[str, Any]] = [{"clicks": ["first"]}, {"better": ["first"]}]
    with small_loop(tmp_path / "l", spec, k=1, control=0.0) as loop:
        before = weights(loop)
        for form in forms:
            told = answer(loop, **form)
            assert (told.status, told.learned, told.reason) == ("applied", False, alone), form
        assert weights(loop) == before
        assert answer(loop, better=["i3"] if loop.rank(FIVE)[0] != "i3" else ["i2"]).learned
        assert answer(loop, thumb="up").status == "rejected"
    with small_loop(tmp_path / "one", spec, control=0.0) as loop:
        for form in forms:
            assert answer(loop, ["i0"], **form)[5:] == (False, alone), form


@pytest.mark.parametrize("spec", [*PAPERS, "posterior", "posterior:swap=0", "posterior without swaps"])
def test_what_is_called_learned_is_what_changed_the_weights(tmp_path: Path, spec: str) -> None:
    """Of lists: a correction that is what was shown, a click with nothing above it, and others that say more."""
    name, _, still = spec.partition(" without ")
    with small_loop(tmp_path / "l", name, control=0.0, exploration=0.0 if still else None) as loop:
        called = []
        for form in (
            {"better": "same"},
            {"better": ["first"]},
            {"better": ["last"]},
            {"clicks": ["first"]},
            {"clicks": ["last"]},
            {"clicks": "same"},
            {"action": "buy", "item": "first"},
            {"action": "buy", "item": "last"},
            {"choice": "second"},
            {"thumb": "down"},
        ):
            if name in PAPERS and form.keys() & {"thumb", "action"}:
                assert not answer(loop, **form).learned
                continue
            before, told = weights(loop), answer(loop, **form)
            assert told.learned == (weights(loop) != before), form
            assert told.reason == (None if told.learned else AGREES), form
            called.append(told.learned)
        correct_first, correct_last, click_first, click_last, click_all = called[1:6]
        assert not called[0]
        assert correct_last
        assert click_last
        assert correct_first == click_first == (name not in PAPERS)  # it beats those below it
        if name in PAPERS:
            assert (click_all, called[6:]) == (False, [True])
        else:
            assert called[6:] == [True] * 4


def test_a_lesson_in_the_middle_of_a_batch_is_learned(tmp_path: Path) -> None:
    """It changes no weight yet, and will."""
    with small_loop(tmp_path / "l", "perceptron:batch=3", control=0.0) as loop:
        before = weights(loop)
        assert answer(loop, better="same")[5:] == (False, AGREES)
        assert answer(loop, better=["last"])[5:] == (True, None)
        assert weights(loop) == before
        assert answer(loop, better="same")[5:] == (False, AGREES)  # the third: now the second counts
        assert weights(loop) != before


def test_other_forms_that_compare_nothing_say_so(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        nothing = "nothing in it was preferred to anything"
        numbers = "that takes two items with different numbers"
        for form, reason in (
            ({"none": True}, nothing),
            ({"clicks": []}, nothing),
            ({"rating": {"i0": 3}}, numbers),
            ({"grade": {"i0": 3, "i1": 3}}, numbers),
            ({"rating": {"first": 5, "last": 1}}, AGREES),
            ({"choice": "equal"}, nothing),
            ({"choice": "first"}, AGREES),
        ):
            assert answer(loop, **form)[5:] == (False, reason), form


def test_other_kinds_say_why_too(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "r") as loop:
        loop.decide(["i0"], person="p", id="d")
        assert loop.feedback("d", none=True)[5:] == (False, "nothing in it was preferred to anything")
    with choice_loop(tmp_path / "c") as loop:
        loop.decide(["i0", "i1"], person="p", id="d")
        assert loop.feedback("d", choice="cannot_judge")[5:] == (False, "it is only noted that this was asked")
        assert loop.feedback("d", choice="first").learned


def test_a_loop_that_shows_one_item_says_what_it_will_not_learn_from(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", k=1) as loop:
        [told] = [each for each in loop.caveats if each.startswith("k 1")]
        assert all(part in told for part in ("clicks teach this learner nothing", "posterior"))
    for learner, k in (("posterior", 1), ("perceptron", 2)):
        with small_loop(tmp_path / learner, learner, k=k) as loop:
            assert not any(each.startswith("k 1") for each in loop.caveats)


def test_what_a_rebuilt_model_says_is_the_same(tmp_path: Path) -> None:
    """An undo in the same commit makes the model again, and what was said is judged without learning it."""
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        first = answer(loop, better=["last"])
        d = loop.decide(FIVE)
        draft = loop.projection
        agrees = FeedbackReader(draft).read(d.id, "again", None, {"better": list(d.shown)})
        says = FeedbackReader(draft).read(d.id, "says", None, {"better": [d.shown[-1]]})
        assert isinstance(agrees, PendingEvent)
        assert isinstance(says, PendingEvent)
        found = draft.log.find("feedback", first.event)
        undo = PendingEvent(Event(0, "undo", "u", now(), None, found.seq, 0, "{}", None))
        told = draft.submit([undo, agrees, says])
        assert [each.learned for each in told] == [True, False, True]
        assert [each.reason for each in told[1:]] == [AGREES, None]
