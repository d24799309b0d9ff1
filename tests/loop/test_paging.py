"""Pages of a list: what the pages before showed is left out, and the list goes on as it began."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop
from heedful.data.jsonl import as_lines
from heedful.evaluation.interleaving import interleave
from heedful.io import import_lines
from heedful.loop.serving import draft_generator
from kinds import Kind, each_kind
from loops import BY_F0, UP, bits, bits_from_scratch, fixed_loop, lines_of, small_loop


def record(loop: Loop, id: str) -> Any:
    known = loop.projection.find_decision(id)
    return known.record


# ---------------------------------------------------------------------------- all kinds


@each_kind
def test_pages_of_any_kind_show_everything_once(kind: Kind, tmp_path: Path) -> None:
    """Feedback between pages changes the model, never what was shown; a page after the last is empty. A kind that asks
    questions says that it has no pages."""
    with kind.make(tmp_path / "loop") as loop:
        names, about = [f"i{j}" for j in range(12)], {"person": "p", "show": 3}
        first = loop.decide(names, id="d0", **({} if not loop.projection.interaction.ranks else about))
        if not loop.projection.interaction.ranks:
            with pytest.raises(ValueError, match=r"after: expected none in .*, which shows no pages"):
                loop.decide(names, after="d0")
            return
        shown = list(first.shown)
        for page in range(1, 6):
            among = None if page % 2 else names
            made = loop.decide(among, id=f"d{page}", after=f"d{page - 1}", repeats=None, **about)
            again = loop.decide(among, id=f"d{page}", after=f"d{page - 1}", **about)
            assert (again.id, again.shown, again.seq) == (made.id, made.shown, made.seq)
            assert record(loop, made.id).after == f"d{page - 1}"
            assert made.arm == first.arm
            assert len(made.shown) == (3 if page < 4 else 0)
            shown += made.shown
            if made.shown:
                answer = kind.answer(page, made.shown)
                assert loop.feedback({**answer, "decision": made.id, "id": f"e{page}"}).status == "applied"
        assert sorted(shown) == sorted(names)
        assert bits(loop) == bits_from_scratch(loop)
        after = bits(loop)
        lines = lines_of(loop, "item", "decision", "feedback")
    with kind.make(tmp_path / "other") as other:
        outcomes = [each for each in import_lines(other, lines) if each.kind != "item"]
        assert {each.status for each in outcomes} == {"applied"}, outcomes
        assert bits(other) == after
        assert record(other, "d4").after == "d3"
        again = {line.record["id"]: line.record for line in lines_of(other, "decision", "feedback")}
        assert again == {line.record["id"]: line.record for line in lines if line.record["kind"] != "item"}
        other.forget("p")
        assert lines_of(other, "decision") == []


def test_an_imported_page_needs_the_page_before(tmp_path: Path) -> None:
    def line(id: str, person: str, **beside: Any) -> dict[str, Any]:
        return {"kind": "decision", "id": id, "person": person, "candidates": ["i1", "i2"], "shown": ["i1"], **beside}

    lines = [line("a", "p"), line("b", "q", after="a"), line("c", "p", after="x"), line("d", "p", after="a")]
    with small_loop(tmp_path / "l") as loop:
        told = list(import_lines(loop, as_lines(lines)))
        found = {each.id: (each.status, each.reason) for each in told}
        assert found["a"] == found["d"] == ("applied", None)
        assert found["b"][0] == "rejected"
        assert found["c"] == ("rejected", "after: expected an earlier decision, got 'x', which is not in the log")


# ---------------------------------------------------------------------------- what is refused


def test_the_page_before_has_to_be_there_and_the_persons_own(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", control=0.0) as loop:
        loop.decide(id="ann-1", person="ann", show=2)
        loop.decide(id="gone-1", person="gone", show=2)
        loop.decide(id="anyone", show=2)
        loop.forget("gone")
        events = loop.projection.log.last()
        for after, person, told in (
            ("x", "ann", r"after: expected an earlier decision, got 'x', which is not in the log"),
            ("gone-1", "gone", r"after: expected an earlier decision, got 'gone-1', which was forgotten"),
            ("ann-1", "bob", r"after: expected a decision for the same person, got 'ann-1', which was for another"),
            ("ann-1", None, r"after: expected a decision for the same person"),
            ("anyone", "ann", r"after: expected a decision for the same person"),
            ("", "ann", r"after: expected a text of 1 to 200"),
            (["ann-1"], "ann", r"after: expected a text of 1 to 200"),
            (1.5, "ann", r"after: expected a text of 1 to 200"),
        ):
            with pytest.raises(ValueError, match=told):
                loop.decide(person=person, after=after, id="new")  # type: ignore[arg-type]
        assert loop.projection.log.last() == events
        assert not set(loop.decide(after="anyone", show=2).shown) & set(record_names(loop, "anyone"))
        loop.decide(id="ann-2", person="ann", show=2, after="ann-1")
        for wrong in (None, "ann-2"):
            with pytest.raises(ValueError, match="id: expected a new one, got 'ann-2', which continues another list"):
                loop.decide(id="ann-2", person="ann", show=2, after=wrong)


def record_names(loop: Loop, id: str) -> list[str]:
    known = loop.projection.find_decision(id)
    return [known.names[j] for j in known.record.shown]


def test_a_page_of_a_person_who_is_forgotten_meanwhile_is_refused(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", control=0.0) as loop:
        loop.decide(id="a", person="p", show=2)
        asked = loop.decider.read(person="p", after="a", id="b")
        draft = loop.decider.propose(asked)  # type: ignore[arg-type]
        loop.forget("p")
        [answer] = loop.projection.submit([draft])
        assert (answer.status, answer.reason) == ("rejected", "the page before, a, was forgotten")


def test_unknown_items_of_an_earlier_page_are_left_out_too(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", control=0.0) as loop:
        names = ["i0", "new", "i1", "i2", "other", "i3"]
        prior = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
        for among, scores in ((names, None), (names, prior)):
            first = loop.decide(among, prior=scores, show=3, id=f"a{scores is None}")
            second = loop.decide(among, prior=scores, show=3, after=first.id, id=f"b{scores is None}")
            assert sorted(first.shown + second.shown) == sorted(names)
            third = loop.decide(among, prior=scores, show=3, after=second.id)
            assert third.shown == ()
            if scores:
                assert first.shown + second.shown == tuple(names)  # nothing was learned


def test_candidates_that_come_along_keep_their_names(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", control=0.0) as loop:
        features = np.arange(20.0, dtype=np.float32).reshape(5, 4)
        first = loop.decide(features, show=2, prior=[1.0, 2.0, 3.0, 4.0, 5.0], id="a")
        second = loop.decide(features, show=3, prior=[1.0, 2.0, 3.0, 4.0, 5.0], after="a", id="b")
        assert (first.shown, second.shown) == (("4", "3"), ("2", "1", "0"))
        assert loop.feedback("b", clicks=["0"]).learned
        assert bits(loop) == bits_from_scratch(loop)


# ---------------------------------------------------------------------------- arms and probabilities


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "settings"),
    [("posterior", {"control": 0.3, "exploration": 0.4}), ("perceptron", {"control": 0.2, "sampled": 0.5})],
)
def test_a_page_has_the_arm_of_the_list_and_its_probability_given_that(
    learner: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Of lists that began alike, second pages are shown as often as their probability says, which sums to 1."""
    with small_loop(tmp_path / "l", learner, k=3, **settings) as loop:
        names, prior = [f"i{j}" for j in range(5)], [3.0, 1.0, 5.0, 2.0, 4.0]
        shown: dict[tuple[str, Any], Counter[Any]] = {}
        told: dict[Any, dict[Any, float]] = {}
        for t in range(2500):
            one = loop.decide(names, id=f"a{t}", person="p", prior=prior, show=2)
            two = loop.decide(names, id=f"b{t}", person="p", prior=prior, show=3, after=f"a{t}")
            assert two.arm == one.arm
            assert two.probability is not None
            key = one.arm, one.shown
            shown.setdefault(key, Counter())[two.shown] += 1
            assert told.setdefault(key, {}).setdefault(two.shown, two.probability) == two.probability
            if one.arm == "control":
                assert one.shown + two.shown == ("i2", "i4", "i0", "i3", "i1")
                assert two.probability == 1.0
        assert {arm for arm, _ in shown} == {"control", "learned"} | ({"sampled"} if "sampled" in settings else set())
        for key, counts in shown.items():
            n = counts.total()
            if n < 200:
                continue
            assert 0.9 < sum(told[key].values()) < 1.0 + 1e-9
            for each, p in told[key].items():
                assert abs(counts[each] / n - p) < 4.5 * np.sqrt(p * (1.0 - p) / n) + 1e-9


# ---------------------------------------------------------------------------- drafts


@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 3, 6), (1, 1, 1, 1, 8), (5, 2, 20)])
def test_pages_are_one_long_draft(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """While the rankings stay, pages are what one list would have been, with its ranks; the first page's id draws the
    coins."""
    with fixed_loop(tmp_path / "l", control=0.0, seed=7) as loop:
        loop.start_experiment(UP, share=1.0, id="e")
        b = [loop.items.index(name) for name in BY_F0]
        a = b[::-1]
        for t in range(25):
            whole = interleave(a, b, 12, draft_generator(7, f"{t}-0"))
            items: list[str] = []
            teams, coins, ranks = list[int](), list[int](), ([], [])
            likely = 1.0
            for i, size in enumerate(sizes):
                made = loop.decide(loop.items, person="p", show=size, id=f"{t}-{i}", **_after(t, i))
                assert made.arm == "interleaved"
                kept = record(loop, made.id).proposal
                items += made.shown
                teams, coins = teams + kept["teams"], coins + kept["coins"]
                for side in (0, 1):
                    ranks[side].extend(kept["ranks"][side])
                likely *= made.probability or 0.0
            assert items == [loop.items[j] for j in whole.items]
            assert (tuple(teams), tuple(coins)) == (whole.teams, whole.coins)
            assert ranks == ([1 + a.index(j) for j in whole.items], [1 + b.index(j) for j in whole.items])
            assert likely == pytest.approx(whole.probability, rel=1e-12)


def _after(t: int, i: int) -> dict[str, Any]:
    return {"after": f"{t}-{i - 1}"} if i else {}


def test_a_page_goes_on_with_the_rankings_of_today(tmp_path: Path) -> None:
    """What was learned between pages counts; what was shown stays shown, and the probability is given that."""
    with small_loop(tmp_path / "l", "perceptron", control=0.0, seed=3) as loop:
        loop.start_experiment("second-order", share=1.0, id="e")
        for t in range(20):
            first = loop.decide(person=f"p{t}", show=3, id=f"a{t}")
            loop.feedback(first.id, better=[first.shown[2]])
            second = loop.decide(person=f"p{t}", show=4, id=f"b{t}", after=first.id)
            kept = record(loop, first.id).proposal
            rng = draft_generator(3, first.id)
            rng.random(len(kept["coins"]))
            running = loop.projection.published.running
            x = loop.decider.parse(loop.items, None, None, None).x
            a, b = (
                [j for j in order.tolist() if loop.items[j] not in first.shown]
                for order in (
                    loop.projection.interaction.order(loop.projection.published.view(None), x),
                    running.candidate.order(f"p{t}", x),
                )
            )
            draft = interleave(a, b, 4, rng, 1 - kept["coins"][-1])
            assert second.shown == tuple(loop.items[j] for j in draft.items)
            assert second.probability == pytest.approx(draft.probability, rel=1e-12)
            assert record(loop, second.id).proposal["teams"] == list(draft.teams)
        assert bits(loop) == bits_from_scratch(loop)


def test_a_list_stays_on_its_side_when_an_experiment_begins_or_ends(tmp_path: Path) -> None:
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        before = loop.decide(person="p", show=3, id="a1")
        loop.start_experiment(UP, share=1.0, id="e")
        first = loop.decide(person="p", show=3, id="b1")
        assert first.arm == "interleaved"
        second = loop.decide(person="p", show=3, id="a2", after="a1")
        assert (before.arm, second.arm) == ("learned", "learned")
        assert second.shown == tuple(BY_F0[::-1][3:6])
        assert second.probability == 1.0
        assert loop.decide(person="p", show=3, id="b2", after="b1").arm == "interleaved"
        loop.stop_experiment()
        ended = loop.decide(person="p", show=3, id="b3", after="b2")
        assert ended.arm == "learned"
        shown = set(first.shown) | set(record_names(loop, "b2"))
        assert ended.shown == tuple([name for name in BY_F0[::-1] if name not in shown][:3])
        loop.start_experiment(UP, share=1.0, id="f")
        assert loop.decide(person="p", show=3, id="b4", after="b3").arm == "learned"
        assert loop.decide(person="p", show=3, id="b3-other", after="b2").arm == "learned"
        assert loop.decide(person="p", show=3, id="c1").arm == "interleaved"


# ---------------------------------------------------------------------------- the verdict


def test_all_pages_of_a_list_are_one_session(tmp_path: Path) -> None:
    """Decided by the first answer that favours a side; what comes later, on any page, changes nothing."""
    with fixed_loop(tmp_path / "l", control=0.0) as loop:
        loop.start_experiment(UP, share=1.0, id="e")

        def page(i: int, person: str = "p") -> None:
            loop.decide(person=person, show=3, id=f"{person}{i}", **({"after": f"{person}{i - 1}"} if i else {}))

        def pick(id: str, side: int) -> dict[str, Any]:
            kept = record(loop, id).proposal
            return {"clicks": [record_names(loop, id)[kept["teams"].index(side)]]}

        def said() -> tuple[int, float]:
            found = loop.experiment().verdict
            return found.sessions, found.share

        for i in range(4):
            page(i)
        loop.feedback("p0", none=True, id="e0")
        assert said() == (1, 0.5)
        loop.feedback("p2", id="e2", **pick("p2", 1))
        assert said() == (1, 1.0)
        loop.feedback("p1", id="e1", **pick("p1", 0))
        loop.feedback("p3", id="e3", **pick("p3", 0))
        assert said() == (1, 1.0)
        found = loop.experiment()
        assert (found.answered.interleaved, found.answered.answered) == (1, 1)
        gains = 0.0
        for id in ("p1", "p2", "p3"):
            kept, side = record(loop, id).proposal, int(id == "p2")
            i = kept["teams"].index(side)
            gains += (1.0 / kept["ranks"][1][i] - 1.0 / kept["ranks"][0][i]) / kept["places"][i]
        assert found.credit == pytest.approx(gains, rel=1e-12)
        loop.undo("e2")
        assert said() == (1, 0.0)
        for event in ("e0", "e1"):
            loop.undo(event)
        assert said() == (1, 0.0)
        loop.undo("e3")
        assert said() == (0, 0.5)
        page(0, "q")
        page(1, "q")
        loop.feedback("q1", **pick("q1", 1))
        assert said() == (1, 1.0)
        loop.forget("q")
        assert said() == (0, 0.5)
        loop.feedback("p3", id="e4", **pick("p3", 1))
        assert said() == (1, 1.0)
