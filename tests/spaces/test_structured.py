"""Sets: phi, argmax and differences against the naive ones; what greed guarantees; what doors refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heedful
import naive
from budget import examples
from heedful.core.session import Session
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.structured import Subset, greedy

N = 4
SEEDS = st.integers(0, 2**32 - 1)


def covers(rng: np.random.Generator, m: int) -> np.ndarray:
    """Squares, which tie, or floats; nothing below 0."""
    x = rng.integers(0, 3, (m, N)).astype(float) ** 2 if rng.random() < 0.5 else rng.random((m, N))
    return x.astype(rng.choice([np.float32, np.float64]))


@pytest.mark.slow
@examples(150)
@given(SEEDS, st.sampled_from([1, 2, 3]), st.integers(1, 6))
def test_subsets(seed: int, k: int, m: int) -> None:
    """phi is the root of the sums, whatever the order; what is shown is the greedy set; differences add up."""
    rng, space, plain = np.random.default_rng(seed), Subset(k), naive.Subsets(k)
    x, w = covers(rng, m), rng.integers(-1, 3, N).astype(float)
    size = min(k, m)
    y = space.argmax(w, x)
    assert sorted({*y.tolist()}) == sorted(y.tolist())
    assert y.size == size
    if np.all(x == np.round(x)):
        assert w @ plain.phi(x, y) == pytest.approx(w @ plain.phi(x, plain.argmax(w, x)), abs=1e-6)
    a, b = (rng.permutation(m)[:size] for _ in range(2))
    assert space.phi(x, a) == pytest.approx(plain.phi(x, a), abs=1e-9)
    assert space.phi(x, a).tobytes() == space.phi(x, np.sort(a)).tobytes()
    out = rng.standard_normal(N)
    wanted = out + 2.5 * (plain.phi(x, a) - plain.phi(x, b))
    space.add_difference(out, x, a, b, 2.5)
    assert out == pytest.approx(wanted, abs=1e-9)
    assert space.check_object("y", x, a).tolist() == a.tolist()


@examples(150)
@given(SEEDS, st.integers(1, 4), st.integers(1, 7))
def test_what_greed_guarantees(seed: int, k: int, m: int) -> None:
    """For w >= 0 at least 1 - (1 - 1/k)^k of the best set there is; and each next choice adds no more than the last."""
    rng, plain = np.random.default_rng(seed), naive.Subsets(k)
    x, w = covers(rng, m), np.abs(rng.standard_normal(N)) * (rng.random(N) < 0.8)
    y = greedy(w, x, min(k, m)).tolist()
    best = max(float(w @ plain.phi(x, z)) for z in plain.objects(x))
    assert w @ plain.phi(x, y) >= (1.0 - (1.0 - 1.0 / k) ** k) * best - 1e-9
    values = [float(w @ plain.phi(x, y[:i])) for i in range(len(y) + 1)]
    added = np.diff(values)
    assert (added >= -1e-12).all()
    assert (np.diff(added) <= 1e-9).all()
    if k == 1:
        assert values[1] == pytest.approx(best)


def test_greed_is_not_the_argmax() -> None:
    """The first adds most alone (sqrt 5 + 0 of 2 + 2), and with it the other two are not to be had: w.D > 0 can be."""
    x = np.array([[3.0, 3.0], [4.0, 0.0], [0.0, 4.0]])
    w = np.ones(2)
    y = Subset(2).argmax(w, x)
    assert y.tolist() == [0, 1]
    assert w @ Subset(2).phi(x, y) == pytest.approx(math.sqrt(7.0) + math.sqrt(3.0))  # 4.378
    both = np.array([1, 2])
    assert w @ Subset(2).phi(x, both) == pytest.approx(4.0)
    x[1:] *= 1.3
    assert Subset(2).argmax(w, x).tolist() == [0, 1]
    assert w @ Subset(2).phi(x, both) == pytest.approx(2.0 * math.sqrt(5.2))  # 4.561 against sqrt 8.2 + sqrt 3 = 4.596
    x[0] = 2.7
    assert Subset(2).argmax(w, x).tolist() == [0, 1]  # 2 sqrt 2.7 = 3.29 alone, against 2.28
    D = np.zeros(2)
    Subset(2).add_difference(D, x, both, np.array([0, 1]), 1.0)
    assert w @ D > 0.0  # 4.561 against sqrt 7.9 + sqrt 2.7 = 4.454


def test_doors_of_sets() -> None:
    session = Session(PreferencePerceptron(2, heedful.Subset(2)))
    for wrong, told in [
        ([[1.0, -0.5]], "x: expected how much each candidate covers, 0 or more, got -0.5"),
        (np.empty((0, 2)), "x: expected at least one candidate"),
        ([[1.0]], "x: expected"),
    ]:
        with pytest.raises(ValueError, match=told):
            session.propose(wrong)
    assert session.propose([[1.0, 0.0]]).tolist() == [0]
    session.learn([0])
    x = [[4.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert session.propose(x).tolist() == [0, 1]
    for answer, told in [
        ([0], "feedback: expected 2 of 3 candidates, got 1"),
        ([0, 1, 2], "feedback: expected 2 of 3 candidates, got 3"),
        ([1, 1], "feedback: expected candidate indices, in any order, none twice, got 1 2 times"),
    ]:
        with pytest.raises(ValueError, match=told):
            session.learn(answer)
    session.learn([2, 0])
    assert session.weights.tolist() == pytest.approx([2.0 - math.sqrt(5.0), 1.0])
    with pytest.raises(ValueError, match="k: expected a whole number, 1 or more, got 0"):
        Subset(0).check()
