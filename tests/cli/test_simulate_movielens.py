"""`heedful simulate movielens`: its figures against runs made here, and its words."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from command import heedful, refusal

from films import ratings_of, write_1m
from heedful.core.fold import trace
from heedful.data.movielens import load_movielens
from heedful.experiments.movielens import make_movie_world, movie_setting
from heedful.worlds.users import Better


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_1m(tmp_path / "ml", ratings_of())


LINE = "simulate movielens {} --rounds 12 --dimension 2 --regularisation 0.1 --interpreted"


def test_figures_are_those_of_runs(folder: Path) -> None:
    got = heedful(f"{LINE} --penalty weighted --people 4 --seeds 2 --split 3 --json -l perceptron -l convex", folder)
    assert got.code == 0
    house = make_movie_world(load_movielens(folder), split=3, dimension=2, regularisation=0.1, penalty="weighted")
    said = f"{folder}: {len(house.X)} movies with 2 features (weighted penalty 0.1), from half the users"
    assert got.err == f"heedful: {said}\n"
    setting = movie_setting(house, Better(), people=4, seeds=(0, 1))
    assert [row["learner"] for row in got.json] == ["perceptron", "convex"]
    for row in got.json:
        learner = setting.learner(row["learner"])
        regrets = np.array([trace(learner, s.world, 12, s.draw, interpreted=True) for s in setting.scenes])
        by_seed = regrets.reshape(2, 4, 12).mean(axis=(1, 2))
        assert (row["user"], row["rounds"], row["seeds"], row["checkpoints"]) == ("better", 12, 2, [1, 3, 10, 12])
        assert row["regret"][-1] == pytest.approx(by_seed.mean(), rel=1e-12)
        assert row["stderr"][-1] == pytest.approx(by_seed.std(ddof=1) / np.sqrt(2), rel=1e-9)


def test_everybody_comes_where_people_is_0(folder: Path, tmp_path: Path) -> None:
    got = heedful(f"{LINE} --people 0 --out {{}}", folder, tmp_path / "runs.csv")
    assert got.code == 0
    assert "2 features (plain penalty 0.1)" in " ".join(got.err.split())
    assert "30 movies, 12 people" in " ".join(got.out.split())
    assert "± is the standard error over people. 12 people." in got.out
    with (tmp_path / "runs.csv").open(newline="") as runs:
        assert {int(row["person"]) for row in csv.DictReader(runs)} == set(range(12))


def test_people_are_counted_by_seed(folder: Path) -> None:
    got = heedful(f"{LINE} --people 4 --seeds 3", folder)
    assert "Averaged over 4 people first." in got.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--people 2 --user noisy:depth=3", "user: expected one who picks items"),
        ("--people 2 --learner perceptrom", "learner: expected .*, got 'perceptrom'"),
    ],
)
def test_bad_input_ends_with_2(folder: Path, more: str, message: str) -> None:
    got = heedful(f"{LINE} {more}", folder)
    assert (got.code, got.out) == (2, "")
    assert re.search(message, got.err)


def test_a_folder_without_movielens_ends_with_2(tmp_path: Path) -> None:
    err = refusal("simulate movielens {}", tmp_path)
    assert "no MovieLens in it: expected ratings.dat and movies.dat (1M)" in err
    assert "nothing is fetched" in err


def test_the_defaults_are_told() -> None:
    told = heedful("simulate movielens --help", width=200)
    words = " ".join(told.out.replace("│", " ").split())
    for option, default in {
        "--rounds": 1500,
        "--people": 100,
        "--split": 0,
        "--seeds": 1,
        "--user": "better",
        "--penalty": "plain",
    }.items():
        assert re.search(rf" {option} (?:(?!--).)*\[default: {default}\]", words)
