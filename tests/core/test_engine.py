"""Tasks here and in processes: order, seeds, errors, and when distributing pays."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from heedful.core import engine
from heedful.core.engine import COSTS, Costs, Outcome, TaskError, WorkerLost, map_tasks, plan, run_tasks
from processes import until

FREE = Costs(0.0, 0.0, 0.0, -1.0)
"""Costs at which distributing always pays, so that tasks are distributed at once."""


# ---------------------------------------------------------------------------- what tasks do, also in other processes


def scaled(factor: float, x: float) -> float:
    return factor * x


def where(x: int) -> tuple[int, int]:
    return x, os.getpid()


def drawn(seed: int) -> list[float]:
    numbers: list[float] = np.random.default_rng(seed).random(3).tolist()
    return numbers


def identity(shared: Any, x: int) -> tuple[int, int]:
    return id(shared), os.getpid()


class Odd(Exception):
    """An exception that pickle cannot restore."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def fails(x: int) -> int:
    if x == 2:
        raise Odd(x, 3)
    return x


def dies(x: int) -> None:
    os._exit(3)


def threads(x: int) -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in engine.THREADS)


# ---------------------------------------------------------------------------- the plan


@pytest.mark.parametrize(
    ("seconds", "left", "workers", "start", "each", "wanted"),
    [
        (1.0, 10, 2, 2.0, 0.0, "processes"),  # 10 s here, 2 + 5 s there
        (0.1, 10, 2, 2.0, 0.0, "serial"),  # 1 s here, 2.5 s there
        (1.0, 1, 8, 0.5, 0.0, "serial"),  # one task is not done sooner anywhere
        (1.0, 10, 1, 0.0, 0.0, "serial"),  # nor are tasks by one worker
        (1.0, 4, 2, 2.0, 0.0, "serial"),  # 4 s either way
        (1.0, 4, 2, 1.9, 0.0, "processes"),
        (1.0, 5, 2, 1.9, 0.0, "processes"),  # three rounds of two: 4.9 s
        (1.0, 5, 2, 2.0, 0.0, "serial"),
        (0.01, 10_000, 4, 2.0, 0.001, "processes"),  # 100 s here, 2 + 25 + 10 s there
        (0.001, 10_000, 4, 2.0, 0.005, "serial"),  # to send a task takes longer than to do it
    ],
)
def test_the_plan_is_what_is_done_sooner(
    seconds: float, left: int, workers: int, start: float, each: float, wanted: str
) -> None:
    got = plan("processes", seconds, left, workers, start, each)
    assert got.engine == wanted
    assert got.serial == pytest.approx(seconds * left)
    rounds = -(-left // workers)
    assert got.distributed == pytest.approx(start + rounds * seconds + left * each)
    assert (got.distributed < got.serial) == (wanted == "processes")


def test_a_plan_in_words() -> None:
    assert plan("ray", 0.1, 4, 2, 8.0, 0.0).words("the engine ray") == (
        "the tasks left take about 0.4 s here and 8.2 s with the engine ray: run here"
    )
    assert "distributed" in plan("ray", 100.0, 4, 2, 8.0, 0.0).words("the engine ray")


def test_nothing_is_distributed_that_is_small_and_it_is_said_where_an_engine_was_asked_for() -> None:
    for asked, said in (("auto", 0), ("processes", 1), ("serial", 0)):
        told: list[str] = []
        got = map_tasks(where, range(6), engine=asked, jobs=2, tell=told.append)
        assert got == [(x, os.getpid()) for x in range(6)]
        assert len(told) == said
        assert all("with the engine processes: run here" in each for each in told)


def test_the_second_of_many_tasks_is_measured_as_the_first_may_only_have_been_slow_to_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_in_processes", lambda calls, left, workers, optional: iter(()))

    def slow(first: float, x: int) -> int:
        time.sleep(first if x == 0 else 0.0)
        return x

    costs = Costs(processes=0.5, task=0.0)
    few = [each.number for each in run_tasks(slow, range(7), engine="processes", jobs=2, shared=(0.3,), costs=costs)]
    many = [each.number for each in run_tasks(slow, range(8 + 1), engine="auto", jobs=2, shared=(0.3,), costs=costs)]
    assert few == [0]
    assert many == list(range(9))


# ---------------------------------------------------------------------------- here


def test_an_error_has_the_name_of_its_task() -> None:
    with pytest.raises(TaskError, match=r"^task 2: Odd: 2 and 3$") as told:
        map_tasks(fails, range(4))
    assert isinstance(told.value.__cause__, Odd)
    outcomes = list(run_tasks(fails, range(4), names="abcd"))
    assert [each.value for each in outcomes] == [0, 1, None, 3]
    assert [str(each.error) for each in outcomes if each.error] == ["c: Odd: 2 and 3"]
    assert "in fails" in outcomes[2].error.trace  # type: ignore[union-attr]


def test_engines_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^engine: expected auto, serial, processes, ray, got 'threads'$"):
        list(run_tasks(fails, [0], engine="threads"))  # type: ignore[arg-type]
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[ray\]'"):
        list(run_tasks(fails, [0], engine="ray"))


def test_no_tasks() -> None:
    for name in ("auto", "serial", "processes"):
        assert map_tasks(fails, [], engine=name) == []


@pytest.mark.slow
def test_what_processes_cannot_have_is_run_here_unless_they_were_asked_for() -> None:
    local = lambda x: x + 1  # noqa: E731
    assert map_tasks(local, range(5), engine="auto", jobs=2, costs=FREE) == [1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="engine: expected a function and arguments that can be pickled"):
        map_tasks(local, range(5), engine="processes", jobs=2, costs=FREE)


# ---------------------------------------------------------------------------- in processes


@pytest.mark.slow
def test_processes_give_what_is_given_here_in_order() -> None:
    assert map_tasks(drawn, range(7), engine="processes", jobs=2, costs=FREE) == map_tasks(drawn, range(7))
    got = map_tasks(where, range(9), engine="processes", jobs=2, costs=FREE)
    assert [x for x, _ in got] == list(range(9))
    assert got[0][1] == os.getpid()  # the first one was measured here
    assert os.getpid() not in {pid for _, pid in got[2:]}


@pytest.mark.slow
def test_what_tasks_share_is_sent_to_a_worker_once() -> None:
    got = map_tasks(identity, range(12), engine="processes", jobs=2, shared=(np.zeros(10),), costs=FREE)[2:]
    assert len(set(got)) == len({pid for _, pid in got}) <= 2


@pytest.mark.slow
def test_workers_have_a_thread_each_and_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    got = map_tasks(threads, range(4), engine="processes", jobs=2, costs=FREE)
    assert got[-1][1:] == ("3", "1")
    assert dict(os.environ) == before


@pytest.mark.slow
def test_errors_of_processes_are_those_of_here() -> None:
    here = list(run_tasks(fails, range(4)))
    there = sorted(run_tasks(fails, range(4), engine="processes", jobs=2, costs=FREE), key=lambda each: each.number)
    assert [(each.value, str(each.error)) for each in there] == [(each.value, str(each.error)) for each in here]
    assert "in fails" in there[2].error.trace  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_worker_that_dies_is_told() -> None:
    with pytest.raises(WorkerLost, match="try fewer --jobs"):
        list(engine._in_processes(engine._Calls(dies, (), ()), [(0, 0), (1, 1)], 2, False))


@pytest.mark.slow
def test_closing_ends_the_workers() -> None:
    outcomes: Iterator[Outcome] = run_tasks(
        time.sleep, [0.0, 0.0, 600.0, 600.0], engine="processes", jobs=2, costs=FREE
    )
    others, began = set(multiprocessing.active_children()), time.monotonic()
    assert next(outcomes).number == 0
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 600.0, "it waited for them"
    until(lambda: not set(multiprocessing.active_children()) - others)  # one that the pool's thread waits for goes next


def test_the_costs_are_more_than_nothing() -> None:
    assert 0.0 < COSTS.task < COSTS.connected < COSTS.processes < COSTS.ray


def test_ray_that_was_imported_without_a_token_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads at its import who may come: whoever it was imported by before could not ask for a token any more."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    monkeypatch.setattr(engine, "check_engine", lambda name: None)
    with pytest.raises(
        ConnectionError, match=r"engine: expected to import Ray first, .* connect to a cluster with ray.init"
    ):
        engine.connect_ray(1)
    assert "RAY_AUTH_MODE" not in os.environ
