"""Why an item had its score: contributions of its features, and the feedback that moved it, of every kind."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, infer
from heedful.learners.registry import find_learners
from heedful.loop import why as why_module
from heedful.loop.interactions import telling
from heedful.results.explanation import Why
from heedful.results.table import Table
from kinds import KINDS, Kind, each_kind, teach
from loops import choice_loop, rating_loop, small_loop

ROUNDS = 14
NAMES = [f"i{j}" for j in range(8)]


@pytest.fixture
def taught(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kind: Kind = request.param
    with kind.make(tmp_path / "l") as loop:
        teach(kind, loop, range(ROUNDS))
        yield loop


each_taught = pytest.mark.parametrize("taught", KINDS, ids=lambda kind: kind.name, indirect=True)


def shown_in(loop: Loop, id: str) -> list[str]:
    """What a decision showed, by name."""
    known = loop.projection.find_decision(id)
    return [known.names[j] for j in known.record.shown]


def version_of(loop: Loop, id: str) -> int:
    known = loop.projection.find_decision(id)
    return known.version


def naive_fold(loop: Loop, version: int, without: str | None = None) -> Any:
    """The model that every event up to `version` makes, but for one: read off the log, event by event."""
    projection = loop.projection
    model = projection.fresh()
    for event in projection.log.events(0):
        if event.seq > version or (event.kind == "feedback" and event.id == without):
            continue
        if event.kind == "item" and projection.interaction.by_number:
            projection.offer(model, event)
        elif event.kind == "feedback":
            decided = projection.log.at(event.target or 0)
            assert decided is not None
            decision = projection.decision(decided)
            from heedful.loop.records import decode_feedback

            projection.teach(model, event, decision, decode_feedback(event.payload))
    return model


def naive_score(loop: Loop, decision: str, item: str, model: Any) -> float:
    """The score of an item, from the state of each kind itself."""
    known = loop.projection.find_decision(decision)
    x = loop.projection.requests.context(known).x[known.names.index(item)]
    name = loop.projection.interaction.name
    view = model.view(known.person)
    if name in ("coactive", "one"):
        return float(model.effective(view) @ x)
    if name == "routing":
        m = math.fsum([*(model.effective(view) * x).tolist(), model.level(view)])
        return 1.0 / (1.0 + math.exp(-m)) - 0.02 * float(x[loop.feature_names.index("cost")])
    if name == "ordinal":
        return float(model.effective(view) @ x) - (0.0 if view.person is None else model.level(view.person))
    if name == "rating":
        return float(model.ratings(view, np.array([x]))[0])
    if name == "pairwise":
        return float(model.posterior(view, np.array([x])).mean[0])
    return float(x @ model.shared.w)


@pytest.mark.slow
@each_taught
def test_leaving_one_out_is_a_fold_without_it(taught: Loop) -> None:
    """Of the last decision, of its first and its last item: what each event moves, by a fold from scratch."""
    id = f"d{ROUNDS - 1}"
    version, shown = version_of(taught, id), shown_in(taught, id)
    every = naive_fold(taught, version)
    less = [naive_fold(taught, version, f"e{i}") for i in range(ROUNDS - 1)]
    moved = 0
    for item in (shown[0], shown[-1]):
        told = taught.why(id, item, top=100, budget=10**400)
        assert told.events_by == "leave-one-out"
        assert told.considered == ROUNDS - 1
        whole = naive_score(taught, id, item, every)
        assert told.score == pytest.approx(whole, rel=1e-12, abs=1e-12)
        by = {each.event: each.by for each in told.events}
        leads = {each.event: each.lead for each in told.events}
        for i, model in enumerate(less):
            without = naive_score(taught, id, item, model)
            assert by.get(f"e{i}", 0.0) == pytest.approx(whole - without, rel=1e-9, abs=1e-12)
            if told.next is not None and f"e{i}" in leads:
                lead = told.lead - (without - naive_score(taught, id, told.next, model))  # type: ignore[operator]
                assert leads[f"e{i}"] == pytest.approx(lead, rel=1e-9, abs=1e-12)
        sizes = [abs(each.by) for each in told.events]
        assert sizes == sorted(sizes, reverse=True)
        assert told.events[:3] == taught.why(id, item, top=3, budget=1e12).events
        moved += len(by)
    assert moved >= 4


@pytest.mark.slow
@each_taught
def test_contributions_sum_to_the_score(taught: Loop) -> None:
    """Of any candidate of any decision, shown or not, where the method is exact."""
    exact = 0
    for i in (0, 5, ROUNDS - 1):
        known = taught.projection.find_decision(f"d{i}")
        model = naive_fold(taught, known.version)
        for item in known.names:
            told = taught.why(f"d{i}", item, budget=0.0)
            assert told.score == pytest.approx(naive_score(taught, f"d{i}", item, model), abs=1e-12)
            assert told.place == (told_place(known, item))
            if told.features_by == "exact":
                exact += 1
                total = math.fsum(part.counts for part in told.features)
                assert total == pytest.approx(told.score, rel=1e-12, abs=1e-12)
            else:
                assert told.features == ()
                assert "no features" in told.features_about
    assert exact or taught.projection.interaction.name == "pairwise"


def told_place(known: Any, item: str) -> int | None:
    at = known.names.index(item)
    return known.record.shown.index(at) + 1 if at in known.record.shown else None


@each_taught
def test_movements_sum_to_the_score(taught: Loop) -> None:
    """Where leaving out is too dear: the answer says so, and the movements are those of the fold, in turn."""
    id = f"d{ROUNDS - 1}"
    item = shown_in(taught, id)[0]
    told = taught.why(id, item, top=100, budget=0.0)
    assert told.events_by == "movement"
    assert (
        f"{ROUNDS - 1} folds exceed the budget of 0 updates of a perceptron and 256,000,000 bytes" in told.events_about
    )
    known = taught.projection.find_decision(id)
    assert known is not None
    seqs = [taught.projection.log.find("feedback", f"e{i}").seq for i in range(ROUNDS - 1)]  # type: ignore[union-attr]
    scores = [naive_score(taught, id, item, naive_fold(taught, seq)) for seq in [seqs[0] - 1, *seqs]]
    by = {each.event: each.by for each in told.events}
    for i, (before, after) in enumerate(pairwise(scores)):
        assert by.get(f"e{i}", 0.0) == pytest.approx(after - before, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@each_taught
def test_feedback_that_is_undone_or_forgotten_is_not_named(taught: Loop) -> None:
    id = f"d{ROUNDS - 1}"  # of p1
    item = shown_in(taught, id)[0]
    before = taught.why(id, item, top=100, budget=1e12)
    gone = before.events[0].event
    taught.undo(gone)
    after = taught.why(id, item, top=100, budget=1e12)
    assert (after.undone_since, after.considered) == (1, ROUNDS - 2)
    assert (after.score, after.features) == (before.score, before.features)  # the model of the decision had learned it
    assert after.events == before.events[1:]
    quick = taught.why(id, item, top=100, budget=0.0)
    assert gone not in {each.event for each in quick.events}
    assert quick.undone_since == 1

    taught.rollback(taught.version - 1)  # the undo is taken back
    assert taught.why(id, item, top=100, budget=1e12) == before

    taught.forget("p0")
    left = taught.why(id, item, top=100, budget=1e12)
    assert not {f"e{i}" for i in range(0, ROUNDS, 3)} & {each.event for each in left.events}
    assert left.considered == ROUNDS - 1 - len(range(0, ROUNDS, 3))
    with pytest.raises(LookupError, match="decision d0 was forgotten"):
        taught.why("d0", item)


@each_taught
def test_a_rollback_before_the_decision_leaves_out_what_it_did(taught: Loop) -> None:
    at = taught.projection.log.find("feedback", "e4")
    taught.rollback(at.seq)
    asked = taught.decide(["i0", "i1", "i2"], id="last", person="p1")
    told = taught.why("last", asked.shown[0], top=100, budget=1e12)
    assert {each.event for each in told.events} <= {f"e{i}" for i in range(5)}
    assert (told.considered, told.undone_since) == (5, 0)
    old = taught.why("d9", shown_in(taught, "d9")[0], top=100, budget=1e12)  # some of its lessons are undone
    assert (old.considered, old.undone_since) == (5, 4)
    assert {each.event for each in old.events} <= {f"e{i}" for i in range(5)}


@each_kind
def test_refusals(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l") as loop:
        loop.decide(["i0", "i1"], id="d")
        told = loop.why("d", "i1")
        assert (told.events, told.considered, told.events_by) == ((), 0, "leave-one-out")
        assert told.events_about == "nothing was learned before this decision that is in effect now"
        for decision, item, wrong in (
            ("x", "i0", "decision x is not in the log"),
            ("d", "i2", "item i2 is not among the candidates of decision d"),
        ):
            with pytest.raises(LookupError, match=wrong):
                loop.why(decision, item)
        with pytest.raises(ValueError, match=r"^top: expected"):
            loop.why("d", "i0", top=-1)
        with pytest.raises(ValueError, match=r"^item: expected"):
            loop.why("d", "")
        with pytest.raises(ValueError, match=r"^budget: expected"):
            loop.why("d", "i0", budget=-1.0)


# ---------------------------------------------------------------------------- what adds up


@pytest.mark.parametrize("spec", ["perceptron", "posterior"])
@pytest.mark.parametrize("person", [None, "p"])
def test_what_adds_up_is_what_leaving_out_takes_away(tmp_path: Path, spec: str, person: str | None) -> None:
    """A perceptron's lessons add up: what each added is exact. Those of a posterior do not, and the answer says so."""
    with small_loop(tmp_path / "l", spec) as loop:
        for i in range(12):
            shown = loop.decide(id=f"d{i}", person=person).shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[i % 5]])
        asked = loop.decide(id="last", person=person)
        exactly = loop.why("last", asked.shown[0], top=100, budget=1e12)
        quickly = loop.why("last", asked.shown[0], top=100, budget=0.0)
        assert (exactly.events_by, len(exactly.events) > 3) == ("leave-one-out", True)
        theirs, ours = ({each.event: each.by for each in told.events} for told in (exactly, quickly))
        if spec == "perceptron":
            assert (quickly.events_by, quickly.events_about) == ("additive", why_module.ADDITIVE)
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
        else:
            assert quickly.events_by == "movement"
            assert ours != pytest.approx(theirs, rel=1e-3, abs=1e-6)
            loop_base = loop.why("last", asked.shown[0], top=0, budget=0.0).score
            assert loop_base == quickly.score


def test_a_persons_own_weights_do_not_add_up(tmp_path: Path) -> None:
    for name, shrink, method in (("a", 0.0, "additive"), ("b", 2.0, "movement")):
        with small_loop(tmp_path / name, "perceptron", shrink=shrink) as loop:
            for i in range(4):
                shown = loop.decide(id=f"d{i}", person="p").shown
                loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[3]])
            item = loop.decide(id="last", person="p").shown[0]
            assert loop.why("last", item, budget=0.0).events_by == method


def test_the_method_depends_on_the_count_of_updates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of n pieces of feedback n (n - 1) / 2 updates are made again; however slow the machine is."""
    with small_loop(tmp_path / "l", "posterior") as loop:
        for i in range(8):
            shown = loop.decide(id=f"d{i}").shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[3]])
        inquiry = why_module._Inquiry(loop.projection, loop.projection.find_decision("d1"), 0)  # type: ignore[arg-type]
        [step] = inquiry._steps()
        cost = inquiry._cost(step)
        assert 20.0 < cost < 24.0  # there are few numbers
        for i in range(8):
            for budget in (cost * i * (i - 1) / 2.0 * (1.0 + by) for by in (-1e-9, 1e-9)):
                told = loop.why(f"d{i}", shown[3], budget=budget)
                exactly = budget >= cost * i * (i - 1) / 2.0
                assert told.events_by == ("leave-one-out" if exactly else "movement")
                assert told.considered == i
        monkeypatch.setattr(why_module, "BYTES", 10)
        assert loop.why("d2", shown[3], budget=1e12).events_by == "movement"


def test_learners_of_loops_declare_what_an_update_costs() -> None:
    """OnlineConvex has a rule of somebody else's, which may cost anything."""
    found = {name for name, cls in find_learners().items() if not hasattr(cls, "simulation_only")}
    declared = {name: find_learners()[name].lesson_cost for name in found - {"online-convex"}}  # type: ignore[attr-defined]
    assert all(cost >= 1 for cost in declared.values())
    assert declared["collaborative-gp"] > declared["gp"] > declared["bmf"] > declared["perceptron"] == 1


# ---------------------------------------------------------------------------- what is not linear


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["multiclass:n_ranks=5", "constant-rank:n_ranks=5"])
def test_a_learner_without_weights_is_asked_without_each_feature(tmp_path: Path, spec: str) -> None:
    with small_loop(tmp_path / "l", spec) as loop:
        for i in range(20):
            d = loop.decide(id=f"d{i}", show=3)
            loop.feedback(d.id, id=f"e{i}", grade={name: 1 + (int(name[1:]) * 3 + i) % 5 for name in d.shown})
        d = loop.decide(id="last")
        known, model = loop.projection.find_decision("last"), loop.projection.model
        x = loop.projection.requests.context(known).x
        counted = 0
        for item in d.shown:
            told = loop.why("last", item)
            assert (told.features_by, told.score_is) == ("removed", "predicted grade")
            row = x[known.names.index(item)]
            [grade] = model.grades(model.view(), row[None])
            assert told.score == grade
            for j, name in enumerate(loop.feature_names):
                other = row.copy()
                other[j] = 0.0
                change = grade - model.grades(model.view(), other[None])[0]
                assert {part.name: part.counts for part in told.features}.get(name, 0.0) == change
                counted += change != 0
        assert bool(counted) == spec.startswith("multiclass")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["gp", "hierarchical-gp:every=5", "collaborative-gp:every=5"])
def test_the_gradient_of_a_utility(tmp_path: Path, spec: str) -> None:
    """By the features of an item, as a new item with slightly different features would be expected to be liked: the
    kernel of the items there are, and its inverse, once by themselves."""
    with choice_loop(tmp_path / "l", f"{spec}{',' if ':' in spec else ':'}lengthscale=1.5", 9, 2) as loop:
        for i in range(14):
            d = loop.decide(id=f"d{i}", person="p")
            loop.feedback(d.id, id=f"e{i}", choice="first" if d.shown[0] < d.shown[1] else "second")
        d = loop.decide(id="last", person="p")
        told = loop.why("last", d.shown[0])
        assert (told.features_by, told.score_is) == ("gradient", "utility")
        model = loop.projection.model
        shared = model.shared
        X, number = shared.things[: shared.n], int(d.shown[0][1:])
        mean = model.learner.posterior(model.ready(shared), 0).mean
        unit = X.std(axis=0) * 1.5

        def utility(x: Any) -> float:
            K = np.array([[math.exp(-0.5 * (((a - b) / unit) ** 2).sum()) for b in X] for a in X])
            k = np.array([math.exp(-0.5 * (((x - b) / unit) ** 2).sum()) for b in X])
            return float(k @ np.linalg.solve(K, mean))

        assert utility(X[number]) == pytest.approx(mean[number], abs=1e-6)
        assert told.score == pytest.approx(mean[number], abs=1e-12)
        for j, name in enumerate(loop.feature_names):
            step = np.zeros(2)
            step[j] = 1e-5
            slope = (utility(X[number] + step) - utility(X[number] - step)) / 2e-5
            [part] = [part for part in told.features if part.name == name]
            assert part.weight == pytest.approx(slope, rel=1e-3, abs=1e-6)
            assert part.counts == pytest.approx(slope * X[number, j], rel=1e-3, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["bmf:n_factors=2", "item-mean", "alb:n_factors=2", "random-item"])
def test_parts_of_a_rating(tmp_path: Path, spec: str) -> None:
    with rating_loop(tmp_path / "l", spec) as loop:
        for i in range(12):
            d = loop.decide(id=f"d{i}", person=f"p{i % 3}", repeats=True)
            told = loop.why(f"d{i}", d.shown[0])
            if told.features_by == "exact":
                assert math.fsum(part.counts for part in told.features) == pytest.approx(told.score, abs=1e-9)
            loop.feedback(d.id, id=f"e{i}", rating={name: 1 + (i + int(name[1:])) % 5 for name in d.shown})
        if spec == "random-item":
            assert (told.score, told.events_by, told.features_by) == (None, "none", "none")
            assert told.events_about == "RandomItem gives items no score"
        else:
            assert told.score_is == "expected rating"
            assert told.features_by == ("exact" if spec.startswith("bmf") else "none")
            assert told.events_by == "leave-one-out"


def test_what_it_is_compared_with(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop:
        for i in range(5):
            shown = loop.decide(id=f"d{i}").shown
            loop.feedback(f"d{i}", clicks=[shown[3]])
        asked = loop.decide([f"i{j}" for j in range(8)], id="d", show=3)
        order = loop.rank([f"i{j}" for j in range(8)])
        first, last, unseen = (loop.why("d", item) for item in (asked.shown[0], asked.shown[2], order[6]))
        assert (first.place, first.next) == (1, asked.shown[1])
        assert (last.place, last.next) == (3, next(name for name in order if name not in asked.shown))
        assert (unseen.place, unseen.next) == (None, asked.shown[2])
        assert unseen.lead < 0.0
        assert loop.why("d") == first
        loop.decide(["i0"], id="one")
        assert (loop.why("one", "i0").next, loop.why("one", "i0").lead) == (None, None)


def failing(folder: Path, when: str) -> str:
    """A perceptron whose steps grow, that fails on a lesson when so is; its file and name."""
    (folder / "own.py").write_text(
        f'''
from typing import NamedTuple
import numpy as np

class State(NamedTuple):
    w: np.ndarray
    t: int

class Fails(NamedTuple):
    """Fails now and then. Interaction: coactive."""
    n_features: int
    space: object

    def init(self, rng):
        return State(np.zeros(self.n_features), 0)
    def propose(self, state, x, rng):
        return self.space.argmax(state.w, x)
    def update(self, state, x, y, feedback):
        self.space.add_difference(state.w, x, feedback, y, 1.0 + state.t)
        if {when}:
            raise ArithmeticError("now")
        return State(state.w, state.t + 1)
    def weights(self, state):
        return state.w
'''
    )
    return f"{folder / 'own.py'}:Fails"


def test_a_lesson_that_the_learner_fails_on_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = failing(tmp_path, "state.t == 2")
    with small_loop(tmp_path / "l", own) as loop:
        for i in range(4):
            shown = loop.decide(id=f"d{i}").shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[3]])
        item = loop.decide(id="last").shown[0]
        told = loop.why("last", item, budget=1e12)
        assert told.considered == 2
        assert {each.event for each in told.events} <= {"e0", "e1"}
        assert told.events
        monkeypatch.setattr(why_module, "BYTES", 1)
        quickly = loop.why("last", item)
        assert (quickly.events_by, quickly.considered) == ("movement", 2)


def test_a_lesson_that_fails_without_an_earlier_one_is_left_out_of_that_fold(tmp_path: Path) -> None:
    own = failing(tmp_path, "state.t == 0 and x.shape[0] == 3")  # having begun with it
    with small_loop(tmp_path / "l", own) as loop:
        for i, size in enumerate((5, 3, 3, 6)):
            shown = loop.decide(NAMES[:size], id=f"d{i}").shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[2]])
        d = loop.decide(NAMES, id="last")
        told = loop.why("last", d.shown[0], budget=1e12)
        x = loop.projection.requests.context(loop.projection.find_decision("last")).x  # type: ignore[arg-type]
        without = loop.projection.fresh()
        for event, decision, feedback in loop.projection.lessons():
            if event.id == "e3":  # e1 and e2 fail, the first being left out
                loop.projection.teach(without, event, decision, feedback)
        place = NAMES.index(d.shown[0])
        by = {each.event: each.by for each in told.events}
        change = told.score - float(without.effective(without.view()) @ x[place])
        assert by["e0"] == pytest.approx(change, abs=1e-12)


@pytest.mark.parametrize("back", [False, True])
def test_a_decision_from_before_a_promotion_is_of_the_learner_that_made_it(tmp_path: Path, back: bool) -> None:
    """Its scores, and what moved them, are those of the same log without the promotion."""
    answers = []
    for name, promoted in (("a", True), ("b", False)):
        with small_loop(tmp_path / name, "posterior:swap=0") as loop:
            for i in range(9):
                if i == 5:
                    before = loop.version
                    if promoted:
                        loop.promote("second-order:epsilon=0.1", force=True)
                        if back:
                            loop.rollback(before)
                shown = loop.decide(NAMES, id=f"d{i}").shown
                loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[3]])
            found = []
            for budget in (1e12, 0.0):
                told = loop.why("d4", "i1", budget=budget)
                found.append((told.score, told.lead, told.features, told.events_by, [x.by for x in told.events]))
            found.append(loop.why("d4").lead)
            answers.append((found, loop.why("d8", "i1", budget=1e12), loop.why("d8", "i1", budget=0.0)))
    (theirs, after, _), (ours, late, _) = answers
    assert theirs == ours
    assert (after.score == late.score) == back
    if not back:
        assert late.features != after.features


@pytest.mark.slow
def test_an_item_that_was_withdrawn_since_is_explained_as_it_was(tmp_path: Path) -> None:
    """Its ratings went with it from the model of today, not from that of the decision."""
    with rating_loop(tmp_path / "l") as loop:
        for i in range(8):
            d = loop.decide(id=f"d{i}", person=f"p{i % 3}", repeats=True)
            loop.feedback(d.id, id=f"e{i}", rating={name: 1 + (i + int(name[1:])) % 5 for name in d.shown})
        item = loop.decide(id="last", person="p0", repeats=True).shown[0]
        exactly, quickly = (loop.why("last", item, budget=budget) for budget in (1e12, 0.0))
        assert exactly.events
        loop.withdraw(item)
        assert loop.why("last", item, budget=1e12) == exactly
        assert loop.why("last", item, budget=0.0) == quickly


def test_what_moved_the_next_item_alone_is_listed(tmp_path: Path) -> None:
    """An answer that leaves the score as it is and lifts the next item moves the lead."""
    rows = [{"id": "a", "x": 1.0, "y": 0.0}, {"id": "b", "x": 0.0, "y": 1.0}, {"id": "c", "x": -1.0, "y": 0.0}]
    encoding = infer(rows, identifier="id", kinds={"x": "number", "y": "number"})
    with Loop.create(tmp_path / "l", encoding=encoding, items=rows, learner="perceptron") as loop:
        loop.record(["a", "c"], ["c", "a"], id="r")
        loop.feedback("r", id="e", better=["a"])
        loop.record(["b", "a", "c"], ["b", "a", "c"], id="d")
        for budget in (1e12, 0.0):
            [each] = loop.why("d", "b", budget=budget).events
            assert (each.event, loop.why("d", "b").next) == ("e", "a")
            assert each.by == 0.0
            assert each.lead < 0.0


def test_what_the_next_item_alone_has_counts_in_the_lead(tmp_path: Path) -> None:
    """A feature that is 0 for the item and not for the next: it counts nothing, and takes part in the lead."""
    rows = [{"id": name, "colour": colour} for name, colour in zip("abcd", ("red", "blue", "green", "red"))]
    encoding = infer(rows, identifier="id", kinds={"colour": "category"})
    with Loop.create(tmp_path / "l", encoding=encoding, items=rows, learner="perceptron") as loop:
        loop.record(["b", "a", "c"], ["b", "a", "c"], id="r")
        loop.feedback("r", better=["a"])
        loop.record(["a", "b", "c"], ["a", "b", "c"], id="d")
        told, w = loop.why("d"), loop.weights
        red, blue = (next(name for name in w if colour in name) for colour in ("red", "blue"))
        assert {part.name: part[1:] for part in told.features} == {
            red: (1.0, w[red], w[red], w[red]),
            blue: (0.0, w[blue], 0.0, -w[blue]),
        }
        assert w[red] > 0.0 > w[blue]
        features = next(part for part in telling.why(told) if isinstance(part, Table))
        assert features.columns == ("feature", "value", "weight", "counts", "of its lead")
        assert features.rows[1][0::3] == (blue, "+0.00")
        assert features.rows[1][4] == f"+{-w[blue]:#.3g}"


def test_a_frame_and_a_notebook(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l") as loop:
        shown = loop.decide(id="d").shown
        loop.feedback("d", id="e", clicks=[shown[3]])
        item = loop.decide(id="then").shown[0]
        told = loop.why("then", item)
        assert isinstance(told, Why)
        pytest.importorskip("pandas")
        frame = told.to_frame()
        for name in ("counts", "lead"):
            assert list(frame[name]) == [getattr(part, name) for part in told.features]
        assert item in told._repr_html_()
        assert "What moved it" in told._repr_html_()
