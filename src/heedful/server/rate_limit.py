"""Rate limits: token buckets, from which each request takes a token."""

from __future__ import annotations

from math import ceil

from heedful.server.problems import Problem


class Bucket:
    """A token bucket, which limits a rate: each request takes a token, and `rate` tokens come back each second, up to
    `most`. A `rate` of None is no limit.

    `now` is the present time in seconds, by any steady clock."""

    __slots__ = ("at", "most", "rate", "tokens")

    def __init__(self, rate: float | None, most: float, now: float) -> None:
        self.rate, self.most, self.tokens, self.at = rate, most, most, now

    def fill(self, now: float) -> None:
        """Add the tokens that came back from the last call until `now`."""
        if self.rate is not None and now > self.at:
            self.tokens = min(self.most, self.tokens + (now - self.at) * self.rate)
            self.at = now

    def take(self, now: float) -> None:
        """Take one token at the time `now`. Raise Problem (429), which says how long to wait, if there is none."""
        if self.rate is None:
            return
        self.fill(now)
        if self.tokens < 1 - 1e-9:  # the sum of many small parts of a token counts as a whole one
            seconds = max(1, ceil((1 - self.tokens) / self.rate))
            detail = f"expected at most {self.rate:g} requests per second, got more; try again in {seconds} s"
            raise Problem("too-many", detail, headers={"Retry-After": str(seconds)})
        self.tokens -= 1


class Buckets:
    """A token bucket for each name, such as that of a participant: `rate` tokens come back each second, up to `most`.

    The buckets of the `most_names` most recently used names are kept."""

    def __init__(self, rate: float, most: float, most_names: int = 10_000) -> None:
        self._rate, self._most, self._most_names = rate, most, most_names
        self._buckets: dict[str, Bucket] = {}

    def take(self, name: str, now: float) -> None:
        """Take one token from the bucket of `name` at the time `now`. Raise Problem (429) if it is empty."""
        bucket = self._buckets.pop(name, None)
        if bucket is None:
            bucket = Bucket(self._rate, self._most, now)
            if len(self._buckets) >= self._most_names:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[name] = bucket  # the last in the order of use
        bucket.take(now)
