"""A candidate learner beside the one that serves: its drafts, its verdict, its promotion, and the way back."""

from __future__ import annotations

import inspect
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budget import FACTOR
from heedful import Loop
from heedful.evaluation.answers import credit
from heedful.evaluation.interleaving import Match, interleave
from heedful.io import export_lines, import_lines
from heedful.learners.coactive.posterior import Posterior
from heedful.loop import experiment
from heedful.loop.decide import DecisionRequest
from heedful.loop.replay import replay
from heedful.loop.serving import draft_generator, takes_part
from kinds import Kind, each_kind, teach
from loops import (
    BY_F0,
    DOWN,
    F0,
    FIXED,
    UP,
    as_often_as_said,
    bits,
    bits_from_scratch,
    choice_loop,
    fixed_loop,
    lines_of,
    rating_loop,
    set_clock,
    small_loop,
)


def live(loop: Loop, rng: np.random.Generator, rounds: int, people: int = 20, prefer: float = 2.0, **ask: Any) -> None:
    """People who click one of what they are shown, by exp(prefer * the first feature), or nothing."""
    for _ in range(rounds):
        made = loop.decide(person=f"p{rng.integers(people)}", **{"show": 4, **ask})
        weights = np.exp(prefer * np.array([F0[name] for name in made.shown]))
        if rng.random() < 0.7:
            loop.feedback(made.id, clicks=[made.shown[int(rng.choice(len(weights), p=weights / weights.sum()))]])
        else:
            loop.feedback(made.id, none=True)


# ---------------------------------------------------------------------------- what is shown


def test_the_same_people_take_part_as_many_as_stated() -> None:
    for share in (0.0, 0.1, 0.5, 1.0):
        inside = [takes_part("e", share, f"p{i}") for i in range(4000)]
        assert abs(np.mean(inside) - share) < 4.0 * 0.5 / np.sqrt(4000)
        assert inside == [takes_part("e", share, f"p{i}") for i in range(4000)]
    assert not takes_part("e", 1.0, None)
    few, more = ({i for i in range(4000) if takes_part("e", share, f"p{i}")} for share in (0.2, 0.6))
    assert few < more
    others = {i for i in range(4000) if takes_part("other", 0.2, f"p{i}")}
    assert abs(len(few & others) / 4000 - 0.04) < 0.02


def test_a_drafted_list_is_that_of_both_rankings(tmp_path: Path) -> None:
    """Which both are known here; the record says how the draft went."""
    with fixed_loop(tmp_path / "l", control=0.0, seed=7) as loop:
        loop.start_experiment(UP, share=1.0, id="e")
        b = [loop.items.index(name) for name in BY_F0]
        a = b[::-1]
        for i in range(60):
            made = loop.decide(loop.items, person=f"p{i}", show=1 + i % 12, id=f"d{i}")
            draft = interleave(a, b, 1 + i % 12, draft_generator(7, f"d{i}"))
            assert made.arm == "interleaved"
            assert made.shown == tuple(loop.items[j] for j in draft.items)
            assert made.probability == pytest.approx(draft.probability, rel=1e-12)
            known = loop.projection.find_decision(made.id)
            kept = known.record.proposal
            assert (kept["experiment"], kept["teams"], kept["coins"]) == ("e", list(draft.teams), list(draft.coins))
            assert kept["ranks"] == [[1 + ranking.index(j) for j in draft.items] for ranking in (a, b)]
            assert known.record.rival == tuple(BY_F0[: 1 + i % 12])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"control": 0.3}, {"control": 0.2, "sampled": 0.3}])
def test_every_list_is_shown_as_often_as_its_probability_says(tmp_path: Path, settings: dict[str, Any]) -> None:
    with fixed_loop(tmp_path / "l", k=4, **settings) as loop:
        loop.start_experiment(UP, share=1.0)
        asked: dict[str, Any] = {"person": "p", "prior": [1.0, 4.0, 2.0, 3.0], "show": 3}
        as_often_as_said((loop.decide(loop.items[:4], id=f"d{t}", **asked) for t in range(1500)), 0.97)


def test_who_takes_no_part_sees_the_loops_own_lists(tmp_path: Path) -> None:
    """Decisions of the others, and all when the experiment is over, are those of a loop without one, bit for bit."""
    with small_loop(tmp_path / "a") as tried, small_loop(tmp_path / "b") as plain:
        tried.start_experiment("perceptron", share=0.5, id="e")
        for i in range(60):
            if i == 40:
                tried.stop_experiment()
            person = f"p{i % 10}" if i % 7 else None
            both = [loop.decide(person=person, id=f"d{i}", show=5) for loop in (tried, plain)]
            if i < 40 and both[0].arm != "control" and takes_part("e", 0.5, person):
                assert both[0].arm == "interleaved"
            else:
                assert (both[0].shown, both[0].arm, both[0].probability) == (
                    both[1].shown, both[1].arm, both[1].probability)  # fmt: skip
            for loop in (tried, plain) if both[0].arm != "interleaved" else ():
                loop.feedback(f"d{i}", id=f"e{i}", better=[both[1].shown[i % 5]])
        assert bits(tried) == bits(plain)


# ---------------------------------------------------------------------------- the verdict


def verdict_by_hand(loop: Loop, experiment: str) -> tuple[Counter[str], int]:
    """Sessions by outcome, and the people in them, from the exported lines alone."""
    lines = list(export_lines(loop))
    undone = {line["event"] for line in lines if line["kind"] == "undo"}
    made = {line["id"]: line for line in lines if line["kind"] == "decision"}
    decided: dict[str, str] = {}
    for line in lines:
        if line["kind"] != "feedback" or line["id"] in undone or line["decision"] in decided:
            continue
        decision = made[line["decision"]]
        if decision["arm"] != "interleaved" or decision["proposal"]["experiment"] != experiment:
            continue
        sides = Counter(decision["proposal"]["teams"][decision["shown"].index(name)] for name in line.get("clicks", []))
        decided[line["decision"]] = "b" if sides[1] > sides[0] else "a" if sides[0] > sides[1] else "tie"
    return Counter(decided.values()), len({made[id]["person"] for id in decided})


@pytest.mark.slow
def test_the_verdict_is_that_of_the_sessions(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "l") as loop:
        loop.start_experiment(UP, share=0.6, id="e")
        live(loop, np.random.default_rng(0), 250, people=40)
        found = loop.experiment()
        sessions, people = verdict_by_hand(loop, "e")
        assert (found.verdict.sessions, found.verdict.people) == (sessions.total(), people)
        assert found.verdict.share == sessions["b"] / (sessions["a"] + sessions["b"])
        assert found.verdict.verdict == "b"
        assert found.verdict.e_value > 20.0
        assert found.credit > 3.0 * found.credit_error
        assert found.decisions == 250
        assert found.people.own + found.people.candidate == 40
        assert found.people.candidate == sum(takes_part("e", 0.6, f"p{i}") for i in range(40))
        assert found.against_promotion == ()
        assert found.ready
        assert (found.learner, found.against) == (UP, DOWN)


@pytest.mark.slow
def test_equal_rankers_are_told_apart_by_nothing(tmp_path: Path) -> None:
    """Both rank alike: every session is a tie or a coin, and the lists are those of the loop."""
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(f"{DOWN}.0", share=1.0)
        live(loop, np.random.default_rng(1), 200, people=30)
        found = loop.experiment()
        assert found.verdict.verdict == "undecided"
        assert found.credit == 0.0
        assert any("cannot be told" in told for told in found.against_promotion)
        with pytest.raises(ValueError, match=r"promote: .* is not ready: it cannot be told"):
            loop.promote()
        assert loop.manifest.learner == DOWN


@pytest.mark.slow
def test_undone_and_forgotten_sessions_are_as_if_they_had_never_been(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "a", control=0.0) as loop, fixed_loop(tmp_path / "b", control=0.0) as other:
        for each in (loop, other):
            each.start_experiment(UP, share=1.0, id="e")
        for i in range(90):
            person = f"p{i % 15}"
            shown = loop.decide(person=person, id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[max(shown, key=F0.__getitem__)])
            if person != "p3":
                assert other.decide(person=person, id=f"d{i}", show=4).shown == shown
                if i % 9:
                    other.feedback(f"d{i}", id=f"e{i}", clicks=[max(shown, key=F0.__getitem__)])
        loop.forget("p3")
        for i in range(0, 90, 9):
            loop.undo(f"e{i}")
        one, two = loop.experiment(), other.experiment()
        assert one.verdict == two.verdict
        assert (one.credit, one.coins, one.people) == (two.credit, two.coins, two.people)


@pytest.mark.slow
def test_one_person_does_not_decide_it(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP, share=1.0)
        live(loop, np.random.default_rng(2), 300, people=1, prefer=9.0)
        found = loop.experiment()
        assert found.verdict.verdict == "undecided"
        assert found.verdict.largest == 1.0
        assert f"1 people have answered, and a verdict takes {Match().least_people}" in found.against_promotion


@pytest.mark.slow
@pytest.mark.parametrize(("prefer", "better"), [(-0.5, False), (0.0, False), (1.0, True)])
def test_the_gate_promotes_a_worse_or_an_equal_candidate_as_seldom_as_stated(
    tmp_path: Path, prefer: float, better: bool
) -> None:
    """Whole loops, looked at after each 40 lists and promoted once that is allowed; `bench/gate.py` has a thousand."""
    runs, promoted = 4 * min(FACTOR, 5), 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 9])
        with fixed_loop(tmp_path / f"l{seed}", control=0.0, durable="feedback", seed=seed) as loop:
            loop.start_experiment(UP, share=1.0, id=f"e{seed}")
            for _ in range(5):
                live(loop, rng, 40, people=60, prefer=prefer)
                if loop.experiment().ready:
                    loop.promote()
                    promoted += loop.manifest.learner == UP
                    break
    if better:
        assert promoted >= runs - 1
    else:
        assert promoted <= 0.05 * runs + 3.0 * np.sqrt(runs * 0.05 * 0.95)


@pytest.mark.slow
def test_what_comes_after_an_experiment_is_not_its_own(tmp_path: Path) -> None:
    """Neither lists of later experiments, nor those of the loop alone; late answers to its own lists are."""
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP, share=0.5, id="e")
        live(loop, np.random.default_rng(0), 40)
        late = next(f"late-{i}" for i in range(99) if takes_part("e", 0.5, f"late-{i}"))
        shown = loop.decide(person=late, id="late", show=4).shown
        loop.stop_experiment()
        before = loop.experiment()
        assert before.decisions == 41
        live(loop, np.random.default_rng(1), 30)
        loop.start_experiment(f"{DOWN}.0", share=0.5, id="f")
        live(loop, np.random.default_rng(2), 30, people=80)
        assert loop.experiment("e") == before
        assert loop.experiment("f").decisions == 30
        loop.feedback("late", clicks=[shown[0]])
        after = loop.experiment("e")
        assert after.verdict.sessions == before.verdict.sessions + 1
        assert after.agreement == before.agreement
        assert after.answered == before.answered._replace(answered=before.answered.answered + 1)


@pytest.mark.slow
def test_lists_of_a_promotion_that_was_rolled_back_are_not_those_of_the_experiment(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP, share=0.5, id="e")
        live(loop, np.random.default_rng(0), 40)
        before, version = loop.experiment(), loop.projection.log.last()[0]
        loop.promote(force=True)
        live(loop, np.random.default_rng(1), 30)
        assert loop.experiment() == before._replace(running=False)
        loop.rollback(version)
        assert loop.experiment() == before
        live(loop, np.random.default_rng(1), 5)
        assert loop.experiment().decisions == before.decisions + 5


def test_the_experiment_that_a_rollback_brings_back_is_the_one_that_is_told(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop:
        loop.start_experiment("second-order", share=0.5, id="one")
        live(loop, np.random.default_rng(0), 10)
        version = loop.version
        loop.stop_experiment()
        loop.start_experiment("posterior", share=0.5, id="two")
        assert (loop.experiment().id, loop.experiment().running) == ("two", True)
        loop.rollback(version)
        assert (loop.experiment().id, loop.experiment().running) == ("one", True)
        assert not loop.experiment("two").running
        loop.stop_experiment()
        assert (loop.experiment().id, loop.experiment().running) == ("two", False)


@pytest.mark.slow
def test_people_who_answer_less_or_more_are_no_fault_of_the_lists(tmp_path: Path) -> None:
    """A few people with many lists each: by chance those who take part answer less often, whatever they are shown."""
    inside = [f"p{i}" for i in range(99) if takes_part("e", 0.5, f"p{i}")][:4]
    outside = [f"p{i}" for i in range(99) if not takes_part("e", 0.5, f"p{i}")][:4]
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(f"{DOWN}.0", share=0.5, id="e")
        for i in range(240):
            person = (inside + outside)[i % 8]
            shown = loop.decide(person=person, id=f"d{i}", show=4).shown
            often = 2 if person in inside[:2] else 6 if person in inside[2:] + outside[2:] else 10
            loop.feedback(f"d{i}", **({"clicks": [shown[0]]} if i // 8 % 12 < often else {"none": True}))
        answered = loop.experiment().answered
        assert (answered.interleaved, answered.learned) == (120, 120)
        assert answered.answered < answered.learned_answered - 30
        assert not answered.worse


@pytest.mark.slow
def test_lists_that_people_answer_less_often_are_not_promoted(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP, share=0.5, id="e")
        for i in range(300):
            made = loop.decide(person=f"p{i % 100}", id=f"d{i}", show=4)
            if made.arm != "interleaved" or i % 10 == 0:
                loop.feedback(made.id, clicks=[made.shown[0]])
        found = loop.experiment()
        assert found.answered.worse
        assert any(told.startswith("interleaved lists are answered less often") for told in found.against_promotion)


# ---------------------------------------------------------------------------- promotion, and back


@pytest.mark.slow
def test_promoted_it_is_the_loop_that_it_would_have_been_from_the_start(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a", "perceptron", control=0.1) as loop:
        loop.start_experiment("second-order:epsilon=0.1", share=0.3, id="e")
        for i in range(80):
            shown = loop.decide(person=f"p{i % 20}", id=f"d{i}", show=5).shown
            loop.feedback(f"d{i}", id=f"e{i}", better=[shown[i % 5]])
        before, version = bits(loop), loop.version
        made = loop.promote(force=True, by="ann", reason="a test", id="up")
        assert made.forced == loop.experiment().against_promotion
        assert (made.learner, made.before) == ("second-order:epsilon=0.1", "perceptron")
        assert loop.promote(force=True, by="ann", reason="a test", id="up").answer.status == "duplicate"
        for other in ({"learner": "posterior"}, {"by": "bob"}, {"reason": "another"}):
            again = loop.promote(**{"force": True, "by": "ann", "reason": "a test", "id": "up"} | other)
            assert (again.answer.status, again.learner) == ("rejected", "second-order:epsilon=0.1")
            assert again.answer.reason == "promote up is in the log already, with other content"
        assert bits(loop) == bits_from_scratch(loop) != before
        with small_loop(tmp_path / "b", "second-order:epsilon=0.1", control=0.1) as other:
            lines = lines_of(loop, "item", "decision", "feedback")
            assert {each.status for each in import_lines(other, lines) if each.kind != "item"} == {"applied"}
            assert bits(other) == bits(loop)
        assert loop.manifest.learner == "second-order:epsilon=0.1"
        assert not loop.experiment().running
        [found] = loop.promotions()
        assert (found.by, found.reason, found.in_effect, found.changed) == ("ann", "a test", True, "")
        assert loop.rollback(version).answer.status == "applied"
        assert bits(loop) == before == bits_from_scratch(loop)
        assert loop.manifest.learner == "perceptron"
        assert loop.experiment().running
        assert not loop.promotions()[0].in_effect
        after = loop.decide(person="p1", id="next", show=5)
    with Loop.open(tmp_path / "a") as loop:
        assert bits(loop) == before
        assert loop.manifest.learner == "perceptron"
        assert loop.decide(person="p1", id="next", show=5) == after
        assert loop.verify() == []


def test_a_second_process_serves_by_what_the_first_promoted(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a", "perceptron", control=0.0) as one, Loop.open(tmp_path / "a") as two:
        one.start_experiment("second-order", share=1.0, id="e")
        two.projection.look()
        assert two.decide(person="p", id="d0").arm == "interleaved"
        for i in range(1, 20):
            shown = (one, two)[i % 2].decide(person="p", id=f"d{i}", show=4).shown
            (two, one)[i % 2].feedback(f"d{i}", better=[shown[2]])
        one.promote(force=True)
        assert two.decide(person="q", id="x", show=4).arm == "learned"
        two.projection.look()
        assert two.manifest.learner == "second-order"
        assert bits(one) == bits(two)
        assert two.decide(person="q", id="y", show=4).shown == one.ranking(person="q").ranking[:4]
        known = one.projection.find_decision("y")
        assert known.record.learner.startswith("second-order@")


def test_what_another_process_did_meanwhile_is_not_overlooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the log and the commit of an experiment, or while the evidence of a promotion is computed."""
    with small_loop(tmp_path / "a", "perceptron") as one, Loop.open(tmp_path / "a") as two:
        candidate, evaluate = one.projection.candidate, experiment.evaluate

        def slow_candidate(spec: str) -> Any:
            one.projection.candidate = candidate
            two.start_experiment("posterior", share=1.0, id="first")
            return candidate(spec)

        one.projection.candidate = slow_candidate
        answer = one.start_experiment("second-order", share=1.0, id="second")
        assert (answer.status, answer.reason) == ("rejected", "experiment first is running: stop it first")
        assert one.experiment().id == "first"

        def slow_evaluate(*given: Any, **more: Any) -> Any:
            monkeypatch.undo()
            two.promote("posterior", force=True)
            return evaluate(*given, **more)

        monkeypatch.setattr(experiment, "evaluate", slow_evaluate)
        with pytest.raises(ValueError, match="learner: posterior was promoted meanwhile"):
            one.promote("second-order", force=True)
        assert [each.learner for each in one.promotions()] == ["posterior"]


@pytest.mark.slow
def test_a_learner_may_be_promoted_by_what_the_log_says(tmp_path: Path) -> None:
    """Without an experiment: the swaps of neighbours tell which learner ranks as people answer."""
    with small_loop(tmp_path / "l", "posterior:swap=0.5", control=0.0, k=4) as loop:
        rng = np.random.default_rng(3)
        for i in range(400):
            names = rng.choice(loop.items, 4, replace=False).tolist()
            shown = loop.decide(names, person=f"p{i % 40}", id=f"d{i}").shown
            loop.feedback(f"d{i}", clicks=[min(shown, key=F0.__getitem__)])
        with pytest.raises(ValueError, match="the log does not say that it is better than posterior"):
            loop.promote("posterior:swap=0")
        evidence = loop.promote("posterior:swap=0", force=True).evidence
        assert evidence["method"] == "log"
        assert evidence["measure"] == "swapped pairs"
        assert loop.promotions()[0].changed == ""


def test_the_swaps_of_a_learner_that_served_keep_their_probability(tmp_path: Path) -> None:
    """It comes from the setting of the loop, which a learner that swaps nothing does not have."""
    with small_loop(tmp_path / "l", "posterior", exploration=0.5, control=0.0, k=4) as loop:
        live(loop, np.random.default_rng(3), 60)
        before = {each.learner: each.values[0][:7] for each in loop.evaluate("perceptron").learners}
        loop.promote("perceptron", force=True)
        assert loop.promotions()[0].changed == ""
        after = {each.learner: each.values[0][:7] for each in loop.evaluate("posterior").learners}
        assert after["perceptron"] == before["perceptron"]
        assert before["perceptron"][4] > 5  # comparisons


def test_a_learner_is_not_promoted_over_one_that_predicts_nothing_nor_the_other_way_round(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "l", "random-item", control=0.0) as loop:
        for i in range(24):
            shown = loop.decide(person=f"p{i % 12}", id=f"d{i}").shown
            loop.feedback(f"d{i}", rating={shown[0]: float(1 + i % 5)})
        with pytest.raises(experiment.NotReady) as refused:
            loop.promote("item-mean")
        told = "the log cannot tell whether it is better than random-item: there is no mean error of random-item"
        assert refused.value.reasons == (told,)
        loop.promote("item-mean", force=True)
        with pytest.raises(experiment.NotReady) as refused:
            loop.promote("random-item")
        assert refused.value.reasons == ("the log cannot tell, because it predicts nothing of the sort",)


def test_swaps_of_a_learner_whose_file_is_not_named_any_more_count(tmp_path: Path) -> None:
    """How likely it swapped neighbours stands in each decision."""
    shutil.copy(inspect.getfile(Posterior), tmp_path / "mine.py")
    small_loop(tmp_path / "l", "perceptron", control=0.0, k=4).close()
    with Loop.open(tmp_path / "l", learner=f"{tmp_path / 'mine.py'}:Posterior:swap=0.5") as loop:
        loop.promote(f"{tmp_path / 'mine.py'}:Posterior:swap=0.5", force=True)
        for i in range(60):
            shown = loop.decide(person=f"p{i % 20}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", clicks=[shown[1]])
        known = loop.evaluate()
        assert known.learners[0].values[0].comparisons == 60  # of every list one pair has the item at its second place
        assert known.position_bias is not None
        loop.promote("perceptron", force=True)
    with Loop.open(tmp_path / "l") as loop:
        later = loop.evaluate()
    assert later.learners[0].values[0].comparisons == 60
    assert later.position_bias == known.position_bias


def test_frozen_sides_stay_as_they_were(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a", "perceptron", control=0.0) as loop:
        for i in range(20):
            shown = loop.decide(id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", better=[shown[3]])
        loop.start_experiment("second-order", share=1.0, frozen=True, id="e")
        assert loop.experiment().frozen == loop.version

        def ranks(id: str) -> Any:
            loop.decide(person="p", id=id, show=12)
            known = loop.projection.find_decision(id)
            order = [known.names[j] for j in known.record.shown]
            return [sorted(zip(side, order)) for side in known.record.proposal["ranks"]]

        first = ranks("first")
        for i in range(20, 40):
            shown = loop.decide(person="q", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", better=[shown[3]])
        assert ranks("second") == first
        with Loop.open(tmp_path / "a") as again:
            before = again.projection.published.running
            assert [name for _, name in first[0]] == [again.items[j] for j in before.own.order("p", _x(again))]


def _x(loop: Loop) -> Any:
    return loop.decider.parse(loop.items, None, None, None).x


@pytest.mark.slow
def test_threads_that_decide_do_not_stop_those_who_start_stop_promote_and_go_back(tmp_path: Path) -> None:
    """What they change is written in the lock of the writer, which a thread that writes for others may wait for."""
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        over = threading.Event()
        loop.feedback(loop.decide(show=4).id, clicks=["i3"])

        def decide(k: int) -> None:
            for i in range(100_000):
                if over.is_set():
                    return
                loop.decide(person=f"p{i % 9}", id=f"d{k}-{i}", show=4)

        def administer() -> None:
            for i in range(5):
                loop.start_experiment("second-order", share=1.0, id=f"e{i}")
                loop.stop_experiment()
                version = loop.version
                loop.promote("second-order", force=True)
                loop.rollback(version)

        threads = [threading.Thread(target=decide, args=(k,), daemon=True) for k in range(3)]
        admin = threading.Thread(target=administer, daemon=True)
        for thread in (*threads, admin):
            thread.start()
        admin.join(60.0)
        over.set()
        assert not admin.is_alive()
        for thread in threads:
            thread.join(60.0)
        assert not loop.experiment().running
        assert loop.manifest.learner == "perceptron"
        assert loop.verify() == []


@each_kind
def test_while_the_promoted_learner_reads_the_log_decisions_are_those_of_the_former(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked meanwhile, by any other thread, meets one learner with its own state, and names it."""
    with kind.make(tmp_path / "loop") as loop:
        teach(kind, loop, range(12))
        before = loop.manifest.learner
        asked = loop.decider.read(person="p1", id="meanwhile", **kind.ask(0))
        assert isinstance(asked, DecisionRequest)
        expected, drafts = loop.decider.propose(asked), []

        def slow(*given: Any, **more: Any) -> Any:
            drafts.append(loop.decider.propose(asked))
            assert loop.rank(person="p1") == order
            return replay(*given, **more)

        order = loop.rank(person="p1")
        monkeypatch.setattr("heedful.loop.projection.replay", slow)
        spec = kind.other if kind.other != before else f"{kind.other}:rate=0.2"
        loop.promote(loop.projection.interaction.full_spec(spec), force=True)
        assert [draft.event._replace(time=0) for draft in drafts] == [expected.event._replace(time=0)]
        assert loop.decide(person="p1", id="after", **kind.ask(0)).version == loop.version
        known = loop.projection.find_decision("after")
        assert known.record.learner.startswith(f"{loop.manifest.learner}@")


# ---------------------------------------------------------------------------- all kinds


@each_kind
def test_a_loop_of_any_kind_is_promoted_and_goes_back(kind: Kind, tmp_path: Path) -> None:
    """Where lists are no rankings, an experiment is refused in a sentence, and the log is the evidence."""
    with kind.make(tmp_path / "loop") as loop:
        interleaves = loop.projection.interaction.ranks
        if interleaves:
            loop.start_experiment(kind.other, share=1.0, id="e")
        else:
            with pytest.raises(ValueError, match=r"shows no rankings.*Loop\.evaluate"):
                loop.start_experiment(kind.other, share=1.0)
        teach(kind, loop, range(24))
        if interleaves:
            found = loop.experiment()
            assert found.verdict.sessions > 10
            assert found.verdict.people > 1
        before, version, learner = bits(loop), loop.version, loop.manifest.learner
        spec = kind.other if kind.other != learner else f"{kind.other}:rate=0.2"
        spec = loop.projection.interaction.full_spec(spec)
        made = loop.promote(spec, force=True)
        assert made.evidence["method"] == ("interleaving" if interleaves else "log")
        assert bits(loop) == bits_from_scratch(loop)
        teach(kind, loop, range(24, 30))
        after = bits(loop)
    with Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        assert bits(loop) == after
        assert loop.manifest.learner == spec
        loop.rollback(version)
        assert bits(loop) == before == bits_from_scratch(loop)
        assert loop.manifest.learner == learner
        assert loop.verify() == []


@pytest.mark.slow
@each_kind
def test_a_promotion_in_a_loop_of_any_kind_says_if_its_evidence_was_forgotten(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        if loop.projection.interaction.ranks:
            loop.start_experiment(kind.other, share=1.0)
        spec = kind.other if kind.other != loop.manifest.learner else f"{kind.other}:rate=0.2"
        spec = loop.projection.interaction.full_spec(spec)
        told = 0
        for i in range(480):
            shown = loop.decide(person=f"p{i % 6}", id=f"d{i}", **kind.ask(i)).shown
            loop.feedback({**kind.answer(i, shown), "decision": f"d{i}"})
            if i % 48 == 47:
                told += not loop.evaluate(spec).learners[1].values[0].refused
            if told == 3:
                break  # the log can tell, also without one of the six
        loop.promote(spec, force=True)
        [made] = loop.promotions()
        assert (made.now, made.changed) == (made.evidence, "")
        loop.forget("p1")
        [found] = loop.promotions()
        assert (found.in_effect, found.evidence) == (True, made.evidence)
        assert found.now["people"] == made.evidence["people"] - 1
        assert f"people {made.evidence['people']} then, {found.now['people']} now" in found.changed
        assert bits(loop) == bits_from_scratch(loop)


# ---------------------------------------------------------------------------- what is refused


def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop:
        events = loop.projection.log.last()
        for wrong, told in (
            ({"learner": "nobody"}, "nobody"),
            ({"learner": "prank:n_ranks=5"}, "expected one that is taught what is better"),
            ({"learner": "second-order", "share": 1.5}, "share"),
            ({"learner": "second-order", "alpha": 0.0}, "alpha"),
            ({"learner": "second-order", "frozen": 1}, "frozen: expected true or false"),
            ({"learner": 3}, "learner: expected a text"),
            ({"learner": UP}, "its file was not named when opening the loop"),
        ):
            with pytest.raises(ValueError, match=told):
                loop.start_experiment(**wrong)
        with pytest.raises(LookupError, match="experiment: there was none"):
            loop.experiment()
        with pytest.raises(LookupError, match="experiment: none is running"):
            loop.stop_experiment()
        with pytest.raises(ValueError, match="learner: expected its name, as no experiment is running"):
            loop.promote()
        with pytest.raises(ValueError, match="expected another than the one that serves"):
            loop.promote("perceptron", force=True)
        with pytest.raises(ValueError, match="expected another than the one that serves"):
            loop.promote(" perceptron\n", force=True)
        assert loop.projection.log.last() == events
        loop.start_experiment("second-order", share=0.1, id="e")
        assert loop.start_experiment("second-order", share=0.1, id="e").status == "duplicate"
        assert loop.start_experiment("second-order", share=0.2, id="e").status == "rejected"
        with pytest.raises(ValueError, match="expected none that runs, got e: stop it first"):
            loop.start_experiment("posterior")
        assert loop.stop_experiment(id="s").status == "applied"
        assert loop.stop_experiment(id="s").status == "duplicate"
        assert loop.start_experiment("posterior", id="f").status == "applied"


@pytest.mark.slow
def test_a_learner_of_ones_own_is_tried_in_any_loop_that_is_opened_with_its_file(tmp_path: Path) -> None:
    """Through restarts with the file and without it, until it serves: then it has to be named."""
    path = tmp_path / "l"
    small_loop(path, "perceptron", control=0.0).close()
    with Loop.open(path, learner=[UP]) as loop:
        assert loop.start_experiment(UP, share=1.0, id="e").status == "applied"
        live(loop, np.random.default_rng(0), 20)
        assert loop.experiment().verdict.sessions > 0
    with Loop.open(path) as loop:  # nothing of the file is run
        assert any(note.startswith(f"experiment e: learner: {UP} is not one of heedful's") for note in loop.notes)
        assert loop.decide(person="p1").arm == "learned"
        sessions = loop.experiment().verdict.sessions
        with pytest.raises(ValueError, match="its file was not named when opening the loop: learner="):
            loop.promote(force=True)
    with Loop.open(path, learner=["perceptron", DOWN]) as loop:  # another parameter of the same file
        assert loop.decide(person="p1").arm == "interleaved"
        assert loop.experiment().verdict.sessions == sessions
        version = loop.version
        assert loop.promote(force=True).learner == UP
        assert loop.ranking().ranking == tuple(BY_F0)
    with pytest.raises(LookupError, match="its file was not named when opening the loop"):
        Loop.open(path)
    with Loop.open(path, learner=UP) as loop:
        assert loop.ranking().ranking == tuple(BY_F0)
        with pytest.raises(ValueError, match=r"^learner: other.py:Mine is not one of heedful's, and its file was not"):
            loop.promote("other.py:Mine", force=True)
        loop.rollback(version)
        assert loop.verify() == []
    with Loop.open(path) as loop:
        assert loop.manifest.learner == "perceptron"
    with pytest.raises(
        ValueError, match="learner: expected perceptron, which this loop was made with, got second-order"
    ):
        Loop.open(path, learner=[UP, "second-order"])
    with pytest.raises(ValueError, match=r"learner: expected a list of names, got \[3\]"):
        Loop.open(path, learner=[3])  # type: ignore[list-item]


def test_a_loop_stops_where_another_process_promoted_what_it_was_not_given(tmp_path: Path) -> None:
    """It decides and learns nothing, rather than by a learner that does not serve any more."""
    path = tmp_path / "l"
    with small_loop(path, "perceptron", control=0.0) as one, Loop.open(path, learner=UP) as two:
        for loop in (one, two):
            assert loop.decide(person="p").arm == "learned"
        version = two.projection.log.last()[0]
        two.promote(UP, force=True)
        events, counts = two.projection.log.last(), two.projection.log.counts()
        for _ in range(2):
            with pytest.raises(ValueError, match="its file was not named when opening the loop"):
                one.feedback(one.decide(["i1", "i2"]).id, clicks=["i1"])
            with pytest.raises(ValueError, match="its file was not named when opening the loop"):
                one.put_items([{"id": "new", **{f"f{i}": 0.0 for i in range(4)}}])
        assert (two.projection.log.last(), two.projection.log.counts()) == (events, counts)
        two.rollback(version)
        assert one.feedback(one.decide(["i1", "i2"], id="d").id, clicks=["i1"]).status == "applied"
        assert one.manifest.learner == "perceptron"
        assert one.projection.log.last() > events
        assert one.verify() == two.verify() == []


@pytest.mark.parametrize(
    ("line", "fails", "told"),
    [
        ("return State(state.t + 1)", "return State(state.t + 1 if {} else [][0])", "failed on feedback"),
        ("w[0] = self.tilt", "w[0] = self.tilt if {} else [][0]", "cannot rank: IndexError"),
    ],
)
def test_a_candidate_that_fails_waits_and_the_loop_goes_on(tmp_path: Path, line: str, fails: str, told: str) -> None:
    path = tmp_path / "failing.py"
    text = Path(FIXED.partition(":")[0]).read_text()
    path.write_text(text.replace(line, fails.format("self.tilt < 0 or state.t < 3")))
    with small_loop(tmp_path / "l", f"{path}:Fixed:tilt=-1", control=0.0) as loop:
        loop.start_experiment(f"{path}:Fixed:tilt=1", share=1.0, id="e")
        arms = []
        for i in range(6):
            made = loop.decide(person="p", id=f"d{i}", show=4)
            arms.append(made.arm)
            assert loop.feedback(made.id, none=True).status == "applied"
            assert loop.feedback(made.id, better=[made.shown[1]]).learned
        assert arms[:3] == ["interleaved"] * 3
        assert arms[4:] == ["learned"] * 2
        assert any(f"experiment e: Fixed {told}" in note for note in loop.notes)


def test_a_candidate_learns_nothing_from_forms_that_it_cannot_use(tmp_path: Path) -> None:
    """Which the learner before it took."""
    with small_loop(tmp_path / "l", "posterior", control=0.0, actions={"buy": 1.0}, shrink=2.0) as loop:
        loop.start_experiment("dueling-bandit", id="x")
        for i, form in enumerate([{"thumb": "down"}, {"thumb": "up"}, {"action": "buy"}, {"rating": 4}]):
            shown = loop.decide(person="p", id=f"d{i}", show=4).shown
            item = {} if "rating" in form else {"item": shown[2]}
            given = {"rating": {shown[1]: 4, shown[0]: 1}} if "rating" in form else form
            assert loop.feedback(f"d{i}", **given, **item).learned
        assert loop.evaluate("dueling-bandit").learners[-1].lessons == 0
        loop.promote("dueling-bandit", force=True)
        assert loop.projection.failed == {}
        assert not any("failed" in note for note in loop.notes)
        assert loop.feedback("d0", thumb="up").status == "rejected"
        assert loop.verify() == []


# ---------------------------------------------------------------------------- before it begins


@pytest.mark.slow
def test_a_plan_knows_how_the_loop_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 answered lists a day by 50 people: in ten days with half of the people 500 sessions."""
    clock = [0]
    set_clock(monkeypatch, lambda: clock[0])
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(400):
            clock[0] = round(i * 86_400e6 / 100)
            shown = loop.decide(person=f"p{i % 50}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", **({"none": True} if i % 4 == 0 else {"clicks": [shown[0]]}))
        found = loop.plan_experiment(0.5, days=10.0)
        assert found.sessions == pytest.approx(500, rel=0.01)
        assert found.ties == 0.25
        assert found.caveat == ""
        by_share = {win.share: win.found for win in found.wins}
        assert by_share[0.52] < by_share[0.55] < by_share[0.6] <= by_share[0.7]
        assert by_share[0.7] > 0.95
        assert found.wins[-1].days < 5.0


@pytest.mark.parametrize(("new", "people"), [(0, 25), (1, 250)], ids=["the same people", "somebody else each time"])
def test_a_plan_counts_on_no_people_who_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: int, people: int
) -> None:
    """In five times the days come five times as many people if all are new, and no others if the same come back."""
    clock = [0]
    set_clock(monkeypatch, lambda: clock[0])
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(100):
            clock[0] = round(i * 86_400e6 / 50)
            shown = loop.decide(person=f"p{i if new else i % 50}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", clicks=[shown[0]])
        found = loop.plan_experiment(0.5, days=9.9)
        assert found.sessions == pytest.approx(250, rel=0.01)
        assert found.people == pytest.approx(people, rel=0.02)
        assert loop.plan_experiment(0.5, days=0.99).people == pytest.approx(25, rel=0.04)


@pytest.mark.slow
def test_a_plan_knows_who_comes_often_and_how_many_lists_would_be_ties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the lists are answered by one of 40 people; a click on either of the first two is on one of each side."""
    clock, found = [0], {}
    set_clock(monkeypatch, lambda: clock[0])
    for name, busy in (("even", 1), ("busy", 2)):
        with small_loop(tmp_path / name, "perceptron", control=0.0) as loop:
            for i in range(400):
                clock[0] = round(i * 86_400e6 / 100)
                shown = loop.decide(person="p0" if i % busy else f"p{i // busy % 40}", id=f"d{i}", show=4).shown
                loop.feedback(f"d{i}", clicks=shown[:2] if i % 4 == 0 else shown[1:3] if i % 4 == 1 else [shown[1]])
            found[name] = loop.plan_experiment(1.0, days=10.0)
    assert found["even"].ties == pytest.approx(0.25 + 0.25 / 2, abs=0.04)
    assert found["busy"].people == found["even"].people == 40
    assert found["busy"].wins[1].found < found["even"].wins[1].found - 0.1


def test_shadow_shows_what_would_move(tmp_path: Path) -> None:
    """The candidate turns the order around: of 12 items the four shown are never among its four."""
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP)
        live(loop, np.random.default_rng(0), 20, people=3)
        live(loop, np.random.default_rng(0), 10, people=1, show=12)
        found = loop.experiment().agreement
        assert found.decisions == 30
        assert found.same_first == 0.0
        assert found.overlap == pytest.approx(10 / 30)
        moves = {each.item: each for each in found.moves}
        assert (moves[BY_F0[0]].shown, moves[BY_F0[0]].proposed, moves[BY_F0[0]].places) == (10, 30, 11.0)
        assert (moves[BY_F0[-1]].shown, moves[BY_F0[-1]].proposed, moves[BY_F0[-1]].places) == (30, 10, -11.0)
        assert [each.person for each in found.people][-1] == "p0"
        assert loop.experiment().against_promotion == (
            "nobody's lists are interleaved: the candidate only proposes",)  # fmt: skip


@pytest.mark.parametrize("make", [rating_loop, choice_loop], ids=["rating", "comparison"])
def test_credit_of_numbers(tmp_path: Path, make: Any) -> None:
    with make(tmp_path / "l") as loop:
        made = loop.decide(person="p", id="d")
        if make is choice_loop:
            loop.feedback("d", choice="first")
            feedback = {"choice": "first"}
            expected = {loop.projection.find_decision("d").record.shown[0]: 1.0}
        else:
            feedback, expected = {"rating": {made.shown[0]: 5, made.shown[1]: 2}}, {0: 2.0, 1: -1.0}
        known = loop.projection.find_decision("d")
        draft = loop.feedback_reader.read("d", "x", None, feedback)
        kind = loop.projection.interaction
        assert credit(known.record.shown, kind.answer(known, draft.feedback), kind.scale) == expected
