"""An arena of models: which questions are asked, what the log says of them, and the leaderboard that comes of it."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, leaderboard
from heedful.studies.answers import decision_id, event_id, prompt_of
from heedful.studies.arena import FILE, battles, create_arena, extend_arena, leaderboard_of, outputs_of, request_of
from heedful.studies.outputs import Outputs
from heedful.studies.study import Study

STRENGTH = {"large": 1.5, "medium": 0.5, "small": -0.5, "tiny": -1.5}


def outputs(prompts: int = 5, models: Any = STRENGTH) -> Outputs:
    ids = [f"q{k}" for k in range(prompts)]
    return Outputs(
        {id: f"Prompt {id}" for id in ids}, {m: {id: f"answer of {m} to {id}" for id in ids} for m in models}
    )


def arena(path: Path, given: Outputs | None = None) -> Loop:
    return create_arena(path, given or outputs(), Study(kind="answers"), "ranking")


def ask(loop: Loop, person: str, number: int) -> tuple[str, tuple[str, ...]]:
    """The prompt of a question, and whose answers are shown."""
    there = outputs_of(loop.path)
    assert there is not None
    decision = loop.decide(**request_of(loop, there, person, number))
    known = loop.projection.find_decision(decision.id)
    assert known is not None
    return str(prompt_of(known)), decision.shown


def say(loop: Loop, person: str, number: int, choice: str) -> None:
    answer = loop.feedback(decision_id(person, number), id=event_id(person, number, 0), choice=choice)
    assert answer.status == "applied"


def test_each_prompt_comes_once_before_one_comes_again_and_no_question_twice(tmp_path: Path) -> None:
    loop = arena(tmp_path / "a.heedful")
    with loop:
        asked = []
        for number in range(30):  # 5 prompts, 6 pairs
            asked.append(ask(loop, "ann", number))
            say(loop, "ann", number, "first")
        assert Counter(prompt for prompt, _ in asked[:5]) == Counter(f"q{k}" for k in range(5))
        assert len({(prompt, frozenset(pair)) for prompt, pair in asked}) == 30
        assert ask(loop, "ann", 30)[0] in outputs().prompts  # and then from the beginning
        orders = {tuple(ask(loop, f"p{k}", n)[0] for n in range(1)) for k in range(12)}
        assert len(orders) > 1  # not all begin with the same


def test_a_question_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.heedful"
    loop = arena(path)
    with loop:
        before = ask(loop, "ann", 0)
        assert ask(loop, "ann", 0) == before
        more = outputs(8, [*STRENGTH, "new"])
        assert extend_arena(loop, more) == (1, [])
        assert ask(loop, "ann", 0) == before
    with Loop.open(path) as loop:
        assert ask(loop, "ann", 0) == before


def test_only_models_that_answered_a_prompt_are_asked_about(tmp_path: Path) -> None:
    given = outputs(3)
    answers = {model: dict(texts) for model, texts in given.answers.items()}
    del answers["large"]["q0"], answers["tiny"]["q0"]
    loop = arena(tmp_path / "a.heedful", given._replace(answers=answers))
    with loop:
        for k in range(10):
            for number in range(3):
                prompt, shown = ask(loop, f"p{k}", number)
                assert all(prompt in answers[model] for model in shown)


def test_sides_are_shuffled(tmp_path: Path) -> None:
    with arena(tmp_path / "a.heedful", outputs(1, ("x", "y"))) as loop:
        first = Counter(ask(loop, f"p{k}", 0)[1][0] for k in range(60))
    assert 15 <= first["x"] <= 45


@pytest.mark.slow
def test_pairs_that_are_sure_are_asked_less(tmp_path: Path) -> None:
    """The learner chooses the models: those far apart are compared less often than neighbours."""
    rng = np.random.default_rng(0)
    with arena(tmp_path / "a.heedful", outputs(40)) as loop:
        pairs = Counter[frozenset[str]]()
        for k in range(5):
            for number in range(40):
                _, (a, b) = ask(loop, f"p{k}", number)
                pairs[frozenset((a, b))] += 1
                say(loop, f"p{k}", number, "first" if STRENGTH[a] - STRENGTH[b] + rng.logistic() > 0 else "second")
        near = sum(pairs[frozenset(pair)] for pair in (("large", "medium"), ("medium", "small"), ("small", "tiny")))
        far = pairs[frozenset(("large", "tiny"))]
        assert near / 3 > far
        board = leaderboard_of(loop)
        assert board is not None
        assert board.items == ("large", "medium", "small", "tiny")


def test_what_was_said_as_battles_and_the_leaderboard_of_them(tmp_path: Path) -> None:
    with arena(tmp_path / "a.heedful") as loop:
        assert leaderboard_of(loop) is None
        told = []
        for number, choice in enumerate(("first", "second", "equal", "both_bad", "cannot_judge")):
            told.append((*ask(loop, "ann", number), choice))
            say(loop, "ann", number, choice)
        ask(loop, "bob", 0)
        say(loop, "bob", 0, "first")
        loop.undo(event_id("bob", 0, 0))
        there = outputs_of(loop.path)
        assert there is not None
        got = list(battles(loop, there))
        words = {
            "first": "model_a",
            "second": "model_b",
            "equal": "tie",
            "both_bad": "both_bad",
            "cannot_judge": "unsure",
        }
        assert [(each.prompt, (each.model_a, each.model_b), each.winner) for each in got] == [
            (prompt, shown, words[choice]) for prompt, shown, choice in told
        ]
        assert {each.judge for each in got} == {"ann"}
        assert [each.length_a for each in got] == [len(f"answer of {each.model_a} to {each.prompt}") for each in got]
        board = leaderboard_of(loop)
        assert board is not None
        assert (board.board.answers, board.tied, board.bad) == (4, 2, 1)
        assert board.left_out == {"could not be judged": 1}
        same = leaderboard([each._asdict() for each in got])
        assert board.score == pytest.approx(same.score)
        assert leaderboard_of(loop, ["nobody"]) is None


def test_both_bad_teaches_what_equal_does(tmp_path: Path) -> None:
    states = []
    for choice in ("equal", "both_bad"):
        with arena(tmp_path / f"{choice}.heedful", outputs(1, ("x", "y"))) as loop:
            ask(loop, "ann", 0)
            say(loop, "ann", 0, choice)
            found = loop.standing()
            states.append([(each.item, each.bar) for each in found.ranking])
            assert found.answers == 1
    assert states[0] == states[1]


def test_the_same_outputs_again_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.heedful"
    with arena(path) as loop:
        version, content = loop.version, (path / FILE).read_bytes()
        assert extend_arena(loop, outputs()) == (0, [])
        assert (loop.version, (path / FILE).read_bytes()) == (version, content)
        fewer = outputs(3, ("large", "small"))
        assert extend_arena(loop, fewer) == (0, ["medium", "tiny"])
        assert (loop.version, (path / FILE).read_bytes()) == (version, content)
        changed = outputs()._replace(answers={**outputs().answers, "large": {"q0": "another"}})
        with pytest.raises(ValueError, match="SOURCE: expected the texts that the study began with, but the answer of"):
            extend_arena(loop, changed)
        assert (path / FILE).read_bytes() == content


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.heedful"
    arena(path).close()
    (path / FILE).write_text(json.dumps({"prompts": []}))
    with pytest.raises(ValueError, match=r"outputs.json: expected prompts and answers as they were written"):
        outputs_of(path)
    (path / FILE).unlink()
    assert outputs_of(path) is None


def test_export_forget_and_replay_keep_the_prompt(tmp_path: Path) -> None:
    from heedful.io import export_lines

    with arena(tmp_path / "a.heedful") as loop:
        for person in ("ann", "bob"):
            for number in range(3):
                ask(loop, person, number)
                say(loop, person, number, "first")
        lines = [line for line in export_lines(loop) if line["kind"] == "decision"]
        assert {line["context"]["prompt"] for line in lines} <= set(outputs().prompts)
        loop.forget("ann")
        there = outputs_of(loop.path)
        assert there is not None
        assert {each.judge for each in battles(loop, there)} == {"bob"}
    assert len(list(combinations(STRENGTH, 2))) == 6
