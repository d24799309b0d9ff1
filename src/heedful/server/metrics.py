"""Metrics for Prometheus: plain counters, turned into text on request."""

from __future__ import annotations

import asyncio
import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite
from time import monotonic as clock
from typing import TYPE_CHECKING, Any

from heedful import __version__
from heedful.loop.replay import FOLDS
from heedful.server.problems import unavailable
from heedful.storage import Address
from heedful.storage.address import LOG
from heedful.storage.postgres import open_connections

if TYPE_CHECKING:
    from heedful.server.loop_worker import LoopWorker

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper bounds of the classes of the histograms of durations, in seconds."""

EVERY = 1.0
"""Seconds for which the text is served again before a new one is made."""

PATIENCE = 1.0
"""Seconds for which a request waits for the text. Nothing in it is asked of a database, but a disk may stand still."""

SILENT = 3.0
"""Seconds without an answer from which on the database counts as not reachable."""

ELSEWHERE = "elsewhere"
"""The label of requests that matched no route, so that unknown paths cannot create new time series."""

PASSED_ON = "passed on"
"""The label of requests that were passed on to another server, which did not answer."""


class Durations:
    """A histogram of durations: the number in each class between two bounds (BOUNDS), and their sum in seconds."""

    __slots__ = ("classes", "total")

    def __init__(self) -> None:
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration, in seconds."""
        self.classes[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return (upper bound as text, number of durations up to it) for each class, the last bound being "+Inf".

        The numbers are cumulative, as in Prometheus's format."""
        cumulative, so_far = [], 0
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), self.classes):
            so_far += n
            cumulative.append((bound, float(so_far)))
        return cumulative


class Metrics:
    """The counters of one server since it started, and their text for Prometheus."""

    def __init__(self, service: Any) -> None:
        """Count for the server `service`, a `ServerContext`."""
        self.service = service
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """requests, by (tenant, route, HTTP status)"""
        self.durations: dict[tuple[str, str], Durations] = {}
        """durations of requests, by (tenant, route)"""
        self.events: Counter[tuple[str, str, str, str]] = Counter()
        """events, by (tenant, loop, kind such as "feedback", outcome such as "duplicate")"""
        self._texts: dict[str | None, tuple[float, asyncio.Future[bytes]]] = {}  # by tenant, since when, and what

    def request(self, tenant: str, route: str, status: int, seconds: float) -> None:
        """Count a request of `tenant` to `route` that was answered with an HTTP `status` after `seconds`."""
        self.requests[tenant, route, status] += 1
        durations = self.durations.get((tenant, route))
        if durations is None:
            durations = self.durations[tenant, route] = Durations()
        durations.add(seconds)

    async def text(self, tenant: str | None) -> bytes:
        """Return the metrics of `tenant` in Prometheus's text format; None for all tenants, with those of the process.

        Counters may be up to `EVERY` seconds old. Raise Problem (503) if it takes longer than `PATIENCE` seconds."""
        now = clock()
        since, text = self._texts.get(tenant, (-EVERY, None))
        if text is None or (text.done() and (now - since > EVERY or text.exception() is not None)):
            text = asyncio.get_running_loop().run_in_executor(self.service.observing, exposition, self, tenant)
            self._texts[tenant] = now, text
        await asyncio.wait((text,), timeout=PATIENCE)  # others wait for it too, even if this request goes away
        if not text.done():
            raise unavailable("the metrics could not be read within a second")
        return text.result()


def exposition(metrics: Metrics, tenant: str | None) -> bytes:
    """Return the metrics of `tenant` in Prometheus's text format; None for all tenants, with those of the process."""
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    if tenant is None:
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
    registry.register(_Collector(metrics, tenant))
    return generate_latest(registry)


class _Collector:
    def __init__(self, metrics: Metrics, tenant: str | None) -> None:
        self._metrics, self._service, self._tenant = metrics, metrics.service, tenant

    def _mine(self, tenant: str) -> bool:
        return self._tenant is None or tenant == self._tenant

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily("heedful_requests", "Requests answered.", labels=("tenant", "route", "status"))
        yield self._filled(requests, self._metrics.requests)
        seconds = HistogramMetricFamily(
            "heedful_request_seconds", "From the whole request to the answer.", labels=("tenant", "route")
        )
        for (tenant, route), durations in sorted(dict(self._metrics.durations).items()):
            if self._mine(tenant):
                seconds.add_metric((tenant, route), durations.buckets(), durations.total)
        yield seconds
        labels = "tenant", "loop", "kind", "outcome"
        yield self._filled(
            CounterMetricFamily("heedful_events", "What became of events.", labels=labels), self._metrics.events
        )
        yield from self._loops(GaugeMetricFamily, CounterMetricFamily)
        yield from self._work(GaugeMetricFamily, CounterMetricFamily)
        yield from self._keys(GaugeMetricFamily)
        if self._tenant is None:
            yield from self._process(GaugeMetricFamily, CounterMetricFamily)

    def _filled(self, family: Any, counts: Counter[Any]) -> Any:
        """Return `family` with the `counts` of the tenant, by label values; the first label is the tenant."""
        # What is counted goes on being counted by the event loop's thread: a copy is made in one go, a look is not.
        for values, n in sorted(dict(counts).items()):
            if self._mine(values[0]):
                family.add_metric([str(value) for value in values], n)
        return family

    def _loops(self, gauge: Any, counter: Any) -> Iterator[Any]:
        families: tuple[tuple[Any, str, str, Callable[[LoopWorker], int | None]], ...] = (
            (gauge, "model_version", "the last event learned", lambda worker: worker.loop.version),
            (gauge, "items", "items on offer", lambda worker: worker.projection.catalogue.count),
            (counter, "commits", "groups of events written", lambda worker: worker.groups),
            (counter, "committed_events", "events in them", lambda worker: worker.committed),
            (gauge, "notes", "what a person should look at", lambda worker: len(worker.loop.notes)),
            (gauge, "log_events", "the last event of the log", lambda worker: worker.projection.head),
            (gauge, "log_bytes", "the size of the files of the log", _log_bytes),
        )
        workers = sorted(dict(self._service.loops.workers).items())
        for kind, name, about, value in families:
            family = kind(f"heedful_{name}", f"Of loops that are open: {about}.", labels=("tenant", "loop"))
            for labels, worker in workers:
                if self._mine(labels[0]) and (number := value(worker)) is not None:
                    family.add_metric(labels, number)
            yield family
        lag = gauge(
            "heedful_follower_lag_events", "Events of loops of other servers not read.", labels=("tenant", "loop")
        )
        for labels, behind in sorted(self._service.loops.lag.items()):
            if self._mine(labels[0]):
                lag.add_metric(labels, behind)
        yield lag

    def _work(self, gauge: Any, counter: Any) -> Iterator[Any]:
        labels = "tenant", "work"
        waiting = gauge("heedful_work_waiting", "Requests that wait for their tenant's turn.", labels=labels)
        rejected = counter("heedful_work_rejected", "Requests refused, as too many waited.", labels=labels)
        for values, turn in sorted(dict(self._service.turns.all).items()):
            if self._mine(values[0]):
                waiting.add_metric(values, turn.waiting)
                rejected.add_metric(values, turn.rejected)
        yield from (waiting, rejected)

    def _keys(self, gauge: Any) -> Iterator[Any]:
        labels = "tenant", "prefix"
        used = gauge("heedful_key_last_used_timestamp_seconds", "When a key was last used; 0: never.", labels=labels)
        ends = gauge("heedful_key_expires_timestamp_seconds", "When a key expires.", labels=labels)
        for key in self._service.authenticator.entries():
            values = key.caller.tenant, key.caller.prefix
            if self._mine(values[0]):
                used.add_metric(values, max(key.used, key.recorded))
                if isfinite(key.ends):
                    ends.add_metric(values, key.ends)
        yield from (used, ends)

    def _process(self, gauge: Any, counter: Any) -> Iterator[Any]:
        service = self._service
        build = gauge("heedful_build_info", "The version of heedful.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build
        yield _single(gauge, "open_loops", "Loops that are open.", len(service.loops.workers))
        yield _single(gauge, "folds_in_progress", "Models that are being made from their log.", len(FOLDS))
        far, loops = isinstance(service.folder, Address), service.loops
        free = None if far else shutil.disk_usage(service.folder).free
        yield _single(gauge, "disk_free_bytes", "Where the loops are.", free)
        for kind, name, about, value in (
            (gauge, "database_reachable", "Whether the database answers.", service.keys.silence <= SILENT),
            (gauge, "database_connections", "Open connections to the database.", open_connections()),
            (gauge, "leases_held", "Loops that this server owns.", len(loops.owned)),
            (counter, "leases_lost", "Loops that other servers took from this one.", loops.lost),
        ):
            yield _single(kind, name, about, value if far else None)


def _single(kind: Any, name: str, about: str, value: float | None) -> Any:
    """Return a family of the `kind` with one sample, which has no labels; with none if `value` is None."""
    family = kind(f"heedful_{name}", about)
    if value is not None:
        family.add_metric((), value)
    return family


def _log_bytes(worker: LoopWorker) -> int | None:
    """Return the size of the files of a loop's log, in bytes; None for a log in a database."""
    if isinstance(worker.loop.path, Address):
        return None
    size = 0
    for name in (LOG, f"{LOG}-wal"):
        with suppress(FileNotFoundError):
            size += (worker.loop.path / name).stat().st_size
    return size
