"""A server for the tests of a module, and those who ask it; each part may be another in a module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asking import Caller
from browsing import Visitor

from heedful.server import server_log
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.main import served
from kinds import FIFTH


@pytest.fixture(autouse=True)
def _nothing_was_logged() -> None:
    """A log of the server in which no line was yet, of which equal ones are counted."""
    server_log._logged.clear()


@pytest.fixture(scope="session")
def options() -> Options:
    """A server that knows the fifth kind, too."""
    return Options(own=(FIFTH,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the server."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path, options: Options) -> Iterator[str]:
    """A server that everybody nearby may ask."""
    with served(folder, options) as found:
        yield found


@pytest.fixture(params=["json", "msgpack"])
def ask(request: pytest.FixtureRequest, url: str) -> Iterator[Caller]:
    """Somebody who asks it, in either form."""
    with closing(Caller(url, form=request.param)) as caller:
        yield caller


@pytest.fixture
def plain(url: str) -> Iterator[Caller]:
    """Somebody who asks it in JSON."""
    with closing(Caller(url)) as caller:
        yield caller


@pytest.fixture
def visitor(tmp_path: Path, options: Options) -> Iterator[Visitor]:
    """Somebody who looks at the pages of a server of this test's own."""
    with served(tmp_path, options) as url, closing(Visitor(url)) as found:
        yield found


@pytest.fixture
def keys(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Keys]:
    """The keys of this test's own folder, as another process has them; where a test asks for `vault`, of each store."""
    with closing(Keys(request.getfixturevalue("vault") if "vault" in request.fixturenames else tmp_path)) as held:
        yield held
