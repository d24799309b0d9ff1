"""The steps of `heedful demo --proof`: in a made shop a log judges three candidate learners, then experiments do, and
each result is measured against the truth.

The people are simulated, so the program knows how many clicks each ranker would get. The loop does not: it sees lists
and clicks alone. Nothing is fixed beforehand; another seed gives other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from heedful import Loop, Settings, infer
from heedful.core.serialization import arrays_of
from heedful.jit.kernel import Floats
from heedful.loop.experiment import MICROSECONDS, MOST_SESSIONS, NotReady, plan_experiment
from heedful.loop.serving import Side
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Agreement, Experiment
from heedful.worlds.shop import SIZE, Shop, ShopRequest, make_shop

SERVED = "posterior:swap=0,prior=0.00025"
"""The learner that serves: its prior is too narrow, so that it hardly leaves the shop's own order."""
CANDIDATES = {
    "dueling-bandit": "learns only from lists that it drafted itself, so nothing from this log",
    "posterior:swap=0,prior=0.00026": "the learner that serves, with 1.04 times the prior variance",
    "posterior:swap=0": "the learner that serves, with the default prior",
}
"""The learners that are tried, in this order, with what they are."""
ALPHA = 0.05
"""The probability with which any of the verdicts may be wrong; each experiment gets an equal part of it."""
SHARE = 0.5
"""The share of people whose lists are interleaved."""
SAMPLED = 0.2
"""The share of lists that are drawn at random."""
GROUP = 20
"""The number of lists after which the answers are committed together."""


class Sizes(NamedTuple):
    """How many lists each step of the demonstration takes, in a shop of how many people."""

    people: int = 300
    """the number of people"""
    blind: int = 500
    """the number of lists without exploration"""
    log: int = 2000
    """the number of lists with exploration"""
    shadow: int = 200
    """the number of lists next to which each candidate only proposes"""
    limit: int = 4000
    """the greatest number of lists in an experiment, those of people who take no part included"""
    look: int = 100
    """the number of lists between two looks at an experiment"""
    after: int = 200
    """the number of lists that the promoted learner serves before it is rolled back"""
    truth: int = 1000
    """the number of requests over which the true value of a ranker is the mean"""

    @property
    def lists(self) -> int:
        """the greatest number of lists in all steps together"""
        return self.blind + self.log + len(CANDIDATES) * (self.shadow + self.limit) + self.after


class PlannedWin(NamedTuple):
    """What an experiment would find if a candidate won a certain share of the sessions that have a winner.

    A session is one list drafted by both learners and answered."""

    share: float
    """the share of these sessions that the candidate wins"""
    found: float
    """the probability of the verdict that the candidate is better"""
    sessions: int | None
    """the median number of sessions until that verdict; None if most experiments of that length would not reach it"""


class Plan(NamedTuple):
    """What an experiment would find, as `plan_experiment` simulates it.

    Its length is given in sessions, lists drafted by both learners and answered, as a simulated shop has no days."""

    people: int
    """how many people would take part"""
    sessions: int
    """how many lists would be interleaved and answered"""
    ties: float
    """the estimated share of sessions that neither side wins"""
    wins: tuple[PlannedWin, ...]
    """for several shares of wins of the candidate, what the experiment would find"""


class Look(NamedTuple):
    """The state of an experiment at one of the times at which the demonstration looked at its verdict."""

    sessions: int
    """how many interleaved lists had been answered"""
    share: float
    """the share of the candidate among those that one side won"""
    e_value: float
    """the evidence that people prefer one side"""


class Trial(NamedTuple):
    """What became of one candidate learner: its true value, its experiment, and whether it was promoted."""

    learner: str
    """the candidate, by name and parameters"""
    about: str
    """what it is, in words"""
    served: float
    """the true value of the learner that serves, as it ranks in the experiment: expected clicks a list"""
    value: float
    """the true value of the candidate, likewise"""
    shadow: Agreement
    """how much its lists agree with those shown, before anybody saw one of them"""
    found: Experiment
    """what the experiment says at its end"""
    looks: tuple[Look, ...]
    """how it stood at each look"""
    promoted: bool
    """whether the gate let it pass"""
    reasons: tuple[str, ...]
    """why the gate did not let it pass, a sentence each; () if it did"""


class Rollback(NamedTuple):
    """How the promotion of a candidate was taken back, and what was checked after that."""

    learner: str
    """the learner that had been promoted"""
    to: int
    """the version before the promotion"""
    left_out: int
    """how many answers the rollback left out"""
    again: str
    """the learner that serves after it"""
    other_bits: bool
    """whether the promoted model had another state than the one before (True if the check can tell anything)"""
    same_bits: bool
    """whether the state of the model is the one before the promotion, bit for bit"""
    same_lists: bool
    """whether it ranks the items of some requests as it did before the promotion"""
    problems: tuple[str, ...]
    """what `Loop.verify`, which makes the model from the whole log again, finds wrong"""


class Proof(NamedTuple):
    """The result of `heedful demo --proof`: what a log, a plan and experiments said of candidates, and the truth."""

    seed: int
    """the seed of the shop and of all that people do"""
    sizes: Sizes
    """how many lists each step took"""
    caller: float
    """the true value of the shop's own order: expected clicks a list"""
    best: float
    """the true value of the order by the mean taste of all people, which no common ranker exceeds by much"""
    blind: Evaluation
    """what a log without exploration says"""
    blind_true: dict[str, float]
    """the true value of each learner after that log, by name: expected clicks a list"""
    log: Evaluation
    """what a log with exploration says"""
    log_true: dict[str, float]
    """the true value of each learner after that log"""
    plan: Plan
    """what an experiment would find, estimated before the first one"""
    trials: tuple[Trial, ...]
    """the candidates, in the order in which they were tried"""
    rollback: Rollback | None
    """how the promotion was undone; None if no candidate was promoted"""


# ---------------------------------------------------------------------------- the steps


def prove(sizes: Sizes, seed: int, advance: Callable[[str, int], None] = lambda step, lists: None) -> Proof:
    """Make a simulated shop with `seed`, try the candidate learners in it, and return what came out.

    `sizes` says how many lists each step takes. `advance` is called with the name of the present step and how many
    lists were shown since the last call."""
    shop = make_shop(seed, people=sizes.people)
    with TemporaryDirectory(prefix="heedful-proof-", ignore_cleanup_errors=True) as folder:
        with _loop(Path(folder) / "blind", shop, 0.0, seed) as loop:
            _Visits(loop, shop, seed).show(sizes.blind, lambda n: advance("a log without exploration", n))
            blind = loop.evaluate(*CANDIDATES)
            blind_true = _after_log(shop, seed, sizes, blind)
        with _loop(Path(folder) / "shop", shop, SAMPLED, seed) as loop:
            visits = _Visits(loop, shop, seed)
            visits.show(sizes.log, lambda n: advance("a log with exploration", n))
            log, plan = loop.evaluate(*CANDIDATES), _plan(loop, sizes)
            log_true = _after_log(shop, seed, sizes, log)
            trials, rollback = [], None
            for learner in CANDIDATES:
                if rollback is None:
                    trial, rollback = _try(visits, sizes, learner, advance)
                    trials.append(trial)
    caller = _value(shop, seed, sizes, shop.scores)
    best = _value(shop, seed, sizes, shop.X @ shop.tastes.mean(axis=0))
    return Proof(seed, sizes, caller, best, blind, blind_true, log, log_true, plan, tuple(trials), rollback)


def _loop(path: Path, shop: Shop, sampled: float, seed: int) -> Loop:
    """Return a new loop of the items of `shop` in the folder `path`, with this share of `sampled` lists."""
    rows = shop.rows()
    settings = Settings(k=SIZE, control=0.0, sampled=sampled, durable="feedback", seed=seed)
    return Loop.create(path, encoding=infer(rows), items=rows, learner=SERVED, settings=settings)


class _Visits:
    """People who come to a shop whose lists a loop makes, one after the other."""

    def __init__(self, loop: Loop, shop: Shop, seed: int) -> None:
        self.loop, self.shop, self.seed = loop, shop, seed
        self.names = [row["id"] for row in shop.rows()]
        self._items = {name: j for j, name in enumerate(self.names)}
        self._clicks = np.random.default_rng([seed, 1])
        self._requests = shop.requests(np.random.default_rng([seed, 2]))
        self._count = 0

    def show(self, lists: int, advance: Callable[[int], None]) -> None:
        """Let simulated people see `lists` lists and click; `advance` gets the number of lists after each group."""
        for start in range(0, lists, GROUP):
            group = min(GROUP, lists - start)
            self.loop.feedback_many([self._visit(request) for request in islice(self._requests, group)])
            advance(group)

    def _visit(self, request: ShopRequest) -> dict[str, Any]:
        self._count += 1
        candidates, prior = self.offered(request)
        decision = self.loop.decide(candidates, person=f"person-{request.person}", prior=prior, show=SIZE,
                                id=f"list-{self._count}")  # fmt: skip
        clicked = self.shop.click(request.person, [self._items[name] for name in decision.shown], self._clicks)
        answer = {"clicks": [self.names[j] for j in clicked]} if clicked else {"none": True}
        return {"decision": decision.id, "id": f"answer-{self._count}", **answer}

    def offered(self, request: ShopRequest) -> tuple[list[str], list[float]]:
        """Return the names of the candidates of `request`, and the shop's scores of them."""
        return [self.names[j] for j in request.candidates], self.shop.scores[request.candidates].tolist()

    def features(self, request: ShopRequest) -> Any:
        """Return the features of the candidates of `request` as learners see them."""
        candidates, prior = self.offered(request)
        return self.loop.decider.parse(candidates, None, prior, None).x

    def rankings(self, requests: int) -> list[tuple[str, ...]]:
        """Return how the learner that serves ranks the candidates of some `requests`."""
        rankings = []
        for request in islice(_truth_requests(self.shop, self.seed), requests):
            candidates, prior = self.offered(request)
            rankings.append(tuple(self.loop.ranking(candidates, prior=prior).ranking))
        return rankings


def _try(
    visits: _Visits, sizes: Sizes, learner: str, advance: Callable[[str, int], None]
) -> tuple[Trial, Rollback | None]:
    """Try a candidate: it logs what it would show, then drafts lists until the verdict; take a promotion back again."""
    loop = visits.loop
    loop.start_experiment(learner, alpha=ALPHA / len(CANDIDATES), id=f"shadow {learner}")
    visits.show(sizes.shadow, lambda n: advance(f"shadow: {learner}", n))
    shadow = loop.experiment().agreement
    loop.stop_experiment(id=f"shadow {learner}")
    loop.start_experiment(learner, share=SHARE, frozen=True, alpha=ALPHA / len(CANDIDATES), id=f"try {learner}")
    served, value = _true_values(visits, sizes)
    experiment, looks, shown = loop.experiment(), list[Look](), 0
    while shown < sizes.limit and experiment.verdict.verdict == "undecided":
        group = min(sizes.look, sizes.limit - shown)
        visits.show(group, lambda n: advance(f"interleaving: {learner}", n))
        shown, experiment = shown + group, loop.experiment()
        looks.append(Look(experiment.verdict.sessions, experiment.verdict.share, experiment.verdict.e_value))
    reasons, rollback = tuple[str, ...](), None
    before = _State.of(visits)
    try:
        loop.promote(by="demo", reason="heedful demo --proof", id=f"promote {learner}")
    except NotReady as error:
        reasons = error.reasons
        loop.stop_experiment(id=f"try {learner}")
    else:
        visits.show(sizes.after, lambda n: advance(f"promoted: {learner}", n))
        rollback = _roll_back(visits, learner, before)
    about = CANDIDATES[learner]
    return Trial(learner, about, served, value, shadow, experiment, tuple(looks), not reasons, reasons), rollback


class _State(NamedTuple):
    """What has to come back after a rollback: the model, and how it ranks the items of some requests."""

    version: int
    arrays: dict[str, tuple[str, tuple[int, ...], bytes]]
    rankings: list[tuple[str, ...]]

    @classmethod
    def of(cls, visits: _Visits) -> _State:
        state = visits.loop.projection.published
        arrays = arrays_of(state.shared, "shared")
        stored = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items()}
        return cls(state.version, stored, visits.rankings(20))


def _roll_back(visits: _Visits, learner: str, before: _State) -> Rollback:
    promoted = _State.of(visits)
    back = visits.loop.rollback(before.version, reason="heedful demo --proof", id="back")
    after = _State.of(visits)
    return Rollback(
        learner, before.version, back.left_out, visits.loop.manifest.learner, promoted.arrays != before.arrays,
        after.arrays == before.arrays, after.rankings == before.rankings, tuple(visits.loop.verify()),
    )  # fmt: skip


def _plan(loop: Loop, sizes: Sizes) -> Plan:
    """Return the plan of an experiment of `sizes.limit` lists."""
    # A plan counts days, and people come here as fast as the program runs: so many days are this many lists.
    times = [event.time for event in islice(loop.projection.log.newest_first(2**62, "decision"), MOST_SESSIONS)]
    days = max((max(times) - min(times)) / MICROSECONDS, 1e-6) * sizes.limit / len(times)
    plan = plan_experiment(loop.projection, SHARE, days, ALPHA / len(CANDIDATES))
    wins = [
        PlannedWin(win.share, win.found, None if win.days is None else round(plan.sessions * win.days / days))
        for win in plan.wins
    ]
    return Plan(plan.people, plan.sessions, plan.ties, tuple(wins))


# ---------------------------------------------------------------------------- the truth


def _truth_requests(shop: Shop, seed: int) -> Iterator[ShopRequest]:
    return shop.requests(np.random.default_rng([seed, 3]))


def _value(shop: Shop, seed: int, sizes: Sizes, scores: Floats) -> float:
    """Return the true value of ranking items by their `scores` (m,)."""
    return _mean_clicks(shop, seed, sizes, lambda request: np.argsort(-scores[request.candidates], kind="stable"))


def _after_log(shop: Shop, seed: int, sizes: Sizes, evaluation: Evaluation) -> dict[str, float]:
    """Return the true value of each learner with the weights that it has at the end of the log, by name."""
    true = {}
    for learner in evaluation.learners:
        *features, score_weight = learner.weights.values()  # the last is that of the caller's score
        true[learner.learner] = _value(shop, seed, sizes, shop.X @ np.array(features) + score_weight * shop.scores)
    return true


def _true_values(visits: _Visits, sizes: Sizes) -> tuple[float, float]:
    """Return the true values of the two sides of the experiment that runs: (the learner that serves, the candidate)."""
    loop = visits.loop
    loop.projection.look()
    running = loop.projection.published.running
    if running is None or running.own is None:
        raise RuntimeError("expected an experiment with frozen sides")

    def value(side: Side) -> float:
        return _mean_clicks(visits.shop, visits.seed, sizes, lambda request: side.order(None, visits.features(request)))

    return value(running.own), value(running.candidate)


def _mean_clicks(shop: Shop, seed: int, sizes: Sizes, order: Callable[[ShopRequest], Any]) -> float:
    """Return the mean of the expected clicks on a ranker's lists, over the same requests; `order` is best first."""
    total = 0.0
    for request in islice(_truth_requests(shop, seed), sizes.truth):
        total += shop.expected_clicks(request.person, request.candidates[order(request)][:SIZE].tolist())
    return total / sizes.truth
