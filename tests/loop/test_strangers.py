"""Requests that name what a loop does not know, something twice, or nothing: a page is decided all the same, what is
random in it is logged as it is, and feedback on it is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful import TEXTS, Loop, Settings
from heedful.io import import_lines
from heedful.loop.decide import to_decision
from heedful.loop.strangers import split_unknown
from heedful.results.answers import plain
from loops import as_often_as_said, bits, bits_from_scratch, choice_loop, lines_of, rating_loop, small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]


def taught(loop: Loop, best: str = "i3") -> None:
    """Lessons that put one of five first."""
    for i in range(6):
        loop.record(FIVE, FIVE, id=f"t{i}")
        loop.feedback(f"t{i}", better=[best])


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    with small_loop(tmp_path / "l", "posterior:swap=0", control=0.0) as made:
        yield made


# ---------------------------------------------------------------------------- where the unknown stand


def test_one_unknown_candidate_does_not_break_a_page(loop: Loop) -> None:
    taught(loop)
    d = loop.decide(["i0", "i3", "999"], id="d")
    assert (set(d.shown[:2]), d.shown[2], d.unknown, d.probability) == ({"i0", "i3"}, "999", ("999",), 1.0)
    assert d.shown[:2] == loop.decide(["i0", "i3"]).shown == ("i3", "i0")
    assert d.plain()["unknown"] == ("999",)
    assert loop.decide(["x", "i0", "y", "i3"]).shown == ("i3", "i0", "x", "y")  # last, in the caller's order
    assert loop.decide(["x", "y"]).shown == ("x", "y")
    assert loop.decide(["i0", "i3"]).unknown is None
    assert "unknown" not in loop.decide(["i0", "i3"]).plain()
    assert loop.decide(["i0", "i3", "999"], id="d") == d
    assert loop.verify() == []


def test_an_unknown_one_stands_where_the_callers_score_has_it(loop: Loop) -> None:
    taught(loop)
    scores = {"i0": 5.0, "x": 4.0, "i3": 3.0, "y": 2.0, "i1": 1.0}
    without = loop.decide(["i0", "i3", "i1"], prior={"i0": 5.0, "i3": 3.0, "i1": 1.0}).shown
    for prior in (scores, list(scores.values())):
        d = loop.decide(list(scores), prior=prior)
        assert (d.shown[1], d.shown[3]) == ("x", "y")
        assert (d.shown[0], d.shown[2], d.shown[4]) == without  # and the others as without it
    assert loop.decide(list(scores), prior=scores, show=2).shown == (without[0], "x")
    assert loop.decide(["i0", "x", "i3"], prior={"i0": 2.0, "i3": 0.0}).shown[1] == "x"  # no score is an average one
    assert loop.rank(list(scores), prior=scores) == loop.decide(list(scores), prior=scores).shown
    ranking = loop.ranking(["x", "i0"])
    assert (ranking.ranking, ranking.unknown) == (("i0", "x"), ("x",))
    assert loop.ranking(["i0"]).unknown is None


def test_what_comes_twice_counts_once_and_none_are_an_empty_list(loop: Loop) -> None:
    taught(loop)
    assert loop.decide(["i0", "i3", "i0", "x", "x"], prior=[1.0, 2.0, 9.0, 8.0, 0.0]).shown[0] == "x"
    assert loop.rank(["i0", "i3", "i0"]) == loop.rank(["i0", "i3"])
    twins = [{"id": "a", "f0": 1.0}, {"id": "b", "f0": 0.0}, {"id": "a", "f0": -5.0}]
    assert sorted(loop.decide(twins).shown) == ["a", "b"]
    d = loop.decide([], id="empty", show=3)
    assert (d.shown, d.probability, d.unknown) == ((), 1.0, None)
    assert loop.decide([], id="empty") == d
    assert loop.rank([]) == ()
    assert loop.feedback("empty", none=True).status == "applied"
    assert not loop.feedback("empty", clicks=[]).learned
    assert (
        loop.feedback("empty", thumb="up").reason
        == "thumb: expected a decision that showed something, got one that showed nothing"
    )
    nothing = "decision empty showed nothing that was on offer: there is nothing to explain"
    with pytest.raises(LookupError, match=f"^{nothing}$"):
        loop.why("empty")
    assert loop.report().decisions == 9
    assert loop.report().learned.shown == 2  # of twins, and of two
    assert loop.verify() == []


def test_strictness_is_an_option_of_a_request_and_of_a_loop(loop: Loop, tmp_path: Path) -> None:
    with small_loop(tmp_path / "strict", "perceptron", strict=True) as strict:
        for among, error in ((["i0", "x"], LookupError), (["i0", "i0"], ValueError), ([], ValueError)):
            before = loop.projection.log.last()
            for refused in (loop.decide, loop.rank):
                with pytest.raises(error, match=r"^'?candidates: "):
                    refused(among, strict=True)
                refused(among)
            with pytest.raises(error, match=r"^'?candidates: "):
                strict.decide(among)
            assert loop.projection.log.last()[0] == before[0] + 1
            assert len(strict.decide(among, strict=False).shown) == len(set(among))
        with pytest.raises(ValueError, match=r"^strict: expected true or false, got 1"):
            loop.decide(["i0"], strict=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^strict: expected true or false"):
        Settings(strict="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", ["i0", 3, ["i0", None], ["i0", ""], [["i0"]], ["i0", {"id": "i1"}], [{"id": "i1"}, "i0"], ["i0", 1.5]]
)
def test_what_is_no_candidate_is_refused_all_the_same(loop: Loop, bad: Any) -> None:
    with pytest.raises(ValueError, match="candidates"):
        loop.decide(bad)
    with pytest.raises(ValueError, match="prior"):
        loop.decide(["i0", "x"], prior=[1.0])
    with pytest.raises(ValueError, match="prior"):
        loop.decide(["i0", "x"], prior=[1.0, "much"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="prior"):
        loop.decide(["i0", "x"], prior={"z": 1.0})


def test_what_another_process_put_there_is_known(loop: Loop) -> None:
    with Loop.open(loop.path) as other:
        other.put_items([{"id": "new", "f0": 1.0}])
        assert loop.decide(["i0", "new"]).unknown is None
        other.put_items([{"id": "newer", "f0": 1.0}])
        assert loop.ranking(["i0", "newer", "newest"]).unknown == ("newest",)


# ---------------------------------------------------------------------------- what is random


@pytest.mark.parametrize(("prior", "show"), [(None, 2), ([3.0, 2.5, 2.0, 1.5, 1.0], 3), (None, 5)])
def test_the_probability_is_that_of_the_list_as_shown(tmp_path: Path, prior: Any, show: int) -> None:
    """Swaps and the control: every list is shown as often as its decision says, whichever arm shows it."""
    with small_loop(tmp_path / "l", "posterior", control=0.3, exploration=0.4) as loop:
        taught(loop)
        drafts = []
        for i in range(1500):
            asked = loop.decider.read(["i0", "x", "i3", "i1", "y"], prior=prior, show=show, id=f"d{i}", looked=True)
            drafts.append(loop.decider.propose(asked))  # type: ignore[arg-type]
        made = [to_decision(draft.event.id, draft.decision, 1) for draft in drafts]  # type: ignore[arg-type]
        assert {d.arm for d in made} == {"learned", "control"}
        assert ("i0", "x", "i3", "i1", "y")[:show] in as_often_as_said(made)  # the control is the caller's own order


def test_the_model_is_what_it_would_be_had_they_never_been_named(tmp_path: Path) -> None:
    """The same story with and without unknown ones: the known stand and teach the same, to the bit."""
    how: dict[str, Any] = {"learner": "posterior", "control": 0.2, "exploration": 0.5, "shrink": 2.0}
    with small_loop(tmp_path / "a", **how) as with_, small_loop(tmp_path / "b", **how) as without:
        for i in range(30):
            common: dict[str, Any] = {"id": f"d{i}", "person": f"p{i % 3}"}
            a = with_.decide(["i0", "i1", "x", "i2", "i3", "y"], **common)
            b = without.decide(["i0", "i1", "i2", "i3"], **common)
            known = [name for name in a.shown if name not in "xy"]
            assert (tuple(known), a.arm) == (b.shown, b.arm)
            click = b.shown[i % 4]
            assert (
                with_.feedback(a.id, id=f"e{i}", clicks=["x", click]).learned
                == without.feedback(b.id, id=f"e{i}", clicks=[click]).learned
            )
        assert bits(with_) == bits(without) == bits_from_scratch(with_)
        assert with_.weights == without.weights


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from("abcxyz"), max_size=8), st.data())
def test_sifting_keeps_every_name_once_in_its_place(names: list[str], data: st.DataObject) -> None:
    numbers = st.integers(-3, 3).map(float)
    prior = data.draw(st.none() | st.lists(numbers, min_size=len(names), max_size=len(names)))
    found = split_unknown(names, names, prior, set("abc").__contains__)
    once = list(dict.fromkeys(names))
    if found is None:
        assert once == names
        assert set(names) <= set("abc")
        return
    known, scores, strangers = found
    assert known == [name for name in once if name in "abc"]
    assert list(strangers.names) == [name for name in once if name in "xyz"]
    by_score = dict(zip(reversed(names), reversed(prior or [])))
    assert scores is None or [by_score[name] for name in known] == scores
    there = [*known, *strangers.names]
    wanted = once if prior is None else sorted(once, key=lambda name: -by_score[name])
    assert [there[j] for j in strangers.own] == wanted
    learned = [there[j] for j in strangers.learned]
    assert learned == (wanted if prior is not None else there)


# ---------------------------------------------------------------------------- feedback


@pytest.mark.parametrize(
    ("form", "learned"),
    [
        ({"clicks": ["x"]}, False),
        ({"clicks": ["x", "i1"]}, True),
        ({"clicks": []}, False),
        ({"better": ["x", "i1"]}, True),
        ({"better": "x"}, False),
        ({"better": "i1"}, True),
        ({"thumb": "up"}, True),
        ({"thumb": "up", "item": "x"}, False),
        ({"action": "buy", "item": "x"}, False),
        ({"action": "hide", "item": "i0"}, True),
        ({"rating": {"x": 5, "i1": 4, "i0": 1}}, True),
        ({"rating": {"x": 5}}, False),
        ({"grade": {"x": 2, "i1": 3}}, False),
        ({"choice": "second"}, True),
        ({"edit": {"f0": 2.0}}, True),
        ({"edit": {"f0": 2.0}, "item": "x"}, False),
        ({"none": True}, False),
    ],
)
def test_feedback_on_a_list_with_an_unknown_one(
    loop: Loop, tmp_path: Path, form: dict[str, Any], learned: bool
) -> None:
    """Taken, and what it says of the known is learned; exported and imported it is the same."""
    d = loop.decide(["i0", "x", "i1"], id="d")
    assert d.shown == ("i0", "i1", "x")
    before = bits(loop)
    answer = loop.feedback("d", id="e", **form)
    assert (answer.status, answer.learned) == ("applied", learned)
    about = "x" in json.dumps(form)
    assert (answer.reason or "").startswith("some of it is about items that were not on offer") == about
    assert (bits(loop) == before) >= (not learned)
    assert loop.verify() == []
    assert loop.feedback("d", id="e", **form).status == "duplicate"
    assert loop.report().feedback.given == 1
    assert loop.report().unknown == 1
    assert loop.lessons(1)[0].learned == learned
    lines = lines_of(loop)
    with small_loop(tmp_path / "again", "posterior:swap=0", control=0.0) as again:
        assert "rejected" not in {each.status for each in import_lines(again, lines)}
        assert bits(again) == bits(loop)
        assert again.decide(["i0", "x", "i1"], id="d").shown == d.shown
        assert lines_of(again) == lines
    assert loop.undo("e").status == "applied"
    assert bits(loop) == before


def test_what_was_not_shown_was_not_clicked_and_nothing_but_unknown_teaches_nothing(loop: Loop) -> None:
    loop.decide(["i0", "x", "i1"], id="d", show=2)
    assert (
        loop.feedback("d", clicks=["x"]).reason
        == "clicks: expected items that were shown ('i0', 'i1'), got 'x'; answer the decision that showed it"
    )
    assert (
        loop.feedback("d", clicks=["z"]).reason
        == "clicks: expected items that were shown ('i0', 'i1'), got 'z'; answer the decision that showed it"
    )
    loop.decide(["x", "i0"], id="top", prior=[2.0, 1.0], show=1)
    before = bits(loop)
    for form in ({"thumb": "up"}, {"clicks": ["x"]}, {"better": "i0"}, {"edit": {"f0": 1.0}}):
        answer = loop.feedback("top", **form)
        assert (answer.status, answer.learned) == ("applied", False), form
    assert bits(loop) == before
    assert loop.report().learned.shown == 1
    later = loop.decide(["x", "i1"], id="later")
    assert later.shown == ("i1", "x")
    assert loop.feedback("d", clicks=["x"], chain=["later"]).status == "applied"


def test_the_place_of_what_was_preferred_is_that_in_the_list_as_shown(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        scores = {"x": 3.0, "i0": 2.0, "i1": 1.0}
        for i, (form, place) in enumerate([({"clicks": ["i1"]}, 3), ({"clicks": ["x"]}, 1), ({"better": "x"}, 1)]):
            d = loop.decide(list(scores), prior=scores, id=f"d{i}")
            assert d.shown[0] == "x"
            form = {"clicks": [d.shown[2]]} if place == 3 else form
            loop.feedback(d.id, **form)
        assert loop.report().learned.mean == pytest.approx((1 / 3 + 1 + 1) / 3)


# ---------------------------------------------------------------------------- other kinds of loops


def test_loops_of_grades(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "prank:n_ranks=5", control=0.0) as loop:
        d = loop.decide(["i0", "x", "i1"], prior=[3.0, 2.0, 1.0], id="d")
        assert (d.shown[1], d.predicted[1]) == ("x", None)
        assert loop.feedback("d", grade={"x": 3, d.shown[0]: 1}).learned
        assert not loop.feedback("d", grade={"x": 3}).learned
        assert loop.report().prediction.answers == 1  # type: ignore[union-attr]
        assert loop.verify() == []


@pytest.mark.parametrize("control", [0.0, 1.0])
def test_loops_of_ratings(tmp_path: Path, control: float) -> None:
    with rating_loop(tmp_path / "l", control=control) as loop:
        d = loop.decide(["x", "i0", "i1"], person="p", id="d")
        assert (set(d.shown[:2]), d.shown[2], d.unknown) == ({"i0", "i1"}, "x", ("x",))
        assert d.predicted[2] is None
        assert loop.decide(["x", "i0", "i1"], person="p", id="d") == d
        assert not loop.feedback("d", id="e", rating={"x": 5}).learned
        assert loop.feedback("d", rating={"x": 5, "i0": 4}).learned
        again = loop.decide(["i0", "x"], person="p")  # the one has been consumed
        assert (again.shown, again.probability) == (("x",), 1.0)
        scored = loop.decide(["i1", "x", "i2"], prior=[3.0, 2.0, 1.0], person="p", show=2)
        assert scored.shown[1] == "x"
        assert loop.decide([], person="p").shown == ()
        assert set(loop.rank(["x", "i1", "i0"])[:2]) == {"i0", "i1"}
        assert plain(loop.report())["unknown"] == 3
        assert loop.verify() == []


def test_loops_of_choices_ask_about_what_they_know(tmp_path: Path) -> None:
    with choice_loop(tmp_path / "l", control=0.0) as loop:
        q = loop.decide(["i0", "x", "i1"], person="p", id="q")
        assert (set(q.shown), q.unknown) == ({"i0", "i1"}, ("x",))
        assert loop.feedback("q", choice="first").learned
        alone = loop.decide(["i0", "x"], person="p", id="a")
        assert (alone.shown, alone.predicted, alone.probability) == (("i0", "x"), None, 1.0)
        answer = loop.feedback("a", choice="second")
        assert (answer.status, answer.learned) == ("applied", False)
        assert not loop.feedback("a", better="x").learned
        assert loop.decide([], person="p").shown == ()
        assert loop.rank(["x", "i0", "i1"])[2] == "x"
        assert loop.verify() == []


def test_a_loop_that_shows_one(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.0, k=1) as loop:
        assert loop.decide(["x", "i0"]).shown == ("i0",)
        assert loop.decide(["x", "i0"], prior=[2.0, 1.0]).shown == ("x",)
        assert loop.decide([]).shown == ()


# ---------------------------------------------------------------------------- hits, records


def test_hits_of_a_search_engine_are_candidates(loop: Loop, tmp_path: Path) -> None:
    taught(loop)
    hits = [
        {"_index": "p", "_id": "i0", "_score": 7.5, "_source": {"title": "A"}},
        {"_index": "p", "_id": "999", "_score": 6.0, "_source": {"title": "B"}},
        {"_index": "p", "_id": "i3", "_score": 2.5},
    ]
    d = loop.decide(hits, id="d")
    assert d == loop.decide(hits, id="d")
    assert d.shown == loop.decide(["i0", "999", "i3"], prior=[7.5, 6.0, 2.5]).shown
    assert loop.rank(hits) == d.shown
    assert loop.rank(hits, prior=[1.0, 2.0, 9.0])[0] == "i3"  # scores beside them go before
    assert loop.rank([{**hit, "_score": None} for hit in hits])[2] == "999"
    with pytest.raises(ValueError, match=r"^candidates\[1\]: expected a hit with _id, as the others are, got 'i3'"):
        loop.decide([hits[0], "i3"])
    with pytest.raises(
        ValueError, match=r"^candidates\[0\]: expected the fields of a hit, .*, got 'price': attributes"
    ):
        loop.decide([{"_id": "i0", "price": 3}])
    with pytest.raises(ValueError, match=r"^candidates\[0\]: _score: expected a finite number, got 'high'"):
        loop.decide([{"_id": "i0", "_score": "high"}])
    with pytest.raises(LookupError, match=r"expected items on offer, .*, got '999'"):
        loop.decide(hits, strict=True)
    with Loop.create(tmp_path / "texts", encoding=TEXTS, settings=Settings(k=1, control=0.0)) as texts:
        drafts = [{"_id": "a", "_score": 1.0, "_source": {"text": "Hello there!"}}]
        drafts += [{"_id": "b", "_score": 2.0, "_source": {"text": "Good morning."}}]
        assert texts.decide(drafts, id="d").shown == ("b",)  # nothing of it is on offer: it came along
        assert texts.feedback("d", edit="Good morning, everybody!").learned


def test_what_somebody_else_showed_may_be_unknown_too(loop: Loop) -> None:
    d = loop.record(["i0", "x", "i1", "i0"], ["x", "i1"], id="r", person="p")
    assert (d.shown, d.unknown) == (("x", "i1"), ("x",))
    assert loop.record(["i0", "x", "i1", "i0"], ["x", "i1"], id="r", person="p").shown == d.shown
    assert loop.feedback("r", clicks=["x", "i1"]).status == "applied"
    with pytest.raises(LookupError):
        loop.record(["i0", "x"], ["x"], id="s", strict=True)
    with pytest.raises(ValueError, match="shown: expected candidates, got 'z'"):
        loop.record(["i0", "x"], ["z"], id="s")
