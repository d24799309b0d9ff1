"""What a loop of each kind of feedback refuses by name, and that nothing comes of it: forms of other kinds, answers
that are none or do not fit what was shown, lines, settings and learners."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful import Loop, Settings, infer
from heedful.data.jsonl import Line
from heedful.io import import_lines
from kinds import FIFTH, KINDS, Kind, each_kind
from loops import bits, choice_loop, rating_loop, rows, small_loop

BY_NAME = {kind.name: kind for kind in KINDS}
NAN, INF = float("nan"), float("inf")


def asked(kind: Kind, folder: Path) -> Loop:
    """A loop with lists that somebody else had shown: "d", "d2", "three" and "one" to p, "alone" to q."""
    folder.mkdir(exist_ok=True)
    loop = kind.make(folder / "l")
    candidates = loop.items if kind.name == "comparison" else ["i0", "i1", "i2"]
    for id, shown in (("d", "01"), ("d2", "02"), ("three", "012"), ("one", "0"), ("alone", "0")):
        loop.record(candidates, [f"i{j}" for j in shown], id=id, person="q" if id == "alone" else "p")
    return loop


def state(loop: Loop) -> Any:
    return bits(loop), loop.projection.log.counts()


# ---------------------------------------------------------------------------- forms of other kinds

FORMS: list[dict[str, Any]] = [
    {"clicks": ["i0"]},
    {"better": ["i1"]},
    {"edit": {"f0": 2.0}},
    {"thumb": "up"},
    {"reward": 0.5, "item": "i0"},
    {"action": "buy", "item": "i0"},
    {"actions": {"i0": "buy"}},
    {"choice": "second"},
    {"rating": {"i0": 4}},
    {"grade": {"i0": 4}},
    {"best": "i0", "worst": "i1"},
    {"none": True},
]
FITTING: dict[str, tuple[str, dict[str, str]]] = {
    "coactive": (
        "clicks better edit thumb action choice rating grade none",
        {
            "": "expected clicks, better, edit, thumb, action, rating, grade, choice or none: this loop learns what is "
            "better",
            "actions": "; send action and item",
        },
    ),
    "one": (
        "clicks better edit thumb reward action choice none",
        {
            "": "expected clicks, thumb, reward, better, edit, action, choice or none: this loop learns how good what "
            "it shows is",
            "actions": "; send action and item",
        },
    ),
    "ordinal": (
        "grade none",
        {
            "": "expected grade or none: this loop learns grades, whole numbers from 1 to 5",
            "rating": "; where stars are such numbers, send them as grade",
        },
    ),
    "rating": (
        "rating actions none",
        {
            "": "expected rating, actions or none: this loop learns ratings from 1 to 5",
            "action": "; write actions={item: action}",
            "grade": "; send grades as rating",
        },
    ),
    "comparison": (
        "clicks better choice none",
        {
            "": "expected choice, better, clicks or none: this loop learns choices; send ",
            "edit": "the order as a list",
            "thumb": "choice",
            "reward": "choice",
            "action": "what was chosen as better",
            "actions": "what was chosen as better",
            "rating": "the order as better",
            "grade": "the order as better",
        },
    ),
    "routing": (
        "clicks better edit thumb reward choice none",
        {"": "expected thumb, reward, edit, choice, better, clicks or none: this loop learns which answers are good"},
    ),
    "best-worst": ("best none", {"": "expected best or none: this loop learns extremes"}),
}
OF_ANSWERS = {"edit": {"edit": {"changed": 0.5}, "item": "i1"}, "thumb": {"thumb": "up", "item": "i0"}}
"""How loops of routes take what other loops take in another way."""
"""The forms that a loop of each kind takes; what is said of others, and besides of some of them."""


@each_kind
def test_forms_of_other_kinds_are_rejected_with_those_that_are_taken(kind: Kind, folder: Path) -> None:
    taken, reasons = FITTING[kind.name]
    with asked(kind, folder) as loop:
        before = state(loop)
        for form in FORMS:
            name = next(iter(form))
            if name in taken.split() or (name == "best" and kind.own is None):  # which no other loop has heard of
                continue
            answer = loop.feedback("d", **form)
            assert answer.status == "rejected", form
            assert answer.reason == f"{name}: {reasons.get('', '')}{reasons.get(name, '')}"
            assert state(loop) == before
        for form in FORMS:
            if (name := next(iter(form))) in taken.split():
                form = OF_ANSWERS.get(name, form) if kind.name == "routing" else form
                assert loop.feedback("d", **form).status == "applied", form


def test_what_the_learner_cannot_use_is_rejected_and_a_list_corrects_no_object(folder: Path) -> None:
    with small_loop(folder / "loop", "dueling-bandit") as loop:
        d = loop.decide(["i0", "i1"])
        assert "DuelingBandit learns from what was chosen" in str(loop.feedback(d.id, thumb="up").reason)
        with pytest.raises(ValueError, match="edit: expected the corrected text"):
            loop.feedback(d.id, edit=["i1"])


# ---------------------------------------------------------------------------- what is no answer

SCALES = ("ordinal", "grade", "a whole number"), ("rating", "rating", "a number")
NO_ANSWER: dict[str, list[tuple[dict[str, Any], str]]] = {
    "coactive": [
        ({"edit": "some text"}, "edit: expected the attributes that were changed"),
        ({"clicks": 3}, "clicks: expected a list"),
    ],
    "one": [
        ({"reward": 1.5}, "reward: expected a number from 0 to 1, got 1.5"),
        ({"reward": NAN}, "reward: expected a finite number, got nan"),
        ({"reward": "much"}, "reward: expected a finite number, got 'much'"),
        ({"clicks": 3}, "clicks: expected a list"),
    ],
    "ordinal": [
        ({"grade": {"i0": 2, "i1": 2.5}}, "grade['i1']: expected a whole number from 1 to 5, got 2.5"),
        ({"grade": {"i0": 1e30}}, "grade['i0']: expected a whole number from 1 to 5"),
    ],
    "rating": [
        ({"rating": {"i0": 5.5}}, "rating['i0']: expected a number from 1 to 5, got 5.5"),
        ({"rating": {"i0": 2, "i1": -1e30}}, "rating['i1']: expected a number from 1 to 5, got -1e+30"),
        ({"actions": {"i0": "veiw"}}, "actions['i0']: expected view, cart, buy, hide, got 'veiw'"),
        ({"actions": {"i0": []}}, "actions['i0']: expected a list of 1 to 100 names, got []"),
        ({"actions": {"i0": 3}}, "actions['i0']: expected a list of 1 to 100 names, got 3"),
        ({"actions": "buy"}, "actions: expected what was done with each item"),
    ],
    "comparison": [({"choice": "left"}, "choice: expected ")],
    "routing": [
        ({"reward": -1, "item": "i0"}, "reward: expected a number from 0 to 1, got -1"),
        ({"thumb": "sideways"}, "thumb: expected up or down, got 'sideways'"),
        ({"edit": "a text"}, 'edit: expected {"from": the answer, "to": the edited text}, or {"changed": a share'),
        ({"edit": {"from": "a"}}, 'edit: expected {"from": the answer, "to": the edited text}, or {"changed": a share'),
        ({"edit": {"from": "a", "to": 3}}, "edit: to: expected a text"),
        ({"edit": {"from": "a " * 10_001, "to": "b"}}, "edit: from: expected at most 10,000 words, got 10,001; "),
        ({"edit": {"changed": 1.5}, "item": "i0"}, "edit: changed: expected a share from 0 to 1, got 1.5"),
        ({"edit": {"changed": NAN}, "item": "i0"}, "edit: changed: expected a finite number, got nan"),
        ({"edit": {"changed": 0.5}, "nearest": True}, "nearest: expected none, as answers are not on offer"),
        ({"choice": "left"}, "choice: expected "),
    ],
    "best-worst": [
        ({"best": "i0"}, "worst: expected the worst of what was shown, beside the best, got none"),
        ({"best": "i0", "worst": "i0"}, "best, worst: expected each once, got 'i0' 2 times"),
        (
            {"best": ["i0"], "worst": "i1"},
            "best, worst[0]: expected a text of 1 to 200 printable characters, got ['i0']",
        ),
        ({"worst": "i0"}, "feedback: expected one of "),
        ({"best": "i0", "worst": "i1", "clicks": ["i0"]}, "feedback: expected one of "),
        ({"best": "i0", "worst": "i1", "item": "i0"}, "feedback: expected best, worst, got another field: 'item'"),
    ],
}
for kind_name, form_name, number in SCALES:
    NO_ANSWER[kind_name] += [
        ({form_name: {"i0": 6}}, f"{form_name}['i0']: expected {number} from 1 to 5, got 6"),
        ({form_name: {"i0": 0}}, f"{form_name}['i0']: expected {number} from 1 to 5, got 0"),
        ({form_name: {"i0": NAN}}, f"{form_name}['i0']: expected a finite number, got nan"),
        ({form_name: {"i0": INF}}, f"{form_name}['i0']: expected a finite number, got inf"),
        ({form_name: {"i0": True}}, f"{form_name}['i0']: expected a finite number, got True"),
        ({form_name: {"i0": "4"}}, f"{form_name}['i0']: expected a finite number, got '4'"),
        ({form_name: {}}, f"{form_name}: expected a number for each item"),
        ({form_name: 4}, f"{form_name}: expected a number for each item"),
    ]


@each_kind
def test_what_is_no_answer_is_refused_by_name_and_changes_nothing(kind: Kind, folder: Path) -> None:
    """Where one of several is none, none is taken."""
    with kind.make(folder / "l", kind.learners[0]) as loop:
        loop.record(["i0", "i1"], ["i0", "i1"], id="d", person="p")
        before = state(loop)
        for form, told in NO_ANSWER[kind.name]:
            with pytest.raises(ValueError, match="expected") as refused:
                loop.feedback("d", **form)
            assert str(refused.value).startswith(told)
            [answer] = loop.feedback_many([{"decision": "d", **form}])
            assert (answer.status, answer.learned) == ("rejected", False)
            assert str(answer.reason).startswith(told)
            assert state(loop) == before


# ---------------------------------------------------------------------------- what does not fit what was shown

SHOWN = "expected items that were shown ('i0', 'i1'), got"
CANDIDATES = "expected candidates of the decision ('i0', 'i1', 'i2'), got"
UNFIT: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "coactive": [
        ("nobody", {"clicks": []}, "decision nobody is not in the log"),
        ("d", {"clicks": ["i2"]}, f"clicks: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"better": ["i9"]}, f"better: {CANDIDATES} 'i9'"),
        ("d", {"rating": {"i9": 1}}, f"rating: {CANDIDATES} 'i9'"),
        ("d", {"thumb": "up", "item": "i2"}, f"item: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"action": "buy", "item": "i2"}, f"item: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"edit": {"f0": 1.0}, "item": "i9"}, f"item: {CANDIDATES} 'i9'"),
        ("d", {"clicks": ["i0"], "chain": ["later"]}, "chain: decision later is not in the log"),
        ("d", {"clicks": ["i0"], "chain": ["alone"]}, "somebody else"),
        ("alone", {"choice": "first"}, "choice: expected a decision that showed two, got one that showed one"),
    ],
    "one": [
        ("nobody", {"reward": 1}, "decision nobody is not in the log"),
        ("d", {"clicks": ["i2"]}, f"clicks: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"reward": 1}, "item: expected the item that was worth it, as 2 were shown, got none"),
        ("d", {"reward": 1, "item": "i2"}, f"item: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"better": ["i9"]}, f"better: {CANDIDATES} 'i9'"),
    ],
    "ordinal": [
        ("nobody", {"grade": {"i0": 1}}, "decision nobody is not in the log"),
        ("d", {"grade": {"i0": 2, "i9": 3}}, f"grade: {CANDIDATES} 'i9'"),
    ],
    "rating": [
        ("nobody", {"rating": {"i0": 1}}, "decision nobody is not in the log"),
        *[
            ("d", {"rating": {"i0": 2, name: 3}}, f"rating: {SHOWN} '{name}'; answer")
            for name in ("i2", "i9", "nothing")
        ],
    ],
    "comparison": [
        ("nobody", {"choice": "first"}, "decision nobody is not in the log"),
        ("d", {"better": "i5"}, f"better: {SHOWN} 'i5'; answer the decision that showed it"),
        ("d", {"clicks": ["i5"]}, f"clicks: {SHOWN} 'i5'; answer the decision that showed it"),
        (
            "d",
            {"clicks": ["i0", "i1"]},
            "clicks: expected one, the best of those shown, got 2; send an order as better",
        ),
        ("d", {"clicks": []}, "clicks: expected one, the best of those shown, got 0"),
        ("d", {"clicks": ["i2"], "chain": ["d2"]}, "chain: expected none in a loop of choices, got some"),
        ("three", {"choice": "second"}, "choice: expected better, as 3 were shown, got second"),
        ("one", {"better": "i0"}, "better: expected a decision that showed two or more, got one that showed 1"),
        ("one", {"choice": "first"}, "choice: expected a decision that showed two, got one that showed one"),
    ],
    "routing": [
        ("nobody", {"thumb": "up"}, "decision nobody is not in the log"),
        ("d", {"thumb": "up"}, "item: expected the model whose answer is judged, as 2 were shown, got none"),
        ("d", {"reward": 1}, "item: expected the model whose answer is judged, as 2 were shown, got none"),
        ("d", {"edit": {"changed": 0.5}}, "item: expected the model whose answer is judged, as 2 were shown, got none"),
        ("d", {"thumb": "up", "item": "i2"}, f"item: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"edit": {"changed": 0.5}, "item": "i2"}, f"item: {SHOWN} 'i2'; answer the decision that showed it"),
        ("d", {"better": ["i9"]}, f"better: {CANDIDATES} 'i9'"),
        ("one", {"choice": "first"}, "choice: expected a decision that showed two, got one that showed one"),
    ],
    "best-worst": [
        ("nobody", {"best": "i0", "worst": "i1"}, "decision nobody is not in the log"),
        ("d", {"best": "i0", "worst": "nobody"}, f"best: {CANDIDATES} 'nobody'"),
        ("d", {"best": "i0", "worst": "i2"}, "best: expected two of what was shown, the best and the worst"),
    ],
}


@each_kind
def test_what_does_not_fit_what_was_shown_is_rejected(kind: Kind, folder: Path) -> None:
    with asked(kind, folder) as loop:
        before = state(loop)
        for decision, form, reason in UNFIT[kind.name]:
            answer = loop.feedback(decision, id="e", **form)
            assert (answer.status, answer.event, answer.seq, answer.learned) == ("rejected", "e", None, False)
            assert reason in str(answer.reason), answer.reason
            assert state(loop) == before


def test_what_fits_is_taken_whatever_else_was_shown(folder: Path) -> None:
    """Any candidate may be graded; three are equally good, and who cannot judge teaches nothing."""
    with asked(BY_NAME["ordinal"], folder / "grades") as loop:
        assert loop.feedback("d", grade={"i2": 1}).learned
        assert not loop.feedback("d", none=True).learned
    with asked(BY_NAME["rating"], folder / "ratings") as loop:
        assert not loop.feedback("d", none=True).learned
        assert loop.feedback("d", rating={"i0": 2}).learned
    with asked(BY_NAME["comparison"], folder / "choices") as loop:
        assert loop.feedback("three", choice="equal").learned
        assert not loop.feedback("three", choice="cannot_judge").learned
        assert loop.feedback("one", none=True).status == "applied"
        assert loop.verify() == []


# ---------------------------------------------------------------------------- what is no question, and no line

BARE = [{"id": "x"}, {"id": "y"}]
NO_QUESTION: dict[str, list[tuple[dict[str, Any], str]]] = {
    "coactive": [],
    "one": [],
    "ordinal": [],
    "rating": [
        ({"candidates": BARE[:1]}, "candidates: expected names of items on offer, in a loop of ratings"),
        (
            {"candidates": np.zeros((2, 1), np.float32)},
            "candidates: expected names of items on offer, in a loop of ratings",
        ),
        ({"candidates": ["i0"], "repeats": 1}, "repeats: expected true or false, got 1"),
    ],
    "comparison": [
        ({"show": 1}, "show: expected two or more, to choose between, got 1"),
        ({"prior": {"i0": 1.0}}, "prior: expected none in a loop of choices"),
        ({"candidates": BARE}, "candidates: expected names of items on offer, in a loop of choices"),
        ({"candidates": ["i0"]}, "candidates: expected two or more"),
    ],
    "routing": [
        ({"show": 3}, "show: expected 1, or 2 to choose between, in a loop of routes, got 3"),
        ({"prior": {"i0": 1.0}}, "prior: expected none in a loop of routes"),
        ({"candidates": BARE}, "candidates[0]: cost: expected a number from 0 to 1000, got none"),
        ({"candidates": [{"id": "x", "cost": 1}]}, "candidates[0]: id: expected one of i0, i1, "),
        ({"candidates": [{"id": "i0", "cost": -1}]}, "candidates[0]: cost: expected a number from 0 to 1000, got -1"),
        ({"context": {"embedding": [1.0]}}, "context: embedding: expected 3 numbers, got 1"),
        ({"context": {"embedding": [1.0, NAN, 2.0]}}, "context: embedding[1]: expected a finite number"),
        ({"context": {"embedding": [1.0, INF, 2.0]}}, "context: embedding[1]: expected a finite number"),
        ({"context": {"embedding": "abc"}}, "context: embedding: expected a list of numbers"),
        ({"context": {"embedding": None}}, "context: embedding: expected 3 numbers, got none"),
        ({"context": {"embeding": [1.0]}}, "context: embedding: expected 3 numbers, got none; there is 'embeding'"),
        *[
            (
                {"context": {"embedding": [1.0, 2.0, 3.0], "cost_weight": weight}},
                "context: cost_weight: expected a number from 0 to 1000",
            )
            for weight in (-1, "x", NAN)
        ],
        ({"context": {"cost_weight": 0.1}}, "context: embedding: expected 3 numbers, got none"),
    ],
    "best-worst": [({"candidates": ["i0"]}, "candidates: expected two or more, got 1")],
}


@each_kind
def test_what_is_no_question_is_refused_by_name_and_logs_nothing(kind: Kind, folder: Path) -> None:
    with kind.make(folder / "l") as loop:
        before = state(loop)
        everywhere: list[tuple[dict[str, Any], str]] = [
            ({"candidates": [], "strict": True}, "candidates: expected a list of 1 to"),
            ({"candidates": ["i0", "i0"], "strict": True}, "candidates: expected each once"),
            ({"candidates": ["i0", "i1"], "show": 0}, "show: expected a whole number"),
            ({"candidates": ["i0", "i1"], "repeats": 1}, "repeats: expected "),
        ]
        for given, told in everywhere + NO_QUESTION[kind.name]:
            with pytest.raises(ValueError, match="expected") as refused:
                loop.decide(person="p", **given)
            assert str(refused.value).startswith(told)
        if kind.name != "comparison":
            with pytest.raises(ValueError, match="standing: expected a loop of choices, got a loop "):
                loop.standing()
        assert state(loop) == before


PREDICTED: list[tuple[str, Any, str]] = [
    ("ordinal", [6, 1], "predicted[0]: expected a whole number from 1 to 5, got 6"),
    ("ordinal", [1.5, 1], "predicted[0]: expected a whole number from 1 to 5, got 1.5"),
    ("ordinal", [1], "predicted: expected 2 of them, one for each that was shown"),
    ("ordinal", [1, "2"], "predicted[1]: expected a finite number, got '2'"),
    ("rating", [1.5], "predicted: expected 2 of them, one for each that was shown, got [1.5]"),
    ("rating", [1, "2"], "predicted[1]: expected a finite number, got '2'"),
    ("rating", [1, 5.5], "predicted[1]: expected a number from 1 to 5, got 5.5"),
    ("coactive", [1.5, 2], "predicted: expected none in a loop of rankings, which predicts nothing, got some"),
    ("routing", [1.5, 0.5], "predicted[0]: expected a number from 0 to 1, got 1.5"),
    ("routing", [0.5], "predicted: expected 2 of them, one for each that was shown"),
    ("comparison", [0.5], "predicted: expected 2 of them, one for each that was shown"),
    ("best-worst", [0.5], "predicted: expected 2 of them, one for each that was shown"),
]


@pytest.mark.parametrize(("kind", "predicted", "told"), PREDICTED)
def test_a_line_with_predictions_that_do_not_fit_is_rejected(
    folder: Path, kind: str, predicted: Any, told: str
) -> None:
    line = {"kind": "decision", "id": "d", "candidates": ["i0", "i1"], "shown": ["i1", "i0"], "predicted": predicted}
    with BY_NAME[kind].make(folder / "l") as loop:
        [outcome] = import_lines(loop, [Line(1, line, None)])
        assert outcome.status == "rejected"
        assert str(outcome.reason).startswith(told)
        assert "decision" not in loop.projection.log.counts()


# ---------------------------------------------------------------------------- what is no loop, and no learner of one

RANGE = "ratings: expected the lowest and the highest, such as (1, 5), between -1e6 and 1e6"
NO_LOOP: list[tuple[Any, str | None, dict[str, Any], str]] = [
    (
        small_loop,
        "prank",
        {},
        "learner: expected n_ranks, how many grades there are, got prank; write prank:n_ranks=5",
    ),
    (small_loop, "multiclass:n_ranks=5", {"shrink": 3.0}, "shrink: expected 0 for multiclass:n_ranks=5"),
    (small_loop, "prank:n_ranks=5", {"exploration": 0.2}, "exploration: expected none or 0 for prank:n_ranks=5"),
    (small_loop, "prank:n_ranks=0", {}, "n_ranks: expected a whole number, 2 to 1000, got 0"),
    (small_loop, "bmf", {}, "ratings: expected the lowest and the highest rating there may be, such as 1"),
    (small_loop, "gp", {}, "choices: expected what they are for, best or ranking"),
    (small_loop, "perceptron", {"repeats": True}, "repeats: expected false in a loop of rankings, got true"),
    (rating_loop, "bmf", {"ratings": (5, 1)}, f"{RANGE}, got (5, 1)"),
    (rating_loop, "bmf", {"ratings": (1, NAN)}, RANGE),
    (rating_loop, "bmf", {"ratings": (0, 2e6)}, RANGE),
    (rating_loop, "bmf", {"ratings": 5}, f"{RANGE}, got 5"),
    (
        rating_loop,
        "perceptron",
        {},
        "learner: expected one of ratings, such as bmf, got perceptron",
    ),
    (rating_loop, "bmf", {"shrink": 3.0}, "shrink: expected 0 in a loop of ratings"),
    (rating_loop, "bmf", {"exploration": 0.2}, "exploration: expected none or 0 for bmf"),
    (rating_loop, "bmf:n_factors=0", {}, "n_factors: expected a whole number"),
    (rating_loop, "bmf", {"repeats": 1}, "repeats: expected true or false, got 1"),
    (rating_loop, "bmf", {"actions": {"buy": [9, 1]}}, "actions: buy"),
    (rating_loop, "bmf", {"actions": {"buy": [5, 0]}}, "actions: buy"),
    (rating_loop, "bmf", {"actions": {"buy": "x"}}, "actions: buy"),
    (choice_loop, None, {"shrink": 1.0}, "shrink: expected 0 in a loop of choices"),
    (choice_loop, "bmf", {}, "learner: expected one of choices, such as hierarch"),
    (choice_loop, None, {"exploration": 0.5}, "exploration: expected none or 0"),
    (choice_loop, None, {"choices": "worst"}, "choices: expected best or ranking, got 'worst'"),
    (choice_loop, None, {"ratings": (1, 5)}, "choices: expected none in a loop of ratings, got best"),
]


@pytest.mark.parametrize(("make", "learner", "settings", "told"), NO_LOOP)
def test_what_makes_no_sense_is_refused_by_name_and_nothing_is_made(
    folder: Path, make: Any, learner: str | None, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        make(folder / "l", learner, **settings)
    assert told in str(refused.value)
    assert not (folder / "l").exists()


def test_an_encoding_that_a_loop_has_no_use_for_is_refused(folder: Path) -> None:
    items = rows(4, 2)
    encoding, context = infer(items, identifier="id"), infer([{"c": 1.0}, {"c": 2.0}], identifier="")
    chosen = Settings(choices="best")
    given: list[tuple[dict[str, Any], str]] = [
        ({}, "encoding: expected an Encoding"),
        ({"encoding": encoding, "items": items, "settings": chosen, "context": context}, "context: expected none"),
    ]
    for how, told in given:
        with pytest.raises(ValueError, match=told):
            Loop.create(folder / "l", **how)
        assert not (folder / "l").exists()


OTHERS: list[tuple[str, str, str]] = [
    ("coactive", "bmf", "learner: expected one that is taught what is better, such as posterior, got bmf"),
    ("coactive", "prank:n_ranks=5", "learner: expected one that is taught what is better, such as posterior, got"),
    ("ordinal", "perceptron", "learner: expected one that predicts grades, such as ordinal-logistic"),
    ("ordinal", "prank:n_ranks=4", "learner: expected n_ranks=5, the grades of this log"),
    ("rating", "perceptron", "learner: expected one of ratings, such as bmf, got"),
    ("rating", "prank:n_ranks=5", "learner: expected one of ratings, such as bmf, got"),
    ("comparison", "perceptron", "learner: expected one of choices"),
    ("best-worst", "posterior", "learner: expected one of the best and the worst"),
    ("rating", FIFTH, "learner: expected one of ratings"),
]


@each_kind
def test_an_unknown_learner_is_refused_with_the_names_that_fit(kind: Kind, folder: Path) -> None:
    """Those that loops of the kind learn with and, where learners are compared, what else can be named there."""
    fitting = {spec.partition(":")[0] for spec in kind.learners if kind.own is None} - {"convex"}  # it needs a radius
    fitting |= {"perceptron", "second-order", "online-convex", "dueling-bandit"} if kind.name == "one" else set()
    with kind.make(folder / "l") as loop:
        before = state(loop)
        others = {"always:MODEL", "cheapest", "cost-weight:W"} if kind.name == "routing" else set()
        for refuse, names in ((loop.evaluate, fitting | others), (loop.promote, fitting)):
            with pytest.raises(ValueError, match=r"FILE.py:Class or module:Class, got 'foo'$") as refused:
                refuse("foo")
            told, _, got = str(refused.value).removeprefix("learner: expected ").partition(" or module:Class, ")
            assert (set(told.split(", ")), got) == (names | {"FILE.py:Class"}, "got 'foo'")
        assert state(loop) == before


@pytest.mark.parametrize(("kind", "learner", "told"), OTHERS)
def test_a_log_is_not_evaluated_with_a_learner_of_another_kind(
    folder: Path, kind: str, learner: str, told: str
) -> None:
    with BY_NAME[kind].make(folder / "l") as loop, pytest.raises(ValueError, match="learner") as refused:
        loop.evaluate(learner)
    assert str(refused.value).startswith(told)


# ---------------------------------------------------------------------------- what comes from a program

ROWS: Any = [{"id": "a", "x": 1.0}, {"id": "b", "x": 2.0}]
VOTES: Any = [{"winner": "a", "loser": "b", "person": "p"}]
PROGRAMS: dict[str, Callable[[Loop, Any], object]] = {
    "path: expected a path": lambda loop, _: loop.note_export("a\0b"),
    "path: expected a text, got half of a surrogate pair": lambda loop, _: loop.note_export("\ud800"),
    "path: expected a folder or postgresql://": lambda loop, value: Loop.open(value),
    "path: expected a folder": lambda loop, _: Loop.open("a\0b"),
    "read_only: expected True or False": lambda loop, value: Loop.open(loop.path, read_only=value),
    "learner: expected a list of names": lambda loop, value: Loop.open(loop.path, learner=[value]),
    "learner: expected its name": lambda loop, value: Loop.create_like("new", loop, learner=value),
    "other: expected a loop": lambda loop, value: Loop.create_like("new", value),
    "rows: expected a list of objects": lambda loop, value: infer(value),
    "kinds: expected kinds of columns by name": lambda loop, value: infer(ROWS, kinds=value),
    "keep: expected a list of names": lambda loop, value: infer(ROWS, keep=value),
    "items: expected a list of objects": lambda loop, value: heedful.rank(VOTES, items=value),
    "pool: expected True or False": lambda loop, value: heedful.rank(VOTES, pool=value),
    "without: expected a list of names": lambda loop, value: heedful.rank(VOTES, without=value),
    "columns: expected names of columns by name": lambda loop, value: heedful.rank(VOTES, columns=value),
    "columns: winner: expected a list of names": lambda loop, value: heedful.rank(VOTES, columns={"winner": value}),
    "words: expected meanings by name": lambda loop, value: heedful.leaderboard(VOTES, words={value: "first"}),
    "votes: expected a path": lambda loop, _: heedful.leaderboard("a\0b"),
    "influence: expected True or False": lambda loop, value: heedful.leaderboard(VOTES, influence=value),
    "people: expected a list": lambda loop, value: loop.standing(people=value),
    "without: expected a list": lambda loop, value: loop.standing(without=value),
}


@pytest.mark.parametrize("expected", PROGRAMS)
def test_what_a_program_gives_is_refused_by_name(expected: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Also a number where a text or a list belongs, of which Python's own error would name nothing."""
    monkeypatch.chdir(tmp_path)
    with choice_loop(tmp_path / "l") as loop:
        before = state(loop)
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}"):
            PROGRAMS[expected](loop, 5)
        assert state(loop) == before
    assert not (tmp_path / "new").exists()


def test_an_id_of_too_many_digits_is_refused_alone(tmp_path: Path) -> None:
    """Python writes no number of more than 4,300 digits."""
    with small_loop(tmp_path / "l") as loop:
        decision = loop.decide(list(loop.items)[:2])
        given = [{"decision": decision.id, "id": id, "clicks": [decision.shown[0]]} for id in (10**5000, "e")]
        assert [each.status for each in loop.feedback_many(given)] == ["rejected", "applied"]
