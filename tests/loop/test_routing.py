"""A loop of routes: which model for which prompt, from thumbs, edits and choices, and what that costs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings, declare
from heedful.loop.experiment import NotReady
from heedful.loop.interactions.routing.forms import share_changed
from heedful.loop.interactions.routing.table import embeddings
from loops import as_often_as_said

MODELS = [
    {"id": "small", "cost": 0.5, "vendor": "x"},
    {"id": "medium", "cost": 5.0, "vendor": "x"},
    {"id": "large", "cost": 15.0, "vendor": "y"},
]
APPROVAL = np.array([[0.9, 0.9, 0.9], [0.2, 0.9, 0.9], [0.1, 0.2, 0.9]])
"""How likely a thumb up is, by topic of the prompt and by model."""


def make(path: Path, size: int = 3, learner: str | None = None, **settings: Any) -> Loop:
    chosen = {"cost_weight": 0.02, "control": 0.0} | settings
    context = embeddings(size) if size else None
    return Loop.create(path, learner=learner, items=MODELS, settings=Settings(**chosen), context=context)


def embedding(topic: int, rng: np.random.Generator | None = None) -> list[float]:
    e = np.eye(3)[topic] + (0.0 if rng is None else 0.1 * rng.standard_normal(3))
    return [float(each) for each in e]


def thumbs(loop: Loop, rounds: range) -> None:
    rng = np.random.default_rng(rounds.start)
    for i in rounds:
        topic = i % 3
        d = loop.decide(context={"embedding": embedding(topic, rng)}, id=f"d{i}", person=f"p{i % 40}")
        j = [each["id"] for each in MODELS].index(d.shown[0])
        up = rng.random() < APPROVAL[topic, j]
        assert loop.feedback(d.id, id=f"e{i}", thumb="up" if up else "down").learned


def test_why_says_how_likely_a_thumb_up_was_and_what_it_cost(tmp_path: Path) -> None:
    """The score is the one without the other, and its parts sum to the lead over the best of the others."""
    with make(tmp_path / "r") as loop:
        thumbs(loop, range(10))
        leads = []
        for i in range(10, 20):
            d = loop.decide(context={"embedding": embedding(0)}, id=f"d{i}")
            told, best = loop.why(d.id, budget=0.0), loop.predict(context={"embedding": embedding(0)})
            assert told.prediction["thumb"] == pytest.approx(best[d.shown[0]].value)
            assert told.score == pytest.approx(told.prediction["thumb"] - told.prediction["charge"])
            assert told.prediction["charge"] > 0.0
            assert sum(part.lead for part in told.features) == pytest.approx(told.lead)
            leads.append(told.lead)
        assert min(leads) < 0.0 < max(leads)  # of one that was tried, and of the best


def _lines(loop: Loop) -> list[dict[str, Any]]:
    from heedful.io.exports import export_lines

    return [each for each in export_lines(loop) if each["kind"] in ("decision", "feedback")]


@pytest.mark.slow
def test_costs_may_change_and_decisions_follow(tmp_path: Path) -> None:
    with make(tmp_path / "r") as loop:
        thumbs(loop, range(600))
        weights, ask = loop.weights, {"embedding": embedding(0)}
        assert loop.rank(context=ask)[0] == "small"
        assert loop.put_items([{"id": "small", "cost": 40.0}, {"id": "large", "cost": 0.1}]).put == 2
        assert loop.rank(context=ask)[-1] == "small"
        assert loop.weights == weights
        assert loop.why("d0", "small").features[-1].name != ""  # an old decision keeps its cost
        [cost] = [part for part in loop.why("d0", "small").features if part.name == "cost"]
        assert cost.value == pytest.approx(0.5)


@pytest.mark.slow
def test_the_probability_of_a_choice_is_the_share_of_times_that_it_is_made(tmp_path: Path) -> None:
    with make(tmp_path / "r", control=0.25, sampled=0.3) as loop:
        ask = {"embedding": embedding(1)}
        as_often_as_said((loop.decide(context=ask, id=f"d{i}") for i in range(1500)), 0.999)


def test_an_edit_is_a_thumb_of_the_share_that_it_left(tmp_path: Path) -> None:
    """A thumb is the two ends, and the share lies between them."""
    moved = []
    for k, answer in enumerate(
        [{"thumb": "up"}, {"edit": {"changed": 0.0}}, {"edit": {"changed": 0.25}}, {"edit": {"changed": 1.0}}]
    ):
        settings = Settings(cost_weight=0.0, control=0.0)
        with Loop.create(tmp_path / f"{k}", items=MODELS, settings=settings, context=embeddings(3)) as loop:
            loop.decide(context={"embedding": embedding(0)}, id="d")
            assert loop.feedback("d", id="e", **answer).learned
            moved.append(loop.weights["id=small"])
            if k == 2:
                [line] = [each for each in _lines(loop) if each["kind"] == "feedback"]
                assert line["edit"] == {"changed": pytest.approx(0.25)}
    up, same, less, down = moved
    assert up == same > less > 0.0 > down == pytest.approx(-up)
    assert share_changed("a b c d", "a b c d") == 0.0
    assert share_changed("a b c d", "a x c d") == 0.25
    assert share_changed("a b", "c d") == 1.0
    assert share_changed("", "") == 0.0


def test_the_share_that_was_changed_is_that_of_the_longest_common_subsequence() -> None:
    """By the table of its recursion, over random texts of few words; and of long texts at once."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        old, new = ([str(word) for word in rng.choice(list("xyz"), rng.integers(12))] for _ in range(2))
        rows = np.zeros((len(old) + 1, len(new) + 1), np.int64)
        for i, a in enumerate(old):
            for j, b in enumerate(new):
                rows[i + 1, j + 1] = rows[i, j] + 1 if a == b else max(rows[i, j + 1], rows[i + 1, j])
        total = len(old) + len(new)
        expected = 1.0 - 2.0 * rows[-1, -1] / total if total else 0.0
        assert share_changed(" ".join(old), " \n".join(new)) == pytest.approx(expected, abs=1e-12)
    same = "a " * 10_000
    assert share_changed(same, same) == 0.0  # which takes seconds where matching blocks are sought
    assert share_changed(same, "b " * 10_000) == 1.0
    numbers = [str(j) for j in range(10_000)]
    assert share_changed(" ".join(numbers), " ".join(numbers[::-1])) == pytest.approx(1.0 - 1 / 10_000)


def test_a_person_who_judges_the_same_answer_both_ways_contradicts_themselves(tmp_path: Path) -> None:
    """Whether the thumb names the model or not; and nothing in it corrects a list."""
    with make(tmp_path / "r") as loop:
        for i, answer in enumerate(({"thumb": "up"}, {"thumb": "down"}, {"thumb": "down", "item": "small"})):
            loop.decide(["small"], context={"embedding": embedding(0)}, person="ann", id=f"d{i}")
            loop.feedback(f"d{i}", **answer)
        found = loop.health()
        assert sum(window.repeated for window in found.windows) == 2
        assert sum(window.contradictory for window in found.windows) == 1
        assert found.corrections is None
        assert found.uncorrected == "answers of this kind of feedback correct no list"


@pytest.mark.parametrize("answer", [{"better": ["large", "small"]}, {"better": "large"}])
def test_an_order_of_two_answers_contradicts_the_model_as_a_choice_does(tmp_path: Path, answer: Any) -> None:
    with make(tmp_path / "r") as loop:
        for i in range(8):
            d = loop.decide(["small", "large"], show=2, context={"embedding": embedding(0)}, id=f"d{i}")
            loop.feedback(d.id, choice="first" if d.shown[0] == "small" else "second")
        d = loop.decide(["small", "large"], show=2, context={"embedding": embedding(0)}, id="last")
        assert loop.report().feedback.contradictory == 0
        assert d.shown[0] == "small"
        loop.feedback("last", **answer)
        assert loop.report().feedback.contradictory == 1


def test_moves_of_a_router_are_to_first_order(tmp_path: Path) -> None:
    """Probabilities of a thumb up do not add up."""
    with make(tmp_path / "r") as loop:
        for i in range(4):
            d = loop.decide(show=2, context={"embedding": embedding(i % 3)}, id=f"d{i}")
            loop.feedback(d.id, choice="second" if i % 2 else "first")
        assert loop.why("d3", d.shown[0], budget=0.0).events_by == "movement"


@pytest.mark.slow
def test_evaluate_says_what_policies_are_worth_and_what_they_cost(tmp_path: Path) -> None:
    """The value of a policy that was never shown: thumbs less cost, within its interval; costs follow exactly."""
    with make(tmp_path / "r", sampled=0.8) as loop:
        thumbs(loop, range(900))
        found = loop.evaluate()
        assert [each.learner for each in found.learners] == [
            "posterior", "cheapest", "always:small", "always:medium", "always:large",
        ]  # fmt: skip
        assert [each.name for each in found.measures] == ["value", "squared error", "cost", "thumbs"]
        assert [each.decisive for each in found.measures] == [True, False, False, False]
        for j, name in enumerate(["small", "medium", "large"]):
            value, _, cost, share = found.learners[2 + j].values
            assert cost.value == pytest.approx(MODELS[j]["cost"])
            truth, dear = APPROVAL[:, j].mean(), 0.02 * float(MODELS[j]["cost"])
            assert share.low < truth < share.high, name
            assert abs(share.value - truth) < 0.15
            assert value.low < truth - dear < value.high
        cheapest, small = found.learners[1].values, found.learners[2].values
        assert [each.value for each in cheapest if each.measure != "squared error"] == [
            each.value for each in small if each.measure != "squared error"
        ]
        own = found.learners[0].values
        assert own[0].value > max(APPROVAL[:, j].mean() - 0.02 * MODELS[j]["cost"] for j in range(3))  # type: ignore[operator]
        frugal = loop.evaluate("cost-weight:1").learners[1].values[2]
        assert frugal.value < own[2].value / 2  # type: ignore[operator]


def test_costs_are_bounded_by_what_could_have_been_chosen_and_not_by_what_was(tmp_path: Path) -> None:
    """All policies that are compared take the cheapest model; two dearer ones were candidates."""
    with make(tmp_path / "r", cost_weight=1000.0) as loop:
        thumbs(loop, range(40))
        found = loop.evaluate("cheapest")
        [(measure, cost)] = [
            (measure, value)
            for measure, value in zip(found.measures, found.learners[1].values)
            if measure.name == "cost"
        ]
        assert cost.value == pytest.approx(0.5)
        assert measure.high == pytest.approx(15.0)
        assert cost.high > 1.0  # one choice in 40 of the dearest is not ruled out


@pytest.mark.slow
def test_a_router_is_promoted_for_its_value_and_a_policy_is_not(tmp_path: Path) -> None:
    """Predicting thumbs better is not enough; policies are compared, and do not serve."""
    slow, usual = "posterior:prior=0.3", "posterior"
    with make(tmp_path / "r", sampled=0.8, learner=slow) as loop:
        thumbs(loop, range(300))
        value, squared = loop.evaluate(usual).learners[1].values[:2]
        assert (value.measure, squared.measure) == ("value", "squared error")
        assert value.verdict == "cannot be told"  # of 300 thumbs
        with pytest.raises(NotReady, match=r"the log does not say that it is better .*: value differs by"):
            loop.promote(usual)
        for policy in ("cheapest", "always:small", "cost-weight:1"):
            with pytest.raises(ValueError, match=f"learner: expected the name of a learner, got {policy}, a policy"):
                loop.promote(policy, force=True)
        with pytest.raises(ValueError, match="got 'cheap'; did you mean cheapest"):
            loop.evaluate("cheap")
        with pytest.raises(ValueError, match=r"experiment: .* Loop\.evaluate compares learners there"):
            loop.plan_experiment()
        assert loop.promote(usual, force=True).evidence["measure"] == "value"


@pytest.mark.slow
def test_without_an_embedding_the_words_of_the_prompt_count(tmp_path: Path) -> None:
    with make(tmp_path / "r", size=0) as loop:
        prompts = ("write a poem about rain", "sum this column of numbers")
        for i in range(200):
            d = loop.decide(context={"prompt": prompts[i % 2]}, id=f"d{i}")
            good = "large" if i % 2 else "small"
            loop.feedback(d.id, thumb="up" if d.shown[0] == good else "down")
        assert [loop.rank(context={"prompt": each})[0] for each in prompts] == ["small", "large"]
        assert loop.rank(context={"prompt": "a poem about snow"})[0] == "small"
        before = loop.projection.log.last()
        for prompt in (5, ["a", "poem"], True):
            with pytest.raises(ValueError, match=r"^context: prompt: expected a text, got "):
                loop.decide(context={"prompt": prompt})
        assert loop.projection.log.last() == before


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "items: expected at least one model"),
        ([{"id": "a", "cost": 1}], "items: expected two models or more to choose from, got a alone"),
        ([{"id": "a"}], "cost: expected a column cost, or cost_in and cost_out, got none of them"),
        ([{"id": "a", "cost_in": 1}], "cost: expected a column cost, or cost_in and cost_out, got cost_in"),
        ([{"id": "a", "cost": 1, "cost_in": 1, "cost_out": 1}], "cost: expected .*, got cost and cost_in and cost_out"),
        (
            [{"id": "a", "cost": 1}, {"id": "b", "cost": None}],
            "row 2: cost: expected a number from 0 to 1000, got none",
        ),
        ([{"id": "a", "cost": 1}, {"id": "b"}], "row 2: cost: expected a number from 0 to 1000, got none"),
        ([{"id": "a", "cost": 1}, {"id": "b", "cost": math.nan}], "row 2: cost: expected a number from 0 .*, got none"),
        ([{"id": "a", "cost": "free"}], "row 1: cost: expected a finite number, got 'free'"),
        ([{"id": "a", "cost": -0.1}], "row 1: cost: expected a number from 0 to 1000, got -0.1"),
        ([{"id": "a", "cost": math.inf}], "row 1: cost: expected a finite number, got inf"),
        ([{"id": "a", "cost": 1001}], "row 1: cost: expected a number from 0 to 1000, got 1001"),
        ([{"id": "a", "cost": 1}, {"id": "a", "cost": 2}], "identifier: "),
        ([{"id": "a", "cost_in": 1, "cost_out": -2}], "row 1: cost_out: expected a number from 0 to 1000, got -2"),
    ],
)
def test_a_table_of_models_that_makes_no_sense_is_refused_and_nothing_is_written(
    tmp_path: Path, rows: list[dict[str, Any]], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        Loop.create(tmp_path / "r", items=rows, settings=Settings(cost_weight=0.1))
    assert not (tmp_path / "r").exists()


def test_what_else_is_refused(tmp_path: Path) -> None:
    with make(tmp_path / "r") as loop:
        with pytest.raises(ValueError, match=r"row 1: id: expected one of small, medium, large, got 'huge'"):
            loop.put_items([{"id": "huge", "cost": 1.0}])
        with pytest.raises(ValueError, match="row 1: cost: expected a number from 0 to 1000, got -3"):
            loop.put_items([{"id": "small", "cost": -3}])
        with pytest.raises(ValueError, match=r"row 1: cost: expected a number .* got none"):
            loop.put_items([{"id": "small"}])
        for spec in ("always:huge", "cost-weight:-1", "cost-weight:x", "perceptron", "prank:n_ranks=3", "bmf"):
            with pytest.raises(ValueError, match="learner: "):
                loop.evaluate(spec)
    for wrong in (-0.1, math.nan, 1001, "much", True):
        with pytest.raises(ValueError, match="cost_weight: expected a number from 0 to 1000"):
            Settings(cost_weight=wrong)  # type: ignore[arg-type]
    for more in ({"ratings": (1, 5)}, {"choices": "best"}):
        with pytest.raises(ValueError, match="expected none in"):
            Settings(cost_weight=0.1, **more)  # type: ignore[arg-type]
    for name in ("perceptron", "random-order"):
        with pytest.raises(ValueError, match="learner: expected"):
            Loop.create(tmp_path / "s", items=MODELS, settings=Settings(cost_weight=0.1), learner=name)
    odd = declare({"cost_weight": (0, 1)})
    with pytest.raises(ValueError, match="expected no column cost_weight"):
        Loop.create(tmp_path / "s", items=MODELS, settings=Settings(cost_weight=0.1), context=odd)
    assert not (tmp_path / "s").exists()
