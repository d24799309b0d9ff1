"""What a comparison is: its entrants, and one run of one of them in a process of its own."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple


class Job(NamedTuple):
    """One run: `setting` is one of the entrant's, `data` a folder of a data set or "" for a synthetic stream."""

    entrant: str
    seed: int
    rounds: int
    setting: dict[str, Any]
    data: str = ""


class Entrant(NamedTuple):
    """A competitor: the distribution that it needs, how it is used, and the settings from which the best is taken."""

    package: str
    used: str
    make: Callable[..., Any]
    settings: tuple[dict[str, Any], ...] = ({},)


def versions(packages: set[str]) -> dict[str, str]:
    """The version of each package, "" of one that is not installed."""
    found = {}
    for package in sorted(packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


class Memory:
    """MB that an entrant takes: its packages, its model and what it keeps, above what there was before it came."""

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self.before = _status("VmRSS") or _usage()

    def grown(self) -> float:
        """MB at the peak since then. (`ru_maxrss`, where there is no /proc, also counts what is freed by then.)"""
        return (_status("VmHWM") or _usage()) - self.before


def _status(field: str) -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith(field + ":")), 0.0)


def _usage() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


class Clock:
    """Processor seconds of this process, all threads, inside `with clock.on():`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count what happens inside."""
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


def answer(measure: Callable[[Job], dict[str, float]]) -> None:
    """Do the job on the command line, and print its figures as the last line."""
    print("\n" + json.dumps(measure(Job(**json.loads(sys.argv[1])))))
