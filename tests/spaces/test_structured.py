"""Paths and sets: phi, argmax and differences against the naive ones; what greed guarantees; what doors refuse."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heedful
import naive
from budget import examples
from heedful.core.session import Session
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.structured import Path, Subset, best_path, greedy, grid

N = 4
SEEDS = st.integers(0, 2**32 - 1)
GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda shape: shape != (1, 1))


def graph(seed: int) -> Path:
    """A random graph whose last node is reached; some nodes are not, some edges are there twice."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 6))
    edges = [(i, i + 1) for i in range(nodes - 1) if rng.random() < 0.8 or nodes == 2] + [(0, nodes - 1)]
    for _ in range(int(rng.integers(0, 6))):
        a, b = sorted(rng.choice(nodes, 2, replace=False).tolist())
        edges.append((a, b))
    edges.sort(key=lambda edge: edge[0])
    tails, heads = np.array(edges, np.int64).T
    return Path(np.ascontiguousarray(tails), np.ascontiguousarray(heads))


def rows(rng: np.random.Generator, m: int) -> np.ndarray:
    """Small integers, which tie, or floats; in either precision."""
    x = rng.integers(-2, 3, (m, N)).astype(float) if rng.random() < 0.5 else rng.standard_normal((m, N))
    return x.astype(rng.choice([np.float32, np.float64]))


def covers(rng: np.random.Generator, m: int) -> np.ndarray:
    """Squares, which tie, or floats; nothing below 0."""
    x = rng.integers(0, 3, (m, N)).astype(float) ** 2 if rng.random() < 0.5 else rng.random((m, N))
    return x.astype(rng.choice([np.float32, np.float64]))


# ---------------------------------------------------------------------------- paths


@examples(150)
@given(SEEDS)
def test_paths(seed: int) -> None:
    """phi sums edges; the argmax is best of all paths there are; differences are added, scaled, to what is there."""
    rng, space = np.random.default_rng(seed), graph(seed)
    space.check()
    plain = naive.Paths(space.tails.tolist(), space.heads.tolist())
    x, w = rows(rng, space.tails.size), rng.integers(-2, 3, N).astype(float)
    walks = plain.objects()
    y = space.argmax(w, x)
    assert y.tolist() in walks
    if np.all(x == np.round(x)):
        assert y.tolist() == plain.argmax(w, x)
    assert w @ plain.phi(x, y) == pytest.approx(max(w @ plain.phi(x, z) for z in walks), abs=1e-9)
    a, b = (np.array(walks[int(rng.integers(0, len(walks)))]) for _ in range(2))
    assert space.phi(x, a) == pytest.approx(plain.phi(x, a), abs=1e-9)
    out = rng.standard_normal(N)
    wanted = out - 0.3 * (plain.phi(x, a) - plain.phi(x, b))
    space.add_difference(out, x, a, b, -0.3)
    assert out == pytest.approx(wanted, abs=1e-9)
    kept = out.copy()
    space.add_difference(out, x, a, a, 7.0)
    assert out.tobytes() == kept.tobytes()
    for walk in walks:
        assert space.check_object("y", x, walk).tolist() == walk


@given(GRIDS)
def test_grids(shape: tuple[int, int]) -> None:
    """As many paths as there are orders of the steps right and down; every edge leads up, listed by its tail."""
    r, c = shape
    space = grid(r, c)
    space.check()
    assert space.tails.size == r * (c - 1) + c * (r - 1)
    walks = naive.Paths(space.tails.tolist(), space.heads.tolist()).objects()
    assert len(walks) == math.comb(r + c - 2, r - 1)
    assert {len(walk) for walk in walks} == {r + c - 2}


def test_a_path_by_hand() -> None:
    """0 -> 1 -> 3 costs nothing and 0 -> 2 -> 3 gains 1; straight from 0 to 3 gains 1 too, and was listed after."""
    space = Path(np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 3, 3]))
    s = np.array([0.0, -1.0, 1.0, 0.0, 2.0])
    assert best_path(s, space.tails, space.heads).tolist() == [2]  # listed before the edge out of 2
    assert best_path(s - 0.5 * np.eye(5)[2], space.tails, space.heads).tolist() == [1, 4]
    assert best_path(0.0 * s, space.tails, space.heads).tolist() == [2]
    with pytest.raises(ValueError, match="path: expected finite scores"):
        best_path(s * np.nan, space.tails, space.heads)
    assert space.phi(np.eye(5), np.array([1, 4])).tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("tails", "heads", "told"),
    [
        ([], [], "tails: expected the node of each edge, an int64 array"),
        ([0.0], [1], "tails: expected the node of each edge"),
        ([-1], [1], "tails: expected the node of each edge"),
        ([0, 0], [1], "heads: expected 2, one an edge, got 1"),
        ([1, 0], [2, 1], "tails: expected the edges listed by their tails"),
        ([0, 1], [1, 1], "heads: expected every edge to lead upwards, got 1 to 1"),
        ([0, 2], [1, 3], "heads: expected a path from 0 to 3, got none"),
    ],
)
def test_graphs_that_are_refused(tails: Any, heads: Any, told: str) -> None:
    array = np.array(tails) if tails else np.empty(0, np.int64)
    with pytest.raises(ValueError, match=told):
        Path(array, np.array(heads, np.int64)).check()
    with pytest.raises(ValueError, match="rows: expected a whole number, 1 or more, got 0"):
        grid(0, 3)
    with pytest.raises(ValueError, match="grid: expected at least two nodes, got one"):
        grid(1, 1)


def test_doors_of_paths() -> None:
    """Edges of the grid 2 x 2: 0-1, 0-2, 1-3, 2-3."""
    session = Session(PreferencePerceptron(2, heedful.Path(*grid(2, 2))))
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="x: expected 4 rows, one an edge, got 3"):
        session.propose(x[:3])
    assert session.propose(x).tolist() == [0, 2]
    for wrong, told in [
        ([0, 3], "feedback: expected an edge that leaves node 1, got 3, which leaves 2"),
        ([1], "feedback: expected a path that leads to node 3, got one that ends at 2"),
        ([2], "feedback: expected an edge that leaves node 0, got 2, which leaves 1"),
        ([0, 4], "feedback: expected the edges of a path, first to last, each from 0 to 3, got 4"),
    ]:
        with pytest.raises(ValueError, match=told):
            session.learn(wrong)
    session.learn([1, 3])
    assert session.propose(x).tolist() == [1, 3]


# ---------------------------------------------------------------------------- sets


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
