"""100 examples a property, or what its own budget says; the figures that tests tell; and where loops are stored."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import postgres as postgresql
from budget import FACTOR
from heedful.core import ids
from heedful.storage import Address, Place
from quick import QuickRule, Run
from unprivileged import unprivileged

if FACTOR == 1:  # before numpy starts them: the threads of two workers wait for each other, three times as long
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**32:  # a commit waits for the disk otherwise
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# As heedful starts a cluster of Ray, which reads it once in a process, when it is imported: the nodes of a cluster that
# was started otherwise would take the actors of this process for gone.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)}

settings.register_profile(
    "tests",
    deadline=None,
    print_blob=True,
    derandomize=FACTOR == 1,  # the same examples in each run; `make test-long` draws new ones
    max_examples=100 * FACTOR,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hold quick tests to what they may cost."""
    config.pluginmanager.register(QuickRule())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Run())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests measured, whatever came of them: `record_property("told", "...")`."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, told in report.user_properties:
                    if name == "told":
                        terminalreporter.write_line(f"measured: {told}")


# ---------------------------------------------------------------------------- where tests write

FOLDERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder, whose path no other test of this process had; it stays if the test fails.

    It is counted here: pytest lists all folders of a run for each that it makes."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(FOLDERS)}"
    path.mkdir(0o700)
    failed = request.session.testsfailed
    yield path
    if request.session.testsfailed == failed:
        shutil.rmtree(path, ignore_errors=True)


# ---------------------------------------------------------------------------- what is drawn at random


class SameIds:
    """Ids of decisions and events that are the same in each run: what a decision draws at random is keyed by its id."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def begin(self, name: str) -> None:
        self._name, self._counter = name, itertools.count()

    def milliseconds(self) -> int:
        return 1_767_225_600_000 + next(self._counter)  # from the beginning of 2026 on

    def random_bytes(self, n: int) -> bytes:
        of_child = "" if os.getpid() == self._process else os.getpid()  # forked, it draws other ids than its parent
        key = f"{self._name} {of_child} {next(self._counter)}"
        return hashlib.blake2b(key.encode(), digest_size=n).digest()


SAME_IDS = SameIds()
if FACTOR == 1:  # `make test-long` draws new ones
    ids._milliseconds, ids._random_bytes = SAME_IDS.milliseconds, SAME_IDS.random_bytes


@pytest.fixture(autouse=True, scope="module")
def same_ids_of_a_file(request: pytest.FixtureRequest) -> None:
    SAME_IDS.begin(request.node.nodeid)


@pytest.fixture(autouse=True)
def same_ids(request: pytest.FixtureRequest, same_ids_of_a_file: None) -> None:
    SAME_IDS.begin(request.node.nodeid)


# ---------------------------------------------------------------------------- where loops are stored

STORES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, for the tests of this process."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    try:
        with postgresql.server(run) as url:
            yield url
    except FileNotFoundError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def postgres(postgres_server: str) -> Iterator[str]:
    """The URL of a database for the tests of one file: a key that one of them makes shuts out no other file's."""
    with postgresql.database(postgres_server) as made:
        yield made


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    """Each database that a loop can be in."""
    name: str = request.param
    return name


@pytest.fixture
def home(store: str, request: pytest.FixtureRequest) -> Place:
    """A place for new loops, empty: a folder, or part of a PostgreSQL database. `home / "loop"` is that of a loop."""
    if store == "postgres":
        return Address(request.getfixturevalue("postgres"), secrets.token_hex(6))
    folder: Path = request.getfixturevalue("tmp_path")
    return folder


@pytest.fixture
def vault(home: Place) -> Place:
    """A place for new loops, as `home`, where no key, session or link was ever made."""
    if isinstance(home, Address):
        import psycopg

        with psycopg.connect(home.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS heedful CASCADE")
        return Address(home.url)
    return home


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder of one's own, as somebody whom permissions bind."""
    with unprivileged() as folder:
        yield folder
