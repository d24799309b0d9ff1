"""Measure how well other learners would have predicted the answers in the same log. One procedure for all kinds of
feedback.

All learners learn from the log side by side, one answer after another, and each predicts an answer before it learns
from it; a learner frozen at a version stops learning there, one restarted at a version or a date begins there. The
measures that the predictions are compared by, and the weights of the answers, come from the loop's interaction
(`heedful.evaluation.expected`). Nothing is changed. The file is long because each measure collects sums of its
own in that one pass over the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_alpha, describe
from heedful.core.wording import count
from heedful.evaluation import examination
from heedful.evaluation.expected import Compared, ListClick
from heedful.evaluation.off_policy import EXPLORATION, LEAST, Estimate, Refusal, estimate, importance
from heedful.evaluation.ratio import ratio
from heedful.jit.kernel import Floats, Ints
from heedful.loop.growing import Column, GrowingTable, Marks, People
from heedful.loop.history import History
from heedful.loop.interactions.lists import list_clicks, place_weights
from heedful.loop.interactions.protocol import Interaction, LoggedAnswer, Step, find_candidate
from heedful.loop.records import check_time
from heedful.loop.silence import broken_silences
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, PositionBias, Value, Verdict

LISTS = (
    "List value is the mean score of the lists that a learner would have shown. The score is {score}. Lists that were "
    "shown are weighted by the probability that the learner shows them over that with which they were shown."
)
NO_LISTS = "no list with a known probability was answered"
EXPLORE = "Draw a share of lists at random, with their probabilities (heedful init --sampled 0.01)."
EXPERIMENT = (
    "Try it in an experiment, in which people choose from lists of both learners (heedful experiment NAME --start "
    "LEARNER --share 0.2)."
)
RARE = f"Whole lists are seldom the same, first places are more often: see the item-position value. {EXPERIMENT}"
CHOSEN = "the share of the first three places in which something would have been chosen"
NO_PLACES = "no list that was drawn at random was answered"
ITEM_PLACE = Measure(
    "item-position value",
    f"Item-position value is {CHOSEN}, if a choice depends on the item and its place alone: places of lists that were "
    "drawn at random where the learner has the same item, each weighted by 1 over the probability of that item there.",
    NO_PLACES,
    EXPLORE,
    counts="list",
)
CASCADE = Measure(
    "cascade value",
    f"Cascade value is {CHOSEN}, if a choice depends on what stands up to its place alone: places of lists that were "
    "drawn at random up to which the learner has the same items, weighted by 1 over the probability of these.",
    NO_PLACES,
    EXPLORE,
    counts="list",
)
CLICKS = Measure(
    "examination-weighted clicks",
    "Examination-weighted clicks is a second measure, which assumes more than the first: that how much people look at "
    "a place depends on the place alone, not on what stands above it. It is the mean of 1 / log2(1 + rank) over "
    "clicks, by the rank that a learner gives to the item clicked among those shown{places}, before it learns from the "
    "answer. A click weighs 1 over the examination of its place, which is how much people look there compared with the "
    "first place, estimated from items shown in either order at random. Its intervals allow for that estimate, and "
    "hold at one look.",
    "too few items that were shown in either order at random at the first two places were clicked",
    "More clicks.",
    counts="click",
)
MOST_DECISIONS = 10**9
"""More decisions than these are not said to be needed."""
BETTER_WORSE: tuple[Verdict, Verdict] = ("better", "worse")


def evaluate(
    projection: History,
    specs: Sequence[str],
    alpha: float = 0.05,
    own: str | None = None,
    up_to: int | None = None,
    least_probability: float | None = None,
) -> Evaluation:
    """Let learners learn from a loop's log, and compare what each predicts with each answer before it learns from it.

    `projection` is the loop's log with its model. The learners are the loop's own, which comes first, and those that
    `specs` name, with parameters ("NAME:rate=0.2"): "NAME@VERSION" stops learning after that version (sequence number),
    "NAME@VERSION.." or "NAME@2026-01-31T12:00:00Z.." begins to learn after it. Each interval misses with probability
    `alpha` at most, 1e-6 to 0.5. Without `specs` some kinds of feedback name baselines. `own` names another learner to
    compare with in place of the loop's own; answers up to event `up_to` count, or all. `least_probability` is the least
    with which any list could have been shown, if that is known. Raise ValueError if there is no such learner, if it
    does not fit the loop, or if it fails on the log."""
    check_alpha(alpha)
    own = projection.manifest.learner if own is None else own
    for spec in specs:
        if not isinstance(spec, str) or not spec:
            raise ValueError(f"learner: expected its name, such as {own}, got {describe(spec)}")
    specs = specs or projection.interaction.baselines(list(projection.catalogue.current))
    named = [own, *dict.fromkeys(spec for spec in specs if spec != own)]
    folds = [_Fold(projection, spec) for spec in named]
    interaction, after = projection.interaction, max(fold.after for fold in folds)
    compared = [(_Sums(measure, len(folds)), compare) for measure, compare in interaction.measures()]
    sums = [each for each, _ in compared]
    clicks, answered = _Clicks(len(folds)), Marks()
    lists, places = _Lists(interaction, len(folds), least_probability), _Places(interaction, len(folds))
    models = [fold.model for fold in folds]
    broken = broken_silences(projection)
    for event, decision, feedback in projection.steps(models):
        if up_to is not None and event.seq > up_to:
            break
        step = projection.step(event, decision, feedback)
        try:
            if event.seq > after and event.seq not in broken:
                who = decision.seq if decision.person is None else decision.person
                answered.add(decision.seq)
                said = LoggedAnswer(interaction, [model.view(decision.person) for model in models], step)
                for sum_, compare in compared:
                    sum_.add(who, decision.seq, compare(said))
                clicks.add(who, decision.seq, list_clicks(interaction, said) if interaction.linear else None)
                lists.add(who, said)
                places.add(who, said)
            for fold in folds:
                fold.learn(step)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {' or '.join(named)} failed on feedback {event.id}: {error}") from error
    known: list[_Sums | _ClickValue | _ListValue | _PlaceValue]
    known = [*sums, *clicks.found(sums[0].measure.remedy), *lists.found(), *places.found()]
    known.sort(key=lambda each: not each.measure.decisive)  # stable
    values = [[needing(value, answered.n) for value in each.values(alpha)] for each in known]
    found = [
        LearnerEvaluation(fold.spec, fold.lessons, fold.weights(), tuple(value[j] for value in values))
        for j, fold in enumerate(folds)
    ]
    bias = clicks.bias(alpha)
    return Evaluation(tuple(found), tuple(each.measure for each in known), alpha, after, position_bias=bias,
                      decisions=answered.n)  # fmt: skip


class _Fold:
    """One learner that learns from the log, named `spec`: from all of it; up to a version ("NAME@VERSION", frozen
    there); or only from what came after a version or a date ("NAME@VERSION..", "NAME@DATE..", restarted there)."""

    def __init__(self, projection: History, spec: str) -> None:
        name, at, when = spec.partition("@")
        stops = bool(at) and not when.endswith("..")
        self.spec, self.start, self.frozen = spec, 0, _version(projection, when, spec) if stops else None
        if at and self.frozen is None:
            self.start = _start(projection, when.removesuffix(".."), spec)
        self._interaction = projection.interaction
        self.model = find_candidate(projection.interaction, name, projection.interaction.policies)
        self.lessons = 0

    @property
    def after(self) -> int:
        """the version after which this learner's predictions can be compared with those of others: where it stops or
        begins
        """
        return max(self.start, self.frozen or 0)

    def learn(self, step: Step) -> None:
        if step.event.seq > self.start and (self.frozen is None or step.event.seq <= self.frozen):
            self.lessons += self.model.teach(step.context, step.feedback, step.extra, step.event.seq)

    def weights(self) -> dict[str, float]:
        found = np.asarray(self.model.effective(self.model.view()), float)
        return dict(zip(self._interaction.names, found.tolist())) if found.ndim == 1 else {}


def _version(projection: History, told: str, spec: str) -> int:
    """Return the version, a sequence number in the log, that the text `told` in a learner's name `spec` states."""
    if _is_number(told):
        last = projection.log.last()[0]
        if len(told) > 18 or int(told) > last:
            raise ValueError(f"learner: expected a version from 0 to {last}, got {describe(spec)}")
    else:
        expected = "expected NAME@VERSION, with the number of an event, NAME@VERSION.. or NAME@DATE.."
        raise ValueError(f"learner: {expected}, got {spec}")
    return int(told)


def _is_number(told: str) -> bool:
    return told.isascii() and told.isdecimal()


def _start(projection: History, told: str, spec: str) -> int:
    """Return the version after which a learner begins to learn, from `told`, a sequence number or a date in its name
    `spec`."""
    try:
        when = None if _is_number(told) else check_time("learner", told)
    except ValueError:
        when = None
    if when is None:
        return _version(projection, told, spec)
    return max((event.seq for event in projection.log.events(kinds=["feedback"]) if event.time < when), default=0)


class _Sums:
    """Sums over the comparisons of the predictions of all learners with answers, by one `measure`; `values` estimates
    from them. `learners` is the number of learners."""

    def __init__(self, measure: Measure, learners: int) -> None:
        self.measure, self._learners = measure, learners
        self._low, self._span = measure.low, measure.high - measure.low
        """the least value of the measure, and how far the greatest is above it"""
        self._open, self._most = self._span <= 0.0, 0.0
        """whether the greatest value is what the comparisons say was possible, and the greatest of these so far; the
        least is 0"""
        self._people, self._counted = People(), Marks()
        self._sums = GrowingTable(3 + learners)
        """for each person: number of comparisons, sum of weights, sum of squared weights, sum of weighted values of
        each learner"""
        self._total = np.zeros(3)
        """the first three of all people"""
        self._most_weight = 1.0
        """the greatest weight that any comparison could have had"""

    def add(self, who: str | int, decision: int, compared: Compared | None) -> None:
        if compared is None or (self.measure.once and decision in self._counted):
            return
        w = compared.weights
        if not w.size:
            return
        if self.measure.once:
            self._counted.add(decision)
        self._most_weight = max(self._most_weight, compared.most_weight)
        row = np.empty(3 + self._learners)
        row[0], row[1], row[2] = w.size, np.add.reduce(w), w.dot(w)
        if self._open:
            self._most = max(self._most, compared.most)
            row[3:] = compared.values @ w
        else:
            row[3:] = ((compared.values - self._low) / self._span).dot(w)
        self._sums.add(self._people.number(who), row)
        self._total += row[:3]

    def values(self, alpha: float) -> list[Value]:
        """Return, for each learner in order, its mean by the measure and its difference to the loop's own learner.

        Each interval misses with probability `alpha` at most."""
        if not self._people.n:
            return [refused(self.measure, self.measure.missing, self.measure.remedy)] * self._learners
        sums = self._sums.rows
        if self._open:
            self.measure = self.measure._replace(high=self._most or 1.0)
            sums = np.column_stack([sums[:, :3], sums[:, 3:] / self.measure.high])
        whole, *parts = (sums[:, j] / sums[:, 0] for j in (1, *range(3, sums.shape[1])))
        own = parts[0]
        return [self._value(whole, part, None if j == 0 else own, alpha) for j, part in enumerate(parts)]

    def _value(self, whole: Floats, part: Floats, own: Floats | None, alpha: float) -> Value:
        name, least, bound = self.measure.name, self.measure.low, self._most_weight
        span = self.measure.high - least
        if np.isnan(part).any():
            return refused(self.measure, "it predicts nothing of the sort", "")
        value, low, high = (least + span * each for each in ratio(part, whole, bound, alpha))
        n, effective = int(self._total[0]), float(self._total[1] ** 2 / self._total[2])
        found = Value(name, value, low, high, n, whole.size, effective, None, None, None, "", "", "")
        if own is None or np.isnan(own).any():
            return found
        by = ratio((whole + part - own) / 2.0, whole, bound, alpha)
        gap, low, high = (span * (2.0 * each - 1.0) for each in by)
        return _with_difference(found, gap, low, high, self.measure.more_is_better)


class _Lists:
    """The value of the lists that each learner would have shown, estimated from the lists that were: their scores with
    weights pi / mu.

    pi is the probability with which the learner would show the logged list, mu that with which it was shown (inverse
    propensity scoring of whole lists). `learners` is the number of learners; `interaction` reads the decisions;
    `least` is the least probability with which any list could have been shown, None if that is not known."""

    def __init__(self, interaction: Interaction[Any], learners: int, least: float | None) -> None:
        low, high = interaction.span
        own = interaction.list_measures()
        about = LISTS.format(score=interaction.words.score)
        mean = Measure("list value", about, NO_LISTS, EXPLORE, low, high, once=True, counts="list")
        self._values = own or ((mean, self._score),)
        self._measures = [measure for measure, _ in self._values]
        self._always = bool(own)
        """whether the measures are told of even if no list has a value"""
        self._interaction, self._learners = interaction, learners
        self._counted, self._people, self._who = Marks(), People(), Column()
        self._rows = GrowingTable(1 + learners + len(self._measures))
        """for each decision: mu, pi of each learner, its score by each measure"""
        self._most = None if least is None else 1.0 / least
        """the greatest weight that is possible"""
        self._drawn = False
        """whether any of them was drawn at random"""

    def _score(self, said: LoggedAnswer) -> float | None:
        return self._interaction.score(said.step.decision, [said.step.feedback])

    def add(self, who: str | int, said: LoggedAnswer) -> None:
        decision = said.step.decision
        mu = decision.record.probability
        if mu is None or decision.seq in self._counted:
            return
        scores = [score for _, value in self._values if (score := value(said)) is not None]
        pi = self._interaction.chances(said) if len(scores) == len(self._values) else None
        if pi is None:
            return
        self._counted.add(decision.seq)
        self._who.append(self._people.number(who))
        self._rows.append((mu, *pi.tolist(), *scores))
        self._drawn = self._drawn or decision.record.arm == "sampled"

    def found(self) -> list[_ListValue]:
        """Return each measure with its values, if a list had one: if it was answered, its probability is known, and
        this kind of feedback says how likely a learner would show it."""
        logged, chances, scores = np.hsplit(self._rows.rows, (1, 1 + self._learners))
        weights, who = importance(chances, logged), self._who.numbers
        if not len(who):
            return [_ListValue(each, weights, weights[:, 0], who, None) for each in self._measures if self._always]
        rare = self._drawn and not self._always
        measures = [each._replace(remedy=RARE) if rare else each for each in self._measures]
        return [_ListValue(each, weights, scores[:, j], who, self._most) for j, each in enumerate(measures)]


class _ListValue(NamedTuple):
    """The value of the lists that each of L learners would have shown by one `measure`, from n decisions.

    `weights` (n, L) are the weights pi / mu, `scores` (n,) those of the lists shown, `who` (n,) numbers the people who
    answered; `most` is the greatest weight that is possible, None if that is unknown."""

    measure: Measure
    weights: Floats
    """(n, L)"""
    scores: Floats
    """(n,)"""
    who: Ints
    """(n,)"""
    most: float | None

    def values(self, alpha: float) -> list[Value]:
        """Return, for each learner in order, the estimated mean score of the lists that it would have shown.

        Each difference to the loop's own learner misses with probability `alpha` at most."""
        found = [self._value(self.weights[:, j], alpha / 2.0) for j in range(self.weights.shape[1])]
        return [found[0], *(judge(each, found[0], self.measure.more_is_better) for each in found[1:])]

    def _value(self, weights: Floats, alpha: float) -> Value:
        n = len(self.who)
        if not n:
            return refused(self.measure, self.measure.missing, self.measure.remedy)
        if np.isnan(weights).any():
            return refused(self.measure, "it draws what it shows and does not say how likely", EXPERIMENT)
        found = estimate(
            _column(weights),
            _column(self.scores),
            span=(self.measure.low, self.measure.high),
            people=self.who,
            most=self.most,
            alpha=alpha,
        )
        if isinstance(found, Refusal) and found.remedy == EXPLORATION:
            found = found._replace(remedy=self.measure.remedy)
        return weighted(self.measure, found, n, int(self.who.max()) + 1)


class _Clicks:
    """The clicks on lists of the log, for `learners` learners: what they say of how much people look at each place, and
    of the learners.

    A decision may be answered several times, as clicks come one by one; each item counts once."""

    def __init__(self, learners: int) -> None:
        self._learners, self._counted, self._people = learners, Marks(), People()
        self._lists = GrowingTable(1, small=True)
        """for each person, how many of their lists were answered"""
        self._decisions, self._who, self._rows = Column(), Column(), GrowingTable(3 + learners, small=True)
        """for each click: its decision, the person, and its place, its weights as the upper and as the lower one of two
        random neighbours, and what each learner ranks before it"""

    def add(self, who: str | int, decision: int, clicks: Sequence[ListClick] | None) -> None:
        if clicks is None:
            return
        number = self._people.number(who)
        self._lists.add(number, (float(decision not in self._counted),))
        self._counted.add(decision)
        for place, upper, lower, above in clicks:
            self._decisions.append(decision)
            self._who.append(number)
            self._rows.append((place, upper, lower, *above))

    @cached_property
    def _clicks(self) -> examination.Clicks:
        rows, decision = self._rows.rows, self._decisions.numbers
        at = decision * examination.MOST_PLACES + rows[:, 0].astype(np.int64)
        first = np.sort(np.unique(at, return_index=True)[1])  # each item of a list once
        person, rows = self._who.numbers[first], rows[first].astype(np.float64)
        place, above = rows[:, 0].astype(np.int64), rows[:, 3:].astype(np.int64)
        upper, lower = rows[:, 1:3].T
        return examination.Clicks(person, place, upper, lower, above, 1.0 / self._lists.rows[person, 0])

    def found(self, remedy: str) -> list[_ClickValue]:
        """Return the measure of learners by clicks, if there were any; `remedy` says how neighbours come to be shown in
        either order at random."""
        if not self._rows.n:
            return []
        places = examination.reliable_places(self._clicks)
        there = "" if places == 1 else f" at the first {places} places"
        remedy = CLICKS.remedy if examination.pair_clicks(self._clicks)[0] else remedy
        measure = CLICKS._replace(about=CLICKS.about.format(places=there), remedy=remedy)
        return [_ClickValue(measure, self._clicks, places)]

    def bias(self, alpha: float) -> tuple[PositionBias, ...] | None:
        """Return how much people look at each place compared with the one above it, for places with at least LEAST
        clicks on both; None if there is none.

        Each interval misses with probability `alpha`."""
        if not self._rows.n:
            return None
        tally = examination.pair_clicks(self._clicks).tolist()
        found = [
            PositionBias(place + 1, *examination.neighbour_ratio(self._clicks, place, alpha), n)
            for place, n in enumerate(tally)
            if n >= LEAST
        ]
        return tuple(found) or None


class _ClickValue(NamedTuple):
    """The value of rankings by `clicks` that are weighted by examination, which is known for so many `places`."""

    measure: Measure
    clicks: examination.Clicks
    places: int

    def values(self, alpha: float) -> list[Value]:
        """Return the value of each learner, in the order of the learners; each interval and that of each difference
        misses with probability `alpha`."""
        found = examination.estimate(self.clicks, self.places) if self.places > 1 else None
        if found is None:
            n = int(examination.pair_clicks(self.clicks)[0])
            told = f"the first two places have {count(n, 'click')} on items that were shown there in either order at "
            told += f"random, and it takes {examination.LEAST_CLICKS} of two people or more"
            return [refused(self.measure, told, self.measure.remedy)] * self.clicks.above.shape[1]
        values: list[Value] = []
        for j, (value, error, apart) in enumerate(zip(*(part.tolist() for part in found[:3]))):
            low, high = examination.interval(value, error, found.freedom, alpha)
            one = Value(self.measure.name, value, max(low, 0.0), min(high, 1.0), found.clicks, found.people,
                        found.effective, None, None, None, "", "", "")  # fmt: skip
            if j > 0:
                gap = value - float(found.values[0])
                low, high = examination.interval(gap, apart, found.freedom, alpha)
                one = _with_difference(one, gap, low, high)
            values.append(one)
        return values


class _Places:
    """Estimates, from lists that were drawn at random, of how often something would be chosen at the first three places
    of each learner's ranking: by item and place (Li et al. 2018) and by all places so far (McInerney et al. 2020)."""

    def __init__(self, interaction: Interaction[Any], learners: int) -> None:
        self._interaction, self._learners = interaction, learners
        self._people, self._who, self._decisions = People(), Column(), Column()
        self._each, self._so_far = GrowingTable(3 * learners), GrowingTable(3 * learners)
        """for each answer, the weights of each learner at each place (L, 3)"""
        self._chosen = GrowingTable(3)

    def add(self, who: str | int, said: LoggedAnswer) -> None:
        told = place_weights(self._interaction, said)
        if told is None:
            return
        self._decisions.append(said.step.decision.seq)
        self._who.append(self._people.number(who))
        for kept, part in zip((self._each, self._so_far, self._chosen), told):
            kept.append(part.ravel())

    def found(self) -> list[_PlaceValue]:
        """Return both measures, if any list was drawn and answered.

        Of a list that was answered several times, as clicks come one by one, all is chosen that any answer chose; the
        weights are those of the first."""
        if not len(self._who):
            return []
        _, first, number = np.unique(self._decisions.numbers, return_index=True, return_inverse=True)
        chosen = np.zeros((first.size, 3))
        np.maximum.at(chosen, number, self._chosen.rows)
        order = np.argsort(first)  # of arrival
        first, chosen = first[order], chosen[order]
        who, shape = self._who.numbers[first], (-1, self._learners, 3)
        pairs = (ITEM_PLACE, self._each), (CASCADE, self._so_far)
        return [_PlaceValue(measure, weights.rows[first].reshape(shape), chosen, who) for measure, weights in pairs]


class _PlaceValue(NamedTuple):
    """The value of the first three places of each learner's ranking, estimated with one kind of weights, for n
    decisions and L learners.

    `weights` (n, L, 3) weight the places; `chosen` (n, 3) is 1 where what stood there was chosen; `who` (n,) numbers
    the people who answered."""

    measure: Measure
    weights: Floats
    """(n, L, 3)"""
    chosen: Floats
    """(n, 3)"""
    who: Ints
    """(n,)"""

    def values(self, alpha: float) -> list[Value]:
        """Return the value of each learner, in the order of the learners; each difference misses with probability
        `alpha` at most."""
        found = [self._value(self.weights[:, j], alpha / 2.0) for j in range(self.weights.shape[1])]
        return [found[0], *(judge(each, found[0]) for each in found[1:])]

    def _value(self, weights: Floats, alpha: float) -> Value:
        found = estimate(weights.astype(np.float64), self.chosen.astype(np.float64), people=self.who, alpha=alpha)
        if not isinstance(found, Refusal):
            k = weights.shape[1]
            found = found._replace(value=found.value / k, low=found.low / k, high=found.high / k)
        return weighted(self.measure, found, len(self.chosen), int(self.who.max()) + 1)


def refused(measure: Measure, reason: str, remedy: str) -> Value:
    """Return a `Value` without an estimate of `measure`, because the log does not determine it."""
    return Value(measure.name, None, None, None, 0, 0, 0.0, None, None, None, "", reason, remedy)


def needing(value: Value, decisions: int) -> Value:
    """Return `value` with about how many decisions it takes to tell the difference, by that of so many `decisions`.

    An interval is as wide as 1 / sqrt(decisions), as long as these are by as many people in proportion."""
    gap, low, high = value.difference, value.difference_low, value.difference_high
    if gap is None or low is None or high is None or abs(gap) < 1e-12:
        return value
    if min(value.effective, value.people) < LEAST:
        return value
    half = gap - low if gap > 0.0 else high - gap
    needed = decisions * (half / gap) ** 2
    return value._replace(decisions_needed=max(math.ceil(needed), 1) if needed <= MOST_DECISIONS else None)


def weighted(measure: Measure, found: Estimate | Refusal, comparisons: int, people: int) -> Value:
    """Return `found`, an off-policy estimate of a mean score, as a `Value` of `measure`.

    Off-policy: of lists that a learner would have shown, from those that were. `comparisons` is the number of lists
    behind it, `people` the number of people. A `Refusal`, an estimate that is not possible, becomes a value without
    estimate.
    """
    if isinstance(found, Refusal):
        return refused(measure, found.reason, found.remedy)
    return Value(
        measure.name, found.value, found.low, found.high, comparisons, people, found.effective,
        None, None, None, "", "", "", found.mean_weight, found.unsupported, found.warning,
    )  # fmt: skip


def _column(values: Floats) -> npt.NDArray[np.float64]:
    return np.asarray(values, np.float64)[:, None]


def judge(value: Value, own: Value, more_is_better: bool = True) -> Value:
    """Return `value`, a learner's value by a measure, with its difference to `own`, that of the loop's own learner, and
    a verdict.

    `more_is_better` is False for a measure such as a cost. The verdict is "better" or "worse" if the two intervals do
    not overlap. A value without estimate is returned as it is."""
    ends = value.value, value.low, value.high, own.value, own.low, own.high
    if None in ends:
        return value
    mine, low, high, theirs, least, most = (float(each or 0.0) for each in ends)
    return _with_difference(value, mine - theirs, low - most, high - least, more_is_better)


def _with_difference(value: Value, gap: float, low: float, high: float, more_is_better: bool = True) -> Value:
    above, below = BETTER_WORSE if more_is_better else BETTER_WORSE[::-1]
    verdict: Verdict = above if low > 0.0 else below if high < 0.0 else "cannot be told"
    return value._replace(difference=gap, difference_low=low, difference_high=high, verdict=verdict)
