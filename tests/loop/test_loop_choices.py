"""A loop of choices from outside: what is asked, what answers teach, how things stand, what is refused and told."""

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings, infer
from heedful.boards.standing import standing
from heedful.inference.gp.stopping import stopping
from heedful.loop.decide import to_decision
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.results.answers import plain
from heedful.results.board import Board
from loops import as_often_as_said, bits, choice_loop

BOTH = ["gp", "hierarchical-gp"]


def liking(name: str, person: int = 0) -> float:
    """What person 0, 1, ... likes: i3 the most, then i4, ..., each a little otherwise."""
    return -abs(int(name[1:]) - 3.0) + 0.1 * person * (int(name[1:]) % 2)


def answer(loop: Loop, decision: Any, person: int = 0, event: str | None = None) -> Any:
    """Choose what is liked best of what was shown."""
    best = max(decision.shown, key=lambda name: liking(name, person))
    if len(decision.shown) == 2:
        return loop.feedback(decision.id, id=event, choice="first" if best == decision.shown[0] else "second")
    return loop.feedback(decision.id, id=event, better=[best])


def taught(loop: Loop, n: int, people: int = 3) -> None:
    """n questions to people in turn, and what they choose."""
    for t in range(n):
        d = loop.decide(person=f"p{t % people}", id=f"d{t}")
        got = answer(loop, d, t % people, f"e{t}")
        assert (got.status, got.learned, got.reason) == ("applied", True, None)


def order(board: Board) -> list[str]:
    return list(board.items)


def favourite(board: Board) -> str:
    return board.verdict.favourite


# ---------------------------------------------------------------------------- from nothing


def test_there_is_something_to_choose_between(folder: Path) -> None:
    """Two items or more, of which neither is liked better by somebody of whom nothing is known."""
    with Loop.create(folder / "l", settings=Settings(choices="ranking", control=0.0)) as loop:
        facts = [loop.facts.get(name) for name in ("choices", "grades", "ratings")]
        assert (facts, loop.weights) == (["ranking", None, None], {})
        with pytest.raises(ValueError, match="items: expected two or more on offer, to choose between, got 0"):
            loop.standing()
        loop.put_items([{"id": "a"}])
        with pytest.raises(ValueError, match="candidates: expected two or more, to choose between, got 1"):
            loop.decide(person="p")
        assert loop.put_items([{"id": "b", "title": "B"}]).put == 1
        d = loop.decide(person="p", id="d")
        assert (sorted(d.shown), d.predicted, d.arm, d.probability) == (["a", "b"], (0.5, 0.5), "learned", 0.5)
        assert loop.feedback("d", better="b").learned
        assert loop.rank(["a", "b"], person="p") == ("b", "a")


def test_what_learns_and_asks_where_nobody_says(folder: Path) -> None:
    with choice_loop(folder / "best") as loop, choice_loop(folder / "all", choices="ranking") as other:
        assert (loop.manifest.learner, loop.learner.rule) == ("hierarchical-gp", "eubo")
        assert (other.manifest.learner, other.learner.rule) == ("hierarchical-gp", "bald")
    with choice_loop(folder / "said", "gp:rule=mes") as loop:
        assert loop.learner.rule == "mes"
    with Loop.open(folder / "best") as loop:
        assert (loop.facts.get("choices"), loop.learner.rule) == ("best", "eubo")


@pytest.mark.slow
def test_the_standing_without_somebody(folder: Path) -> None:
    with choice_loop(folder / "l") as loop:
        taught(loop, 30)
        rest = loop.standing(without=["p0"])
        assert rest == loop.standing(people=["p1", "p2"])
        assert loop.standing(without=["p0"], people=["p0", "p1"]) == loop.standing(people=["p1"])
        with pytest.raises(ValueError, match="without: expected people who answered, got 'nobody'"):
            loop.standing(without=["nobody"])


@pytest.mark.slow
@pytest.mark.parametrize("spec", BOTH)
def test_how_things_stand_is_of_what_is_believed(folder: Path, spec: str) -> None:
    """Of one person of the posterior and their answers; of several of the mean of their utilities. The favourite's
    figure is the one in its row."""
    with choice_loop(folder / "l", spec, control=0.0) as loop:
        taught(loop, 40)
        loop.withdraw("i7")
        model = loop.projection.model
        assert isinstance(model, ChoiceModel)
        users = np.array([loop.projection.published.people[f"p{i}"].state for i in range(3)])
        state = model.ready(loop.projection.published.shared)
        for person, whose in ("p1", users[1:2]), (None, users):
            part, told = model.learner.group_posterior(state, whose).of_items(np.arange(7)), loop.standing(person)
            found = standing(part)
            assert [row.item for row in told.ranking] == [f"i{i}" for i in found.order]
            assert [row.utility for row in told.ranking] == found.mean[found.order].tolist()
            assert [row.best for row in told.ranking] == found.best[found.order].tolist()
            assert [[name[1:] for name in run] for run in told.alike] == [
                [str(i) for i in found.order[a : b + 1]] for a, b in found.alike
            ]
            end = told.verdict
            assert end.probability == max(row.best for row in told.ranking)
            assert end.favourite == max(told.ranking, key=lambda row: row.best).item
            assert end.stop == (end.left.high == 0) == (end.probability >= 0.9 and stopping(part).stop)
        alone, together = loop.standing("p1").verdict, loop.standing().verdict
        assert alone.probability != together.probability


# ---------------------------------------------------------------------------- what is asked


def test_what_is_predicted_is_how_likely_each_is_to_be_chosen(folder: Path) -> None:
    """Of any that are shown together, as a decision says it, to six digits; nothing is asked by that."""
    with choice_loop(folder / "l") as loop:
        taught(loop, 12)
        before = loop.projection.log.counts()
        for id, show in (("two", 2), ("three", 3)):
            d = loop.decide(person="p0", id=id, show=show)
            told = loop.predict(d.shown, person="p0")
            assert d.predicted == pytest.approx([told[name].value for name in d.shown], rel=1e-5)
            assert sum(each.value for each in told.values()) == pytest.approx(1.0)
            assert list(told) == list(loop.rank(d.shown, person="p0"))
        assert loop.projection.log.counts() == before | {"decision": before["decision"] + 2}


def test_a_pair_is_asked_again_where_that_is_said(folder: Path) -> None:
    with choice_loop(folder / "r", n_items=3, control=0.0, repeats=True) as loop:
        first = loop.decide(person="p", id="d")
        loop.feedback("d", choice="cannot_judge")
        assert set(loop.decide(person="p").shown) == set(first.shown)
        assert set(loop.decide(person="p", repeats=False).shown) != set(first.shown)


@pytest.mark.slow
def test_which_stands_first_is_drawn_and_kept(folder: Path) -> None:
    with choice_loop(folder / "l", n_items=2, control=0.0) as loop:
        seen = Counter(loop.decide(person="p", id=f"d{t}").shown for t in range(200))
        assert set(seen) == {("i0", "i1"), ("i1", "i0")}
        assert 60 < seen["i0", "i1"] < 140
        again = [loop.decide(person="p", id=f"d{t}").shown for t in range(200)]
        assert Counter(again) == seen
    with choice_loop(folder / "same", n_items=2, control=0.0) as loop:
        assert [loop.decide(person="p", id=f"d{t}").shown for t in range(200)] == again
    with choice_loop(folder / "other", n_items=2, control=0.0, seed=1) as loop:
        assert [loop.decide(person="p", id=f"d{t}").shown for t in range(200)] != again


@pytest.mark.slow
@pytest.mark.parametrize("show", [2, 3])
def test_the_probability_is_how_often_it_is_shown(folder: Path, show: int) -> None:
    """Over many decisions from one state, every set is shown as often as its probability says."""
    with choice_loop(folder / "l", n_items=4, control=0.5, snapshot_every=10**6) as loop:
        for t in range(3):
            answer(loop, loop.decide(person="p", id=f"first{t}"))
        asked = [loop.decider.read(person="p", show=show, id=f"d{t}") for t in range(6000 // show**2)]
        drafts = [loop.decider.propose(each) for each in asked]  # type: ignore[arg-type]
        as_often_as_said(to_decision(draft.event.id, draft.decision, 1) for draft in drafts)  # type: ignore[arg-type]


def test_the_control_is_drawn_evenly(folder: Path) -> None:
    with choice_loop(folder / "l", n_items=4, control=1.0) as loop:
        loop.feedback(loop.decide(["i0", "i1"], person="p").id, choice="first")
        seen = Counter(frozenset(loop.decide(person="p", id=f"d{t}").shown) for t in range(300))
        assert frozenset({"i0", "i1"}) not in seen
        assert len(seen) == 5
        assert min(seen.values()) > 30
        d = loop.decide(person="p")
        assert (d.arm, d.probability) == ("control", pytest.approx(1.0 / 5 / 2))


@pytest.mark.slow
@pytest.mark.parametrize("spec", BOTH)
def test_more_than_two(folder: Path, spec: str) -> None:
    with choice_loop(folder / "l", spec, control=0.2) as loop:
        for t in range(30):
            d = loop.decide(person=f"p{t % 2}", id=f"d{t}", show=4)
            assert len(set(d.shown)) == 4
            assert sum(d.predicted) == pytest.approx(1.0, abs=1e-4)
            if t % 3 == 0:
                got = loop.feedback(d.id, better=sorted(d.shown, key=liking, reverse=True))
            elif t % 3 == 1:
                got = loop.feedback(d.id, clicks=[max(d.shown, key=liking)])
            else:
                got = loop.feedback(d.id, edit=sorted(d.shown, key=liking, reverse=True)[:2])  # the rest comes after
            assert (got.status, got.learned, got.reason) == ("applied", True, None)
        assert favourite(loop.standing()) == "i3"
        assert loop.verify() == []
        found = loop.report()
        assert found.prediction.baseline == 0.25
        assert loop.decide(person="p0", show=100, id="all").probability is not None
        assert sorted(loop.decide(person="p0", id="all").shown) == sorted(loop.items)


def test_whoever_cannot_judge_is_asked_something_else(folder: Path) -> None:
    """Also where more than two are shown: what was learned does not change, and the question does."""
    with choice_loop(folder / "l", control=0.0) as loop:
        seen = set()
        for t in range(8):
            d = loop.decide(person="p", id=f"d{t}", show=3)
            assert frozenset(d.shown) not in seen
            seen.add(frozenset(d.shown))
            loop.feedback(d.id, choice="cannot_judge")


def test_an_order_says_more_than_the_best(folder: Path) -> None:
    def spread(**form: Any) -> float:
        with choice_loop(folder / "l", n_items=4, control=0.0) as loop:
            loop.record(loop.items, ["i0", "i1", "i2", "i3"], id="d", person="p")
            assert loop.feedback("d", **form).learned
            found = sum(each.bar[2] - each.bar[0] for each in loop.standing("p").ranking)
        shutil.rmtree(folder / "l")
        return found

    whole, top, best = spread(better=["i2", "i0", "i1", "i3"]), spread(better=["i2", "i0"]), spread(better="i2")
    assert whole < top < best


def test_equally_good(folder: Path) -> None:
    with choice_loop(folder / "l", n_items=3, control=0.0) as loop:
        for t in range(6):
            loop.record(loop.items, ["i0", "i1"], id=f"d{t}", person="p")
            assert loop.feedback(f"d{t}", choice="equal").learned
        d = loop.record(loop.items, ["i0", "i1"], id="last", person="p")
        believed = {each.item: each.utility for each in loop.standing("p").ranking}
        assert abs(believed["i0"] - believed["i1"]) < 0.1
        assert d.predicted is None
        report = loop.report().prediction
        assert (report.answers, report.details["equal"]) == (0, 0)  # what somebody else asked is not ours


# ---------------------------------------------------------------------------- what is told


def test_why_says_how_sure_it_is_and_from_what(folder: Path) -> None:
    with choice_loop(folder / "l", "gp", control=0.0) as loop:
        taught(loop, 30)
        d = loop.decide(person="p1", id="d")
        told = loop.why("d", top=30, budget=0.0)
        assert (told.item, told.next) == d.shown
        _, view = loop.projection.reading("p1")
        posterior = view.model.posterior(view, np.array([int(name[1:]) for name in d.shown]))
        assert told.sure == pytest.approx(float(posterior.better(0, 1)))
        assert told.lead == pytest.approx(posterior.mean[0] - posterior.mean[1])
        assert np.sign(told.lead) == np.sign(told.sure - 0.5) != 0.0
        assert loop.why("d", d.shown[1], budget=0.0).place == 2
        assert sum(each.lead for each in told.events) == pytest.approx(told.lead)  # before anybody said a thing it is 0
        assert {each.event for each in told.events} <= {f"e{t}" for t in range(1, 30, 3)}  # her own alone
        answer(loop, d)
        assert loop.why("d", top=30, budget=0.0) == told
        found = loop.ranking(person="p1")
        places = np.array([int(name[1:]) for name in found.ranking])
        posterior = view.model.posterior(loop.projection.reading("p1")[1], places)
        assert found.sure == pytest.approx([float(posterior.better(j, j + 1)) for j in range(len(places) - 1)])


def test_why_counts_what_others_said_where_people_are_alike(folder: Path) -> None:
    with choice_loop(folder / "l", "hierarchical-gp:every=5", control=0.0) as loop:
        taught(loop, 40)
        loop.decide(person="p1", id="d")
        told = loop.why("d", top=40, budget=0.0)
        assert not {each.event for each in told.events} <= {f"e{t}" for t in range(1, 40, 3)}
        assert sum(each.lead for each in told.events) == pytest.approx(told.lead)


def test_the_report_says_how_often_it_predicted(folder: Path) -> None:
    with choice_loop(folder / "l", control=0.5) as loop:
        taught(loop, 80)
        d = loop.decide(person="p0", id="equal")
        loop.feedback("equal", choice="equal")
        loop.decide(person="p0", id="unsure")
        loop.feedback("unsure", choice="cannot_judge")
        found = loop.report()
        told = found.prediction
        assert (told.answers, told.details["equal"], told.details["unsure"], told.baseline) == (80, 1, 1, 0.5)
        rights = []
        for t in range(80):
            record = loop.projection.find_decision(f"d{t}").record  # type: ignore[union-attr]
            names = loop.projection.find_decision(f"d{t}").names  # type: ignore[union-attr]
            best = max(names, key=lambda name: liking(name, t % 3))
            chance = record.predicted[names.index(best)]
            rights.append(0.5 if chance == 0.5 else float(chance > 0.5))
        assert told.score == pytest.approx(np.mean(rights))
        assert told.details["right_by_chance"] is not None
        assert told.score > 0.7
        assert told.difference.by == pytest.approx(told.score - 0.5)
        assert sum(each.answers for each in told.series) == 80
        assert (found.difference, found.feedback.given, found.feedback.empty) == (None, 82, 1)
        assert found.unsaid.startswith("the rule asks what is least certain")
        arms = found.learned.answered * (found.learned.mean or 0) + found.control.answered * (found.control.mean or 0)
        assert arms / 80 == pytest.approx(told.score)
        assert json.loads(json.dumps(plain(found)))["prediction"]["answers"] == 80
        assert d.predicted is not None


def test_an_answer_against_all_others_is_counted(folder: Path) -> None:
    with choice_loop(folder / "l", control=0.0) as loop:
        taught(loop, 60)
        assert loop.report().feedback.contradictory == 0
        loop.record(loop.items, ["i3", "i7"], id="d", person="p0")
        loop.feedback("d", better="i7")
        assert loop.report().feedback.contradictory == 1


def test_an_evaluation_says_what_another_learner_had_predicted(folder: Path) -> None:
    with choice_loop(folder / "l", "hierarchical-gp", control=0.3) as loop:
        taught(loop, 60)
        mine, alone = loop.evaluate("gp").learners
        told = loop.report().prediction
        assert told is not None
        [own], [other] = mine.values, alone.values
        assert (mine.lessons, own.comparisons) == (60, 60)
        assert own.value > 0.5 < other.value
        with pytest.raises(ValueError, match="learner: expected one of choices"):
            loop.evaluate("perceptron")


# ---------------------------------------------------------------------------- elsewhere and again


OWN = '''
from typing import NamedTuple, Any
import numpy as np
from heedful.inference.gp.posterior import Posterior

class Tally(NamedTuple):
    wins: Any
    t: int

    @property
    def grows(self):
        return True

class Counting(NamedTuple):
    """How often each was chosen. Interaction: pairwise."""

    space: Any

    def init(self, rng):
        return Tally(np.zeros(0), 0)

    def with_items(self, state, features):
        return state._replace(wins=np.concatenate([state.wins, np.zeros(len(features))]))

    def posterior(self, state, user, items=None):
        items = np.arange(len(state.wins)) if items is None else items
        return Posterior(state.wins[items], np.eye(len(items)))

    def propose(self, state, x, rng):
        return x.pairs[rng.integers(len(x.pairs))]

    def update(self, state, x, y, feedback):
        if not isinstance(feedback, np.ndarray) and feedback >= 0:
            state.wins[y[feedback]] += 1.0
            if feedback == 1 and FAILS:
                raise RuntimeError("out of order")
        return state._replace(t=state.t + 1)

FAILS = False
'''


def test_a_learner_of_one_s_own(folder: Path) -> None:
    (folder / "own.py").write_text(OWN)
    spec = f"{folder / 'own.py'}:Counting"
    with choice_loop(folder / "l", spec, control=0.1) as loop:
        taught(loop, 60, people=1)
        assert loop.rank()[:1] == ("i3",)
        assert favourite(loop.standing()) == "i3"
        assert loop.decide(id="d", show=3).probability is None  # it draws, and does not say how
        assert loop.why("d", budget=0.0).prediction is None
        assert loop.verify() == []
        kept = bits(loop)
    with Loop.open(folder / "l", learner=spec) as loop:
        assert bits(loop) == kept
    (folder / "bad.py").write_text(OWN.replace("    def posterior", "    def posteriors"))
    with pytest.raises(ValueError, match=r"learner: expected one with posterior\(state, user, items\), got .*none"):
        choice_loop(folder / "m", f"{folder / 'bad.py'}:Counting")


def test_what_is_asked_while_new_items_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand on the catalogue before the state that knows them is published: who reads waits for that."""
    with choice_loop(tmp_path / "loop") as one, Loop.open(tmp_path / "loop") as two:
        d = one.decide(person="p")
        one.feedback(d.id, id="e", choice="first")
        two.undo("e")
        two.put_items([{"id": "new", "title": "x"}])
        rebuild, told, readers = one.projection.rebuild, list[str](), list[threading.Thread]()

        def asked(name: str, ask: Callable[[], Any]) -> None:
            try:
                ask()
                told.append(name)
            except Exception as error:
                told.append(f"{name}: {error!r}")

        def slow() -> None:
            if not readers:
                ask: dict[str, Callable[[], Any]] = {
                    "decide": lambda: one.decide(person="p"),
                    "rank": lambda: one.rank(person="p"),
                    "standing": lambda: one.standing("p"),
                }
                readers.extend([threading.Thread(target=asked, args=each) for each in ask.items()])
                for reader in readers:
                    reader.start()
                time.sleep(0.2)
            rebuild()

        monkeypatch.setattr(one.projection, "rebuild", slow)
        one.projection.catch_up()
        for reader in readers:
            reader.join(20)
        assert sorted(told) == ["decide", "rank", "standing"]


def test_a_context_without_features_is_kept_and_one_with_features_refused(tmp_path: Path) -> None:
    """What a question is about, such as a prompt, stands in the log and teaches nothing."""
    from heedful.features import encode_names

    items = [{"id": f"i{k}"} for k in range(4)]
    of = {"encoding": encode_names(items), "items": items, "settings": Settings(choices="best", seed=1)}
    with pytest.raises(ValueError, match="context: expected none in a loop of choices, which knows items by number"):
        Loop.create(tmp_path / "refused", context=infer([{"id": f"r{k}", "hour": k} for k in range(5)]), **of)
    assert not (tmp_path / "refused").exists()
    path = tmp_path / "kept"
    states = []
    for name, given in (("kept", {"prompt": "p1"}), ("bare", None)):
        context = encode_names([{"prompt": "p1"}], identifier="prompt")
        with Loop.create(tmp_path / name, context=context, **of) as loop:
            decision = loop.decide(id="d1", context=given)
            loop.feedback("d1", id="e1", choice="both_bad")
            known = loop.projection.find_decision("d1")
            assert known.record.context == given
            states.append((decision.shown, [(each.item, each.utility) for each in loop.standing().ranking]))
    assert states[0] == states[1]
    with Loop.open(path) as loop:
        known = loop.projection.find_decision("d1")
        assert known.record.context == {"prompt": "p1"}
