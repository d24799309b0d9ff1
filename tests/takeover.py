"""Two servers on one PostgreSQL, clients that ask both, and what can happen to the server that owns the loop."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

import postgres
from loops import small_loop
from processes import HEEDFUL, Asker, Gone, free_port

NGINX = Path(__file__).resolve().parents[1] / "deploy" / "nginx.conf"
LEASE = 2.0
CLIENTS, REPEATED = 16, 0.2
PATIENCE = 1.0
"""Seconds that a client waits for an answer before it asks the other server."""
AMONG = 25
"""Events of feedback that are learned around each fault, however long that takes."""
LONGEST = 120.0
"""Seconds after which a test fails where something does not come, also on a machine that is busy."""


class Proxy:
    """A connection to a database that can be cut: everything that comes is sent on."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.through = True
        self.still = False
        """whether messages are held back, as by a database that stands still behind a pooler"""
        self.lost = ""
        """which messages get lost from now on, until their connection is cut: "answers", "requests\""""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                if not self.through:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                if self._listener.fileno() < 0:
                    return
                continue
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError, ValueError), selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not data:
                        raise OSError
                    if self.lost == ("requests" if key.fileobj is near else "answers"):
                        time.sleep(0.2)  # what it said is done meanwhile
                        self.lost = ""
                        raise OSError
                    while self.still:
                        time.sleep(0.05)
                    key.data.sendall(data)
        self._close(near, far)

    def _close(self, *both: socket.socket) -> None:
        for each in both:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """Cut every connection, wherever its messages are."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._close(*pair)

    def close(self) -> None:
        """End."""
        self._listener.close()
        self.cut()


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """The URL of a PgBouncer in transaction mode in front of a database. FileNotFoundError: there is none."""
    program = postgres.pooler()
    if program is None:
        raise FileNotFoundError(
            "expected pgbouncer for the tests behind a pooler (apt-get install pgbouncer), got none"
        )
    parts, port = urlsplit(url), free_port()
    folder = Path(tempfile.mkdtemp(prefix="heedful-pooler-"))
    folder.chmod(0o755)
    settings = {
        "listen_addr": "127.0.0.1", "listen_port": port, "unix_socket_dir": "", "auth_type": "any",
        "pool_mode": "transaction", "max_client_conn": 500, "default_pool_size": 8, "server_login_retry": 1,
        "logfile": "",
    }  # fmt: skip
    lines = ["[databases]", f"* = host={parts.hostname} port={parts.port} user={parts.username}", "[pgbouncer]"]
    (folder / "ini").write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in settings.items()), ""]))
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen([*postgres.as_user(), program, folder / "ini"], stdout=log, stderr=log, cwd="/")
    try:
        pooled = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
        end = time.monotonic() + 20
        while True:
            assert child.poll() is None, (folder / "log").read_text()
            with suppress(psycopg.OperationalError), psycopg.connect(pooled, prepare_threshold=None):
                break
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield pooled
    finally:
        child.kill()
        child.wait()
        shutil.rmtree(folder)


class Node:
    """`heedful serve` of a database, through a proxy of its own, in a process group of its own."""

    def __init__(self, url: str, folder: Path, lease: float = LEASE, *options: str) -> None:
        parts = urlsplit(url)
        assert parts.port is not None
        self.proxy, self.port, self._lease = Proxy(parts.port), free_port(), lease
        self._url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.proxy.port}").geturl()
        self.told, self._options = folder / f"server-{self.port}.log", options
        self.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process."""
        with self.told.open("ab") as log:
            command = [HEEDFUL, "--database", self._url, "serve", "--port", str(self.port), "--lease", f"{self._lease}"]
            command += self._options
            self.child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait(self, seconds: float = 90.0) -> None:
        """Until it answers."""
        end = time.monotonic() + seconds
        while True:
            assert self.child.poll() is None, self.told.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                if connection.recv(12) == b"HTTP/1.1 200":
                    return
            assert time.monotonic() < end, self.told.read_text()
            time.sleep(0.02)

    def finish(self) -> None:
        """In order, as a restart does it."""
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM), self.told.read_text()
        assert "Traceback" not in (told := self.told.read_text()), told[-4000:]

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that belongs to it."""
        os.killpg(self.child.pid, number)

    def kill(self) -> None:
        """At once."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.child.wait(30)

    def close(self) -> None:
        """End all of it."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGCONT)
        self.kill()
        self.proxy.close()


@contextmanager
def front(ports: list[int], folder: Path) -> Iterator[int]:
    """The port of nginx in front of the two servers at `ports`, as deploy/nginx.conf has it.

    Raise FileNotFoundError where there is no nginx, and AssertionError if it refuses its configuration."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None or os.geteuid() != 0:  # its folders, compiled in, are root's
        raise FileNotFoundError("expected nginx, and to be root, for the test of a rolling restart behind it")
    text, port = NGINX.read_text(), free_port()
    for name, each in zip(("first:8710", "second:8710", "listen 8080"), (*ports, port), strict=True):
        assert text.count(name) == 1, name
        text = text.replace(name, f"listen 127.0.0.1:{each}" if name.startswith("listen") else f"127.0.0.1:{each}")
    text = text.replace(" resolve ", " ")  # addresses are no names, and an nginx before 1.27.3 does not know the word
    (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n{text}")
    child = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while True:
            assert child.poll() is None, (folder / "nginx.log").read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            assert time.monotonic() < end, (folder / "nginx.log").read_text()
            time.sleep(0.05)
        yield port
    finally:
        child.terminate()
        child.wait(30)


class Acknowledged(NamedTuple):
    """An event that a client was told was kept."""

    kind: str
    id: str
    seq: int
    sent: float
    """when it was sent for the first time, by the clock that does not jump"""
    at: float
    """when that was acknowledged"""


class Crowd:
    """Clients that decide and teach all the time, in a thread; a fifth of what they send they have sent before."""

    def __init__(self, ports: list[int], loop: str, clients: int = CLIENTS) -> None:
        self.ports, self._loop, self._clients = ports, loop, clients
        self.told: list[Acknowledged] = []
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._sent: list[dict[str, Any]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)
        self._thread.start()

    async def _all(self) -> None:
        await asyncio.gather(*(self._one(i) for i in range(self._clients)))

    async def _one(self, i: int) -> None:
        rng, n = random.Random(i), 0
        askers = [Asker(port) for port in self.ports]
        at = i % len(askers)

        async def ask(what: str, value: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal at
            while not self._ended.is_set():
                try:
                    path = f"/v1/loops/{self._loop}/{what}"
                    reply = await asyncio.wait_for(askers[at].ask("POST", path, value), PATIENCE)
                except (Gone, TimeoutError):
                    self.statuses["no answer"] += 1
                    askers[at].close()
                else:
                    if reply.status == 200:
                        found: dict[str, Any] = reply.value
                        return found
                    self.statuses[str(reply.status)] += 1
                    if reply.status not in (502, 503, 504):  # nginx's, where neither of both answers, or in time
                        self.wrong.append(f"{what}: {reply.status} {reply.body!r:.300}")
                        return None
                at = (at + 1) % len(askers)
                await asyncio.sleep(rng.uniform(0.02, 0.1))
            return None

        while not self._ended.is_set():
            n += 1
            if self._sent and rng.random() < REPEATED:
                event = rng.choice(self._sent[-200:])
            else:
                sent = time.monotonic()
                decision = await ask("decisions", {"id": f"d-{i}-{n}", "person": f"p{rng.randrange(4)}"})
                if decision is None:
                    continue
                self.told.append(Acknowledged("decision", decision["id"], decision["seq"], sent, time.monotonic()))
                event = {"decision": decision["id"], "id": f"e-{i}-{n}", "clicks": [decision["shown"][3]]}
                self._sent.append(event)
            sent = time.monotonic()
            answer = await ask("feedback", event)
            if answer is not None:
                self.statuses[answer["status"]] += 1
                if answer["status"] == "rejected":
                    self.wrong.append(f"{answer}")
                else:
                    self.told.append(Acknowledged("feedback", event["id"], answer["seq"], sent, time.monotonic()))
            await asyncio.sleep(rng.uniform(0.0, 0.1))
        for asker in askers:
            asker.close()

    def end(self) -> None:
        """Stop asking."""
        self._ended.set()
        self._thread.join(60)


class Trial:
    """Two servers, their clients, and the faults."""

    def __init__(self, url: str, direct: str, folder: Path, loop: str, lease: float = LEASE) -> None:
        """The servers reach the database by `url`; `direct` is that of the database itself."""
        self.direct, self.loop = direct, loop
        self.nodes = [Node(url, folder, lease) for _ in range(2)]
        for node in self.nodes:
            node.wait()
        self.ask([node.port for node in self.nodes])

    def ask(self, ports: list[int]) -> None:
        """Let the clients ask at these ports from now on."""
        if hasattr(self, "crowd"):
            self.crowd.end()
        self.crowd = Crowd(ports, self.loop)

    def owner(self) -> Node:
        """The server that owns the loop."""
        with psycopg.connect(self.direct, autocommit=True) as connection:
            query = "SELECT address FROM heedful.lease JOIN heedful.loop ON number = loop WHERE name = %s"
            end = time.monotonic() + LONGEST
            while time.monotonic() < end:
                rows = connection.execute(query, [self.loop]).fetchall()
                for node in self.nodes:
                    if rows and rows[0][0].endswith(f":{node.port}"):
                        return node
                time.sleep(0.05)
        raise AssertionError([node.told.read_text() for node in self.nodes])

    def happen(self, fault: str, rng: random.Random) -> float:
        """Let something happen to the owner, and return the seconds until a decision was acknowledged that was first
        sent later. When it returns, all is well again, and `AMONG` more events were learned than when it was called."""
        node, applied = self.owner(), self.crowd.statuses["applied"]
        time.sleep(rng.uniform(0.0, 0.3))
        began = time.monotonic()
        if fault == "kill":
            node.kill()
        elif fault == "stop":
            node.signal(signal.SIGSTOP)
        elif fault == "terminate":
            with psycopg.connect(self.direct, autocommit=True) as connection:
                query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                connection.execute(f"{query} AND pid <> pg_backend_pid()")
        elif fault == "cut":
            for _ in range(5):
                node.proxy.cut()
                time.sleep(0.02)
        elif fault == "away":
            node.proxy.through = False
            node.proxy.cut()
        back = self._back(began, fault)
        if fault == "kill":
            node.start()
            node.wait()
        elif fault == "stop":
            time.sleep(max(LEASE + 0.5 - (time.monotonic() - began), 0.0))
            node.signal(signal.SIGCONT)
        node.proxy.through = True
        self._until(lambda: self.crowd.statuses["applied"] >= applied + AMONG, fault)
        return back

    def _back(self, began: float, fault: str) -> float:
        def later() -> list[float]:
            """A decision that was sent before may have been made before."""
            return [each.at for each in self.crowd.told[-200:] if each.kind == "decision" and each.sent > began]

        self._until(lambda: bool(later()), fault)
        return min(later()) - began

    def _until(self, found: Callable[[], bool], fault: str) -> None:
        end = time.monotonic() + LONGEST
        while not found():
            if time.monotonic() > end:
                told = [node.told.read_text()[-2000:] for node in self.nodes]
                raise AssertionError((fault, self.crowd.statuses, told))
            time.sleep(0.02)

    def end(self) -> None:
        """End all of it."""
        self.crowd.end()
        for node in self.nodes:
            node.close()


def new_name() -> str:
    """The name of a loop that there is not yet."""
    return f"cars-{secrets.token_hex(4)}"


def copies(url: str, n: int) -> list[str]:
    """The names of `n` new loops, all the same one."""
    first = new_name()
    small_loop(f"{url}#{first}", control=0.0).close()
    with closing(psycopg.connect(url)) as db, db:
        columns = "seq, kind, id, time, subject, target, version, payload, arrays, checked"
        db.execute(
            "INSERT INTO heedful.loop (name, secret) SELECT name || '-' || i, secret FROM heedful.loop, "
            "generate_series(2, %s) AS i WHERE name = %s",
            [n, first],
        )
        db.execute(
            f"INSERT INTO heedful.event (loop, {columns}) SELECT copy.number, {columns} FROM heedful.event, "  # type: ignore[arg-type]
            "heedful.loop AS of, heedful.loop AS copy WHERE event.loop = of.number AND of.name = %s "
            "AND copy.name <> of.name AND starts_with(copy.name, of.name)",
            [first],
        )
    return [first, *(f"{first}-{i}" for i in range(2, n + 1))]


def owners(db: psycopg.Connection[Any]) -> dict[str, str]:
    """Which server owns each loop now."""
    query = "SELECT name, address FROM heedful.lease JOIN heedful.loop ON number = loop"
    return dict(db.execute(f"{query} WHERE expires > clock_timestamp()").fetchall())  # type: ignore[arg-type]
