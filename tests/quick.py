"""What a test may cost: `make test` runs the quick ones, `make test-all` those marked slow, `make test-long` all.

A quick test starts no process and no database server, loads or compiles no loop, and takes less than .3 s of CPU. The
first four are checked: such a test fails and says what to do. Those over .3 s are printed at the end of a run, as a
busy machine counts more seconds than a quiet one. A test that looks at a database or a browser is slow by itself."""

from __future__ import annotations

import multiprocessing.process
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

LIMIT = 0.3
SLOW_FOLDERS = [Path(__file__).parent / name for name in ("browser", "clients")]
SLOW_FIXTURES = {"postgres", "postgres_server", "cluster"}
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}


class Rule:
    """What the test that runs has done that a quick one must not do."""

    holds = False  # a quick test runs
    broken: list[str] = []  # noqa: RUF012  one for the process

    @classmethod
    def refuse(cls, what: str) -> None:
        """Fail the test that runs, if it is a quick one; in whatever thread this is, and whoever catches it."""
        if cls.holds:
            cls.broken.append(what)
            pytest.fail(f"a quick test {what}: mark it @pytest.mark.slow, or do without")


def is_quick(item: pytest.Item) -> bool:
    """Whether it is a test of `make test`."""
    return item.get_closest_marker("slow") is None and item.get_closest_marker("long") is None


def pytest_configure() -> None:
    """Watch what starts processes and what compiles."""
    from heedful.jit import cache

    sys.addaudithook(lambda event, _: Rule.refuse("starts a process") if event in STARTS else None)
    start, loop, compile_kernel = multiprocessing.process.BaseProcess.start, cache._loop, cache.compile_kernel

    def watched_start(process: Any) -> None:
        Rule.refuse("starts a process")
        start(process)

    def watched_loop(*args: Any) -> Any:
        Rule.refuse("compiles a loop")
        return loop(*args)

    def watched_kernel(f: Any) -> Any:
        Rule.refuse("compiles a kernel")
        return compile_kernel(f)

    multiprocessing.process.BaseProcess.start = watched_start  # type: ignore[method-assign]
    cache._loop, cache.compile_kernel = watched_loop, watched_kernel


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by where it lives or what it uses."""
    for item in items:
        store = getattr(item, "callspec", None) and item.callspec.params.get("store")  # type: ignore[attr-defined]
        uses = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if store == "postgres" or uses or any(folder in item.path.parents for folder in SLOW_FOLDERS):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """From here to the end of its call the rule holds."""
    Rule.broken.clear()
    Rule.holds = is_quick(item)
    item.stash[BEGAN] = time.process_time()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A quick test that did what it must not do has failed, though somebody caught the error."""
    try:
        result = yield
    finally:
        Rule.holds = False
    if Rule.broken:
        pytest.fail(f"a quick test {Rule.broken[0]}: mark it @pytest.mark.slow, or do without")
    seconds = time.process_time() - item.stash[BEGAN]
    if is_quick(item) and seconds > LIMIT:
        item.user_properties.append(("seconds", seconds))
    return result


BEGAN = pytest.StashKey[float]()


# ---------------------------------------------------------------------------- of a whole run


class Files:
    """Which worker ran the cases of which file: one, or its fixtures are there twice, in a race."""

    def __init__(self) -> None:
        self.workers: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node: Any = getattr(report, "node", None)
        if node is not None:
            self.workers[report.nodeid.partition("::")[0]].add(node.gateway.id)
