"""The engine is a choice: what runs here, in processes and on Ray is the same, bit for bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import heedful

from alone import alone_with_ray
from heedful.core import engine
from heedful.core.engine import Costs, Engine, TaskError, WorkerLost, map_tasks, run_tasks
from heedful.data.letor import Queries
from heedful.experiments.coactive import letor_setting
from heedful.experiments.run import Run, simulate
from heedful.papers.figure import Size
from heedful.papers.run_ordinal import synthetic_batch
from heedful.papers.runner import Group, Trial, Trials, Workers, run_group, run_trials
from heedful.worlds.users import Noisy

FREE = Costs(0.0, 0.0, 0.0, -1.0)
OWN = """
from typing import Any, NamedTuple
import numpy as np
class State(NamedTuple):
    w: Any
class Mine(NamedTuple):
    n_features: int
    space: Any
    step: float = 1.0
    @property
    def must_interpret(self): return True
    def init(self, rng): return State(np.zeros(self.n_features))
    def propose(self, state, x, rng): return self.space.argmax(state.w + 0.1 * rng.random(self.n_features), x)
    def update(self, state, x, y, feedback):
        self.space.add_difference(state.w, x, feedback, y, self.step)
        return state
"""


def start_ray() -> Iterator[None]:
    """A Ray cluster of two workers on this machine, for as long as the iterator lasts."""
    if find_spec("ray") is None:
        told = "expected Ray for the tests of the engine ray, and it is not installed: pip install '.[ray]'"
        if os.environ.get("CI"):
            raise ModuleNotFoundError(told)
        pytest.skip(told)
    ray = engine.connect_ray(2)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with alone_with_ray():
        yield from start_ray()


@pytest.fixture(params=["processes", "ray"])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine that distributes, at costs at which that always pays."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
    monkeypatch.setattr(engine, "COSTS", FREE)
    name: Engine = request.param
    return name


@pytest.fixture
def queries() -> Queries:
    rng = np.random.default_rng(5)
    sizes = rng.integers(4, 8, 12)
    X = rng.integers(-3, 4, (sizes.sum(), 3)).astype(np.float64)
    labels = np.clip(X[:, 0] - X[:, 1] + rng.integers(-1, 2, len(X)), 0, 2).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Queries(X, labels, offsets, np.array([str(q) for q in range(12)]))


# ---------------------------------------------------------------------------- tasks


def drawn(shared: Any, seed: int) -> Any:
    shared += 1.0  # its own copy in each worker, which may be written to
    return np.random.default_rng(seed).random(4), os.getpid()


def fails(x: int) -> int:
    if x == 3:
        raise LookupError("not there")
    return x


def killed_once(folder: str, x: int) -> int:
    """End this process the first time that task 3 runs."""
    mark = Path(folder) / "killed"
    if x == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * x


def killed(x: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_tasks_are_the_same_with_every_engine(apart: Engine) -> None:
    shared = np.zeros(3)
    here = map_tasks(drawn, range(8), shared=(shared.copy(),))
    there = map_tasks(drawn, range(8), shared=(shared,), engine=apart, jobs=2)
    for (mine, _), (theirs, _) in zip(here, there):
        np.testing.assert_array_equal(mine, theirs)
        assert theirs.flags.writeable
    pids = {pid for _, pid in there[2:]}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 3
    assert shared[0] <= 2.0  # what was measured here, and no more


@pytest.mark.slow
def test_an_error_has_the_name_of_its_task_with_every_engine(apart: Engine) -> None:
    with pytest.raises(TaskError, match=r"^task 3: LookupError: not there$"):
        map_tasks(fails, range(6), engine=apart, jobs=2)
    outcomes = sorted(run_tasks(fails, range(6), engine=apart, names="abcdef"), key=lambda each: each.number)
    assert [each.value for each in outcomes] == [0, 1, 2, None, 4, 5]
    assert str(outcomes[3].error) == "d: LookupError: not there"


def test_on_ray_a_task_whose_worker_is_killed_runs_again(cluster: None, tmp_path: Path) -> None:
    got = map_tasks(killed_once, range(8), engine="ray", jobs=2, shared=(str(tmp_path),), costs=FREE)
    assert got == [10 * x for x in range(8)]
    assert (tmp_path / "killed").exists()


def test_on_ray_a_task_that_kills_every_worker_is_told(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "RETRIES", 0)
    calls = engine._Calls(killed, (), ("the killer", "another"))
    with pytest.raises(WorkerLost, match=r"^(the killer|another): \w+: "):
        list(engine._on_ray(calls, [(0, 0), (1, 1)], 2))


def test_closing_the_iterator_frees_the_workers_of_ray(cluster: None) -> None:
    import time

    outcomes = run_tasks(time.sleep, [0.0, 0.0, 600.0, 600.0, 600.0], engine="ray", jobs=2, costs=FREE)
    assert [next(outcomes).number for _ in range(1)] == [0]
    outcomes.close()  # type: ignore[attr-defined]
    assert map_tasks(fails, [0, 1, 2], engine="ray", jobs=2, costs=FREE) == [0, 1, 2]


# ---------------------------------------------------------------------------- experiments


@pytest.mark.slow
def test_simulations_are_the_same_with_every_engine(apart: Engine, queries: Queries, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    setting = letor_setting(queries, Noisy(4), seeds=range(3))
    specs = ("perceptron", f"{file}:Mine:step=0.5")
    learners = {spec.partition("/")[0] or "mine": setting.learner(spec) for spec in specs}

    def runs(name: Engine) -> dict[tuple[str, int], list[float]]:
        events = simulate(learners, setting, 20, jobs=2, engine=name)
        return {(e.learner, e.seed): e.regrets.tolist() for e in events if isinstance(e, Run)}

    here = runs("serial")
    assert len(here) == 6
    assert runs(apart) == here


@pytest.mark.slow
def test_figures_are_the_same_with_every_engine(apart: Engine) -> None:
    def lines(workers: Workers) -> dict[str, Any]:
        specs = ["prank", "widrow-hoff:eta=0.1"]
        streams = synthetic_batch(Size(40, 3)).parts
        group = Group(("streams",), specs, streams, lambda spec, at: at.learner(spec), 3, "streams", interpreted=True)
        return {spec: runs.regrets.tolist() for spec, runs in run_group(group, 40, {}, workers, silent).items()}

    here = lines(Workers(2))
    assert len(here["prank"]) == 3
    assert lines(Workers(2, apart)) == here


def silent(what: str, share: float) -> None:
    pass


def trial(run: int, names: Any) -> dict[str, Trial]:
    X = np.random.default_rng(run).standard_normal((30, 30))
    return {name: Trial(np.linalg.eigvalsh(X @ X.T), 0.0) for name in names}


@pytest.mark.slow
def test_trials_agree_to_rounding_as_the_order_of_sums_in_linear_algebra_is_its_own(apart: Engine) -> None:
    trials = Trials(("trials",), ["a", "b"], trial, 5, "trials")
    here, there = (run_trials(trials, {}, Workers(2, name), silent) for name in ("serial", apart))
    for name in ("a", "b"):
        np.testing.assert_allclose(there[name].regrets, here[name].regrets, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------- the command line

ITEMS = "a,b\n" + "".join(f"{i},{(7 * i) % 5}\n" for i in range(20))
LINE = "simulate catalogue {} --user best --people 2 --seeds 3 --rounds 5 --interpreted --engine ray"


def test_where_ray_is_missing_a_command_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    (tmp_path / "items.csv").write_text(ITEMS)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    got = heedful(LINE, tmp_path / "items.csv")
    assert (got.code, got.out) == (1, "")
    assert got.err == "heedful: --engine ray needs ray, which is not installed: pip install '.[ray]'\n"


def test_a_small_simulation_is_not_sent_to_ray_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS)
    got = heedful(LINE, tmp_path / "items.csv")
    assert got.code == 0, got.err
    assert "here and " in got.err
    assert "with the engine ray: run here" in got.err
