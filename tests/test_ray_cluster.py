"""A Ray cluster that heedful starts itself; in a file of its own, as no other may be there."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from alone import alone_with_ray


def listening() -> set[str]:
    """The addresses, without ports, at which this process and all that it started listen, as Linux says them."""
    parents = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, _, rest = each.read_text().partition(" (")
            parents[int(pid)] = int(rest.rpartition(") ")[2].split()[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    sockets = set[str]()
    for link in (link for pid in ours for link in Path(f"/proc/{pid}/fd").glob("*")):
        with suppress(OSError):
            sockets.add(os.readlink(link))
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux says in /proc who listens where")
def test_a_cluster_that_is_started_here_is_for_nobody_else(tmp_path: Path) -> None:
    """Whoever connects to Ray runs code: others cannot from another machine, nor from this one without the token. Its
    workers are as nice as whoever started it."""
    code = (
        "import os; from heedful.core import engine; from test_ray_cluster import listening\n"
        "ray = engine.connect_ray(1)\n"
        "nicer = ray.get(ray.remote(lambda: os.nice(0)).remote()) - os.nice(0)\n"
        "asked = os.environ['RAY_AUTH_MODE'], len(os.environ['RAY_AUTH_TOKEN'])\n"
        "print(sorted(listening()), *asked, nicer, flush=True); input()"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with (
        alone_with_ray(),
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment | {"RAY_TMPDIR": os.environ["RAY_TMPDIR"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as started,
    ):
        assert started.stdin is not None
        assert started.stdout is not None
        told = started.stdout.readline()
        started.stdin.close()
    assert told == "['0000000000000000FFFF00000100007F', '0100007F'] token 64 0\n"
    assert not (tmp_path / ".ray" / "auth_token").exists()
