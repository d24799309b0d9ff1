"""Many loops evaluated and replayed, with every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import heedful

from heedful import Loop
from heedful.core import engine
from heedful.core.engine import Costs, Engine, TaskError
from heedful.loop.many import evaluate_loops, in_order, map_loops
from heedful.storage import Place
from loops import small_loop

FREE = Costs(0.0, 0.0, 0.0, -1.0)
NAMES = [f"i{j}" for j in range(12)]


def taught(path: Place, learner: str, seed: int, answers: int = 60, **settings: Any) -> Any:
    """A loop with clicks and corrections, one of which is undone; some clicks say nothing."""
    rng = np.random.default_rng(seed)
    with small_loop(path, learner, k=4, **settings) as loop:
        for t in range(answers):
            shown = loop.decide(NAMES, id=f"d{t}", person=f"p{t % 7}", prior=rng.random(12).round(2).tolist()).shown
            if t % 3:
                clicked = [name for name in shown if rng.random() < 0.4]
                loop.feedback(f"d{t}", id=f"e{t}", clicks=clicked)
            else:
                loop.feedback(f"d{t}", id=f"e{t}", better=rng.permutation(list(shown)).tolist())
        loop.undo("e6")
    return path


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("loops")
    specs = ("posterior:swap=0", "perceptron:batch=7", "posterior")
    return [taught(folder / f"l{i}.heedful", spec, i) for i, spec in enumerate(specs)]


@pytest.fixture(params=["serial", "processes"])
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(engine, "COSTS", FREE)
    chosen: Engine = request.param
    return chosen


def weights(loop: Loop, times: float) -> list[float]:
    return [times * each for each in loop.weights.values()]


@pytest.mark.slow
def test_loops_are_evaluated_as_each_by_itself(loops: list[Path], name: Engine) -> None:
    found = evaluate_loops(loops, "perceptron", alpha=0.1, engine=name, jobs=2)
    for path, evaluation in zip(loops, found):
        with Loop.open(path) as loop:
            assert evaluation == loop.evaluate("perceptron", alpha=0.1)


@pytest.mark.slow
def test_logs_of_loops_are_replayed(loops: list[Path], name: Engine) -> None:
    assert in_order(map_loops(Loop.verify, loops, engine=name, jobs=2)) == [[], [], []]


@pytest.mark.slow
def test_loops_of_both_stores_are_read_in_other_processes(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "COSTS", FREE)
    places = [taught(home / f"l{i}", "perceptron:batch=3", i, answers=12) for i in range(3)]
    assert in_order(map_loops(Loop.verify, places, engine="processes", jobs=2)) == [[], [], []]


@pytest.mark.slow
def test_any_function_of_loops(loops: list[Path], name: Engine) -> None:
    found = {each.number: each.value for each in map_loops(weights, loops, 2.0, engine=name, jobs=2)}
    for i, path in enumerate(loops):
        with Loop.open(path) as loop:
            assert found[i] == weights(loop, 2.0)


@pytest.mark.slow
def test_a_loop_that_is_not_there_is_named(loops: list[Path], tmp_path: Path, name: Engine) -> None:
    with pytest.raises(TaskError, match=r"none\.heedful: FileNotFoundError"):
        evaluate_loops([*loops, tmp_path / "none.heedful"], engine=name, jobs=2)


# ---------------------------------------------------------------------------- the command


@pytest.mark.slow
def test_several_loops_on_the_command_line(loops: list[Path], name: Engine) -> None:
    got = heedful(f"evaluate {{}} {{}} {{}} -l perceptron --json --engine {name} --jobs 2", *loops)
    assert (got.code, got.err) == (0, "")
    for path, one in zip(loops, got.json):
        alone = heedful("evaluate {} -l perceptron --json", path).json
        assert one == {"loop": str(path), **alone}
    told = heedful("evaluate {} {} -l perceptron", *loops[:2], width=200)
    assert told.code == 0
    assert all(str(path) in told.out for path in loops[:2])


def test_what_several_loops_refuse(loops: list[Path], tmp_path: Path) -> None:
    assert heedful("evaluate {} {}", loops[0], loops[0]).code == 2
    assert "no such loop" in heedful("evaluate {} {}", loops[0], tmp_path / "none.heedful").err
    assert "--plot: expected one loop or table, got 2" in heedful("evaluate {} {} --plot a.png", *loops[:2]).err
    (tmp_path / "t.csv").write_text("action,probability,reward\na,1,1\n")
    assert "expected a loop, got a file" in heedful("evaluate {} {}", loops[0], tmp_path / "t.csv").err
    got = heedful("evaluate {} {} -l second-order:gamma=-1 --json", *loops[:2])
    assert got.code == 1
    assert json.loads(got.out) == []
    assert got.err.count("gamma: expected a finite number above 0") == 2
    assert "2 of 2 loops could not be evaluated" in got.err
