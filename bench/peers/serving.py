"""HTTP: decisions a second of `heedful serve`, next to a route of the same server that does nothing.

Both servers run all the time, and wrk (Debian's package wrk) loads them in turns. Loops, requests and the bare route
are those of bench/server.py: posterior, 20 features, 100 candidates by id, 10 shown, each decision in the log before
it is answered.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

TITLE = "HTTP"
STREAM = "64 connections, loopback, one process; 100 candidates by id, 10 shown"
PORT = 8731


def measure(turns: int, seconds: int) -> dict[str, list[dict[str, Any]]]:
    """What wrk says of each route, turn by turn."""
    import server

    from heedful.server.keys import Keys

    folder = Path(tempfile.mkdtemp(prefix="heedful-peers-"))
    try:
        decided = server.new_loop(folder, "posterior", 20)
        keys = Keys(folder)
        _, key = keys.create("bench")
        keys.close()
        serve = [str(Path(sys.executable).with_name("heedful")), "serve", str(folder), "--port", str(PORT)]
        names = json.dumps({"candidates": [f"item-{i}" for i in range(server.CANDIDATES)], "show": server.SHOW})
        with ExitStack() as stack:
            bare = stack.enter_context(server.running([sys.executable, "-c", server.BARE, str(PORT + 1)], PORT + 1))
            full = stack.enter_context(server.running(serve, PORT))
            loads = {
                "a route that does nothing": (bare, PORT + 1, server.bare(names)),
                "heedful, decisions": (full, PORT, server.decisions(key)),
                "heedful, feedback": (full, PORT, server.feedback(key, decided)),
            }
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in loads}
            for _ in range(turns):
                for name, (pid, port, script) in loads.items():
                    found[name].append(server.wrk(pid, port, script, seconds, folder))
        return found
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    print("\n" + json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
