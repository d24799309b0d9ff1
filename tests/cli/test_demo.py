"""`heedful demo`: its figures are those of `simulate`, its story is that of `play`, its words are plain."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import heedful

from heedful.cli import demo
from heedful.experiment import Run, catalogue_setting, simulate
from heedful.fold import play
from heedful.worlds.users import Better


@pytest.fixture(scope="module")
def figures() -> Any:
    return heedful("demo --json").json


@pytest.fixture(scope="module")
def words() -> str:
    got = heedful("demo", width=100)
    assert (got.code, got.err) == (0, "")
    return got.out


def test_the_figures_are_those_of_a_simulation(figures: Any) -> None:
    cars, names = demo._cars()
    assert figures["cars"] == len(cars.X) == len(names) == 406
    assert len(cars.features) == 7
    assert [row["learner"] for row in figures["learners"]] == ["perceptron", "pairwise-logistic", "guessing"]
    setting = catalogue_setting(cars, Better(), people=figures["people"])
    for row in figures["learners"][:2]:
        events = simulate({"it": setting.learner(row["learner"])}, setting, figures["rounds"], interpreted=True)
        runs = sorted((event for event in events if isinstance(event, Run)), key=lambda run: run.person)
        stars = [run.regrets / np.std(cars.X @ scene.w_star) for run, scene in zip(runs, setting.scenes)]
        wanted = [np.mean([person[t : t + 10] for person in stars]) for t in range(0, 100, 10)]
        np.testing.assert_allclose(row["stars_short"], wanted, rtol=1e-9)


def test_learning_beats_guessing(figures: Any) -> None:
    learned, _, guessed = (row["stars_short"] for row in figures["learners"])
    assert learned[-1] < learned[0] / 2
    assert learned[-1] < guessed[-1] / 3
    assert figures["person"]["pairs_alike"] > 0.75


def test_the_story_is_one_person_s_session(figures: Any) -> None:
    cars, names = demo._cars()
    setting = catalogue_setting(cars, Better(), people=1)
    scene, told = setting.scenes[0], figures["person"]
    learner = setting.learner(told["learner"])
    place = {tuple(row): i for i, row in enumerate(cars.X)}  # cars by their features
    rounds = list(play(learner, scene.world, 100, scene.draw))
    for moment, (played, _) in zip(told["moments"], rounds):
        a, b = (place[tuple(played.x[i])] for i in (played.y[0], played.feedback[0]))
        ratings = scene.world.ratings
        assert (moment["stars"], moment["preferred_stars"]) == (ratings[a], ratings[b])
        assert moment["corrected"] == (a != b) == (ratings[b] > ratings[a])
        assert sum(np.array_equal(cars.X[a], row) for row in cars.X) > 1 or moment["shown"] == names[a]
    w = learner.weights(rounds[-1][1])
    assert [row["learned"] for row in told["weights"]] == pytest.approx((w / np.linalg.norm(w)).tolist())
    assert [row["hidden"] for row in told["weights"]] == pytest.approx(scene.w_star.tolist())
    u, v = cars.X @ scene.w_star, cars.X @ w
    pairs = [(u[i] - u[j]) * (v[i] - v[j]) > 0 for i in range(406) for j in range(i) if u[i] != u[j]]
    assert told["pairs_alike"] == pytest.approx(np.mean(pairs))


def test_the_words(figures: Any, words: str) -> None:
    first = figures["person"]["moments"][0]
    assert f"{first['stars']}★ {first['shown']}" in words
    assert f"{first['preferred_stars']}★ {first['preferred']}" in words
    assert f"{figures['person']['pairs_alike']:.0%} of all pairs" in words
    corrected = sum(moment["corrected"] for moment in figures["person"]["moments"])
    assert f"preferred another car {corrected} times" in " ".join(words.split())
    for row in figures["learners"]:
        line = next(line for line in words.splitlines() if row["learner"] in line)
        assert f"{row['stars_short'][0]:.2f}" in line
        assert f"{row['stars_short'][-1]:.2f}" in line
        assert re.search("[▁▂▃▄▅▆▇█]{10}", line)
    assert not re.search(r"\b(fold|world|regret|phi|argmax)\b", words.split("What to try next")[0])


def test_hidden_and_learned_weights_in_words(figures: Any, words: str) -> None:
    called = {name: (more, less) for name, more, less in demo.FEATURES.values()}
    for row in figures["person"]["weights"]:
        more, less = called[row["feature"]]
        hidden, learned = (more if row[key] > 0 else less for key in ("hidden", "learned"))
        strength = "+" * max(1, round(10 * abs(row["hidden"])))
        assert re.search(rf"{hidden} +{re.escape(strength)} +{learned} ", words), row


def test_what_to_try_next_are_commands_there_are(words: str) -> None:
    lines = [line for line in words.split("What to try next")[1].splitlines() if line.startswith("  heedful ")]
    assert len(lines) == 4
    for line in lines:
        command = [word for word in shlex.split(line)[1:] if word[0] in "abcdefghijklmnopqrstuvwxyz"][:2]
        group = command if command[0] == "simulate" else command[:1]
        options = re.findall("--[a-z]+", line)
        told = heedful(f"{' '.join(group)} --help")
        assert told.code == 0
        assert all(option in told.out for option in options)


def test_without_the_cars_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.cli.terminal.importlib.util.find_spec", lambda name: None)
    got = heedful("demo")
    told = "heedful: the demo needs vega_datasets, which is not installed: pip install 'heedful[demo]'\n"
    assert (got.code, got.out, got.err) == (1, "", told)


def test_with_the_package_but_without_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr("heedful.cli.demo.importlib.util.find_spec", lambda name: Spec)
    got = heedful("demo")
    assert got.code == 1
    assert "cars.json" in got.err
    assert "pip install 'heedful[demo]'" in got.err
