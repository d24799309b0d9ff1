"""The reference of loops of lists, from which people pick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.learners.coactive.swaps import PerturbedRanking
from heedful.loop.interactions.lists import order_shown
from references import PRIOR, SOME, Fold, Given, Reference, Shown, by_prior, with_prior, with_scores

ACTIONS = {"view": 0.1, "buy": 2.0, "hide": -1.0}  # weighed by the greatest: 0.05, 1, -0.5
FORMS = ["clicks", "better", "edit", "nearest", "thumb", "item", "action", "rating", "grade", "choice", "none"]


class Drafted(NamedTuple):
    """What two learners drafted, and the neighbours in it that a coin put in order, the upper one first."""

    shown: Any
    pairs: list[tuple[int, int]]


def sigmoid(m: float) -> float:
    """The logistic function, without overflow."""
    return math.exp(m) / (1.0 + math.exp(m)) if m < 0.0 else 1.0 / (1.0 + math.exp(-m))


def by_coins(decision: Shown) -> list[tuple[int, int]]:
    """The two picks of each whole round in which each side ranks its own above the other's."""
    kept, shown = decision.proposal, decision.places
    begun = 0 if kept.get("opening") is None else 1
    rounds = range(begun, len(shown) - 1, 2)
    ranked = {(side, j): rank for side in (0, 1) for j, rank in zip(shown, kept["ranks"][side])}
    return [
        (shown[i], shown[i + 1])
        for i in rounds
        if ranked[kept["teams"][i + 1], shown[i + 1]] < ranked[kept["teams"][i + 1], shown[i]]
    ]


class Thumbs(NamedTuple):
    """What learned from all and from thumbs: the learner's state, with (share up, what it was given for) of each
    thumb, after a half one for the mean of what the first list showed; for 0 where that was one item."""

    state: Any
    judged: tuple[tuple[float, Any], ...] = ()


class CoactiveFold(Fold):
    """What all share, and an offset for each person.

    A lesson is (x, y, the chosen, how loudly), or (z, sign, what was shown; None where no thumb is compared
    with others)."""

    def __init__(self, learner: Any, shrink: float) -> None:
        self.learner, self.shrink = learner, shrink
        # How much the shared score counts is not a person's to learn.
        self.own = learner._replace(space=learner.space._replace(adjusted=False))
        self.shared = self.fresh()
        self.people: dict[str, tuple[Any, int]] = {}

    def fresh(self) -> Thumbs:
        return Thumbs(self.learner.init(np.random.default_rng(0)))

    def learn(self, decision: Shown, lesson: Any) -> None:
        person = decision.person
        if self.shrink and person is not None:
            before, n = self.people.get(person, (self.fresh(), 0))
            mine = before._replace(state=copy_arrays(before.state))
            self.people[person] = self.taught(self.own, mine, lesson, lambda x: self.seen(x, n + 1)), n + 1
        self.shared = self.taught(self.learner, self.shared, lesson, lambda x: x)

    def learns(self, given: Given) -> bool:
        """What compares something moves the weights, or the sum that will; a thumb may be what was expected."""
        if given.lesson is None:
            return False
        if len(given.lesson) == 3:
            z, _, shown = given.lesson
            return bool((z != (0.0 if shown is None else self.usual(self.shared, shown)[0])).any())
        before = copy_arrays(self.shared.state)
        after = self.taught(self.learner, Thumbs(copy_arrays(before), self.shared.judged), given.lesson, lambda x: x)
        kept = [name for name in ("w", "theta", "pending") if hasattr(before, name)]
        return any(np.abs(getattr(before, name) - getattr(after.state, name)).max() > 1e-12 for name in kept)

    def taught(self, learner: Any, before: Thumbs, lesson: Any, seen: Any) -> Thumbs:
        if len(lesson) == 4:
            return before._replace(state=self.moved(learner, before.state, (seen(lesson[0]), *lesson[1:])))
        z, sign, shown = lesson
        if shown is None:
            return before._replace(state=self.moved(learner, before.state, (seen(z), sign, 0.0)))
        usual, log_odds, judged = self.usual(before, shown)
        state = self.moved(learner, before.state, (seen((z - usual)[None, :])[0], sign, log_odds))
        return Thumbs(state, (*judged, ((1.0 + sign) / 2.0, z)))

    def usual(self, before: Thumbs, shown: Any) -> tuple[Any, float, Any]:
        """The mean of what was judged, the log-odds of a thumb up, and the thumbs of which both are."""
        seen = np.array(shown, float)
        judged = before.judged or ((0.5, seen.mean(axis=0) if len(seen) > 1 else 0.0 * seen[0]),)
        n, usual, up = 1.0, judged[0][1], judged[0][0]
        for share, one in judged[1:]:  # summed up in the order of the log
            n, up = n + 1.0, up + share
            usual = usual + (one - usual) / n
        return usual, math.log(up / (n - up)), judged

    def seen(self, x: Any, n: int) -> Any:
        """Candidates as the person's own learner has them: c x, and the shared score as the caller's."""
        w = self.learner.weights(self.shared.state).copy()
        w[-1] += 1.0
        own = x * (n / (n + self.shrink))
        own[..., -1] = np.add.reduce(np.atleast_2d(x) * w, axis=1).reshape(x.shape[:-1])
        return own

    def moved(self, learner: Any, state: Any, lesson: Any) -> Any:
        """The state after a lesson, by the learner's own steps."""
        if len(lesson) == 3:
            d, sign, offset = lesson
            w, up = learner.weights(state).copy(), (1.0 + sign) / 2.0
            w[-1] = 1.0 + w[-1] if learner is self.learner else 1.0
            m = offset + float(np.add.reduce((d * w)[None, :], axis=1)[0])
            D = (up * sigmoid(-m) - (1.0 - up) * sigmoid(m)) * d
            if learner is self.own:
                D[-1] = 0.0
            return learner.step(state, D)
        x, y, chosen, weight = lesson
        if isinstance(y, Drafted):
            return learner.step(state, learner.draft_direction(state, x, np.array(y.pairs), np.array(chosen)))
        whole = [*chosen, *(j for j in order_shown(y).tolist() if j not in chosen)]
        ybar = np.array(chosen if getattr(learner, "partial", False) else whole, np.int64)
        if weight == 1.0:
            return learner.update(state, x, y, ybar)
        if hasattr(learner, "direction"):
            return learner.step(state, weight * learner.direction(state, x, y, ybar))
        D = np.zeros(x.shape[1])
        learner.space.add_difference(D, x, ybar, y, 1.0)
        return learner.step(state, weight * D)

    def check(self, loop: Loop) -> None:
        model = loop.projection.model
        assert identical(model.shared.learned, self.shared.state)
        assert {name: own.lessons for name, own in model.people.items()} == {n: c for n, (_, c) in self.people.items()}
        assert all(identical(model.people[name].state.learned, own.state) for name, (own, _) in self.people.items())
        assert model.shared.usual.n == max(len(self.shared.judged), 1)


@precondition(lambda life: life.decisions)
@rule(which=SOME, pick=SOME, some=SOME, place=SOME)
def chain(life: Any, which: int, pick: int, some: int, place: int) -> None:
    """Somebody asked again, and picked of the later list: that is better than what the first showed."""
    id = life.pick(life.decisions, pick)
    ids, person = list(life.decisions), life.decisions[id].person
    later = [d for d in ids[ids.index(id) + 1 :] if life.decisions[d].person == person and d not in life.waiting]
    if later:
        other = later[some % len(later)]
        life.send(which, id, life.reference.chained(life.decisions[id], other, life.decisions[other], place))


class CoactiveReference(Reference):
    """Lists, from which people pick."""

    names, first = [f"i{j}" for j in range(6)], 4
    ways = ("names", "inline", "all", "recorded")
    fields, rules = PRIOR, {"chain": chain}
    turns = st.tuples(*[st.integers(-3, 3)] * 2)
    lives = 35
    setups: ClassVar = {
        "learner": st.sampled_from(
            [
                "perceptron",
                "perceptron:batch=2",
                "posterior:swap=0",
                "second-order:radius=1",
                "convex:radius=0.5",
                "exponentiated:bound=3",
                "posterior",
                "dueling-bandit",
            ]
        ),
        "k": st.sampled_from([1, 2, 5]),
        "shrink": st.sampled_from([0.0, 1.5]),
    }
    answers = st.tuples(st.sampled_from(FORMS), st.lists(SOME, min_size=1, max_size=4), st.sampled_from([1.0, -1.0]))
    wrong: ClassVar = [
        {"clicks": "i0"},
        {"clicks": ["nobody"]},
        {"clicks": [], "none": True},
        {"rating": {"i0": math.nan}},
        {"edit": {"f0": "tall"}},
        {"thumb": "sideways"},
        {"action": "steal", "item": "i0"},
        {},
    ]

    def __init__(self, learner: str, k: int, shrink: float) -> None:
        self.learner, self.k, self.shrink = learner, k, shrink
        self.exact = not learner.startswith("dueling")

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        self.encoding = infer(rows, identifier="id", kinds={"f0": "number", "f1": "number"})
        chosen = Settings(k=self.k, control=control, shrink=self.shrink, snapshot_every=every, actions=ACTIONS)
        loop = Loop.create(
            path, encoding=self.encoding, items=rows[: self.first], learner=self.learner, settings=chosen
        )
        self.made = loop.learner
        return loop

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        return {"id": name, "f0": float(turn[0]), "f1": float(turn[1])}

    def start(self, name: str) -> dict[str, Any]:
        j = int(name[1:])
        return self.row(name, (j, j * j % 5))

    def fold(self) -> CoactiveFold:
        return CoactiveFold(self.made, self.shrink)

    def size(self, show: int | None, eligible: int) -> int:
        return 1 if self.k == 1 else min(show or eligible, eligible)

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        return with_prior(drawn, n) | {"show": None if self.k == 1 else drawn["show"]}  # k = 1: a single item is shown

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:
        if decision.arm == "control":
            assert decision.shown == by_prior(decision)[: len(decision.shown)]

    def chained(self, decision: Shown, id: str, later: Shown, some: int) -> Given:
        """Clicks on the first of a `later` list, decision `id`, and on one of this."""
        x, shown, name = with_scores(self.encode(decision.rows), decision), decision.places, later.shown[0]
        here = shown[some % len(shown)]
        if name in decision.shown:
            lesson: Any = x, shown, list(dict.fromkeys([decision.names.index(name), here])), 1.0
        else:
            row = with_scores(self.encode(later.rows), later)[[later.places[0]]]
            lesson = np.concatenate([x, row]), shown, [len(x), here], 1.0
        given = {"clicks": [name, decision.names[here]], "chain": [id]}
        return self.told(decision, "clicks", given, lesson)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        form, some, sign = drawn
        names, shown, x = decision.names, decision.places, with_scores(self.encode(decision.rows), decision)
        picked = list(dict.fromkeys(shown[j % len(shown)] for j in some))
        any_of = list(dict.fromkeys(j % len(names) for j in some))
        given: dict[str, Any]
        lesson: Any = None
        if form == "clicks":
            picked = [] if sign < 0 and len(some) == 1 else picked
            given = {"clicks": [names[j] for j in picked] * 2}
            lesson = (x, shown, picked, 1.0) if picked else None
        elif form == "better":
            given = {"better": [names[j] for j in any_of]}
            lesson = (x, shown, any_of, 1.0)
        elif form in ("edit", "nearest"):
            base = any_of[0] if sign > 0 else shown[0]
            given = {"edit": {"f1": float(some[0] % 7)}} | ({"item": names[base]} if sign > 0 else {})
            row = x[[base]].copy()
            row[0, 1] = self.encode([{"f1": float(some[0] % 7)}])[0, 1]
            if form == "edit":
                lesson = (np.concatenate([x[[base]], row]), [0, 1], [1], 1.0)
            else:
                given["nearest"] = True
                order = shown + [j for j in range(len(x)) if j not in shown]
                near = min(order, key=lambda j: float(np.square(x[j, :-1] - row[0, :-1]).sum()))
                lesson = (x[[base, near]], [0, 1], [1], 1.0) if near != base else None
        elif form in ("thumb", "item"):
            given = {"thumb": "up" if sign > 0 else "down"} | ({"item": names[picked[0]]} if form == "item" else {})
            z = x[picked[0]]
            if form == "thumb":
                discounts = 1.0 / np.array([math.log2(i + 2.0) for i in range(min(self.k, len(shown)))])
                z = self.made.space.phi(x, np.array(shown)) / discounts.sum()
            lesson = (z, sign, x[shown])
        elif form == "action":
            action = list(ACTIONS)[some[0] % 3]
            given = {"action": action, "item": names[picked[0]]}
            weight = ACTIONS[action] / 2.0
            rest = [j for j in shown if j != picked[0]]
            better = picked[:1] if weight > 0 else rest
            lesson = (x, shown, better, abs(weight)) if better else None
        elif form in ("rating", "grade"):
            rated = {j: float(value % 3) for j, value in zip(any_of, some)}
            given = {form: {names[j]: value for j, value in rated.items()}}
            among = [j for j in shown if j in rated] + sorted(j for j in rated if j not in shown)
            y = list(range(len(among)))
            if len(set(rated.values())) > 1:
                lesson = (x[among], y, sorted(y, key=lambda i: -rated[among[i]]), 1.0)
        elif form == "choice":
            said = ["first", "second", "equal", "cannot_judge"][some[0] % 4]
            given = {"choice": said}
            if said in ("first", "second") and len(shown) > 1:
                lesson = (x[shown[:2]], [0, 1], [0 if said == "first" else 1], 1.0)
        else:
            given = {"none": True}
        return self.told(decision, {"nearest": "edit", "item": "thumb"}.get(form, form), given, lesson)

    def told(self, decision: Shown, form: str, given: dict[str, Any], lesson: Any) -> Given:
        """The answer, with its lesson on the proposal as it was made, for clicks on a learner's own; at face value for
        all other answers."""
        # A dueling bandit learns from what was chosen of its own proposal, and from nothing else.
        refused = form == "choice" and len(decision.shown) < 2
        refused = refused or (form not in ("clicks", "better", "none") and not self.exact)
        if not self.exact:
            return Given(given, None, refused)  # it learns of more than is shown: there is no fold of it here
        if lesson is not None and len(lesson) == 4:
            x, shown, chosen, weight = lesson
            y: Any = np.array(shown, np.int64)
            if self.learner.startswith("posterior"):
                y = PerturbedRanking(y, -1, np.zeros(0, np.bool_), 0.0, 1.0)
                if form == "clicks" and decision.arm == "control":
                    return Given(given, None, refused)  # nothing was swapped there
                if form == "clicks" and decision.arm == "interleaved":
                    pairs = by_coins(decision)
                    return Given(given, (x, Drafted(y.shown, pairs), chosen, weight) if pairs else None, refused)
                if form == "clicks" and decision.arm == "learned" and decision.proposal:  # its own, not another's
                    start, swapped = decision.proposal["start"], decision.proposal["swapped"]
                    # both of a pair were seen
                    whole = [s for p, s in enumerate(swapped) if start + 2 * p + 1 < len(shown)]
                    y = PerturbedRanking(y.shown, start, np.array(whole, np.bool_), decision.proposal["swap"], 1.0)
            lesson = x, y, chosen, weight
        return Given(given, lesson, refused)
