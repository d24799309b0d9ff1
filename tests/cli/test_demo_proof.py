"""`heedful demo --proof`: what it says of candidates, against the truth that it knows, in a smaller shop."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command import done, heedful, refusal

from heedful.cli import demo_proof
from heedful.cli.proof_steps import ALPHA, CANDIDATES, SERVED, Proof, Sizes, prove
from heedful.results.answers import plain

SMALL = Sizes(people=120, blind=100, log=600, shadow=60, limit=1200, look=200, after=60, truth=300)
TINY = Sizes(people=20, blind=20, log=60, shadow=20, limit=40, look=20, after=20, truth=20)


@pytest.fixture(scope="module")
def proof() -> Proof:
    return prove(SMALL, 2)


@pytest.mark.slow
def test_what_is_decided_agrees_with_the_truth(proof: Proof) -> None:
    """One candidate learns nothing from the log, one gains next to nothing, one is better: only that is promoted."""
    assert [trial.learner for trial in proof.trials] == list(CANDIDATES)
    worse, equal, better = proof.trials
    gains = [(trial.value - trial.served) / trial.served for trial in proof.trials]
    assert gains[0] < 0.0
    assert abs(gains[1]) < 0.02
    assert gains[2] > 0.05
    assert not worse.promoted
    assert not equal.promoted
    assert better.promoted
    for trial in proof.trials:
        said = trial.found
        assert trial.promoted == said.ready == (said.verdict.verdict == "b")
        assert said.verdict.verdict != "a" or trial.value < trial.served
        assert trial.reasons == said.against_promotion
        assert trial.looks[-1] == (said.verdict.sessions, said.verdict.share, said.verdict.e_value)
        assert [look.sessions for look in trial.looks] == sorted(look.sessions for look in trial.looks)
        assert len(trial.looks) <= SMALL.limit // SMALL.look
        assert all(look.e_value < 1.0 / said.alpha for look in trial.looks[:-1]), "it ends when it is decided"
        assert said.alpha * len(CANDIDATES) == pytest.approx(ALPHA)
        assert trial.shadow.decisions > 0
        assert said.frozen > 0


@pytest.mark.slow
def test_the_truth_is_between_that_of_the_shop_and_that_of_the_mean_taste(proof: Proof) -> None:
    assert proof.caller < 0.8 * proof.best
    for values in (proof.blind_true, proof.log_true):
        assert set(values) == {SERVED, *CANDIDATES}
        assert values["dueling-bandit"] == pytest.approx(proof.caller), "it has learned nothing, and ranks as the shop"
        assert all(proof.caller - 1e-9 <= value < 1.02 * proof.best for value in values.values())
    assert proof.log_true["posterior:swap=0"] > proof.log_true[SERVED]


@pytest.mark.slow
def test_exploration_lets_the_log_tell(proof: Proof) -> None:
    without, with_it = (
        [each.values[0] for each in found.learners if each.values[0].measure == "swapped pairs"]
        for found in (proof.blind, proof.log)
    )
    assert [value.value for value in without] == [None] * 4
    assert all(value.refused and value.remedy for value in without)
    assert all(value.low < value.value < value.high for value in with_it if value.value)
    assert sum(value.comparisons for value in with_it) > 100
    for found, true in ((proof.blind, proof.blind_true), (proof.log, proof.log_true)):
        for each in found.learners:
            for value in each.values:
                assert value.verdict != "better" or true[each.learner] > true[SERVED]
                assert value.verdict != "worse" or true[each.learner] < true[SERVED]


@pytest.mark.slow
def test_the_rollback_is_bit_for_bit(proof: Proof) -> None:
    back = proof.rollback
    assert back is not None
    assert (back.learner, back.again) == (proof.trials[-1].learner, SERVED)
    assert back.left_out == SMALL.after
    assert back.other_bits
    assert back.same_bits
    assert back.same_lists
    assert back.problems == ()


@pytest.mark.slow
def test_the_plan_is_that_of_the_experiments(proof: Proof) -> None:
    """Half of the people take part, and nearly all of their lists are sessions but those drawn at random."""
    assert proof.plan.sessions == pytest.approx(0.5 * SMALL.limit, rel=0.1)
    found = [win.found for win in proof.plan.wins]
    assert found == sorted(found)
    assert found[-1] > 0.9 > 0.3 > found[0]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_proof() -> None:
    told: list[tuple[str, int]] = []
    first, second, other = prove(TINY, 0, lambda *each: told.append(each)), prove(TINY, 0), prove(TINY, 1)
    assert json.dumps(plain(first)) == json.dumps(plain(second)) != json.dumps(plain(other))
    assert sum(lists for _, lists in told) <= TINY.lists
    assert first.rollback is None, "so few lists decide nothing"
    assert {trial.found.verdict.verdict for trial in first.trials} == {"undecided"}


@pytest.mark.slow
def test_the_command_says_it(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def proved(sizes: Sizes, seed: int, advance: Any) -> Proof:
        asked.append((sizes, seed))
        return proof

    monkeypatch.setattr(demo_proof, "prove", proved)
    ended = heedful("demo --proof")
    assert (ended.code, ended.err, asked) == (0, "", [(Sizes(), 0)])
    for trial in proof.trials:
        assert f"{trial.value:.3f} against {trial.served:.3f}" in ended.out
        assert all(reason in ended.out for reason in trial.reasons)
    assert "bit for bit: yes" in ended.out
    assert "NO" not in ended.out
    done("demo --proof", width=80)
    found = heedful("demo --proof --json").json
    assert found == json.loads(json.dumps(plain(proof)))
    broken = proof._replace(rollback=proof.rollback and proof.rollback._replace(same_bits=False))
    monkeypatch.setattr(demo_proof, "prove", lambda *_: broken)
    assert "bit for bit: NO" in heedful("demo --proof").out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("demo --proof --once", "--once: expected without --proof"),
        ("demo --proof --port 8710", "--port: expected without --proof"),
    ],
)
def test_options_that_do_not_fit_are_refused(line: str, told: str) -> None:
    assert told in refusal(line)
