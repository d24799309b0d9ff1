"""What a test may cost: `make test` runs the quick ones, `make test-all` those marked slow, `make test-long` all.

A quick test starts no process, opens no database server, loads or compiles no loop, and takes less than .3 s of CPU.
The first three are checked: such a test fails and says what to do. Those over .3 s are printed at the end of a run,
as a busy machine needs more seconds than a quiet one. A test that wants a database or a browser is slow by itself.
"""

from __future__ import annotations

import multiprocessing.process
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from numba.core import event
from numba.core.event import Listener

from heedful.jit import cache

LIMIT = 0.3
FOLDERS = [Path(__file__).parent / name for name in ("browser", "clients")]
FIXTURES = {"postgres", "postgres_server", "cluster"}
PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
FONTS = {"fc-list", "system_profiler"}
"""What matplotlib asks, once on a machine, for the fonts that are there; no test can help it."""


def is_quick(item: pytest.Item) -> bool:
    """Return True if it is a test of `make test`."""
    return item.get_closest_marker("slow") is None and item.get_closest_marker("long") is None


class QuickRule:
    """The rule for quick tests: whether it holds now, and what broke it."""

    def __init__(self) -> None:
        self.holds = False
        self.broken = ""
        self.began = 0.0

    def refuse(self, what: str) -> None:
        """Fail the quick test that runs, if one does, in whatever thread this is and whoever catches the error."""
        if self.holds:
            self.broken = f"a quick test {what}: mark it @pytest.mark.slow, or do without"
            pytest.fail(self.broken)

    def pytest_configure(self) -> None:
        """Watch everything that starts a process or compiles. No function of heedful is replaced, as the keys of
        compiled loops cover them."""
        sys.addaudithook(self.heard)
        multiprocessing.process.BaseProcess.start = self.watched(multiprocessing.process.BaseProcess.start)
        cache._loops = Loops(self)
        os.sched_getaffinity = self.cores(getattr(os, "sched_getaffinity", None))
        event.register("numba:compile", Compilations(self))

    def heard(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Refuse processes to quick tests."""
        if name in PROCESSES and (not arguments or arguments[0] not in FONTS):
            self.refuse("starts a process")

    def cores(self, found: Callable[[int], set[int]] | None) -> Callable[[int], set[int]]:
        """Return `found`, the function that says which cores there are, which to a quick test are one: its tasks run in
        this process, also where a busy machine makes others seem worth while."""

        def call(process: int) -> set[int]:
            if self.holds:
                return {0}
            return set(range(os.cpu_count() or 1)) if found is None else found(process)

        return call

    def watched(self, start: Any) -> Any:
        """Return `start`, the method that starts a process, refused to quick tests."""

        def call(process: Any) -> None:
            self.refuse("starts a process")
            start(process)

        return call

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark as slow what is so by where it lives or what it uses."""
        for item in items:
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            uses = FIXTURES.intersection(getattr(item, "fixturenames", ()))
            if uses or parameters.get("store") == "postgres" or any(folder in item.path.parents for folder in FOLDERS):
                item.add_marker("slow")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if "heedful.estimators.folding" in sys.modules:  # who waited for what before does not make this one compile
            sys.modules["heedful.estimators.folding"]._waited.clear()
        self.holds, self.broken, self.began = is_quick(item), "", time.process_time()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            result = yield
        finally:
            self.holds = False
        if self.broken:  # somebody caught the error
            pytest.fail(self.broken)
        seconds = time.process_time() - self.began
        if is_quick(item) and seconds > LIMIT:
            item.user_properties.append(("seconds", seconds))
        return result


class Loops(dict[Any, Any]):
    """The compiled loops of this process, which quick tests do not look at."""

    __module__ = "builtins"  # keys of loops cover the modules of what the module of the cache holds

    def __init__(self, rule: QuickRule) -> None:
        self.rule = rule

    def __contains__(self, key: object) -> bool:
        self.rule.refuse("loads or compiles a loop")
        return super().__contains__(key)


class Compilations(Listener):
    """What numba compiles, also what is not kept."""

    def __init__(self, rule: QuickRule) -> None:
        self.rule = rule

    def on_start(self, event: object) -> None:
        self.rule.refuse("compiles")

    def on_end(self, event: object) -> None:
        """Nothing is of interest any more."""


class Run:
    """What is said of a whole run: quick tests that are not, and files whose cases ran in two workers."""

    def __init__(self) -> None:
        self.workers: defaultdict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}

    @property
    def shared(self) -> list[str]:
        """The files that several workers ran: what they set up was there several times, in a race."""
        return sorted(file for file, workers in self.workers.items() if len(workers) > 1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node: Any = getattr(report, "node", None)
        if node is not None:
            self.workers[report.nodeid.partition("::")[0]].add(node.gateway.id)
        properties = dict(report.user_properties)
        if "seconds" in properties:
            self.seconds[report.nodeid] = float(str(properties["seconds"]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.shared:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for file in self.shared:
            terminalreporter.write_line(f"FAILED {file}: several workers ran its cases: --dist loadfile", red=True)
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"over {LIMIT} s, so perhaps one for @pytest.mark.slow: {seconds:.2f} s {name}")
