"""What the log keeps of a decision: packed and unpacked it is the same, whatever is in it; damage is said."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.loop.packing import LONG, pack, unpack
from heedful.loop.records import DecisionRecord
from loops import small_loop

NUMBERS = st.lists(st.integers(0, 2**40), max_size=40).map(tuple)
ATTRIBUTES = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=200), st.booleans()))
RECORDS = st.builds(
    DecisionRecord,
    shown=st.one_of(st.permutations(range(30)).map(tuple), st.permutations(range(1500)).map(tuple), NUMBERS),
    items=NUMBERS,
    names=st.lists(st.text(max_size=300), max_size=30).map(tuple),
    prior=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=300).map(tuple),
    proposal=st.fixed_dictionaries({"start": st.integers(), "swapped": st.lists(st.booleans(), max_size=2000)}),
    attributes=st.lists(ATTRIBUTES, max_size=30).map(tuple),
    context=st.none() | ATTRIBUTES,
    probability=st.none() | st.floats(0, 1),
    of=st.integers(0, 10),
    deferred=st.booleans(),
    predicted=st.lists(st.integers(1, 5) | st.floats(0, 1), max_size=30).map(tuple),
)


@pytest.mark.slow
@given(RECORDS, st.sampled_from([0, 1, 50, 5000]), st.floats(0, 1))
def test_packed_and_unpacked_is_the_same(record: DecisionRecord, n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    came = (rng.standard_normal(n) * (rng.random(n) < share)).astype("<f4").tobytes()
    payload, arrays = pack(record, came)
    assert unpack(payload, arrays) == (record, came)


def test_what_is_short_is_json_as_it_always_was() -> None:
    record = DecisionRecord(shown=(1, 0), items=(5, 6), probability=0.5, learner="perceptron@0")
    payload, arrays = pack(record, b"")
    assert arrays is None
    expected = {"shown": [1, 0], "items": [5, 6], "probability": 0.5, "learner": "perceptron@0"}
    assert json.loads(payload) == expected


def test_what_is_long_is_short_in_the_log() -> None:
    """What it comes to, against what it was: an order of 10,000 that nothing has changed yet, any order, the caller's
    scores, attributes, features of which most are 0."""
    rng = np.random.default_rng(0)
    swapped = {"start": 0, "swapped": (rng.random(5000) < 0.25).tolist()}
    attributes = tuple({"title": "a quiet lamp", "colour": "red", "price": 12.5} for _ in range(200))
    one_hot = np.eye(64, dtype="<f4")[rng.integers(64, size=200)].tobytes()
    for most, record, came in (
        (3_000, DecisionRecord(shown=tuple(range(10_000)), catalogue=9, proposal=swapped), b""),
        (22_000, DecisionRecord(shown=tuple(rng.permutation(10_000).tolist()), catalogue=9, proposal=swapped), b""),
        (1_000, DecisionRecord(shown=tuple(range(2_000)), items=tuple(range(7, 2_007))), b""),
        (1_500, DecisionRecord(shown=(0,), attributes=attributes), b""),
        (2_000, DecisionRecord(shown=(0,)), one_hot),
    ):
        payload, arrays = pack(record, came)
        plain = len(msgspec.json.encode(record)) + len(came)
        assert len(payload) + len(arrays or b"") < min(most, plain / 3)


def test_numbers_that_are_not_zero_are_kept_as_they_are() -> None:
    came = np.random.default_rng(0).standard_normal(LONG).astype("<f4").tobytes()
    assert pack(DecisionRecord(shown=(0,)), came)[1] == came


def test_damage_is_said() -> None:
    rng = np.random.default_rng(0)
    came = np.eye(50, dtype="<f4").tobytes()
    payload, arrays = pack(DecisionRecord(shown=tuple(rng.permutation(2000).tolist())), came)
    packed = json.loads(payload)["packed"]

    def changed(**fields: Any) -> str:
        return json.dumps({"shown": [], "packed": packed | fields})

    huge = zlib.compress(bytes(50_000_000), 9)
    for told, bytes_, why in (
        (payload, arrays[:-5], "bytes that were deflated"),
        (payload, arrays[:-5] + b"abcde", "deflated"),
        (payload, b"", "deflated"),
        (payload, None, "deflated"),
        (changed(rest=packed["rest"] - 1), arrays, "got more"),
        (changed(rest=2**40), arrays, "expected at most"),
        (changed(rest=-1), arrays, "expected at most"),
        (changed(record=len(huge), features=0), huge, "got more"),
        (changed(lists=[["<u2", 9999], ["|u1", 0]]), arrays, "expected numbers"),
        (changed(lists=[["<u2", -1], ["|u1", 0]]), arrays, "expected numbers"),
        (changed(lists=[["object", 1], ["|u1", 0]]), arrays, "expected numbers"),
        (changed(lists=[["|u1", 1]]), arrays, "."),
        (changed(lists="no"), arrays, "."),
        ('{"shown": "no"}', None, "."),
    ):
        with pytest.raises(ValueError, match=why):
            unpack(told, bytes_)


def test_a_decision_of_somebody_else_is_told_twice_however_it_is_written(tmp_path: Path) -> None:
    """All that is on offer is written as a reference; once more is on offer, the same names are written one by one."""
    with small_loop(tmp_path / "loop") as loop:
        names = loop.items
        first = loop.record(names, ["i3", "i1"], id="told", prior={"i1": 2.0}, time=5)
        loop.put_items([{"id": "more", "f0": 1.0}])
        assert loop.record(names, ["i3", "i1"], id="told", prior={"i1": 2.0}, time=5) == first
        for other in ({"prior": {"i1": 1.0, "i2": 2.0}}, {"probability": 0.5}):
            with pytest.raises(ValueError, match="used for another decision"):
                loop.record(names, ["i3", "i1"], id="told", **({"prior": {"i1": 2.0}} | other))
