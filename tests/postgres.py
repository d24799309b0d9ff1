"""The PostgreSQL server of the tests: which one is there, how one comes here, and one that runs while tests do.

`python tests/postgres.py` sees to it that there is one and says which; `make test-all` runs that first. As root where
apt-get has the package (Debian) that is Debian's `postgresql`. The tests start a server of their own from it, under an
unprivileged user, in a temporary folder, on a free port. HEEDFUL_TEST_DATABASE=postgresql://... names one that answers,
in which databases may be created.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

WANTED = (
    "expected PostgreSQL's programs (initdb, pg_ctl) for the tests of loops in a database, and there are none. Install "
    "Debian's package as root (apt-get install postgresql), put those that are here into PATH, or name a server: "
    "HEEDFUL_TEST_DATABASE=postgresql://USER@HOST/postgres make test-all"
)


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest ones that are here; None if there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    at = shutil.which("initdb")
    found += [Path(at).resolve().parent] if at else []
    return next((path for path in found if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


def install() -> bool:
    """Install Debian's package, saying so; False where that cannot be done."""
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")):
        return False
    told = "no PostgreSQL, or no PgBouncer, here; installing Debian's packages (apt-get)"
    print(f"heedful: {told}, for the tests of loops in a database")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    packages = ["postgresql", "pgbouncer"]  # the second is the pooler of tests/server/test_takeover.py
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        if subprocess.run(["apt-get", *command], env=quiet).returncode:
            return False
    return is_there()


def is_there() -> bool:
    """Whether there are PostgreSQL and PgBouncer."""
    return programs() is not None and pooler() is not None


def pooler() -> str | None:
    """The path of PgBouncer; None if there is none."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


# ---------------------------------------------------------------------------- a server while tests run


def as_user() -> list[str]:
    """What stands before a command so that an unprivileged user runs it: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", "--reuid", name, "--regid", str(pwd.getpwnam(name).pw_gid), "--clear-groups", "--"]
    raise RuntimeError("expected a user postgres or nobody to run PostgreSQL as, got none")


def _start(folder: Path) -> str:
    """Start a server in the folder and return the URL of its database postgres."""
    from processes import free_port

    at, user, port = programs(), as_user(), free_port()
    assert at is not None
    if user:
        owner = pwd.getpwnam(user[2])
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    folder.chmod(0o700)

    def run(*command: str | Path) -> None:
        told = subprocess.run([*user, *command], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert told.returncode == 0, f"{command}: {told.stdout}{told.stderr}"

    data = folder / "data"
    run(
        at / "initdb",
        "--pgdata",
        data,
        "--username",
        "heedful",
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=on"
    options += " -c max_connections=200 -c shared_buffers=64MB -c checkpoint_timeout=1h"
    with (folder / "out").open("w") as out:  # a pipe would stay open as long as the server
        command = [*user, at / "pg_ctl", "start", "--wait", "--pgdata", data, "--log", folder / "log", "-o", options]
        subprocess.run(command, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return f"postgresql://heedful@127.0.0.1:{port}/postgres"


def _stop(folder: Path) -> None:
    at = programs()
    assert at is not None
    command = [*as_user(), at / "pg_ctl", "stop", "--mode", "immediate", "--pgdata", folder / "data"]
    subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True)


def _folder(run: str) -> Path:
    memory = Path("/dev/shm")  # a commit waits for the disk otherwise
    return (memory if memory.is_dir() else Path(tempfile.gettempdir())) / f"heedful-postgres-{run}"


def crash(run: str) -> None:
    """Kill the server of the test run `run`, and start it again."""
    at = programs()
    assert at is not None
    command = [*as_user(), at / "pg_ctl", "restart", "--mode", "immediate", "--pgdata", _folder(run) / "data"]
    subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


@contextmanager
def server(run: str) -> Iterator[str]:
    """The URL of a server that all processes of the test run `run` share: the first starts it, the last ends it.

    Raise FileNotFoundError where there is no PostgreSQL."""
    if named := os.environ.get("HEEDFUL_TEST_DATABASE"):
        yield named
        return
    if programs() is None:
        raise FileNotFoundError(WANTED)
    folder = _folder(run)
    folder.mkdir(exist_ok=True)
    told, lock = Path(f"{folder}.users"), Path(f"{folder}.lock")

    @contextmanager
    def locked() -> Iterator[None]:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    with locked():
        if not told.exists():
            told.write_text(_start(folder) + "\n")
        with told.open("a") as file:
            file.write(f"{os.getpid()}\n")
        url = told.read_text().split()[0]
    try:
        yield url
    finally:
        with locked():
            first, *users = told.read_text().split()
            users.remove(str(os.getpid()))
            told.write_text("\n".join([first, *users, ""]))
            if not users:
                _stop(folder)
                shutil.rmtree(folder, ignore_errors=True)
                told.unlink()
                lock.unlink()


@contextmanager
def database(url: str) -> Iterator[str]:
    """The URL of a new database on the server at `url`, dropped afterwards."""
    import psycopg

    name = f"heedful_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    parts = urlsplit(url)
    yield urlunsplit(parts._replace(path=f"/{name}"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


def main() -> None:
    """See to it that there is a PostgreSQL."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what is installed talks in between
    if named := os.environ.get("HEEDFUL_TEST_DATABASE"):
        print(f"heedful: loops in a database are tried on the server at {urlsplit(named).hostname}")
    elif is_there() or install() or programs() is not None:
        print(f"heedful: loops in a database are tried with {programs()}")
    elif os.environ.get("CI"):
        sys.exit(f"heedful: {WANTED}")
    else:
        print(f"heedful: {WANTED}. Their tests are left out")


if __name__ == "__main__":
    main()
