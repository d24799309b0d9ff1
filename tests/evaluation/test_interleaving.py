"""Drafts have the distribution that all coins give, credits see what they say they see, and verdicts err no more often
than stated, however often one looks, and are nobody's alone."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coins import Coins
from heedful.evaluation.interleaving import (
    LIMITS,
    Draft,
    Match,
    MatchState,
    draft_probability,
    interleave,
    plan,
    position_credit,
    session_outcome,
    slot_probabilities,
    split_evidence,
)

ABCD, BCDA = (0, 1, 2, 3), (1, 2, 3, 0)
C = 2


def drafts(a: Sequence[int], b: Sequence[int], size: int, opening: int | None = None) -> Iterator[Draft]:
    """Those of all coins, each as likely as any other."""
    for coins in itertools.product((0, 1), repeat=size):
        given_coins: Any = Coins(coins)
        yield interleave(a, b, size, given_coins, opening)


def rankings(m: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of rankings of up to m items: the same items, some items of their own, different lengths."""
    for b in itertools.permutations(range(m)):
        yield tuple(range(m)), b
        yield tuple(range(m)), tuple(j + 1 for j in b)
        yield tuple(range(m)), b[: m // 2]


def mean(credit: Callable[[Draft], float], a: Sequence[int], b: Sequence[int], size: int) -> float:
    return float(np.mean([credit(draft) for draft in drafts(a, b, size)]))


# ---------------------------------------------------------------------------- drafts


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3, 4, pytest.param(5, marks=pytest.mark.long)])
def test_probabilities_are_the_share_of_the_coins(m: int) -> None:
    for (a, b), opening in itertools.product(rankings(m), (None, 0, 1)):
        for size in (1, m // 2 + 1, m + 1):
            all_drafts = list(drafts(a, b, size, opening))
            lists: dict[tuple[int, ...], float] = defaultdict(float)
            slots: dict[tuple[int, int], float] = defaultdict(float)
            for draft in all_drafts:
                lists[draft.items] += 1.0 / len(all_drafts)
                for slot, item in enumerate(draft.items):
                    slots[item, slot] += 1.0 / len(all_drafts)
            assert all(draft.probability == lists[draft.items] for draft in all_drafts)
            for items in lists:
                assert draft_probability(a, b, items, opening) == lists[items]
            assert slot_probabilities(a, b, size, opening) == dict(slots)
            other = next(iter(lists))[::-1]
            assert draft_probability(a, b, other, opening) == lists.get(other, 0.0)


def test_each_round_has_a_pick_of_either_side_and_each_pick_is_the_best_left() -> None:
    a, b = (4, 0, 3, 1, 2), (3, 4, 5, 0, 6)
    for draft in drafts(a, b, 7):
        assert len(set(draft.items)) == len(draft.items) == 7
        for i, (item, team) in enumerate(zip(draft.items, draft.teams)):
            before = set(draft.items[:i])
            assert item == next(j for j in (a, b)[team] if j not in before)
        assert [set(draft.teams[i : i + 2]) for i in (0, 2)] == [{0, 1}, {0, 1}]
        assert draft.teams[::2][:2] == draft.coins[:2]


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(0, 8), st.integers(0, 2**32))
def test_a_longer_draft_continues_a_shorter_one(a: list[int], b: list[int], size: int, seed: int) -> None:
    short, long = (interleave(a, b, n, np.random.default_rng(seed)) for n in (size, 8))
    assert (short.items, short.teams) == (long.items[:size], long.teams[:size])
    assert short.coins == long.coins[: len(short.coins)]
    assert sorted(long.items) == list(range(8))


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 4, pytest.param(5, marks=pytest.mark.long)])
def test_two_pages_are_one_draft(m: int) -> None:
    """For all coins: the second page is drafted from what is left, and begins with the pick that a cut round owes."""
    for a, b in rankings(m):
        for coins in itertools.product((0, 1), repeat=m):
            whole = interleave(a, b, m + 1, Coins(coins))  # type: ignore[arg-type]
            for cut in range(len(whole.items) + 1):
                first = interleave(a, b, cut, Coins(coins))  # type: ignore[arg-type]
                rest = [[item for item in side if item not in first.items] for side in (a, b)]
                opening = 1 - first.coins[-1] if cut < 2 * len(first.coins) else None
                tossed = Coins(coins[len(first.coins) :])
                second = interleave(*rest, m + 1 - cut, tossed, opening)  # type: ignore[arg-type]
                assert first.items + second.items == whole.items
                assert first.teams + second.teams == whole.teams
                assert first.coins + second.coins == whole.coins
                if opening is None:
                    assert first.probability * second.probability == whole.probability


def test_marginals_of_a_long_list_take_no_enumeration() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.permutation(60).tolist(), rng.permutation(60).tolist()
    found = slot_probabilities(a, b, 40)
    per_slot: dict[int, float] = defaultdict(float)
    for (_, slot), p in found.items():
        per_slot[slot] += p
    assert per_slot == pytest.approx(dict.fromkeys(range(40), 1.0), abs=1e-12)


def test_an_item_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="b: expected each item once"):
        interleave((1, 2), (3, 3), 2, np.random.default_rng(0))


# ---------------------------------------------------------------------------- credits


def picked(draft: Draft, clicked: Sequence[int]) -> float:
    return session_outcome(draft.teams, {draft.items.index(j): 1.0 for j in clicked})


def placed(a: Sequence[int], b: Sequence[int], draft: Draft, clicked: Sequence[int]) -> float:
    """The position credit of clicks; an item that a ranking lacks gains nothing there."""
    cells = slot_probabilities(a, b, len(draft.items))
    ranks: Any = tuple([r.index(j) + 1 if j in r else math.inf for j in draft.items] for r in (a, b))
    places = [cells[j, slot] for slot, j in enumerate(draft.items)]
    return position_credit(ranks, places, {draft.items.index(j): 1.0 for j in clicked})


def balanced_prefers_b(a: Sequence[int], b: Sequence[int], click: int) -> float:
    """Balanced interleaving (Joachims 2003) with one click: the side that ranks it higher wins."""
    return 0.5 + 0.5 * float(np.sign(a.index(click) - b.index(click)))


def test_one_click_at_random_is_75_to_25_if_balanced_and_50_to_50_by_team_draft() -> None:
    assert np.mean([balanced_prefers_b(ABCD, BCDA, j) for j in ABCD]) == 0.75
    assert np.mean([mean(lambda d, j=j: picked(d, [j]), ABCD, BCDA, 4) for j in ABCD]) == 0.5  # type: ignore[misc]


def test_clicks_on_c_alone_are_seen_by_the_position_credit_and_not_by_the_draft() -> None:
    assert mean(lambda d: picked(d, [C]), ABCD, BCDA, 4) == 0.5
    # whoever picks first, c is the best that is left after a and b: third, with probability 1
    assert mean(lambda d: placed(ABCD, BCDA, d, [C]), ABCD, BCDA, 4) == pytest.approx(1.0 / 2.0 - 1.0 / 3.0)


CLICKS: dict[str, Callable[[Draft], list[int]]] = {
    "nobody clicks": lambda d: [],
    "the first": lambda d: [d.items[0]],
    "the first two and the last": lambda d: [d.items[0], d.items[1], d.items[-1]],
    "some items wherever they are": lambda d: [j for j in d.items if j in (1, 3)],
    "whatever the list as a whole suggests": lambda d: [j for i, j in enumerate(d.items) if (hash(d.items) >> i) % 2],
}


@pytest.mark.parametrize("clicks", CLICKS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_ranking_against_itself_gives_nothing(clicks: str, size: int) -> None:
    a, click = (3, 1, 0, 4, 2), CLICKS[clicks]
    assert mean(lambda d: picked(d, click(d)), a, a, size) == 0.5
    assert all(placed(a, a, d, click(d)) == 0.0 for d in drafts(a, a, size))


@pytest.mark.parametrize("clicks", CLICKS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_swapping_the_sides_negates(clicks: str, size: int) -> None:
    a, b, click = (0, 1, 2, 3, 4), (1, 5, 2, 0, 3), CLICKS[clicks]
    for draft in drafts(a, b, size):
        flipped: Any = Coins([1 - coin for coin in draft.coins])
        other = interleave(b, a, size, flipped)
        assert (other.items, other.probability) == (draft.items, draft.probability)
        assert picked(other, click(other)) == 1.0 - picked(draft, click(draft))
        assert placed(b, a, other, click(other)) == pytest.approx(-placed(a, b, draft, click(draft)))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_mean_position_credit_is_that_of_clicks_in_every_slot_there_is(size: int) -> None:
    """With clicks that depend on the item and its slot alone: the sum over cells of the gains times the clicks."""
    rate, gain = np.random.default_rng(2).random((4, 4)), 1.0 / np.arange(1, 5)
    found = mean(
        lambda d: sum(rate[j, d.items.index(j)] * placed(ABCD, BCDA, d, [j]) for j in d.items), ABCD, BCDA, size
    )
    cells = slot_probabilities(ABCD, BCDA, size)
    assert found == pytest.approx(sum(rate[j, i] * (gain[BCDA.index(j)] - gain[ABCD.index(j)]) for j, i in cells))


def test_picks_are_fair_to_clicks_by_position_and_position_credit_is_not() -> None:
    """Whatever the rankings and the place that people click on: either side picked it equally often. By positions, a
    ranker that puts the last item on top is preferred: why no promotion rests on that credit."""
    for slot in range(4):
        for a, b in rankings(4):
            found = [draft for draft in drafts(a, b, 4) if slot < len(draft.items)]
            if found and set(a) == set(b):
                assert np.mean([picked(draft, [draft.items[slot]]) for draft in found]) == 0.5
    lifted = (3, 0, 1, 2)
    assert mean(lambda d: placed(ABCD, lifted, d, [d.items[0]]), ABCD, lifted, 4) == pytest.approx(0.25)


def test_credit_of_what_was_not_shown_is_refused() -> None:
    draft = interleave(ABCD, BCDA, 2, np.random.default_rng(0))
    for slot in (2, -1):
        with pytest.raises(ValueError, match=f"credit: expected slots of a list of 2 items, got {slot}"):
            session_outcome(draft.teams, {slot: 1.0})
        with pytest.raises(ValueError, match=f"credit: expected slots of a list of 2 items, got {slot}"):
            position_credit(((1, 2), (4, 1)), (1.0, 1.0), {slot: 1.0})


# ---------------------------------------------------------------------------- verdicts

SESSIONS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0])), max_size=60)


def fold(sessions: Sequence[tuple[int, float]], match: Match | None = None) -> MatchState:
    match = match or Match()
    state = match.init()
    for person, x in sessions:
        state = match.update(state, person, x)
    return state


def capital(sessions: Sequence[tuple[int, float]], side: int) -> Fraction:
    """That of the bets on one side, from the definition, in exact arithmetic."""
    total = Fraction(0)
    for j in LIMITS.tolist():
        product = Fraction(1)
        for person in {person for person, _ in sessions}:
            n = 0
            for x in (x for p, x in sessions if p == person):
                if abs(n) == j:
                    break
                n += round(2.0 * x - 1.0)
            product *= 1 + Fraction(n if side else -n, 2 * j)
        total += product
    return total / len(LIMITS)


@given(SESSIONS)
def test_the_e_value_is_half_of_the_larger_product(sessions: list[tuple[int, float]]) -> None:
    verdict = Match().verdict(fold(sessions))
    assert verdict.e_value == pytest.approx(float(max(capital(sessions, 0), capital(sessions, 1))) / 2.0, rel=1e-12)
    assert (verdict.sessions, verdict.people) == (len(sessions), len({p for p, _ in sessions}))
    assert verdict.largest == max((sum(p == q for q, _ in sessions) for p, _ in sessions), default=0) / max(
        len(sessions), 1
    )
    assert verdict.low <= verdict.share <= verdict.high


@pytest.mark.slow
@given(SESSIONS)
def test_bets_are_fair_and_those_on_b_lose_if_a_is_better(sessions: list[tuple[int, float]]) -> None:
    """The next session, of whichever person, leaves the capital as it is on average, which Ville's inequality needs."""
    for person in range(7):
        for side in (0, 1):
            now = capital(sessions, side)
            won, lost = (capital([*sessions, (person, x)], side) for x in (1.0, 0.0))
            assert (won + lost) / 2 == now == capital([*sessions, (person, 0.5)], side)
            assert (won >= lost) if side else (won <= lost)


@pytest.mark.slow
@given(SESSIONS)
def test_swapping_the_outcomes_swaps_the_verdict(sessions: list[tuple[int, float]]) -> None:
    one, other = (Match(0.5).verdict(fold(each)) for each in (sessions, [(p, 1.0 - x) for p, x in sessions]))
    assert {"a": "b", "b": "a"}.get(one.verdict, one.verdict) == other.verdict
    assert one.e_value == pytest.approx(other.e_value)
    assert (one.low, one.high) == pytest.approx((1.0 - other.high, 1.0 - other.low))


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_nobody_decides_alone_and_enough_people_do(alpha: float) -> None:
    match = Match(alpha)
    least = match.least_people
    assert 1.5 ** (least - 1) < 2.0 / alpha <= 1.5**least
    for people, expected in ((1, "undecided"), (least - 1, "undecided"), (least + 5, "b")):
        found = match.verdict(fold([(i % people, 1.0) for i in range(50 * people)], match))
        assert found.verdict == expected
        assert found.largest == 1.0 / people


def test_one_person_with_most_of_the_sessions_moves_the_evidence_by_half_at_most() -> None:
    others = [(i, float(i % 3 > 0)) for i in range(1, 40)]
    without, with_them = (Match().verdict(fold(each)) for each in (others, [*others, *[(0, 0.0)] * 5000]))
    assert without.verdict == with_them.verdict == "undecided"
    assert 0.5 - 1e-12 <= with_them.e_value / without.e_value <= 1.5 + 1e-12
    assert with_them.largest > 0.99


def test_many_mild_preferences_outweigh_few_strong_ones() -> None:
    """10 people always want B, 90 want A in 11 of 20 sessions: B has more of the sessions, A of the people."""
    rng = np.random.default_rng(6)
    rows = [(i, x) for i in range(100) for x in (rng.permutation([1.0] * 9 + [0.0] * 11) if i >= 10 else [1.0] * 20)]
    found = Match().verdict(fold([rows[i] for i in rng.permutation(len(rows))]))
    assert found.share == 0.505
    assert found.verdict == "a"


def test_evidence_beyond_all_numbers_is_a_number() -> None:
    found = Match().verdict(fold([(i, 1.0) for i in range(5000)]))
    assert (found.verdict, math.isfinite(found.e_value), found.e_value > 1e300) == ("b", True, True)
    assert math.isfinite(split_evidence(0, 5000))


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_an_error_that_is_no_probability_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1"):
        Match(alpha).init()


def test_an_outcome_that_is_none_is_refused_and_changes_nothing() -> None:
    match, state = Match(), fold([(1, 1.0)])
    with pytest.raises(ValueError, match=r"x: expected 0, 1/2 or 1, got 0\.7"):
        match.update(state, 1, 0.7)
    assert match.verdict(state) == match.verdict(fold([(1, 1.0)]))


# ---------------------------------------------------------------------------- plans

RUNS = 300


def at_most(p: float) -> float:
    return p + 3.0 * math.sqrt(p * (1.0 - p) / RUNS)


def simulate(people: int, share: float, **other: Any) -> Any:
    return plan(Match(), np.random.default_rng(3), people=people, share=share, runs=RUNS, **other)


@pytest.mark.slow
@pytest.mark.parametrize("people", [30, 1000])
def test_equal_sides_are_decided_no_more_often_than_stated(people: int) -> None:
    found = simulate(people, 0.5)
    assert found.a + found.b <= at_most(0.05)
    assert found.sessions is None


def test_a_worse_side_is_preferred_no_more_often_than_half_of_that() -> None:
    assert simulate(100, 0.48, sessions=1500).b <= at_most(0.025)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_tastes_that_balance_are_no_preference(spread: float) -> None:
    found = simulate(100, 0.5, spread=spread)
    assert found.a + found.b <= at_most(0.05)


@pytest.mark.slow
def test_wins_are_found_with_few_sessions_of_many_people() -> None:
    found = simulate(1000, 0.6)
    assert found.b > 0.95
    assert found.sessions is not None
    assert 350 < found.sessions < 650


def test_a_plan_knows_that_too_few_people_decide_nothing() -> None:
    assert simulate(9, 1.0, sessions=500) == (0.0, 0.0, None)


def test_a_plan_is_what_the_match_says() -> None:
    """All sessions won, almost all by different people: the number of sessions is that of the fold."""
    match, state = Match(), Match().init()
    n = next(n for n in itertools.count(1) if match.verdict(match.update(state, n, 1.0)).verdict == "b")
    found = plan(match, np.random.default_rng(0), people=100_000, sessions=60, share=1.0, ties=0.0, runs=5)
    assert found == (0.0, 1.0, n)


# ---------------------------------------------------------------------------- splits


@settings(max_examples=25)
@given(st.integers(0, 30), st.integers(0, 30), st.sampled_from([0.1, 0.5, 0.9]))
def test_split_evidence_is_a_mean_over_all_splits(a: int, b: int, expected: float) -> None:
    p = (np.arange(20_000) + 0.5) / 20_000
    ratio = np.exp(b * (np.log(p) - math.log(expected)) + a * (np.log1p(-p) - math.log1p(-expected)))
    assert split_evidence(a, b, expected) == pytest.approx(float(ratio.mean()), rel=1e-3)


def test_a_fair_split_is_suspected_no_more_often_than_stated_and_a_wrong_one_is() -> None:
    rng = np.random.default_rng(4)
    for share, low, high in ((0.5, 0.0, at_most(0.05)), (0.6, 0.95, 1.0)):
        b = (rng.random((RUNS, 1000)) < share).cumsum(axis=1)
        looks = range(9, 1000, 30)
        suspected = [any(split_evidence(n + 1 - int(run[n]), int(run[n])) >= 20.0 for n in looks) for run in b]
        assert low <= np.mean(suspected) <= high
