"""A learner that imitates the caller's order: what is shown and learned, how well it agrees, and when it serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from heedful import Loop
from heedful.core.conformance import identical
from heedful.evaluation.confidence import Drifting
from heedful.io import import_lines
from heedful.loop import apprentice
from heedful.loop.apprentice import agreement_of, evidence_of
from heedful.loop.experiment import NotReady
from heedful.loop.records import DecisionRecord
from heedful.loop.serving import CALLER
from heedful.results.report import Apprentice
from heedful.spaces.ranking import Ranking
from heedful.testing import KindCase, check_kind
from kinds import KINDS, NAMES, Kind, each_kind
from loops import bits, bits_from_scratch, lines_of, rows, small_loop

F = {row["id"]: np.array([row[f"f{i}"] for i in range(4)]) for row in rows(12, 4)}
TASTE = np.array([1.0, -0.5, 0.25, 0.0])
IMITATING = [kind for kind in KINDS if kind.name in ("coactive", "ordinal")]
each_imitating = pytest.mark.parametrize("kind", IMITATING, ids=lambda kind: kind.name)


def grades(names: list[str]) -> dict[str, float]:
    """What the ranker that is imitated says of items: a grade from 1 to 5, by their features alone."""
    return {name: float(np.clip(np.round(3.0 + TASTE @ F[name]), 1, 5)) for name in names}


def asked(i: int) -> dict[str, Any]:
    """The fields of decision d{i}, of one of four people."""
    names = [NAMES[j] for j in np.random.default_rng(i).permutation(12)[:8]]
    return {"candidates": names, "prior": grades(names), "person": f"p{i % 4}", "id": f"d{i}", "show": 5}


def serve(loop: Loop, rounds: range, answers: int = 3) -> None:
    """Decisions; every third is answered, if `answers` is 3."""
    for i in rounds:
        shown = loop.decide(**asked(i)).shown
        if i % answers == 0:
            form = {"grade": {shown[1]: 2}} if loop.facts else {"better": [shown[-1]]}
            assert loop.feedback(f"d{i}", id=f"e{i}", **form).learned


def features(loop: Loop, names: list[str]) -> Any:
    """The features of items as the learner sees them, the caller's score last."""
    return loop.decider.parse(names, None, grades(names), None).x


def status(loop: Loop) -> Apprentice:
    """How well its learner imitates."""
    found = loop.apprentice()
    assert found is not None
    return found


# ---------------------------------------------------------------------------- what is shown


@each_kind
def test_the_callers_order_serves_or_the_setting_is_refused(kind: Kind, tmp_path: Path) -> None:
    """By the table of kinds: what a kind says of itself is what it does."""
    with kind.make(tmp_path / "plain") as loop:
        imitates = loop.projection.interaction.orders
        assert (loop.apprentice(), loop.report().apprentice) == (None, None)
    assert imitates == (kind in IMITATING or kind.name == "one")
    if kind.name == "one":  # as a loop of rankings, and shows the first alone
        return
    if not imitates:
        with pytest.raises(ValueError, match=r"apprentice: expected false in a loop of .*, got true"):
            kind.make(tmp_path / "loop", apprentice=True)
        assert not (tmp_path / "loop").exists()
        return
    with kind.make(tmp_path / "loop", apprentice=True) as loop:
        for i in range(20):
            made = loop.decide(**asked(i))
            prior = asked(i)["prior"]
            assert made.shown == tuple(sorted(prior, key=lambda name: -prior[name])[:5])
            assert (made.arm, made.probability) == ("imitated", 1.0)
            bare = loop.decide(NAMES[i % 4 :], show=3)
            assert (bare.shown, bare.arm) == (tuple(NAMES[i % 4 : i % 4 + 3]), "imitated")
        assert loop.projection.imitates


def test_what_is_imitated_is_not_seen(tmp_path: Path) -> None:
    """The learner ranks without the caller's scores, before and after it serves; the control has them."""
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True, control=0.5) as loop:
        serve(loop, range(30))
        assert loop.weights["the caller's score"] == 0.0
        turned = {name: -score for name, score in grades(NAMES).items()}
        assert loop.rank(NAMES, prior=turned) == loop.rank(NAMES, prior=grades(NAMES)) == loop.rank(NAMES)
        loop.promote(force=True)
        arms = {made.arm: made.shown for made in (loop.decide(NAMES, prior=turned, id=f"x{i}") for i in range(20))}
        assert arms["control"] == tuple(sorted(NAMES, key=lambda name: -turned[name]))
        assert arms["learned"] == loop.rank(NAMES)
        assert set(arms) == {"control", "learned"}


@each_imitating
def test_unknown_items_and_hidden_candidates_change_nothing_of_it(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop", apprentice=True, keep_unshown=False) as loop:
        for i in range(6):
            fields = asked(i)
            made = loop.decide(**fields | {"candidates": [*fields["candidates"], "stranger"]})
            assert (made.arm, made.unknown) == ("imitated", ("stranger",))
        features = np.array([F[name] for name in NAMES])
        assert loop.decide(features, prior=[float(1 + j % 5) for j in range(12)], show=2).shown == ("4", "9")
        assert loop.decide([], id="none").shown == ()
        assert (loop.verify(), bits(loop)) == ([], bits_from_scratch(loop))
        found = status(loop)
        assert found.decisions == 6  # scores of two that are equal tell nothing


def test_a_grade_that_is_none_is_refused_by_its_name(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", "ordinal-logistic:n_ranks=5", apprentice=True) as loop:
        for wrong in (0, 6, 2.5):
            with pytest.raises(ValueError, match=r"prior\['i1'\]: expected a whole number from 1 to 5"):
                loop.decide(["i0", "i1"], prior={"i0": 3, "i1": wrong})
        assert loop.projection.log.counts().get("decision") is None


def test_a_learner_that_needs_lists_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="apprentice: expected a learner that takes corrections of any list"):
        small_loop(tmp_path / "loop", "dueling-bandit", apprentice=True)
    for wrong, told in (
        ({"apprentice": 1}, "apprentice: expected true or false"),
        ({"agreement": 0.5}, "agreement: ex"),
    ):
        with pytest.raises(ValueError, match=told):
            small_loop(tmp_path / "loop", **wrong)


# ---------------------------------------------------------------------------- what is learned


def test_a_step_by_hand(tmp_path: Path) -> None:
    """Perceptron, [J15] Algorithm 1: w += phi(x, the caller's order) - phi(x, the learner's own)."""
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True, k=3) as loop:
        w, space = np.zeros(5), Ranking(3)
        for i in range(12):
            made = asked(i)
            names, score = made["candidates"], made["prior"]
            x = features(loop, names)
            served = sorted(range(8), key=lambda j: -score[names[j]])[:5]
            back = [j for j in range(7, -1, -1) if j not in served] + served[::-1]
            own = sorted(back, key=lambda j: -(x[j] @ w))  # what it does not tell apart is the other way round
            better = sorted(served, key=lambda j: (-score[names[j]], own.index(j)))
            better += [j for j in own if j not in served]
            w = w + space.phi(x, np.array(better)) - space.phi(x, np.array(own))
            loop.decide(**made)
            np.testing.assert_allclose(list(loop.weights.values())[:4], w[:4], rtol=0.0, atol=1e-9)
        assert np.abs(w).sum() > 1.0


def test_grades_of_the_caller_are_learned_as_grades_that_people_give(tmp_path: Path) -> None:
    """One after the other, in the order shown, by all people's state alone."""
    with small_loop(tmp_path / "loop", "ordinal-logistic:n_ranks=5", apprentice=True, shrink=2.0) as loop:
        learner, rng = loop.learner, np.random.default_rng(0)
        state = learner.init(rng)
        for i in range(10):
            shown = list(loop.decide(**asked(i)).shown)
            for x, name in zip(features(loop, shown), shown):
                state = learner.update(state, x, learner.propose(state, x, rng), int(grades(NAMES)[name]))
        assert identical(state, loop.projection.model.shared)
        assert loop.projection.model.people == {}  # what is a person's own comes from their own answers
        loop.feedback("d3", grade={loop.decide(**asked(3)).shown[0]: 1})
        assert list(loop.projection.model.people) == ["p3"]
        assert not identical(state, loop.projection.model.shared)


def imitating(kind: Kind) -> KindCase:
    """Loops that imitate, for the checks of `heedful.testing`."""

    def ask(i: int) -> dict[str, Any]:
        return {name: value for name, value in asked(i).items() if name not in ("person", "id")}

    def answer(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
        return {"grade": {shown[1]: 2}} if kind.name == "ordinal" else {"better": [shown[-1]]}

    return KindCase(partial(kind.make, apprentice=True), ask, answer)


FOLDS = (
    "undone_or_forgotten_is_as_if_it_had_never_been",
    "a_restart_at_any_point_changes_nothing",
    "two_processes_teach_one_loop",
    "exported_and_imported_it_learns_the_same",
)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{kind.name}-{check.__name__}")
        for kind in IMITATING
        for check in check_kind(imitating(kind))
        if check.__name__ in FOLDS
    ],
)
def test_the_model_is_the_fold_of_the_log(check: Callable[[Path], None], folder: Path) -> None:
    check(folder)


@each_imitating
def test_a_rollback_goes_back_to_any_decision(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop", apprentice=True) as loop:
        kept = []
        for i in range(9):
            serve(loop, range(i, i + 1))
            kept.append((loop.version, bits(loop)))
        for version, then in (kept[4], kept[7], kept[1], kept[8]):
            loop.rollback(version)
            assert bits(loop) == then == bits_from_scratch(loop)
        serve(loop, range(9, 12))
        assert loop.verify() == []
        lines = lines_of(loop)
        with kind.make(tmp_path / "copy", apprentice=True) as copy:
            list(import_lines(copy, lines))
            assert bits(copy) == bits(loop)


@each_imitating
def test_what_another_system_made_is_imitated_too(kind: Kind, tmp_path: Path) -> None:
    """Decisions of before, recorded; of grades there are none in an order."""
    with kind.make(tmp_path / "loop", apprentice=True) as loop:
        nothing = bits(loop)
        loop.record(["i0", "i1", "i2"], ["i2", "i0"], id="r0", time=1)
        assert (bits(loop) != nothing) == (kind.name == "coactive")
        assert (loop.verify(), bits(loop)) == ([], bits_from_scratch(loop))
        found = status(loop)
        assert (found.decisions, found.pairs.share) == (0, None)
        assert "No list can be compared so far." in found.told
        assert found.against_promotion == ("no list can be compared so far, and 0.8 is asked for",)


def test_of_a_list_of_another_system_the_order_shown_counts(tmp_path: Path) -> None:
    """Whatever scores came with it."""
    one, two = (small_loop(tmp_path / name, "perceptron", apprentice=True) for name in "ab")
    with one, two:
        one.record(NAMES[:4], ["i2", "i0", "i3", "i1"], id="r", prior=[4.0, 3.0, 2.0, 1.0])
        two.record(NAMES[:4], ["i2", "i0", "i3", "i1"], id="r")
        assert bits(one) == bits(two) == bits_from_scratch(one)
        assert one.rank(NAMES[:4])[0] == "i2"


def test_equal_scores_teach_nothing(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True) as loop:
        nothing = loop.weights
        for i in range(5):
            loop.decide(NAMES[i:], prior=[2.0] * (12 - i))
        assert (loop.weights, status(loop).decisions) == (nothing, 0)
        loop.decide(NAMES, prior=[2.0] * 11 + [1.0], show=3)  # of those not shown one is worse
        assert loop.weights != nothing


@pytest.mark.parametrize("learner", ["perceptron", "posterior", "ordinal-logistic:n_ranks=5"])
def test_a_loop_that_shows_one_item_learns_which(learner: str, tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", learner, apprentice=True, k=1) as loop:
        for i in range(120):
            fields = {name: value for name, value in asked(i).items() if name != "show"}
            if not loop.facts:
                fields["prior"] = {name: float(TASTE @ F[name]) for name in fields["candidates"]}
            assert len(loop.decide(**fields).shown) == 1
        found = status(loop)
        assert found.decisions == 120
        assert found.pairs == found.first
        assert found.pairs.share > 0.6
        assert loop.verify() == []


def test_the_next_page_goes_on_in_the_callers_order(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True, control=0.0) as loop:
        best = sorted(NAMES, key=lambda name: -float(TASTE @ F[name]))
        score = {name: float(TASTE @ F[name]) for name in NAMES}
        first = loop.decide(NAMES, prior=score, show=4, person="ann", id="one")
        second = loop.decide(NAMES, prior=score, show=4, person="ann", id="two", after="one")
        assert (first.shown + second.shown, second.arm) == (tuple(best[:8]), "imitated")
        loop.promote(force=True)
        before = bits(loop)
        third = loop.decide(NAMES, prior=score, show=4, person="ann", id="three", after="two")
        assert (third.shown, third.arm) == (tuple(best[8:]), "imitated")
        assert loop.decide(NAMES, prior=score, person="ann", id="other").arm == "learned"
        assert bits(loop) == before == bits_from_scratch(loop)
        assert loop.verify() == []


def test_feedback_teaches_as_ever(tmp_path: Path) -> None:
    """Corrections and clicks do in any list; they are explained and evaluated with them."""
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True) as loop:
        serve(loop, range(8), answers=100)
        before = bits(loop)
        shown = loop.decide(**asked(8)).shown
        imitated = bits(loop)
        assert loop.feedback("d8", id="e8", clicks=[shown[3]]).learned
        assert bits(loop) != imitated != before
        assert len(loop.why("d8").events) == 1
        loop.decide(**asked(9))
        told = loop.why("d9")
        assert [each.event for each in told.events] in (["e0", "e8"], ["e8", "e0"], ["e8"])
        assert (told.events_by, told.arm) == ("leave-one-out", "imitated")
        weights = {each.learner: each.weights for each in loop.evaluate("posterior:swap=0").learners}
        assert weights["perceptron"] == loop.weights
        assert loop.health().feedback
        loop.undo("e8")
        loop.undo("e0")
        with small_loop(tmp_path / "never", "perceptron", apprentice=True) as never:
            for i in range(10):
                never.decide(**asked(i))
            assert bits(loop) == bits(never)


def test_why_leaves_out_one_and_learns_the_orders_again(tmp_path: Path) -> None:
    """The influence of feedback is what the score of a loop without it lacks, with the orders that it learns later."""
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True) as loop:
        serve(loop, range(10))
        item = loop.decide(**asked(10)).shown[0]
        told = loop.why("d10", item)
        [influence] = [each for each in told.events if each.event == "e3"]
        [x], before = features(loop, [item]), loop.projection.find_decision("d10")
        assert told.events_by == "leave-one-out"
        assert told.score == pytest.approx(score_without(loop, before, x, ""), abs=1e-9)
        assert influence.by == pytest.approx(told.score - score_without(loop, before, x, "e3"), abs=1e-9)


def score_without(loop: Loop, decision: Any, x: Any, event: str) -> float:
    """The score of x by the model before a decision, folded without an event."""
    model = loop.projection.fresh()
    for each, made, given in loop.projection.steps([model], 0, decision.version):
        if each.id != event:
            loop.projection.teach(model, each, made, given)
    return float(x @ model.effective(model.view()))


# ---------------------------------------------------------------------------- how well it agrees


def record(ranks: list[int], scores: list[float | None] | None = None, arm: str = "imitated") -> DecisionRecord:
    kept: dict[str, Any] = {"ranks": ranks} | ({} if scores is None else {"scores": scores})
    return DecisionRecord(shown=tuple(range(len(ranks))), arm=arm, proposal=kept)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ranks", "scores", "k", "expected"),
    [
        ([1, 2, 3], None, 10, (1.0, 1.0)),
        ([3, 2, 1], None, 10, (0.0, 0.0)),
        ([2, 1, 3], None, 10, (2 / 3, 0.0)),
        ([1, 3, 2, 7], None, 3, (2 / 3, 1.0)),
        ([2, 1, 3], [5, 5, 1], 10, (1.0, 1.0)),  # equal scores: any order of the two is right
        ([2, 1, 3], [5, 4, 4], 10, (0.5, 0.0)),
        ([1, 2], [3, 3], 10, None),  # nothing is told apart
        ([3, 1, 2], [None, None, None], 10, (1 / 3, 0.0)),
        ([2, 1], [4, None], 10, None),  # the mean of the others
        ([1], None, 10, (1.0, 1.0)),
        ([4], None, 10, (0.0, 0.0)),
        ([2, 1], [2, 1], 1, (0.0, 0.0)),
    ],
)
def test_agreement_by_hand(ranks: list[int], scores: Any, k: int, expected: Any) -> None:
    assert agreement_of(record(ranks, scores), k) == (expected if expected is None else pytest.approx(expected))


def test_other_decisions_are_not_compared() -> None:
    assert agreement_of(record([1, 2], arm="learned"), 10) is None
    assert agreement_of(record([]), 10) is None
    assert agreement_of(msgspec.structs.replace(record([1, 2]), proposal={}), 10) is None


def test_ranks_are_those_of_the_learner_before_it_learned(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True) as loop:
        for i in range(15):
            before = np.array(list(loop.weights.values()))[:4]
            made = loop.decide(**asked(i))
            known = loop.projection.find_decision(made.id)
            scores = dict(zip(known.names, features(loop, list(known.names))[:, :4] @ before))
            order = sorted(known.names, key=lambda name: -scores[name])
            if i:  # at first it tells nothing apart
                assert known.record.proposal["ranks"] == [1 + order.index(name) for name in made.shown]
            assert known.record.proposal["scores"] == [grades(NAMES)[name] for name in made.shown]


def test_what_it_does_not_tell_apart_is_right_by_chance_alone(tmp_path: Path) -> None:
    """A learner that learns nothing has not learned the caller's order, though it would show the candidates as they
    come."""
    fixed = f"{Path(__file__).parents[1] / 'fixed.py'}:Fixed:tilt=0"
    with small_loop(tmp_path / "loop", fixed, apprentice=True) as loop:
        for i in range(150):
            loop.decide(NAMES, id=f"d{i}")
        found = status(loop)
        assert found.pairs.share == pytest.approx(0.5, abs=0.05)
        assert found.pairs.low < 0.5 < found.pairs.high
        assert found.first.share == pytest.approx(1 / 12, abs=0.08)


def test_recent_decisions_begin_at_multiples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of a sequence with the beginning's own error, over the decisions since that."""
    monkeypatch.setattr(apprentice, "WINDOW", 8)
    with small_loop(tmp_path / "loop", "perceptron", apprentice=True) as loop:
        shares = []
        for i in range(35):
            loop.decide(**asked(i))
            known = loop.projection.find_decision(f"d{i}")
            shares.append(agreement_of(known.record, 10))
            n = i + 1
            j = max(n // 8 - 1, 0)
            sequence = Drifting(0.05 / ((j + 1) * (j + 2)))
            state, told = sequence.init((2,)), [each for each in shares[8 * j :] if each is not None]
            for each in told:
                state = sequence.update(state, np.array(each))
            low, high = sequence.interval(state)
            found = status(loop)
            assert found.decisions == len(told)
            assert found.pairs == pytest.approx((np.mean([a for a, _ in told]), low[0], high[0]))
            assert found.first == pytest.approx((np.mean([b for _, b in told]), low[1], high[1]))
        assert found.since == loop.projection.log.places("decision")[24] - 1


# ---------------------------------------------------------------------------- when it serves


@pytest.fixture
def trained(tmp_path: Path) -> Iterator[Loop]:
    """A loop whose learner imitates well, after 160 decisions of four people."""
    with small_loop(tmp_path / "loop", "posterior:swap=0", apprentice=True, control=0.0) as loop:
        serve(loop, range(160), answers=1000)
        yield loop


@pytest.mark.slow
def test_it_asks_serves_and_goes_back(trained: Loop) -> None:
    loop, version, imitating = trained, trained.version, bits(trained)
    found = status(loop)
    assert found.ready
    assert not found.serves
    assert (found.against_promotion, found.asked, found.decisions) == ((), 0.8, 150)
    assert found.pairs.low >= 0.8
    assert found.told.startswith("posterior:swap=0 asks to be promoted")
    assert loop.report().apprentice == found
    with pytest.raises(LookupError) as none:
        loop.experiment()
    assert none.value.args == (f"experiment: there was none: {found.told}",)
    with pytest.raises(ValueError, match="learner: expected posterior:swap=0, which imitates the caller's order, got"):
        loop.promote("perceptron")
    with pytest.raises(ValueError, match="experiment: posterior:swap=0 imitates the caller's order so far"):
        loop.start_experiment("perceptron")
    made = loop.promote(by="ann", reason="agrees", id="first")
    assert (made.learner, made.before, made.forced, made.evidence) == (
        "posterior:swap=0",
        CALLER,
        (),
        evidence_of(found),
    )
    assert loop.promote(by="ann", reason="agrees", id="first").answer.status == "duplicate"
    assert bits(loop) == imitating == bits_from_scratch(loop)
    served = loop.decide(**asked(500))
    assert served.arm == "learned"
    assert served.shown == loop.rank(asked(500)["candidates"])[:5]
    now = status(loop)
    assert now.serves
    assert not now.ready
    assert now.pairs == found.pairs
    assert now.told.startswith("posterior:swap=0 imitated the caller's order until it was promoted")
    [promotion] = loop.promotions()
    assert (promotion.by, promotion.changed, promotion.in_effect) == ("ann", "", True)
    loop.start_experiment("perceptron", share=0.5)
    loop.stop_experiment()
    assert bits(loop) == imitating  # decisions that it makes itself teach nothing
    loop.rollback(version)
    assert (bits(loop), loop.decide(**asked(501)).arm) == (imitating, "imitated")
    assert not loop.promotions()[0].in_effect
    assert status(loop).ready


@pytest.mark.slow
def test_once_it_serves_no_order_teaches(trained: Loop) -> None:
    """Neither one of its own, nor one of another system; the version moves with feedback alone."""
    trained.promote()
    version, before = trained.version, bits(trained)
    serve(trained, range(160, 165), answers=1000)
    trained.record(NAMES[:4], NAMES[3::-1], id="r0")
    assert (trained.version, bits(trained)) == (version, before)
    assert trained.feedback("d160", id="c", better=[trained.projection.find_decision("d160").names[0]]).learned
    assert trained.verify() == []
    path = trained.path
    trained.close()
    with Loop.open(path) as loop:
        taught = bits(loop)
        assert loop.version > version
        loop.rollback(version - 1)  # to before the promotion
        assert (bits(loop), loop.projection.imitates) == (before, True)
        loop.record(NAMES[:4], NAMES[3::-1], id="r1")
        assert bits(loop) != before
        loop.rollback(version + 7)
        assert (bits(loop), loop.projection.imitates) == (taught, False)
        assert taught == bits_from_scratch(loop)
        assert [each.in_effect for each in loop.promotions()] == [True]


def test_before_that_it_is_refused_with_the_figures(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", apprentice=True, agreement=0.95) as loop:
        serve(loop, range(30))
        found = status(loop)
        assert not found.ready
        told = f"it is expected to put at least {found.pairs.low:.3f} of the pairs in the caller's order, and 0.95 is"
        assert found.against_promotion == (f"{told} asked for",)
        assert "It asks to be promoted once at least 95 % are expected." in found.told
        with pytest.raises(NotReady, match=told) as refused:
            loop.promote()
        assert refused.value.reasons == found.against_promotion
        assert loop.projection.imitates
        made = loop.promote(force=True)
        assert made.forced == found.against_promotion
        assert not loop.projection.imitates


def test_evidence_that_was_forgotten_is_told(trained: Loop) -> None:
    trained.promote()
    trained.forget("p2")
    [promotion] = trained.promotions()
    assert promotion.now["decisions"] == 111
    assert "decisions 150 then, 111 now" in promotion.changed
    assert status(trained).decisions == 111


@pytest.mark.slow
def test_a_promoted_loop_is_exported_and_restarted(trained: Loop, tmp_path: Path) -> None:
    trained.promote(by="ann")
    serve(trained, range(160, 170))
    lines, path = lines_of(trained), trained.path
    with small_loop(tmp_path / "copy", "posterior:swap=0", apprentice=True, control=0.0) as copy:
        statuses = {(each.status, each.reason) for each in import_lines(copy, lines) if each.kind != "item"}
        assert statuses == {("applied", None)}
        assert (bits(copy), copy.projection.imitates) == (bits(trained), False)
        assert status(copy).pairs == status(trained).pairs
    trained.close()
    with Loop.open(path) as loop:
        assert (loop.notes, loop.verify(), loop.projection.imitates) == ([], [], False)
