"""Run one function on many tasks with the engine of the caller's choice: here, one after another ("serial"), in a pool
of processes on this machine ("processes"), or on a Ray cluster ("ray", extra `ray`).

>>> map_tasks(pow, [2, 3, 4], shared=(10,), engine="serial")
[100, 1000, 10000]

All engines call the same function with the same arguments, and results do not depend on the engine: a task draws its
random numbers from a seed that follows from its index. What is large is given once for each worker (`shared`), not with
each task. `plan` says whether distributing pays: the first task is measured here, and work that would take less time
than starting workers is done here. The file is long because engines, and the choice between them, are read together.
"""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, get_args

from heedful.core.extras import lacking

Engine = Literal["auto", "serial", "processes", "ray"]
"""Where tasks run; "auto" is a pool of processes where that pays, otherwise here."""

ENGINES: tuple[Engine, ...] = get_args(Engine)
MISSING = lacking("the engine ray", "Ray", "ray")
"""What is said where the extra `ray` is missing."""
MANY = 4
"""With at least so many tasks for each worker the second task is measured here, too: the first one also loads and
compiles what it needs."""
RETRIES = 3
"""How often Ray runs a task again whose worker or node died."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables by which a worker's linear algebra is kept to one thread: there is a worker for each core."""


class Costs(NamedTuple):
    """What distributing tasks costs, in seconds of wall-clock time."""

    processes: float = 2.0
    """to start a pool of processes that import NumPy and heedful"""
    ray: float = 8.0
    """to import Ray and start it on this machine, with its first workers"""
    connected: float = 1.0
    """to start workers on a Ray cluster that this process is connected to"""
    task: float = 0.005
    """to send a task and fetch its result"""


COSTS = Costs()


class Plan(NamedTuple):
    """Where the tasks that are left will run, as `plan` decided, and the times that it estimated."""

    engine: Engine
    """"serial", "processes" or "ray\""""
    serial: float
    """seconds that the tasks left would take here, one after another"""
    distributed: float
    """seconds that they would take with the other engine, its start included"""

    def words(self, other: str) -> str:
        """Return a sentence that says how long the tasks take here and with the engine `other`, and which is chosen."""
        times = f"about {_seconds(self.serial)} here and {_seconds(self.distributed)} with {other}"
        return f"the tasks left take {times}: {'run here' if self.engine == 'serial' else 'distributed'}"


class TaskError(RuntimeError):
    """An error of a task. The message begins with the task's name; `trace` is the traceback of where it happened."""

    def __init__(self, name: str, kind: str, message: str, trace: str = "") -> None:
        """Make the error of the task `name` from the class name (`kind`) and the `message` of what was raised."""
        super().__init__(f"{name}: {kind}: {message}" if message else f"{name}: {kind}")
        self.name, self.kind, self.message, self.trace = name, kind, message, trace


class WorkerLost(RuntimeError):
    """A worker process ended before its task did."""


class Outcome(NamedTuple):
    """What became of one task."""

    number: int
    """its place among the tasks, from 0"""
    value: Any
    """what the function returned; None after an error"""
    error: TaskError | None
    """the error that the function raised; None if there was none"""


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_engine(engine: str) -> None:
    """Raise ValueError if there is no such engine, and ModuleNotFoundError if its package is not installed."""
    if engine not in ENGINES:
        raise ValueError(f"engine: expected {', '.join(ENGINES)}, got {engine!r}")
    if engine == "ray" and find_spec("ray") is None:
        raise ModuleNotFoundError(MISSING, name="ray")


def plan(
    engine: Engine, seconds: float, remaining: int, workers: int, start: float, task_cost: float = COSTS.task
) -> Plan:
    """Decide where the `remaining` tasks that were not run yet should run, if each takes about `seconds` here.

    `engine` is the one to compare with running them here; it has `workers` workers, takes `start` seconds to start and
    `task_cost` seconds more for every task. It is chosen if the tasks are done sooner with it.
    """
    serial = seconds * remaining
    rounds = math.ceil(remaining / max(workers, 1))
    distributed = start + rounds * seconds + remaining * task_cost
    return Plan(engine if engine != "serial" and distributed < serial else "serial", serial, distributed)


# ---------------------------------------------------------------------------- tasks


def map_tasks(function: Callable[..., Any], tasks: Iterable[Any], **how: Any) -> list[Any]:
    """Return `function(*shared, task)` for each of `tasks`, in their order. `how` are the arguments of `run_tasks`.

    Raise TaskError, with the name of the task, as soon as one fails.
    """
    values: dict[int, Any] = {}
    for number, value, error in run_tasks(function, tasks, **how):
        if error is not None:
            raise error
        values[number] = value
    return [values[number] for number in range(len(values))]


def run_tasks(
    function: Callable[..., Any],
    tasks: Iterable[object],
    *,
    engine: Engine = "serial",
    jobs: int | None = None,
    shared: tuple[Any, ...] = (),
    names: Sequence[str] = (),
    tell: Callable[[str], None] = lambda words: None,
    costs: Costs | None = None,
) -> Iterator[Outcome]:
    """Call `function(*shared, task)` for each of `tasks`, and yield what became of each as soon as it is done.

    `engine` says where they run, `jobs` how many at a time (None: one on each core, or whatever a Ray cluster has).
    `shared` are arguments that all tasks have in common; each worker gets them once. `names` are the tasks' names in
    errors, "task 3" if there are none. Except for "serial", the first tasks run here and are measured; the others are
    distributed if `plan` says that this pays, by `costs` (None: `COSTS`). `tell` is called with a sentence where an
    engine that was asked for is not used.

    The function, `shared`, tasks and results must be picklable for the engines that distribute, and the function must
    not rely on being called only once for a task: where a Ray node dies, its tasks run again on another one. Raise
    ValueError for an unknown engine, ModuleNotFoundError if Ray is not installed, and WorkerLost if a worker process
    was killed. Closing the iterator ends the workers.
    """
    check_engine(engine)
    pending = list(enumerate(tasks))
    calls = _Calls(function, shared, names)
    target: Engine = "processes" if engine == "auto" else engine
    workers = _workers(target, jobs, len(pending))
    costs = COSTS if costs is None else costs
    start, seconds, measured = _start(target, costs), 0.0, 0
    while pending:
        if target != "serial" and measured:
            planned = plan(target, seconds, len(pending), workers, start, costs.task)
            if planned.engine != "serial" and (measured > 1 or len(pending) < MANY * workers):
                break
            if engine != "auto" and planned.engine == "serial" and measured == 1:
                tell(planned.words(f"the engine {engine}"))
        index, task = pending.pop(0)
        began = time.perf_counter()
        outcome = calls.run_here(index, task)
        seconds, measured = time.perf_counter() - began, measured + 1
        yield outcome
    if not pending:
        return
    if target == "ray":
        yield from _on_ray(calls, pending, jobs)
    else:
        yield from _in_processes(calls, pending, min(workers, len(pending)), engine == "auto")


class _Calls(NamedTuple):
    """How a task is called, here or in a worker: `function(*shared, task)`. `names` are the tasks' names in errors."""

    function: Callable[..., Any]
    shared: tuple[Any, ...]
    names: Sequence[str]

    def run_here(self, index: int, task: object) -> Outcome:
        """Run a task in this process."""
        try:
            return Outcome(index, self.function(*self.shared, task), None)
        except Exception as error:
            wrapped = TaskError(self.name(index), *_parts(error))
            wrapped.__cause__ = error
            return Outcome(index, None, wrapped)

    def name(self, index: int) -> str:
        return self.names[index] if self.names else f"task {index}"

    def outcome(self, index: int, result: tuple[bool, Any]) -> Outcome:
        """Return what became of a task, from what a worker sent (`_attempt`)."""
        fine, value = result
        return Outcome(index, value, None) if fine else Outcome(index, None, TaskError(self.name(index), *value))


def _attempt(calls: _Calls, task: object) -> tuple[bool, Any]:
    """Run a task in a worker: return (True, its result) or (False, the parts of its error), which can be pickled
    whatever the error is."""
    try:
        return True, calls.function(*calls.shared, task)
    except Exception as error:
        return False, _parts(error)


def _parts(error: Exception) -> tuple[str, str, str]:
    return type(error).__name__, str(error), "".join(traceback.format_exception(error))


def _workers(engine: Engine, jobs: int | None, tasks: int) -> int:
    """Return how many of `tasks` run at a time at most: all of them on a Ray cluster that is not connected yet, whose
    size is not known."""
    if engine == "serial":
        return 1
    most = cores()
    if engine == "ray":
        ray = _ray_if_connected()
        most = int(ray.cluster_resources().get("CPU", 1)) if ray else tasks if "RAY_ADDRESS" in os.environ else most
    return min(jobs or most, tasks)


def _start(engine: Engine, costs: Costs) -> float:
    if engine == "ray":
        return costs.connected if _ray_if_connected() else costs.ray
    return costs.processes


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10.0 else f"{value:,.0f} s"


# ---------------------------------------------------------------------------- a pool of processes

_calls: Any = None  # in a worker process: how its tasks are called


def _begin(calls: _Calls) -> None:
    """Begin a worker process: keep what all tasks share, and leave Ctrl-C to the parent process, which ends workers."""
    global _calls
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _calls = calls


def _work(task: object) -> tuple[bool, Any]:
    return _attempt(_calls, task)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let the processes that are started in the block use one thread each for linear algebra, unless the environment
    says how many."""
    added = {name: "1" for name in THREADS if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _in_processes(
    calls: _Calls, pending: Sequence[tuple[int, object]], workers: int, optional: bool
) -> Iterator[Outcome]:
    """Run the tasks `pending` in a pool of `workers` processes, or here if they cannot be sent there and that is
    `optional`."""
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (calls._replace(names=()),))
    try:
        with _one_thread_each():
            try:
                waiting = {pool.submit(_work, task): index for index, task in pending}
            except Exception as error:  # of pickling: which one depends on what cannot be pickled
                if not optional:
                    reason = (
                        f"expected a function and arguments that can be pickled, got {type(error).__name__}: {error}"
                    )
                    raise TypeError(f"engine: {reason}") from error
                waiting = {}
        if not waiting:
            yield from (calls.run_here(index, task) for index, task in pending)
        for future in as_completed(waiting):
            try:
                result = future.result()
            except BrokenProcessPool:
                reason = "a worker was killed, perhaps for want of memory: try fewer --jobs"
                raise WorkerLost(reason) from None
            except Exception as error:  # a task or result that cannot be pickled
                result = False, _parts(error)
            yield calls.outcome(waiting.pop(future), result)
    except BaseException:
        children = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
        for child in children:
            child.join(10.0)
        raise
    pool.shutdown()


# ---------------------------------------------------------------------------- Ray

_kept: tuple[str, Any] = ("", None)  # in a Ray worker: which `_Calls` it has, and the copy


def _on_ray_worker(key: str, boxed: Sequence[Any], task: object) -> tuple[bool, Any]:
    """Run a task in a Ray worker. `boxed` holds the reference to how tasks are called, which is fetched once, and where
    the caller finds modules; `key` names it."""
    global _kept
    if _kept[0] != key:
        import ray

        sys.path.extend(place for place in boxed[1] if place not in sys.path)
        # What Ray returns lies in memory that all processes share, and must not be written to; learners write.
        _kept = key, copy.deepcopy(ray.get(boxed[0]))
    return _attempt(_kept[1], copy.deepcopy(task))


def _ray_if_connected() -> Any:
    """Return the module ray if this process is connected to a cluster, otherwise None."""
    ray = sys.modules.get("ray")
    return ray if ray is not None and ray.is_initialized() else None


def connect_ray(jobs: int | None = None) -> Any:
    """Return the module ray, connected: to the cluster at the environment's RAY_ADDRESS, or to one that is started on
    this machine, with `jobs` workers (None: one on each core), and ends with this process. As whoever can connect runs
    code, that one listens on this machine alone, and asks for a token, which only this process and its workers have.

    Raise ModuleNotFoundError if Ray is not installed, and ConnectionError if the cluster does not answer, or if Ray was
    imported without a token before one could be made.
    """
    check_engine("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if (connected := _ray_if_connected()) is not None:
        return connected
    options: dict[str, Any] = {}
    if not os.environ.get("RAY_ADDRESS"):
        if "ray" in sys.modules and "RAY_AUTH_MODE" not in os.environ:  # Ray reads it once, when it is imported
            expectation = "expected to import Ray first, to ask for a token, and it was imported before"
            remedy = (
                "connect to a cluster with ray.init, or set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN before that import"
            )
            raise ConnectionError(f"engine: {expectation}: {remedy}")
        options = {"address": "local", "num_cpus": jobs or cores(), "include_dashboard": False}
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # then it listens on 127.0.0.1 alone
        os.environ.setdefault("RAY_worker_niceness", "0")  # else by 15, and people wait for what workers do
        if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    ray.init(log_to_driver=False, logging_level="ERROR", **options)
    return ray


def _on_ray(calls: _Calls, pending: Sequence[tuple[int, object]], jobs: int | None) -> Iterator[Outcome]:
    """Run the tasks `pending`, with their indices, on Ray, at most `jobs` at a time (None: as many as the
    cluster can)."""
    ray = connect_ray(jobs)
    work = ray.remote(max_retries=RETRIES, retry_exceptions=False)(_on_ray_worker)
    reference = ray.put(calls._replace(names=()))
    key, boxed, todo = reference.hex(), [reference, list(sys.path)], iter(pending)
    waiting: dict[Any, int] = {}
    try:
        while True:
            room = jobs or 4 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
            while len(waiting) < room and (following := next(todo, None)) is not None:
                waiting[work.remote(key, boxed, following[1])] = following[0]
            if not waiting:
                return
            for finished in ray.wait(list(waiting), num_returns=1)[0]:
                index = waiting.pop(finished)
                try:
                    yield calls.outcome(index, copy.deepcopy(ray.get(finished)))
                except ray.exceptions.RayError as error:
                    reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
                    raise WorkerLost(f"{calls.name(index)}: {type(error).__name__}: {reason}") from None
    finally:
        for call in waiting:
            with suppress(Exception):  # whatever a cluster that is gone says
                ray.cancel(call, force=True)
