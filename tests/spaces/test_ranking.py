"""Spaces: phi, argmax and differences against the naive ones; assignments against scipy's solver; what doors refuse."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import naive
from budget import examples
from heedful.core.validation import check_count, check_positive, describe
from heedful.spaces.assignment import Assignment, best_assignment
from heedful.spaces.ranking import Ranking, WithBaseScore, check_ranking

N = 4
SEEDS = st.integers(0, 2**32 - 1)


def candidates(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Small integers, with rows that repeat, or floats; in either precision."""
    x = rng.integers(-2, 3, shape).astype(float) if rng.random() < 0.5 else rng.standard_normal(shape)
    x[rng.integers(0, len(x))] = x[0]
    return x.astype(rng.choice([np.float32, np.float64]))


# ---------------------------------------------------------------------------- phi, argmax, differences


@examples(150)
@given(SEEDS, st.sampled_from([1, 2, 3, 5, 1024]), st.integers(1, 8))
def test_rankings(seed: int, k: int, m: int) -> None:
    """phi is Eq. 21; differences are added, scaled, to what is there, for orders longer and shorter than k."""
    rng = np.random.default_rng(seed)
    x, space, plain = candidates(rng, (m, N)), Ranking(k), naive.Rankings(k)
    a, b = rng.permutation(m)[: rng.integers(1, m + 1)], rng.permutation(m)[: rng.integers(1, m + 1)]
    assert space.phi(x, a) == pytest.approx(plain.phi(x, a.tolist()), abs=1e-12)
    assert space.phi(x, a).dtype == np.float64
    out = rng.standard_normal(N)
    wanted = out - 0.3 * (plain.phi(x, a.tolist()) - plain.phi(x, b.tolist()))
    space.add_difference(out, x, a, b, -0.3)
    assert out == pytest.approx(wanted, abs=1e-12)
    kept = out.copy()
    space.add_difference(out, x, a, a, 7.0)
    assert out.tobytes() == kept.tobytes()


def test_a_ranking_by_hand() -> None:
    """Discounts 1, .6309, 1/2: positions 1 and 3 of (2,0,1) hold (4,0) and (0,2); k = 3 looks no further."""
    x = np.array([[0.0, 8.0], [0.0, 2.0], [4.0, 0.0], [9.0, 9.0]])
    third = 1.0 / np.log2(3.0)
    assert Ranking(3).phi(x, np.array([2, 0, 1, 3])) == pytest.approx([4.0, 8.0 * third + 1.0])
    assert Ranking(3).phi(x, np.array([2, 0])) == pytest.approx([4.0, 8.0 * third])
    assert Ranking(1).phi(x, np.array([2, 0])).tolist() == [4.0, 0.0]


@examples(150)
@given(SEEDS, st.sampled_from([1, 2, 5]), st.integers(1, 9))
def test_the_argmax_of_rankings_is_the_stable_sort(seed: int, k: int, m: int) -> None:
    """Small integers, so that ties are exact: to the lowest index. An item is the first alone."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (m, N)).astype(rng.choice([np.float32, np.float64]))
    w = rng.integers(-1, 2, N).astype(float)
    assert Ranking(k).argmax(w, x).tolist() == naive.Rankings(k).argmax(w, x)


@examples(60)
@given(SEEDS, st.sampled_from([1, 2, 3, 5]), st.integers(1, 6))
def test_no_order_has_more_utility(seed: int, k: int, m: int) -> None:
    """y = argmax w.phi(x, .) over every order there is."""
    rng = np.random.default_rng(seed)
    x, w, plain = candidates(rng, (m, N)), rng.standard_normal(N), naive.Rankings(k)
    best = max(w @ plain.phi(x, y) for y in plain.objects(x))
    assert w @ plain.phi(x, Ranking(k).argmax(w, x).tolist()) == pytest.approx(best, abs=1e-12)


@examples(100)
@given(SEEDS, st.integers(1, 4), st.integers(0, 2))
def test_assignments(seed: int, slots: int, spare: int) -> None:
    rng = np.random.default_rng(seed)
    m = slots + spare
    x, space, plain = candidates(rng, (m, slots, N)), Assignment(slots), naive.Assignments(slots)
    a, b = rng.permutation(m)[:slots], rng.permutation(m)[:slots]
    assert space.phi(x, a) == pytest.approx(plain.phi(x, a), abs=1e-12)
    out = rng.standard_normal(N)
    wanted = out + 2.5 * (plain.phi(x, a) - plain.phi(x, b))
    space.add_difference(out, x, a, b, 2.5)
    assert out == pytest.approx(wanted, abs=1e-12)
    kept = out.copy()
    space.add_difference(out, x, a, a, 7.0)
    assert out.tobytes() == kept.tobytes()
    w = rng.standard_normal(N)
    y = space.argmax(w, x)
    assert w @ plain.phi(x, y) == pytest.approx(w @ plain.phi(x, plain.argmax(w, x)), abs=1e-12)


@pytest.mark.slow
@examples(300)
@given(SEEDS, st.integers(1, 7), st.integers(0, 5), st.sampled_from(["ties", "equal", "normal", "huge", "negative"]))
def test_assigned_is_an_optimal_assignment(seed: int, slots: int, spare: int, kind: str) -> None:
    """As much benefit as scipy's solver finds; nobody twice, everybody real. Also with as many people as slots."""
    rng = np.random.default_rng(seed)
    m = slots + spare
    benefit = rng.standard_normal((m, slots))
    if kind == "ties":
        benefit = rng.integers(-2, 3, (m, slots)).astype(float)
    elif kind == "equal":
        benefit = np.full((m, slots), benefit[0, 0])
    elif kind == "huge":
        benefit *= 10.0 ** rng.integers(-6, 7, (m, slots))
    elif kind == "negative":
        benefit = -np.abs(benefit) - 5.0
    given_benefit = benefit.copy()
    people = best_assignment(benefit)
    assert benefit.tobytes() == given_benefit.tobytes()
    assert people.shape == (slots,)
    assert len({*people.tolist()}) == slots
    assert 0 <= people.min() <= people.max() < m
    rows, columns = linear_sum_assignment(benefit, maximize=True)
    best = benefit[rows, columns].sum()
    assert benefit[people, np.arange(slots)].sum() == pytest.approx(best, rel=1e-9, abs=1e-9 * np.abs(benefit).max())


def test_assigned_by_hand() -> None:
    """Greedy takes 9 and then 1; the optimum 8 + 7. Every order of the people moves along."""
    benefit = np.array([[9.0, 8.0], [7.0, 1.0], [2.0, 3.0]])
    assert best_assignment(benefit).tolist() == [1, 0]
    for order in permutations(range(3)):
        assert best_assignment(benefit[list(order)]).tolist() == [order.index(1), order.index(0)]
    assert best_assignment(np.array([[-3.0], [-2.0], [-2.5]])).tolist() == [1]


# ---------------------------------------------------------------------------- the caller's own score


E_LAST = np.array([0.0, 0.0, 0.0, 1.0])
INNER = [Ranking(5), Ranking(2), Ranking(1), Assignment(3)]


@examples(150)
@given(SEEDS, st.sampled_from(INNER))
def test_a_base_score_adds_one_to_the_weight_of_the_last_feature(seed: int, inner: Any) -> None:
    """The argmax is that of the inner space at w + e_N, phi and differences are its own; w is not touched."""
    rng = np.random.default_rng(seed)
    m, space = int(rng.integers(3, 8)), WithBaseScore(inner)
    x = candidates(rng, (m, 3, N) if isinstance(inner, Assignment) else (m, N))
    w = rng.integers(-1, 2, N).astype(float) if rng.random() < 0.5 else rng.standard_normal(N)
    size = 3 if isinstance(inner, Assignment) else m
    kept, (a, b) = w.copy(), (rng.permutation(m)[:size] for _ in range(2))
    assert space.argmax(w, x).tolist() == inner.argmax(w + E_LAST, x).tolist()
    assert space.phi(x, a).tobytes() == inner.phi(x, a).tobytes()
    if isinstance(inner, Ranking):
        assert space.positions() == space.k == inner.positions() == inner.k
    one, other = np.ones(N), np.ones(N)
    space.add_difference(one, x, a, b, 0.3)
    inner.add_difference(other, x, a, b, 0.3)
    assert one.tobytes() == other.tobytes()
    assert w.tobytes() == kept.tobytes()


def test_a_base_score_by_hand() -> None:
    """Nothing learned: the caller's order, scores 3, 1, 2. w_N = -1: the caller no longer counts; -2: the reverse."""
    x = np.array([[0.0, 3.0], [0.0, 1.0], [5.0, 2.0]])
    space = WithBaseScore(Ranking(3))
    assert space.argmax(np.zeros(2), x).tolist() == [0, 2, 1]
    assert space.argmax(np.array([0.0, -1.0]), x).tolist() == [0, 1, 2]
    assert space.argmax(np.array([0.0, -2.0]), x).tolist() == [1, 2, 0]
    assert space.argmax(np.array([0.3, 0.0]), x).tolist() == [2, 0, 1]


def test_a_base_score_opens_the_doors_of_the_space_within() -> None:
    assert WithBaseScore(Ranking(3)).check_context([[1, 2, 3, 4]], N).dtype == np.float64
    assert WithBaseScore(Ranking(3)).check_object("feedback", X, (4, 0, 2)).tolist() == [4, 0, 2]
    WithBaseScore(Ranking(3)).check()
    check_ranking(WithBaseScore(Ranking(3)), "or so")
    for refused, message in [
        (lambda: WithBaseScore(Ranking(3)).check_context(NAN, N), "x: expected finite numbers, got nan at [3, 1]"),
        (
            lambda: WithBaseScore(Ranking(3)).check_object("f", X, [0]),
            "f: expected at least the first 3 of 5 candidates, got 1",
        ),
        (lambda: WithBaseScore(Ranking(0)).check(), "k: expected a whole number, 1 to 1024, got 0"),
        (lambda: WithBaseScore(3).check(), "space: expected one of what can be shown, such as Ranking(5), got 3"),
        (lambda: WithBaseScore(Ranking(3), 1).check(), "adjusted: expected True or False, got 1"),  # type: ignore[arg-type]
        (
            lambda: WithBaseScore(WithBaseScore(Ranking(3))).check(),
            "space: expected one without the caller's score, got WithBaseScore(space=",
        ),
        (lambda: check_ranking(WithBaseScore(Assignment(3)), "or so"), "space: expected a Ranking, or so, got With"),
        (lambda: check_ranking(Assignment(3), "or so"), "space: expected a Ranking, or so, got Assignment(slots=3)"),
        (lambda: check_ranking(Ranking(0), "or so"), "k: expected a whole number, 1 to 1024, got 0"),
    ]:
        with pytest.raises(ValueError) as error:
            refused()
        assert str(error.value).startswith(message)


# ---------------------------------------------------------------------------- doors

X = np.zeros((5, N))
NAN, INF, SMALL = X.copy(), X.copy(), X.astype(np.float32)
NAN[3, 1], INF[0, 2], SMALL[4, 3] = np.nan, -np.inf, np.inf
PEOPLE = np.zeros((4, 3, N))
BAD_PEOPLE = PEOPLE.copy()
BAD_PEOPLE[2, 1, 0] = np.nan
NUMBERS2 = "expected 2-dimensional numbers, got "

BAD_CONTEXTS: list[tuple[Any, Any, str]] = [
    (Ranking(3), NAN, "expected finite numbers, got nan at [3, 1]"),
    (Ranking(3), INF, "expected finite numbers, got -inf at [0, 2]"),
    (Ranking(3), SMALL, "expected finite numbers, got inf at [4, 3]"),
    (Ranking(3), X[0], "expected shape (m, 4), got (4,)"),
    (Ranking(3), PEOPLE, "expected shape (m, 4), got (4, 3, 4)"),
    (Ranking(3), X[:, :3], "expected shape (m, 4), got (5, 3)"),
    (Ranking(3), X.T, "expected shape (m, 4), got (4, 5)"),
    (Ranking(3), np.zeros((0, N)), "expected at least one candidate, got an empty list (0 rows)"),
    (Ranking(3), [], "expected shape (m, 4), got (0,)"),
    (Ranking(3), 1.0, "expected shape (m, 4), got ()"),
    (Ranking(3), "abcd", NUMBERS2 + "'abcd'"),
    (Ranking(3), [["a", "b", "c", "d"]], NUMBERS2 + "[['a', 'b', 'c', 'd']]"),
    (Ranking(3), [["1", "2", "3", "4"]], NUMBERS2 + "[['1', '2', '3', '4']]"),
    (Ranking(3), [[1.0, 2.0, 3.0, 4.0], [1.0]], NUMBERS2 + "[[1.0, 2.0, 3.0, 4.0], [1.0]]"),
    (Ranking(3), [[1.0, 2.0, 3.0, None]], NUMBERS2 + "[[1.0, 2.0, 3.0, None]]"),
    (Ranking(3), None, NUMBERS2 + "None"),
    (Ranking(3), X.astype(complex), NUMBERS2 + "an array of complex128 with shape (5, 4)"),
    (Assignment(3), BAD_PEOPLE, "expected finite numbers, got nan at [2, 1, 0]"),
    (Assignment(3), X, "expected shape (m, s, 4), got (5, 4)"),
    (Assignment(3), PEOPLE[:, :, :2], "expected shape (m, s, 4), got (4, 3, 2)"),
    (Assignment(3), PEOPLE[:, :2], "expected shape (m, 3, 4) with m >= 3, got (4, 2, 4)"),
    (Assignment(3), PEOPLE[:2], "expected shape (m, 3, 4) with m >= 3, got (2, 3, 4)"),
    (Assignment(3), PEOPLE[:0], "expected shape (m, 3, 4) with m >= 3, got (0, 3, 4)"),
    (Assignment(3), "abcd", "expected 3-dimensional numbers, got 'abcd'"),
]


@pytest.mark.parametrize(("space", "x", "message"), BAD_CONTEXTS)
def test_contexts_are_refused_by_name(space: Any, x: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        space.check_context(x, N)
    assert str(refused.value) == f"x: {message}"


ORDER, SLOTS = "expected candidate indices, best first", "expected a person for every slot"

BAD_OBJECTS: list[tuple[Any, Any, Any, str]] = [
    (Ranking(3), X, [0, 1, 0, 2], f"{ORDER}, none twice, got 0 2 times"),
    (Ranking(3), X, [4, 3, 3, 3], f"{ORDER}, none twice, got 3 3 times"),
    (Ranking(3), X, [0, 5, 1], f"{ORDER}, each from 0 to 4, got 5"),
    (Ranking(3), X, [0, 1, -1], f"{ORDER}, each from 0 to 4, got -1"),
    (Ranking(3), X, np.array([2**63], np.uint64), f"{ORDER}, each from 0 to 4, got {2**63}"),
    (Ranking(3), X, [0, 1], "expected at least the first 3 of 5 candidates, got 2"),
    (Ranking(5), X[:3], [0, 1], "expected at least the first 3 of 3 candidates, got 2"),
    (Ranking(3), X, 2, "expected at least the first 3 of 5 candidates, got 1"),
    (Ranking(3), X, [0.0, 1.0, 2.0], f"{ORDER}, got [0.0, 1.0, 2.0]"),
    (Ranking(3), X, np.arange(3.0), f"{ORDER}, got an array of float64 with shape (3,)"),
    (Ranking(3), X, [0, 1, float("nan")], f"{ORDER}, got [0, 1, nan]"),
    (Ranking(3), X, [], f"{ORDER}, got []"),
    (Ranking(3), X, np.zeros(0, int), f"{ORDER}, got an array of int64 with shape (0,)"),
    (Ranking(3), X, [[0, 1, 2]], f"{ORDER}, got [[0, 1, 2]]"),
    (Ranking(3), X, "012", f"{ORDER}, got '012'"),
    (Ranking(3), X, ["0", "1", "2"], f"{ORDER}, got ['0', '1', '2']"),
    (Ranking(3), X, [True, False], f"{ORDER}, got [True, False]"),
    (Ranking(3), X, None, f"{ORDER}, got None"),
    (Ranking(1), X, [], f"{ORDER}, got []"),
    (Ranking(1), X, 5, f"{ORDER}, each from 0 to 4, got 5"),
    (Assignment(3), PEOPLE, [0, 1], "expected 3 people, one a slot, got 2"),
    (Assignment(3), PEOPLE, [0, 1, 2, 3], "expected 3 people, one a slot, got 4"),
    (Assignment(3), PEOPLE, [0, 1, 1], f"{SLOTS}, none twice, got 1 2 times"),
    (Assignment(3), PEOPLE, [0, 1, 4], f"{SLOTS}, each from 0 to 3, got 4"),
    (Assignment(3), PEOPLE, [0.0, 1.0, 2.0], f"{SLOTS}, got [0.0, 1.0, 2.0]"),
    (Assignment(3), PEOPLE, "abc", f"{SLOTS}, got 'abc'"),
]


@pytest.mark.parametrize(("space", "x", "y", "message"), BAD_OBJECTS)
def test_objects_are_refused_by_name(space: Any, x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        space.check_object("feedback", x, y)
    assert str(refused.value) == f"feedback: {message}"


def test_lists_of_lists_of_several_lengths_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^feedback: expected candidate indices"):
        Ranking(3).check_object("feedback", X, [[0, 1], [2]])


def test_what_is_used() -> None:
    """Lists, integers, any layout; single precision stays; huge numbers are numbers; an item may come bare."""
    x = Ranking(3).check_context([[1, 2, 3, 4], [5, 6, 7, 8]], N)
    assert x.dtype == np.float64
    assert x.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert Ranking(3).check_context(np.asfortranarray(X + 1.0), N).flags.c_contiguous
    assert Ranking(3).check_context(np.ones((2, N), np.float32), N).dtype == np.float32
    assert Ranking(3).check_context(np.ones((2, N), np.float16), N).dtype == np.float64
    assert (Ranking(3).check_context(np.full((2, N), 1e99), N) == 1e99).all()
    assert Assignment(3).check_context(PEOPLE[:3].tolist(), N).shape == (3, 3, N)
    for space, x, y, wanted in [
        (Ranking(3), X, (4, 0, 2), [4, 0, 2]),
        (Ranking(3), X, np.array([4, 0, 2, 1], np.uint8), [4, 0, 2, 1]),
        (Ranking(5), X[:2], [1, 0], [1, 0]),
        (Ranking(1), X, 3, [3]),
        (Ranking(1), X, np.int32(4), [4]),
        (Ranking(1), X, [3, 1], [3, 1]),
        (Assignment(3), PEOPLE, [3, 0, 2], [3, 0, 2]),
    ]:
        order = space.check_object("feedback", x, y)
        assert order.dtype == np.int64
        assert order.tolist() == wanted


def test_numbers_at_the_edge() -> None:
    """Numpy's numbers count; the least and the most do; a message says which are wanted."""
    Ranking(np.int64(1024)).check()
    Assignment(np.int32(1)).check()
    check_count("n", 2**62)
    check_count("n", 0, least=0)
    check_positive("rate", np.float32(1e-30))
    check_positive("rate", 3)
    for refused, message in [
        (lambda: Ranking(1025).check(), "k: expected a whole number, 1 to 1024, got 1025"),
        (lambda: Assignment(0).check(), "slots: expected a whole number, 1 or more, got 0"),
        (lambda: check_count("n", -1, least=0), "n: expected a whole number, 0 or more, got -1"),
        (lambda: check_positive("rate", "1"), "rate: expected a finite number above 0, from 1e-50 to 1e50, got '1'"),
    ]:
        with pytest.raises(ValueError) as error:
            refused()
        assert str(error.value) == message
    with pytest.raises(ValueError, match=rf"^n: expected a whole number, 1 to {2**62}, got {2**62 + 1}$"):
        check_count("n", 2**62 + 1)


def test_messages_stay_short() -> None:
    assert describe(list(range(100))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16..."
    assert len(describe("a" * 58)) == 60
    assert len(describe("a" * 59)) == 60


@given(st.data())
def test_a_prior_that_is_not_adjusted_counts_one_for_good(data: st.DataObject) -> None:
    """WithBaseScore(space, adjusted=False): proposals take w_N for 0, and no update moves it."""
    m, n = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 4))
    small = st.integers(-3, 3).map(float)
    x = np.array(data.draw(st.lists(st.lists(small, min_size=n, max_size=n), min_size=m, max_size=m)))
    w = np.array(data.draw(st.lists(small, min_size=n, max_size=n)))
    y, ybar = np.array(data.draw(st.permutations(range(m)))), np.array(data.draw(st.permutations(range(m))))
    inner, fixed = Ranking(3), WithBaseScore(Ranking(3), adjusted=False)
    counted = np.append(w[:-1], 1.0)
    np.testing.assert_array_equal(fixed.argmax(w, x), inner.argmax(counted, x))
    got, wanted = np.full(n, 0.5), np.full(n, 0.5)
    fixed.add_difference(got, x, ybar, y, 2.0)
    inner.add_difference(wanted, x, ybar, y, 2.0)
    np.testing.assert_array_equal(got, np.append(wanted[:-1], 0.5))
