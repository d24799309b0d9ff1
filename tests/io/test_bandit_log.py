"""Tables of single items with propensities: values by hand, honest intervals, and what is wrong is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.known_forms import unpack
from heedful.data.table import open_table
from heedful.io.bandit_log import evaluate_table, read_bandit_log
from logged import TABLES, look_at_table
from written import placed

CHANCES = np.array([0.5, 0.3, 0.15, 0.05])
RATES = {"morning": np.array([0.1, 0.2, 0.3, 0.05]), "night": np.array([0.4, 0.1, 0.1, 0.05])}


def table(n: int, seed: int = 0, people: int = 0) -> list[dict[str, Any]]:
    """Rows of four actions, whose worth depends on the time of the day; texts, as in CSV."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        hour = "morning" if rng.random() < 0.5 else "night"
        a = int(rng.choice(4, p=CHANCES))
        reward = int(rng.random() < RATES[hour][a])
        row: dict[str, Any] = {"action": "abcd"[a], "probability": str(CHANCES[a]), "reward": str(reward), "hour": hour}
        best = int(a == int(RATES[hour].argmax()))
        rows.append(row | {"best": str(best)} | ({"person": f"p{i % people}"} if people else {}))
    return rows


def test_values_are_the_weighted_means() -> None:
    rows = table(3000)
    found = {
        each.learner: each.values[0]
        for each in evaluate_table(placed(rows), targets=["best"], always=["a", "d"]).learners
    }
    reward = np.array([float(row["reward"]) for row in rows])
    mu = np.array([float(row["probability"]) for row in rows])
    best = np.array([float(row["best"]) for row in rows])
    shown = np.array([row["action"] for row in rows])
    assert found["as logged"].value == pytest.approx(reward.mean())
    assert found["best"].value == pytest.approx((best / mu * reward).mean())
    assert found["always a"].value == pytest.approx(((shown == "a") / mu * reward).mean())
    truth = {"best": 0.35, "always a": 0.25, "always d": 0.05}
    for name, value in truth.items():
        low, high = found[name].low, found[name].high
        assert low is not None
        assert high is not None
        assert low < value < high < 1.0
    assert found["best"].verdict == "better"
    assert found["always d"].verdict in ("worse", "cannot be told")
    assert all(each.mean_weight == pytest.approx(1.0, abs=0.4) for each in found.values())


def test_without_options_each_action_is_told() -> None:
    found = evaluate_table(placed(table(400)))
    assert found.learners[0].learner == "as logged"
    assert {each.learner for each in found.learners[1:]} == {f"always {name}" for name in "abcd"}
    assert found.first == "the log as it is"


def test_each_person_counts_once() -> None:
    rows = table(600, people=30)
    loud = [row | {"person": "loud", "reward": "1"} for row in table(2000, 1)]
    [alone] = evaluate_table(placed(rows), always=["a"]).learners[0].values
    [both] = evaluate_table(placed(rows + loud), always=["a"]).learners[0].values
    assert alone.value is not None
    assert both.value == pytest.approx((30 * alone.value + 1.0) / 31)


@pytest.mark.slow
def test_a_learner_learns_along_the_log() -> None:
    """It finds what is best at which time of the day; its weights have mean 1, as it knows nothing of a row before."""
    rows = [{name: row[name] for name in ("action", "probability", "reward", "hour")} for row in table(1500, 2)]
    found = evaluate_table(placed(rows), learners=["posterior:swap=0"])
    logged, learner = (each.values[0] for each in found.learners)
    assert found.learners[1].lessons >= 1500
    assert any("×" in name for name in found.learners[1].weights)
    assert learner.mean_weight == pytest.approx(1.0, abs=0.3)
    assert logged.value is not None
    assert learner.value is not None
    assert learner.value > logged.value
    with pytest.raises(ValueError, match=r"^table:1: reward: expected 0 or 1, from which learners learn, got 0.5"):
        evaluate_table(placed([rows[0] | {"reward": 0.5}, *rows[1:]]), learners=["perceptron"])


def test_a_context_that_knows_the_action_is_found_out() -> None:
    """A learner is told in the context what was shown, and prefers what was not: no weight is left."""
    rows = [row | {"hour": row["action"]} for row in table(800, 3)]
    for row in rows:
        del row["best"]
        row["reward"] = "0"
    learner = evaluate_table(placed(rows), learners=["posterior:swap=0"]).learners[1].values[0]
    assert learner.value is None
    assert "logged probabilities are wrong" in learner.refused


@pytest.mark.slow
def test_rare_clicks_have_an_honest_interval() -> None:
    """10,000 impressions of one item among 30, with 46 clicks."""
    rng = np.random.default_rng(4)
    clicked = {*rng.permutation(10_000)[:46].tolist()}
    rows = [
        {"action": f"item {a}", "probability": 1 / 30, "reward": int(i in clicked)}
        for i, a in enumerate(rng.integers(30, size=10_000))
    ]
    logged, *always = (each.values[0] for each in evaluate_table(placed(rows), least_probability=1 / 30).learners)
    assert logged.low is not None
    assert logged.high is not None
    assert 0.002 < logged.low < 0.0046 < logged.high < 0.009
    assert len(always) == 30
    for each in always:
        assert each.low is not None
        assert each.high is not None
        assert each.low < 0.0046 < each.high < 0.06
        assert each.verdict == "cannot be told"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"probability": "0"}, "probability: expected a number above 0, up to 1, got '0'"),
        ({"probability": "much"}, "probability: expected a number above 0, up to 1, got 'much'"),
        ({"reward": "nan"}, "reward: expected a finite number, got 'nan'"),
        ({"action": ""}, "action: expected a name, got ''"),
        ({"best": "2"}, "best: expected a probability, got '2'"),
    ],
)
def test_what_is_wrong_is_named_by_row_and_column(change: dict[str, str], told: str) -> None:
    rows = table(3)
    rows[1] |= change
    with pytest.raises(ValueError, match=f"^table:2: {told}"):
        read_bandit_log(placed(rows), ["best"])


def test_a_table_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"table: reward: expected a column of reward .*, got action, probability"):
        read_bandit_log(placed([{"action": "a", "probability": 1}]))
    with pytest.raises(ValueError, match="always: expected an action of the table, got 'z'"):
        evaluate_table(placed(table(3)), always=["z"])


def test_probabilities_that_are_ten_times_too_small_give_no_value_and_no_verdict() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"context": "a", "action": "xyz"[rng.integers(3)], "probability": 1.0 / 30.0, "reward": int(rng.random() < 0.5)}
        for _ in range(2_000)
    ]
    for each in evaluate_table(placed(rows)).learners[1:]:
        [value] = each.values
        assert (value.value, value.low, value.high, value.difference, value.verdict) == (None, None, None, None, "")
        assert "logged probabilities are wrong" in value.refused


def test_a_probability_next_to_0_is_refused_where_it_counts() -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"action": "xy"[i % 2], "probability": 1e-320 if i == 1 else 0.5, "reward": int(rng.random() < 0.5)}
        for i in range(400)
    ]
    found = {each.learner: each.values[0] for each in evaluate_table(placed(rows), always=["x", "y"]).learners}
    assert found["always x"].refused == ""
    assert found["always x"].low is not None
    assert found["always y"].refused.startswith("a logged probability is next to 0")


# ---------------------------------------------------------------------------- nothing is bounded by what was seen

LOGS = 16
"""Of an interval that misses with probability .05 at most, 16 logs miss more than 4 times with probability .001."""


@pytest.mark.parametrize("name", [each for each in TABLES if each.startswith("rare action")])
def test_an_action_that_is_hardly_ever_shown_is_allowed_for_where_it_is_not_seen(name: str) -> None:
    """Of 600 rows less than one shows the best action, of which the target takes fifty times as much or more."""
    found = [look_at_table(name, (1, seed)) for seed in range(LOGS)]
    assert sum(any(each.missed) for each in found) <= 4
    assert sum(each.told == (True, True) for each in found) >= 10, [each.refused for each in found]
    assert not any(each.verdict == "worse" for each in found), "it is better"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rare buyers", (False, False)),
        ("rare buyers, least reward", (True, False)),
        ("rare buyers, both", (True, True)),
        ("rare losses", (False, False)),
        ("rare losses, most reward", (False, True)),
        ("rare losses, both", (True, True)),
    ],
)
def test_amounts_have_the_ends_that_the_least_and_the_greatest_one_determine(
    name: str, told: tuple[bool, bool]
) -> None:
    found = [look_at_table(name, (2, seed)) for seed in range(12)]
    assert {each.told for each in found} == {told}
    assert {each.refused for each in found} == {""}
    assert sum(any(each.missed) for each in found) <= 3


@pytest.mark.parametrize("name", [each for each in TABLES if each.startswith("said") and each != "said .55, were .5"])
def test_wrong_probabilities_in_either_direction_give_no_value(name: str) -> None:
    rows = TABLES[name]._replace(rows=3000).draw(np.random.default_rng(5))
    logged, target = evaluate_table(placed(rows), targets=["target"], **TABLES[name].options).learners
    [value] = target.values
    assert (value.value, value.low, value.high, value.verdict, value.difference) == (None, None, None, "", None)
    assert "logged probabilities are wrong" in value.refused
    assert logged.values[0].value == pytest.approx(np.mean([row["reward"] for row in rows]))
    assert logged.values[0].low is not None


def test_a_sound_table_is_not_taken_for_a_wrong_one() -> None:
    for name in TABLES:
        if name.startswith("sound"):
            found = [look_at_table(name, (3, seed)) for seed in range(6)]
            assert {each.refused for each in found} == {""}, name
            assert sum(any(each.missed) for each in found) <= 2


def test_what_is_known_beforehand_makes_intervals_narrower_and_has_to_agree_with_the_table() -> None:
    rows = table(1000)
    for i, row in enumerate(rows):
        row["reward"] = 30.0 * (i % 90 == 1)
    open_, known = (
        evaluate_table(placed(rows), always=["d"], least_reward=0.0, most_reward=30.0, least_probability=least)
        for least in (None, 0.05)
    )
    wide, narrow = open_.learners[1].values[0], known.learners[1].values[0]
    assert narrow.value == wide.value
    assert narrow.high is not None
    assert wide.high is not None
    assert narrow.high < wide.high
    assert "between 0 and 30" in known.measures[0].about
    with pytest.raises(ValueError, match=r"probability: expected at least 0.1, the least there is, got '0.05'"):
        evaluate_table(placed(rows), least_probability=0.1)
    with pytest.raises(ValueError, match=r"reward: expected at most 20, the greatest there is, got 30"):
        evaluate_table(placed(rows), most_reward=20.0)
    with pytest.raises(ValueError, match=r"^table:1: reward: expected at least 1, the least there is, got 0"):
        evaluate_table(placed(rows), least_reward=1.0)
    with pytest.raises(ValueError, match=r"most_reward: expected more than least_reward, got 1 and 1"):
        evaluate_table(placed(rows), least_reward=1.0, most_reward=1.0)
    with pytest.raises(ValueError, match=r"least_probability: expected a number .*, got 0"):
        evaluate_table(placed(rows), least_probability=0.0)
    with pytest.raises(ValueError, match=r"most_reward: expected 1 with learners, .*, got 30"):
        evaluate_table(placed(table(30)), learners=["perceptron"], most_reward=30.0)


def test_the_condition_of_the_intervals_is_said() -> None:
    amounts = [row | {"reward": 20.5} for row in table(400)]
    assert "if each reward is 0 or 1, as all of these are" in evaluate_table(placed(table(400))).measures[0].about
    assert "--least-reward" in evaluate_table(placed(amounts)).measures[0].about
    found = evaluate_table(placed(amounts), always=["a"])
    assert all(each.values[0].value is not None for each in found.learners)
    assert all((each.values[0].low, each.values[0].high) == (-math.inf, math.inf) for each in found.learners)
    assert found.learners[1].values[0].verdict == "cannot be told"
    some = evaluate_table(placed(amounts), always=["a"], least_reward=0.0)
    assert "--most-reward" in some.measures[0].about
    assert 0.0 < (some.learners[1].values[0].low or 0.0) < 20.5
    assert some.learners[1].values[0].high == math.inf


def test_learners_are_evaluated_without_a_bound_that_was_seen_as_well() -> None:
    """Two actions, shown by coin; what a learner would have shown has the interval of the table's own policies."""
    rng = np.random.default_rng(6)
    rows = [
        {"action": "xy"[a], "probability": 0.5, "reward": int(rng.random() < 0.03), "hour": "noon"}
        for a in rng.integers(2, size=100).tolist()
    ]
    wide, narrow = (
        evaluate_table(placed(rows), learners=["posterior:swap=0"], least_probability=least).learners[1].values[0]
        for least in (None, 0.5)
    )
    assert narrow.value == wide.value
    assert None not in (narrow.low, narrow.high, wide.low, wide.high)
    assert narrow.high - narrow.low < wide.high - wide.low  # type: ignore[operator]


def test_columns_of_other_names_and_logs_of_other_programs(tmp_path: Path) -> None:
    own = [{"action": row["action"], "probability": row["probability"], "reward": row["reward"]} for row in table(60)]
    want = evaluate_table(placed(own))
    other = [{"item_id": row["action"], "propensity_score": row["probability"], "click": row["reward"]} for row in own]
    assert evaluate_table(placed(other)) == want
    odd = [{"was": r["action"], "p_shown": r["probability"], "cash": r["reward"], "reward": 7, "x": 1} for r in own]
    named = {"action": ["was"], "probability": ["p_shown"], "reward": ["cash"]}
    assert evaluate_table(placed(odd), columns=named) == want
    with pytest.raises(ValueError, match=r"^table: action: .* or --column action=COLUMN --column probability=COLUMN"):
        read_bandit_log(placed(odd))
    shown = [{"TAction": {"topic": "news"}}, {"TAction": {"topic": "sport"}}]
    told = {"_labelIndex": 1, "_label_Action": 2, "_label_probability": 0.25, "_label_cost": -1.0, "EventId": "e"}
    lines = [told | {"EventId": f"e{i}", "c": {"GUser": {"device": "phone"}, "_multi": shown}} for i in range(2)]
    (tmp_path / "log.dsjson").write_text("\n".join(map(json.dumps, lines)))
    found = unpack(open_table(tmp_path / "log.dsjson"))
    first = {"GUser.device": "phone", "action": "sport", "probability": 0.25, "reward": 1.0, "id": "e0"}
    assert found.located()[0][1] == first
    assert read_bandit_log(found).reward.tolist() == [1.0, 1.0]


def test_which_row_it_is_and_when_are_no_context() -> None:
    """They never come again; an hour, which does, is."""
    rows = [
        row | {"EventId": f"e{i}", "Timestamp": f"2026-01-31T12:{i:02d}:00Z", "time": str(i % 3)}
        for i, row in enumerate(table(50))
    ]
    assert {*read_bandit_log(placed(rows)).context[0]} == {"hour", "time", "best"}
