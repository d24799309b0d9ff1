"""Compute the state of an experiment, whether its candidate may be promoted, and what is left of the evidence of
promotions.

An experiment compares a candidate learner (side B) with the one that serves (side A). For a share of people both sides
draft each list together (team-draft interleaving, `heedful.evaluation.interleaving`). Such a list, with all its pages,
is one session. Of each page only the first answer counts that says anything. The first of these that credits the items
of one side more (`heedful.evaluation.answers.credit`) decides the session for that side.

All of it is computed from the log in one pass over what came since the experiment began, so it is the same for anyone
who looks, at any time: feedback that was undone and people who were forgotten leave no trace. The file is long because
the state of an experiment, the conditions of a promotion and a plan rest on the same sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.core.validation import check_alpha, check_between
from heedful.evaluation import answers
from heedful.evaluation.interleaving import (
    Match,
    Plan,
    Verdict,
    plan,
    position_credit,
    session_outcome,
    split_evidence,
)
from heedful.evaluation.ratio import ratio
from heedful.loop import records
from heedful.loop.evaluate import evaluate
from heedful.loop.history import History
from heedful.loop.log import Event
from heedful.loop.records import DecisionRecord
from heedful.loop.serving import (
    KINDS,
    NOT_INTERLEAVED,
    ExperimentRecord,
    PromotionRecord,
    orders,
    read_experiment,
    read_promotion,
    takes_part,
)
from heedful.loop.silence import is_silence
from heedful.results.experiment import (
    Agreement,
    Answered,
    Experiment,
    ItemMove,
    PersonAgreement,
    PlannedExperiment,
    PlannedWin,
    Promotion,
    Split,
)

BROKEN = 1000.0
"""The e-value from which on a split by chance is taken to be another than was stated."""
LISTED = 20
"""How many items, and how many people, an `Agreement` lists."""
JUDGED_BY = "teams"
"""What the verdict of an experiment, and so the gate of a promotion, counts: which side picked more of what people
chose.

The credit by positions is an estimate beside it. It is not fair where clicks depend on positions alone: a candidate
that puts any item of the bottom on top would be preferred. Picks are fair there: a coin puts either side first."""
LEAST_PEOPLE = 10
"""The fewest people whose answers in the log may promote a learner that was not tried in an experiment."""


VERDICTS = {
    "a": "People prefer the loop's learner, {against}.",
    "b": "People prefer the candidate, {learner}.",
    "undecided": "It cannot be told yet which one people prefer.",
}
"""What the verdicts of an experiment mean, as sentences that name its two learners."""


class NotReady(ValueError):
    """A learner is not promoted, because the evidence for it does not suffice.

    `learner` is its name with parameters, `reasons` are what speaks against it, a sentence each."""

    def __init__(self, learner: str, reasons: tuple[str, ...]) -> None:
        super().__init__(f"promote: {learner} is not ready: {'; '.join(reasons)}; force promotes it anyway")
        self.learner, self.reasons = learner, reasons


# ---------------------------------------------------------------------------- looking


def look(history: History, event: Event, up_to: int = 2**62) -> Experiment:
    """Return the state of the experiment that began with `event`, by the log up to the sequence number `up_to`.

    That is which learner people prefer, how much the lists of the two agree, and checks that it ran as stated.
    `history` is the loop's log with its model."""
    record = read_experiment(event.payload)
    sums = _Sums(history, event, record)
    log, runs = history.log, True
    retractions = log.retractions()
    for each in log.events(event.seq, kinds=["decision", "feedback", "rollback", *KINDS]):
        if each.seq > up_to:
            break
        if each.kind == "decision":
            sums.decide(each, runs)
        elif each.kind == "rollback":  # it may end the experiment, or bring it back
            running = orders(log, log.retractions(each.seq), each.seq).running
            runs = running is not None and running.seq == event.seq
        elif each.kind != "feedback":
            runs = False
        elif each.seq not in retractions and not is_silence(each):
            sums.answer(each)
    now = history.experiment
    return sums.found(now is not None and now[0].seq == event.seq)


class _Shown(NamedTuple):
    """A decision made during an experiment, kept until it is answered.

    `session` is the sequence number of the first page of its list; `match` is what the log keeps of the draft, None if
    the list was not interleaved."""

    session: int
    """the sequence number of the first page of its list"""
    person: str
    match: Mapping[str, Any] | None
    record: DecisionRecord
    event: Event


class _Sums:
    """Counts decisions and answers of one experiment; they have to be given in the log's order. `found` makes the
    result."""

    def __init__(self, history: History, event: Event, record: ExperimentRecord) -> None:
        self._history, self._event, self._record = history, event, record
        self._interaction = history.interaction
        self._match = Match(record.alpha)
        self._outcomes: dict[int, tuple[str, float]] = {}
        self._decisions = 0
        self._shown: dict[int, _Shown] = {}
        self._first: dict[str, int] = {}
        self._decided: set[int] = set()
        self._useful: set[int] = set()
        self._coins = [0, 0]
        self._people: dict[str, bool] = {}
        self._credits: dict[str, dict[int, float]] = {}
        self._compared: list[tuple[float, float]] = []
        self._overlaps: dict[str, list[float]] = {}
        self._in, self._would, self._places = Counter[str](), Counter[str](), dict[str, list[int]]()

    def decide(self, event: Event, runs: bool) -> None:
        """Count the decision in `event`, and keep it until it is answered; `runs`: whether the experiment ran then."""
        known = self._history.decision(event)
        record, person = known.record, known.person
        match = record.proposal if record.arm == "interleaved" else None
        ours = match is not None and match.get("experiment") == self._event.id
        if record.arm == "imported" or not (runs or ours):
            return
        self._decisions += 1
        if record.rival and record.shown and record.arm == "learned":
            self._compare([known.names[j] for j in record.shown], list(record.rival), person)
        if person is None:
            return
        inside = self._people[person] = takes_part(self._event.id, self._record.share, person)
        # The page before may be that of another system, or from before the experiment: then only a draft begins here.
        alone = event.seq if match or not record.after else 0
        session = self._first[event.id] = self._first.get(record.after, alone) if record.after else alone
        if match is not None and not ours:
            return
        if match is not None:
            first, second = self._coins
            ones = sum(match["coins"])
            self._coins = [first + len(match["coins"]) - ones, second + ones]
        if session and (match is not None or (record.arm == "learned" and record.shown and not inside)):
            self._shown[event.seq] = _Shown(session, person, match, record, event)

    def _compare(self, shown: list[str], rival: list[str], person: str | None) -> None:
        both = set(shown) & set(rival)
        overlap = len(both) / len(shown)
        self._compared.append((float(shown[0] == rival[0]), overlap))
        self._in.update(shown)
        self._would.update(rival)
        for item in both:
            self._places.setdefault(item, []).append(shown.index(item) - rival.index(item))
        if person is not None:
            self._overlaps.setdefault(person, []).append(overlap)

    def answer(self, event: Event) -> None:
        """Count a piece of feedback that was not undone; on each page, only the first that says anything counts."""
        shown = self._shown.get(event.target or 0)
        if shown is None or event.target is None or event.target in self._decided:
            return
        known = self._history.decision(shown.event)
        answer = self._interaction.answer(known, records.decode_feedback(event.payload))
        credit = answers.credit(known.record.shown, answer, self._interaction.scale)
        if credit is None:
            return
        self._decided.add(event.target)
        if any(value > 0.0 for value in credit.values()):
            self._useful.add(shown.session)
        if shown.match is None:
            return
        match, slot = shown.match, {j: i for i, j in enumerate(shown.record.shown)}
        slots = {slot[j]: value for j, value in credit.items()}
        x = session_outcome(match["teams"], slots)
        if self._outcomes.get(shown.session, (shown.person, 0.5))[1] == 0.5:  # no page before decided it
            self._outcomes.pop(shown.session, None)  # in the order in which they were decided
            self._outcomes[shown.session] = shown.person, x
        credits = self._credits.setdefault(shown.person, {})
        gained = position_credit(match["ranks"], match["places"], slots)
        credits[shown.session] = credits.get(shown.session, 0.0) + gained

    def found(self, running: bool) -> Experiment:
        """Return what the experiment says by the counts so far; `running` says whether it goes on."""
        record, state = self._record, self._match.init()
        for person, x in self._outcomes.values():
            self._match.update(state, person, x)
        verdict = self._match.verdict(state)
        inside = sum(self._people.values())
        coins = _split(self._coins[0], self._coins[1], 0.5)
        people = _split(len(self._people) - inside, inside, record.share)
        answered = self._answered()
        means = np.array([np.mean(list(each.values())) for each in self._credits.values()])
        error = float(means.std(ddof=1) / math.sqrt(means.size)) if means.size > 1 else None
        return Experiment(
            self._event.id, record.learner, record.against, record.share, record.frozen, record.alpha,
            self._event.seq, running, self._decisions, verdict, float(means.mean()) if means.size else None, error,
            self._agreement(), coins, people, answered, self._match.least_people,
            tuple(_against(record, verdict, coins, people, answered, self._match.least_people)),
        )  # fmt: skip

    def _answered(self) -> Answered:
        sides = dict[str, list[float]](), dict[str, list[float]]()  # by person: 1 for each list answered, else 0
        sessions = dict[int, _Shown]()
        for page in self._shown.values():
            sessions.setdefault(page.session, page)
        for session, shown in sessions.items():
            sides[shown.match is not None].setdefault(shown.person, []).append(float(session in self._useful))
        (theirs, _, low), (ours, high, _) = (_told_shares(side, self._record.alpha / 2.0) for side in sides)
        return Answered(len(ours), int(sum(ours)), len(theirs), int(sum(theirs)), high < low)

    def _agreement(self) -> Agreement:
        first, overlap = np.mean(self._compared, axis=0).tolist() if self._compared else (None, None)
        rises = {item: float(np.mean(places)) for item, places in self._places.items()}
        items = self._in.keys() | self._would.keys()
        moves = [ItemMove(item, self._in[item], self._would[item], rises.get(item)) for item in items]
        moves.sort(key=lambda each: (-abs(each.proposed - each.shown), -abs(each.places or 0.0), each.item))
        people = [PersonAgreement(who, len(each), float(np.mean(each))) for who, each in self._overlaps.items()]
        people.sort(key=lambda each: (each.overlap, -each.decisions, each.person))
        return Agreement(len(self._compared), first, overlap, tuple(moves[:LISTED]), tuple(people[:LISTED]))


def _told_shares(lists: Mapping[str, list[float]], alpha: float) -> tuple[list[float], float, float]:
    """Return (numbers, high, low): all numbers (0 or 1) of all people's `lists`, and the ends of an interval for their
    mean in which each person counts alike.

    The interval misses with probability `alpha` at most."""
    shares = np.array([np.mean(each) for each in lists.values()])
    _, low, high = ratio(shares, np.ones(shares.size), alpha=alpha)
    return [one for each in lists.values() for one in each], high, low


def _split(own: int, candidate: int, expected: float) -> Split:
    e_value = split_evidence(own, candidate, expected) if own + candidate and 0.0 < expected < 1.0 else 1.0
    return Split(own, candidate, expected, e_value)


def _against(
    record: ExperimentRecord, verdict: Verdict, coins: Split, people: Split, answered: Answered, least: int
) -> list[str]:
    """Return why the candidate of an experiment may not be promoted, a sentence each; [] if it may.

    `record` has the settings of the experiment, `verdict` says which learner people prefer; `coins` and `people` count
    how drafts began and who took part, `answered` the lists with an answer. `least` is the least number of people whose
    answers can make a verdict."""
    if record.share == 0.0:
        return ["nobody's lists are interleaved: the candidate only proposes"]
    found = []
    if verdict.verdict == "a":
        found.append(f"people prefer {record.against} (e-value {verdict.e_value:.3g})")
    elif verdict.verdict == "undecided":
        needed = f"from {1.0 / record.alpha:.4g} on it would be decided"
        found.append(f"it cannot be told yet which people prefer: e-value {verdict.e_value:.3g}, {needed}")
    if verdict.people < least:
        found.append(f"{verdict.people} people have answered, and a verdict takes {least}")
    for split, what in ((coins, "coins that say which side picks first"), (people, "people who take part")):
        if split.e_value >= BROKEN:
            found.append(
                f"the {what} are {split.own} to {split.candidate} where a share of {split.expected:g} was stated: "
                "something is wrong with the drafts or with what is logged"
            )
    if answered.worse:
        one, two = answered.answered / answered.interleaved, answered.learned_answered / answered.learned
        found.append(f"interleaved lists are answered less often than the others: {one:.3f} against {two:.3f}")
    return found


def evidence_of(found: Experiment) -> dict[str, Any]:
    """Return the numbers of an experiment that speak for or against its candidate, {name: value}.

    The event of a promotion stores them in the log."""
    said = found.verdict
    return {
        "method": "interleaving",
        "experiment": found.id,
        "verdict": said.verdict,
        "e_value": said.e_value,
        "share": said.share,
        "sessions": said.sessions,
        "people": said.people,
        "alpha": found.alpha,
        "judged_by": JUDGED_BY,
    }


# ---------------------------------------------------------------------------- the gate without people


def evidence_of_log(
    history: History, learner: str, own: str, alpha: float, up_to: int | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Compare how well two learners predict the answers in the log; return (evidence, reasons against promoting
    `learner`).

    `history` is the loop's log with its model. `learner` and `own`, which it is compared with, are names with
    parameters. The evidence is {name: value}, as the event of a promotion stores it; the reasons are a sentence each,
    none if the learner may be promoted. The interval of the difference misses with probability `alpha` at most; answers
    up to event `up_to` count (None: all)."""
    evaluation = evaluate(history, [learner], alpha, own=own, up_to=up_to)
    value = evaluation.learners[-1].values[0]
    evidence = {
        "method": "log",
        "measure": value.measure,
        "verdict": value.verdict,
        "value": value.value,
        "difference": value.difference,
        "low": value.difference_low,
        "high": value.difference_high,
        "people": value.people,
        "alpha": alpha,
    }
    found = []
    if value.refused:
        found.append("; ".join([f"the log cannot tell, because {value.refused}", *filter(None, [value.remedy])]))
    elif value.difference is None:
        why = value.warning or evaluation.learners[0].values[0].warning or f"there is no {value.measure} of {own}"
        found.append(f"the log cannot tell whether it is better than {own}: {why}")
    elif value.verdict != "better":
        between = f"[{_rounded(value.difference_low)}, {_rounded(value.difference_high)}]"
        by = f"{value.measure} differs by {_rounded(value.difference)} {between}"
        found.append(f"the log does not say that it is better than {own}: {by}")
    if value.people < LEAST_PEOPLE and not value.refused:
        found.append(f"{value.people} people have answered, and it takes {LEAST_PEOPLE}")
    return evidence, found


def promotions(history: History, checked: bool = True) -> tuple[Promotion, ...]:
    """Return the promotions in a loop's log, each of a candidate learner to the one that serves, the newest first.

    Each comes with its evidence at that time and now. `history` is the loop's log with its model. Evidence from the
    log is computed by reading all of it; if not `checked`, nothing is computed, and `now` is empty."""
    found, retractions = [], history.log.retractions()
    for event in sorted(history.log.many(history.log.places("promote")), reverse=True):
        record = read_promotion(event.payload)
        now = _today(history, event, record) if checked else {}
        found.append(
            Promotion(event.id, event.seq, record.learner, record.before, record.by, record.reason, record.evidence,
                      now, record.forced, event.seq not in retractions, _changes(record.evidence, now))
        )  # fmt: skip
    return tuple(found)


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return a sentence saying how the evidence for a promotion has changed; "" if it has not."""
    if now and all(now.get(name) == then[name] for name in then):
        return ""
    if not now:
        return "the evidence cannot be computed again: a learner, or the experiment, is not at hand"
    parts = [f"{name} {_rounded(then[name])} then, {_rounded(now.get(name))} now" for name in then
             if then[name] != now.get(name)]  # fmt: skip
    return f"the evidence has changed since, by undoing or forgetting: {'; '.join(parts)}"


def _rounded(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _today(history: History, event: Event, record: PromotionRecord) -> dict[str, Any]:
    if record.evidence.get("method") == "interleaving":
        began = history.log.at(event.target or 0)
        return {} if began is None else evidence_of(look(history, began, event.seq))
    try:
        for spec in (record.learner, record.before):
            history.check_named(spec)  # a log may name any file
        return evidence_of_log(history, record.learner, record.before, record.evidence["alpha"], event.seq)[0]
    except (KeyError, ValueError, LookupError, OSError):
        return {}


# ---------------------------------------------------------------------------- before it begins


def check_can_start(history: History) -> None:
    """Raise ValueError if no experiment can begin: one is running, or the loop shows no rankings."""
    running = history.experiment
    if running is not None:
        raise ValueError(f"experiment: expected none that runs, got {running[0].id}: stop it first")
    check_interleaves(history)


def check_interleaves(history: History) -> None:
    """Raise ValueError if the loop shows no rankings, which two learners could draft together."""
    if not history.interaction.ranks:
        told = NOT_INTERLEAVED.format(loop=history.interaction.words.loop)
        raise ValueError(f"experiment: {told}; Loop.evaluate compares learners there")


MICROSECONDS = 86_400e6
"""Microseconds in a day."""
READ, SIMULATED, MOST_SESSIONS = 4_000, 100, 2_000
"""How many of the newest decisions a plan looks at, how many experiments it simulates for each share, and how many
sessions of each."""


def plan_experiment(history: History, share: float, days: float, alpha: float) -> PlannedExperiment:
    """Simulate what an experiment of `days` days with a `share` (0 to 1) of the people would find.

    A session is one list drafted by both learners and answered; it is won by one of them or tied. Simulated are
    candidates that win 52, 55, 60 or 70 % of the sessions that are not ties. The number of people and sessions follows
    from the newest decisions in the log of `history`. Of a longer experiment only the first 2,000 sessions are
    simulated, so the chance of a verdict is rather understated. The verdict is wrong with probability `alpha` at most.
    """
    check_between("share", share, 1e-6, 1.0)
    check_alpha(alpha)
    check_interleaves(history)
    seen, rng = dict[int, Event](), np.random.default_rng(0)
    since, until = math.inf, 0
    for event, _ in zip(history.log.newest_first(2**62, "decision"), range(READ)):
        if event.subject is not None:
            seen[event.seq] = event
        since, until = min(since, event.time), max(until, event.time)
    # Half of the decisions, not of the time: a log that is written faster than life (an import, a test) plans the same.
    middle = sorted(seen)[len(seen) // 2] if seen else 0
    retractions = history.log.retractions()
    told, who, late, tied = set[int](), Counter[str](), set[str](), 0
    for event in history.log.events(min(seen, default=0), kinds=["feedback"]):
        asked = seen.get(event.target or 0)
        if asked is None or asked.seq in told or event.seq in retractions or is_silence(event):
            continue
        decision = history.decision(asked)
        answer = history.interaction.answer(decision, records.decode_feedback(event.payload))
        credit = answers.credit(decision.record.shown, answer, history.interaction.scale)
        if credit is not None:
            told.add(asked.seq)
            who[decision.person or ""] += 1
            tied += _would_tie(decision.record.shown, credit, rng)
            if asked.seq >= middle:
                late.add(decision.person or "")
    span = max((until - since) / MICROSECONDS, 1e-6) if seen else 1.0
    answered = len(told)
    sessions, people = round(answered * share * days / span), _people(len(who), len(late), days / span, share)
    ties = tied / answered if answered else 0.6
    caveat = ""
    if not answered:
        caveat = "nobody has answered so far: how often people answer cannot be told"
    elif span < 1.0:
        caveat = f"the log's last decisions cover {24.0 * span:.2g} hours alone"
    found = []
    for win in (0.52, 0.55, 0.6, 0.7):
        if sessions == 0:
            found.append(PlannedWin(win, 0.0, None))
            continue
        length = min(sessions, MOST_SESSIONS)
        rng, among = np.random.default_rng(0), min(people, 5 * length)  # more would have a session each, or none
        busy = rng.choice(np.array(list(who.values()), float), among)
        guess: Plan = plan(
            Match(alpha), rng, people=among, sessions=length, share=win, ties=ties, runs=SIMULATED, busy=busy
        )
        found.append(PlannedWin(win, guess.b, None if guess.sessions is None else days * guess.sessions / sessions))
    return PlannedExperiment(people, sessions, ties, days, tuple(found), caveat)


def _people(all_of_them: int, late: int, times: float, share: float) -> int:
    """Return how many people would take part in an experiment with a `share` (0 to 1) of them that lasts `times` as
    long as the log.

    `all_of_them` people answered in the log, `late` of them in the latter half of its decisions. If `late` is all, the
    same people come back, and more time brings no others; if it is half, everybody is new. In between the number grows
    with a power of the time."""
    growth = min(max(math.log2(all_of_them / late), 0.0), 1.0) if late else 1.0
    return max(round(all_of_them * share * math.pow(times, growth)), 1)


def _would_tie(shown: Sequence[int], credit: Mapping[int, float], rng: np.random.Generator) -> bool:
    """Return whether a session would be a tie if two learners had drafted the list `shown` (candidates by index).

    In each round of two picks a coin tossed with `rng` says who picks first. `credit` is what the answers credited to
    each item, by index; the session is a tie if both sides get the same."""
    coins = rng.choice([-1.0, 1.0], (len(shown) + 1) // 2)
    won = [coins[i // 2] * (-1.0) ** i * credit.get(j, 0.0) for i, j in enumerate(shown)]
    return float(sum(won)) == 0.0
