"""Buckets of tokens: so many at once, so many a second, for each name its own."""

from __future__ import annotations

import pytest

from heedful.server.problems import Problem
from heedful.server.rate_limit import Bucket, Buckets


def test_a_bucket_is_emptied_and_fills_again() -> None:
    bucket = Bucket(2.0, 3.0, 100.0)
    for _ in range(3):
        bucket.take(100.0)
    with pytest.raises(Problem, match=r"expected at most 2 requests per second, got more; try again in 1 s") as refused:
        bucket.take(100.0)
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "1"}
    bucket.take(100.5)
    with pytest.raises(Problem):
        bucket.take(100.9)
    with pytest.raises(Problem):
        bucket.take(90.0)  # a clock that goes back gives nothing
    for _ in range(3):
        bucket.take(1000.0)  # no more than it holds
    with pytest.raises(Problem):
        bucket.take(1000.0)


def test_a_bucket_without_a_rate_is_never_empty() -> None:
    bucket = Bucket(None, 0.0, 0.0)
    for _ in range(100):
        bucket.take(0.0)


def test_each_name_has_its_own_and_who_came_last_is_remembered() -> None:
    buckets = Buckets(1.0, 1.0, most_names=2)
    buckets.take("a", 0.0)
    buckets.take("b", 0.0)
    for name in "ab":
        with pytest.raises(Problem):
            buckets.take(name, 0.0)
    buckets.take("c", 0.0)  # and "a", who came before "b", is forgotten
    with pytest.raises(Problem):
        buckets.take("b", 0.0)
    buckets.take("a", 0.0)
