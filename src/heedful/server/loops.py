"""The loops of a folder, opened when a request needs them and closed when they are idle.

`DIR/cars.heedful` belongs to the tenant main, `DIR/acme/cars.heedful` to the tenant acme. A loop that is not open costs
nothing, and starting the server opens none. The file is long because who owns a loop of a database is a matter of which
are open."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.paths import path_kind
from heedful.learners.registry import is_own
from heedful.loop import Loop
from heedful.server.analysts import Analysts
from heedful.server.loop_worker import LoopWorker
from heedful.server.peers import Peers
from heedful.server.problems import Problem, unavailable
from heedful.server.server_log import log
from heedful.server.threads import Turns
from heedful.storage import Address, Moved, Newer, Owned, Place, Unreachable
from heedful.storage.address import LOG, NAME, SUFFIX

if TYPE_CHECKING:
    from heedful.loop.log.directory import Directory
    from heedful.loop.log.table import LogTable
    from heedful.server.context import Options

MAIN = "main"
PATIENCE = 1.0
"""Seconds for which a request for the names of loops waits for the database."""
AGAIN_AFTER = 10.0
"""Seconds between two attempts to remove the bytes of a forgotten person from the files while another process reads
them."""
AT_A_TIME = 50
"""How many loops are given back to other servers at a time, four times within each lease."""
TRIM_AFTER = 10.0
"""Seconds between two times that memory of closed loops is returned to the system."""


def loop_name(name: str, value: object) -> str:
    """Return `value` if it is a valid name of a loop. Raise ValueError, beginning with `name`, if it is not."""
    if not isinstance(value, str) or not NAME.fullmatch(value) or value.endswith(SUFFIX):
        expected = "expected a name of 1 to 100 letters, digits, '.', '_' and '-', beginning with a letter or digit"
        raise ValueError(f"{name}: {expected}, got {value if not isinstance(value, str) else value[:120]!r}")
    return value


def _loop_of(key: str) -> tuple[str, str]:
    """Return (tenant, name) of the loop with this `key` in a database."""
    tenant, _, name = key.rpartition("/")
    return tenant or MAIN, name


class Loops:
    """The loops of all tenants, each opened when a request needs it, and closed after some time without use."""

    def __init__(
        self,
        folder: Place,
        pool: Executor,
        turns: Turns,
        options: Options,
    ) -> None:
        """Serve the loops of `folder`, or of a database, as `options` say; they are opened and closed in threads of
        `pool`, when it is their tenant's turn."""
        self._directory: Directory | None = None
        self.peers: Peers | None = None
        """the other servers of a database"""
        if isinstance(folder, Address):
            from heedful.loop.log.directory import Directory

            self._directory = Directory(folder)
            self.peers = Peers(options.address, options.lease)
        self._owners: dict[str, str] = {}  # by key, the address of another server that owned the loop a moment ago
        self._followed = set[str]()  # keys of loops that are open here and owned by others, and learned
        self.folder = folder
        self._pool, self._turns, self._options = pool, turns, options
        self._own = tuple(spec for spec in options.own if is_own(spec))
        self.analysts = Analysts(self._own, pool)
        """the processes in which logs of these loops are analysed"""
        self.workers: dict[tuple[str, str], LoopWorker] = {}
        """the open loops, by (tenant, name)"""
        self.owned: set[tuple[str, str]] = set()
        """(tenant, name) of the open loops of a database that this server owned when it last looked"""
        self.lost = 0
        """how many loops of a database other servers have taken from this one"""
        self.lag: dict[tuple[str, str], int] = {}
        """by (tenant, name) of a loop that another server owns: how many of its events are not known here yet"""
        self._listing: dict[str, asyncio.Future[list[str]]] = {}  # by tenant, one that was not answered in time
        self._moving: dict[tuple[str, str], asyncio.Future[None]] = {}  # being opened or closed
        self._closing = set[asyncio.Future[None]]()
        self._untrimmed = 0  # loops closed since memory was returned to the system
        self._trimmed = time.monotonic()

    # ------------------------------------------------------------------------ which there are

    def path(self, tenant: str, name: str) -> Place:
        """Return the place of the tenant's loop `name`, in a folder or a database, whether it exists or not."""
        return self._home(tenant) / f"{name}{SUFFIX}"

    def _home(self, tenant: str) -> Place:
        return self.folder if tenant == MAIN else self.folder / tenant

    def names(self, tenant: str) -> list[str]:
        """Return the names of the tenant's loops, sorted, without opening any."""
        home = self._home(tenant)
        if self._directory is not None or isinstance(home, Address):
            there = [key.rpartition("/") for key in self._directory.names()] if self._directory is not None else []
            return [name for owner, _, name in there if (owner or MAIN) == tenant and NAME.fullmatch(name)]
        try:
            folders = [entry.name for entry in home.iterdir() if entry.name.endswith(SUFFIX)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = sorted(name.removesuffix(SUFFIX) for name in folders)
        return [name for name in names if NAME.fullmatch(name) and _is_loop(home / f"{name}{SUFFIX}")]

    async def list_names(self, tenant: str) -> list[str]:
        """Return what `names` does, in another thread, as it looks at every loop's folder.

        Raise Problem (503) if that takes longer than a second, as where the database stands still, and at once until
        what this tenant asked for then is done."""
        if tenant not in self._listing or self._listing[tenant].done():
            listing = asyncio.ensure_future(self._turns.run(self._pool, tenant, "long", self.names, tenant))
            if (await asyncio.wait((listing,), timeout=PATIENCE))[0]:
                return listing.result()
            self._listing[tenant] = listing
            listing.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody waits for it
        raise unavailable(
            "the loops could not be listed within a second; the database may stand still, or be busy: ask again"
        )

    # ------------------------------------------------------------------------ opening, closing

    async def open(self, tenant: str, name: str) -> LoopWorker:
        """Return the worker of the tenant's loop `name`, opening it if necessary.

        Raise Problem "not-found" if there is no such loop, "damaged" if it cannot be opened."""
        key = tenant, name
        while True:
            if (worker := self.workers.get(key)) is not None and worker.moved:
                await self._end(key, worker.loop.projection.log.close)  # another file is in its place, or none
            elif worker is not None:
                return worker
            if (moving := self._moving.get(key)) is None:
                break
            await asyncio.shield(moving)
        if not NAME.fullmatch(name) or not _is_loop(self.path(tenant, name)):
            raise not_found(name)
        return await self._move(key, partial(self._open_loop, name, self.path(tenant, name)))

    async def create(self, tenant: str, name: str, make: Callable[[Place], Loop]) -> LoopWorker:
        """Create the tenant's loop `name` and return its worker; `make` creates a loop in the folder that it is given.

        Raise FileExistsError if there is one of that name."""
        home = self._home(tenant)
        if tenant != MAIN and isinstance(home, Path):
            home.mkdir(mode=0o700, exist_ok=True)
        key = tenant, name
        while True:
            if (moving := self._moving.get(key)) is not None:
                await asyncio.shield(moving)
            elif (worker := self.workers.get(key)) is None:
                break
            elif not worker.has_moved():
                raise FileExistsError
            else:
                await self._end(key, worker.loop.projection.log.close)
        return await self._move(key, partial(make, self.path(tenant, name)))

    async def _move(self, key: tuple[str, str], opening: Callable[[], Loop]) -> LoopWorker:
        aio = asyncio.get_running_loop()
        self._moving[key] = moved = aio.create_future()
        try:
            loop = await self._turns.run(self._pool, key[0], "opening", _ready, opening)
            store = loop.projection.log.store
            peers, place = self.peers, store.path
            if peers is not None and isinstance(place, Address):
                store.keep_owning(self._options.lease, self._options.address, partial(peers.rightful, place.key))
            worker = self.workers[key] = LoopWorker(loop, self._pool, self.analysts, self._turns, key[0])
        finally:
            del self._moving[key]
            moved.set_result(None)
        for other in self._too_many():
            if other != key:
                closing = asyncio.ensure_future(self.close(other))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        return worker

    def _open_loop(self, name: str, path: Place) -> Loop:
        try:
            return Loop.open(path, learner=self._own)
        except FileNotFoundError as error:
            if not _is_loop(path) or (isinstance(path, Address) and error.errno is not None):
                raise not_found(name) from None
            cause = LookupError(str(error))  # the file of a learner
        except (KeyError, IndexError) as error:
            raise RuntimeError(f"{path}: {type(error).__name__}: {error}") from error
        except LookupError as error:
            cause = error
        except TimeoutError:
            raise
        except Exception as error:  # whatever is wrong with it, the caller did not say it
            if isinstance(error, OSError | Newer):  # the log itself is whole
                raise
            log.error("%s: %s", path, error)
            raise Problem("damaged", "this loop cannot be opened; the server's log says why") from None
        log.error("%s: %s; start the server with --own SPEC", path, cause)
        raise Problem("damaged", "this loop's learner is code that the server was not started with")

    # ------------------------------------------------------------------------ loops in a database

    async def stay_owner(self) -> None:
        """Renew this server's ownership of loops in a database, four times within each lease.

        It also reads the logs of loops that other servers own, so that this server can take over at once."""
        following = asyncio.ensure_future(self._follow())
        aio = asyncio.get_running_loop()
        if self._directory is not None:
            try:
                for lack in await aio.run_in_executor(self._pool, self._directory.lacks, 2):
                    log.warning("%s", lack)
            except Exception as error:
                log.warning("what the database allows is not known: %s", error)
        try:
            while True:
                try:
                    await aio.run_in_executor(self._pool, self._renew)
                except Exception as error:
                    log.warning("the ownership of loops could not be renewed: %s", error)
                self._note_owned()
                await asyncio.sleep(self._options.lease / 4)
        finally:
            following.cancel()

    def _tables(self) -> list[LogTable]:
        """Return the logs of the open loops, the longest unused first and busy ones last."""
        from heedful.loop.log.table import LogTable

        workers = list(self.workers.values())  # in one go: the event loop's thread opens and closes some
        workers.sort(key=lambda worker: (worker.busy, worker.used))
        stores = [worker.projection.log.store for worker in workers]
        return [store for store in stores if isinstance(store, LogTable)]

    def _renew(self) -> None:
        """Renew the leases of this server, and announce it; own the loops that it should own and nobody does, and give
        those back that another one should own and is ready to."""
        if self._directory is None or self.peers is None:
            return
        tables = self._tables()
        self._directory.renew(tables)
        if not self._options.address:
            return
        followed = [table for table in tables if table.path.key in self._followed and not table.owns]
        ready = [table.number for table in followed if not table.rightful()]
        self.peers.ready = self._directory.announce(self._options.address, self._options.lease, ready)
        self._directory.take([table for table in followed if not table.rightful()])
        owned = [table for table in tables if table.owns]
        theirs = [table for table in owned if table.number in self.peers.ready.get(table.rightful(), ())]
        self._directory.give_back(theirs[:AT_A_TIME])
        self.owned = self.owned - {_loop_of(table.path.key) for table in theirs}  # those are not lost

    def check_owner(self, tenant: str, name: str) -> None:
        """Raise Owned if another server owns the loop of a database, or should own it, and can be reached, as far as is
        known without asking the database: what is to be written is passed on to it (`heedful.server.peers`)."""
        place, worker = self.path(tenant, name), self.workers.get((tenant, name))
        if self.peers is None or not isinstance(place, Address):
            return
        if worker is not None and worker.projection.log.store.owns:
            return
        owner = self._owners.get(place.key) or self.peers.rightful(place.key)
        if owner and not self.peers.is_away(owner):
            raise Owned(f"{place}: another server owns the loop", owner)

    def _note_owned(self) -> None:
        """Note, and log, which loops this server owns now, and which ones another server has taken from it."""
        owned = {key for key, worker in self.workers.items() if worker.projection.log.store.owns}
        for tenant, name in owned - self.owned:
            log.info("takes over: loop %s of tenant %s is owned by this server from now on", name, tenant)
        for tenant, name in (self.owned - owned) & self.workers.keys():
            self.lost += 1
            log.warning("lost: loop %s of tenant %s is owned by another server", name, tenant)
        self.owned = owned

    async def hand_over(self) -> None:
        """Let other servers own all loops of a database at once; requests under way are still answered."""
        if self._directory is None:
            return
        tables, directory = self._tables(), self._directory
        jobs: list[Callable[[], object]] = [partial(directory.leave, self._options.address)]
        jobs += [partial(directory.give_back, tables)]
        jobs += [table.hand_over for table in tables]  # for good, also those of which a transaction held the lease
        for error in await asyncio.get_running_loop().run_in_executor(self._pool, call_all, jobs):
            log.warning("the ownership of loops could not be given back: %s", error)

    async def _follow(self) -> None:
        aio, every = asyncio.get_running_loop(), self._options.lease / 2
        while self._directory is not None and self.peers is not None:
            until = time.monotonic() + every  # then it is looked again who owns what, however many are left to open
            try:
                owned = await aio.run_in_executor(self._pool, self._directory.last_of_owned)
            except Exception as error:
                log.warning("loops of other servers could not be followed: %s", error)
                owned = {}
            mine, lag = self._options.address, {}
            self._owners = {key: address for key, (_, address) in owned.items() if address not in ("", mine)}
            # First those that this server should own: it gets them when it has learned them.
            for key in sorted(owned, key=lambda key: bool(self.peers is None or self.peers.rightful(key))):
                loop, last = _loop_of(key), owned[key][0]
                try:
                    await self._follow_one(loop, last, time.monotonic() < until)
                except Exception as error:
                    log.warning("loop %s of another server could not be followed: %s", key, error)
                worker = self.workers.get(loop)
                if worker is not None and not worker.projection.log.store.owns:
                    lag[loop] = max(last - worker.projection.head, 0)
            self.lag = lag
            await asyncio.sleep(max(until - time.monotonic(), 0.0))

    async def _follow_one(self, key: tuple[str, str], last: int, opening: bool) -> None:
        """Learn what the owner of the loop `key` has written up to event `last`; open it for that if `opening`."""
        if opening and key not in self.workers and len(self.workers) < self._options.most_open:
            await self.open(*key)
        worker = self.workers.get(key)
        if worker is None or (store := worker.projection.log.store).owns:
            return
        if worker.projection.is_behind(last):
            with worker:
                await worker.run(worker.projection.look)
        if isinstance(store.path, Address):
            self._followed.add(store.path.key)

    def _too_many(self) -> list[tuple[str, str]]:
        """Return (tenant, name) of the loops to close so that `most_open` stay open.

        Each is the longest unused of the tenant that has the most open, so that none takes the places of others. While
        requests use all of theirs, more are open for a moment."""
        opened = Counter(tenant for tenant, _ in self.workers)
        idle: dict[str, list[tuple[float, str]]] = {}
        for (tenant, name), worker in self.workers.items():
            if not worker.busy:
                idle.setdefault(tenant, []).append((worker.used, name))
        for workers in idle.values():
            workers.sort(reverse=True)
        surplus: list[tuple[str, str]] = []
        while len(self.workers) - len(surplus) > self._options.most_open:
            tenant = max(opened, key=lambda name: opened[name])
            if not idle.get(tenant):
                break
            surplus.append((tenant, idle[tenant].pop()[1]))
            opened[tenant] -= 1
        return surplus

    async def close_idle(self) -> None:
        """Close loops that were not used for `idle` seconds, and those beyond the `most_open` that may be open; end
        processes that have nothing to analyse."""
        self.analysts.end_idle()
        now = time.monotonic()
        for key, worker in list(self.workers.items()):
            if not worker.busy and now - worker.used > self._options.idle:
                await self.close(key)
        for key in self._too_many():
            await self.close(key)
        if self._untrimmed and now - self._trimmed > TRIM_AFTER:
            self._untrimmed, self._trimmed = 0, now
            await asyncio.get_running_loop().run_in_executor(self._pool, return_memory)

    async def finish_forgetting(self) -> None:
        """Remove the data of erased people from the files of all loops, where an earlier attempt failed."""
        now = time.monotonic()
        for worker in list(self.workers.values()):
            if worker.unerased is not None and now - worker.unerased > AGAIN_AFTER:
                worker.unerased = now
                with worker:
                    try:
                        await worker.run(worker.loop.finish_forgetting)
                        worker.unerased = None
                    except TimeoutError as error:
                        log.warning("%s", error)
                    except Moved:  # wherever its file is now, the next opening does it there
                        worker.unerased = None

    async def close(self, key: tuple[str, str]) -> None:
        """Close the loop with this (tenant, name), if it is open and no request uses it."""
        worker = self.workers.get(key)
        if worker is None or worker.busy:
            return
        await self._end(key, worker.loop.projection.log.close if worker.has_moved() else worker.loop.close)

    async def _end(self, key: tuple[str, str], close: Callable[[], None]) -> None:
        """Drop the open loop with this (tenant, name), and `close` it before it is opened again."""
        worker = self.workers.pop(key)
        self._followed.discard(key[1] if key[0] == MAIN else "/".join(key))
        self._untrimmed += 1
        aio = asyncio.get_running_loop()
        self._moving[key] = moved = aio.create_future()
        try:
            await aio.run_in_executor(self._pool, close)
        except Exception:
            log.exception("%s: could not be closed in order; nothing is lost", worker.path)
        finally:
            del self._moving[key]
            moved.set_result(None)

    async def close_all(self) -> None:
        """Close all loops, after the requests under way have ended."""
        for worker in self.workers.values():
            worker.unerased = None  # the next opening does it
        while self.workers:  # what is under way is finished first
            for key in list(self.workers):
                await self.close(key)
            await asyncio.sleep(0.05 if self.workers else 0.0)


def _ready(opening: Callable[[], Loop]) -> Loop:
    """Return the loop that `opening` opens, after importing what its first lesson imports, which takes a quarter of a
    second: here no request waits for it."""
    import scipy.linalg  # noqa: F401

    return opening()


def return_memory() -> None:
    """Return freed memory to the system, where the C library keeps it otherwise.

    glibc keeps what threads have freed: a server that had opened 3,000 loops, 200 at a time, kept 160 MB."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def call_all(jobs: Sequence[Callable[[], object]]) -> list[Exception]:
    """Call each of `jobs` and return the errors that they raised, those with the same text once.

    If one finds that the database cannot be reached, the jobs after it are not called."""
    errors: dict[str, Exception] = {}
    for job in jobs:
        try:
            job()
        except Unreachable as error:
            return [*errors.values(), error]  # nor for the others
        except Exception as error:
            errors.setdefault(f"{error}", error)
    return list(errors.values())


def _is_loop(path: Place) -> bool:
    """Return whether there may be a loop at `path`; where only opening it can tell, this is True."""
    try:
        return isinstance(path, Address) or path_kind(path / LOG) == "file"
    except OSError:
        return True


def not_found(name: str) -> Problem:
    """Return the Problem for a loop `name` that does not exist; a loop of another tenant gets the same answer."""
    return Problem("not-found", f"there is no loop {name!r}")
