"""Two servers on one PostgreSQL behind nginx, restarted one after the other: nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from test_takeover import check

from loops import small_loop
from takeover import Trial, front, new_name

LEASE = 120.0
"""Seconds: whoever takes over sooner did not wait until it had run out."""


def test_a_rolling_restart_behind_nginx(
    postgres: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """With deploy/nginx.conf: a client that knows one address alone is served by whoever has the loop."""
    name = new_name()
    small_loop(f"{postgres}#{name}", control=0.0, shrink=5.0).close()
    trial = Trial(postgres, postgres, tmp_path, name, LEASE)

    def wait_for_more(n: int) -> None:
        before, end = len(trial.crowd.told), time.monotonic() + LEASE / 3
        while len(trial.crowd.told) < before + n:
            assert time.monotonic() < end, trial.crowd.statuses
            time.sleep(0.05)

    with ExitStack() as stack:
        stack.callback(trial.end)
        try:
            trial.ask([stack.enter_context(front([node.port for node in trial.nodes], tmp_path))])
        except FileNotFoundError as error:
            pytest.skip(str(error))
        for _ in trial.nodes:
            wait_for_more(20)
            node = trial.owner()
            node.finish()
            wait_for_more(20)
            assert trial.owner() is not node
            node.start()
            node.wait()
        assert not trial.crowd.wrong, trial.crowd.wrong[:3]
        trial.crowd.end()
        for node in trial.nodes:
            node.finish()
    record_property("told", f"{dict(trial.crowd.statuses)}")
    assert check(postgres, name, trial.crowd) > 80
    with closing(psycopg.connect(postgres)) as connection:
        free = "SELECT expires <= clock_timestamp() FROM heedful.lease JOIN heedful.loop ON number = loop"
        assert connection.execute(f"{free} WHERE name = %s", [name]).fetchall() == [(True,)], (
            "the lease was not given back"
        )
