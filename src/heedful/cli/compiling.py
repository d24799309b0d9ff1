"""Compile several learners at the same time, in processes of their own, if they have not been compiled before.

numba compiles one function at a time, so threads would not help. A process stores what it compiles on disk, where later
runs of the learners find it.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.experiments.setting import Setting


def find_uncompiled(setting: Setting, learners: dict[str, Any]) -> list[str]:
    """Return the names of the `learners` whose compiled code for this simulated `setting` is not on disk yet.

    The list is empty if there are fewer than two, as there is nothing to compile at the same time.
    """
    import numpy as np

    from heedful.core.fold import coerce, generators, must_interpret
    from heedful.jit.cache import is_cached

    world, new = coerce(setting.scenes[0].world), []
    draws = generators(0)
    for name, learner in learners.items():
        if must_interpret(learner) or must_interpret(world):
            continue
        coerced = coerce(learner)
        try:
            state, truth = coerced.init(draws[2]), world.init(draws[0])
            if not is_cached(coerced, world, state, truth, np.empty(1), 0, *draws):
                new.append(name)
        except Exception:  # whatever is wrong with it is told where it is run
            continue
    return new if len(new) > 1 else []


def compile_apart(setting: Setting, names: Sequence[str], jobs: int) -> None:
    """Compile the learners called `names` for the simulated `setting`, `jobs` at a time, each in a process of its own.

    Errors are ignored here: the same error is raised when the learner is run.
    """
    context = multiprocessing.get_context("spawn")
    small = setting._replace(scenes=setting.scenes[:1])
    with ProcessPoolExecutor(min(jobs, len(names)), mp_context=context, initializer=_ignore_interrupts) as pool:
        try:
            wait([pool.submit(_compile, small, name) for name in names])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker process; the parent process handles it and ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _compile(setting: Setting, name: str) -> None:
    """Compile the learner `name` for `setting`, and store its code on disk; called in a process of its own."""
    from heedful.core.fold import trace

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace(setting.learner(name), setting.scenes[0].world, 0, 0)
