"""Metrics for Prometheus: plain counters, turned into text on request."""

from __future__ import annotations

import asyncio
import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from time import monotonic as clock
from typing import TYPE_CHECKING, Any

from heedful.storage import Place

if TYPE_CHECKING:
    from heedful.server.loop_worker import LoopWorker

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper bounds of the classes of the histograms of durations, in seconds."""

EVERY = 1.0
"""Seconds for which the text is served again before a new one is made."""

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

    def __init__(self, workers: Mapping[tuple[str, str], LoopWorker], folder: Place, pool: Executor) -> None:
        """Count for the server of `folder`, with its open loops, `workers`; texts are made in a thread of `pool`."""
        self.workers, self.folder, self._pool = workers, folder, pool
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

        Counters may be up to `EVERY` seconds old."""
        now = clock()
        since, text = self._texts.get(tenant, (-EVERY, None))
        if text is None or (text.done() and (now - since > EVERY or text.exception() is not None)):
            text = asyncio.get_running_loop().run_in_executor(self._pool, exposition, self, tenant)
            self._texts[tenant] = now, text
        return await asyncio.shield(text)  # others wait for it too, even if this request goes away


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
        self._metrics, self._tenant = metrics, tenant

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

    def _filled(self, family: Any, counts: Counter[Any]) -> Any:
        """Return `family` with the `counts` of the tenant, by label values; the first label is the tenant."""
        # What is counted goes on being counted by the event loop's thread: a copy is made in one go, a look is not.
        for values, n in sorted(dict(counts).items()):
            if self._mine(values[0]):
                family.add_metric([str(value) for value in values], n)
        return family

    def _loops(self, gauge: Any, counter: Any) -> Iterator[Any]:
        families: tuple[tuple[Any, str, str, Callable[[LoopWorker], int]], ...] = (
            (gauge, "model_version", "the last event learned", lambda worker: worker.loop.version),
            (gauge, "items", "items on offer", lambda worker: len(worker.projection.catalogue.current)),
            (counter, "commits", "groups of events written", lambda worker: worker.groups),
            (counter, "committed_events", "events in them", lambda worker: worker.committed),
            (gauge, "notes", "what a person should look at", lambda worker: len(worker.loop.notes)),
        )
        workers = sorted(dict(self._metrics.workers).items())
        for kind, name, about, value in families:
            family = kind(f"heedful_{name}", f"Of loops that are open: {about}.", labels=("tenant", "loop"))
            for labels, worker in workers:
                if self._mine(labels[0]):
                    family.add_metric(labels, value(worker))
            yield family
        if self._tenant is None:
            free = gauge("heedful_disk_free_bytes", "Where the loops are.")
            if isinstance(self._metrics.folder, Path):
                free.add_metric((), shutil.disk_usage(self._metrics.folder).free)
            yield free
            opened = gauge("heedful_open_loops", "Loops that are open.")
            opened.add_metric((), len(workers))
            yield opened
