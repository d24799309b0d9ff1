"""An experiment, its plan and the promotions of a loop as a page shows them: sentences, counts, and bars in percent."""

from __future__ import annotations

import math
from typing import NamedTuple

from heedful.core.formatting import brief
from heedful.core.wording import count, percent, share, share_of
from heedful.loop.experiment import BROKEN, VERDICTS
from heedful.results.experiment import Experiment, PlannedExperiment, Promotion, Split


class Fact(NamedTuple):
    """A number that the verdict of an experiment rests on, with an explanation."""

    name: str
    """what is counted or measured: "Sessions\""""
    value: str
    """the number as text: "1,204\""""
    help: str
    """an explanation for people who do not know the term"""


class Move(NamedTuple):
    """An item that the candidate, the learner on trial, would show more or less often than the one that serves, or in
    another place."""

    item: str
    """the name of the item"""
    shown: str
    """in how many of the lists shown it was, as text"""
    proposed: str
    """in how many of the candidate's lists it is, as text"""
    places: str
    """how many places higher the candidate has it; "" if no list of both sides has it"""


class Whose(NamedTuple):
    """A person whose lists the candidate, the learner on trial, would change, and how much of them would stay."""

    person: str
    """the name of the person"""
    lists: str
    """how many of their lists are compared, as text"""
    overlap: str
    """the share of the items shown to them that the candidate's lists have, too: "80 %\""""
    bar: float
    """the overlap in percent"""


class ExperimentView(NamedTuple):
    """The state of an experiment as a page shows it: a learner on trial (the candidate) against the one that serves,
    with the verdict, the counts behind it, and what speaks against promotion."""

    title: str
    """which learners are compared"""
    how: str
    """who gets which lists, as a sentence"""
    running: bool
    """whether it has not been stopped"""
    verdict: str
    """which side people prefer, as a sentence"""
    kind: str
    """the kind of verdict: "good" for the candidate, "bad" for the learner that serves, "open\""""
    decided: str
    """how far the evidence is from a verdict, as a sentence; "" if nobody's lists are interleaved"""
    bar: float
    """the logarithm of the e-value in percent of that of 1 / alpha, from 0 to 100"""
    facts: tuple[Fact, ...]
    """the counts behind the verdict; () if nobody's lists are interleaved"""
    agreement: str
    """how much the lists of both sides agree, as a sentence; "" if no lists can be compared"""
    moves: tuple[Move, ...]
    """the items that the candidate would move most"""
    people: tuple[Whose, ...]
    """the people whose lists would change most"""
    against: tuple[str, ...]
    """what speaks against promoting the candidate, a sentence each"""
    candidate: str
    """the candidate, by name and parameters"""


def experiment_view(found: Experiment) -> ExperimentView:
    """Return the state of the experiment `found` as texts for a page."""
    said, split = found.verdict, found.agreement
    needed = 1.0 / found.alpha
    how = "Nobody's lists are changed: the candidate's lists are only logged."
    verdict, decided = "Answers cannot decide, as nobody's lists are interleaved.", ""
    if found.share:
        how = f"{percent(found.share)} of the people get lists that both learners draft together."
        verdict = VERDICTS[said.verdict].format(learner=found.learner, against=found.against)
        decided = f"The e-value is {said.e_value:.4g}; from {needed:.4g} on people's preference is decided."
    if found.frozen:
        how += f" Both sides rank as they did at version {found.frozen:,}."
    agreement = ""
    if split.decisions and split.same_first is not None and split.overlap is not None:
        agreement = (
            f"In {count(split.decisions, 'list')} of the loop's own learner, the candidate would have put the same "
            f"item first in {percent(split.same_first, 2)}; {percent(split.overlap, 2)} of their items are in its "
            "lists, too."
        )
    return ExperimentView(
        f"{found.learner} against {found.against}",
        how,
        found.running,
        verdict,
        {"a": "bad", "b": "good"}.get(said.verdict, "open"),
        decided,
        round(100.0 * min(max(math.log(max(said.e_value, 1.0)) / math.log(needed), 0.0), 1.0), 1),
        tuple(_facts(found)),
        agreement,
        tuple([
            Move(each.item, f"{each.shown:,}", f"{each.proposed:,}", _places(each.places)) for each in split.moves
        ]),
        tuple([
            Whose(each.person, f"{each.decisions:,}", percent(each.overlap, 2), round(100.0 * each.overlap, 1))
            for each in split.people
        ]),
        tuple([sentence(each) for each in found.against_promotion]),
        found.learner,
    )  # fmt: skip


def _facts(found: Experiment) -> list[Fact]:
    """Return the counts behind an experiment's verdict; [] if nobody's lists are interleaved."""
    if not found.share:
        return []
    said, answered = found.verdict, found.answered
    credit = "–"
    if found.credit is not None:
        error = "" if found.credit_error is None else f" ± {found.credit_error:.3f}"
        credit = f"{found.credit:+.3f}{error}".replace("-", "−")
    return [
        Fact("Sessions", f"{said.sessions:,}", "Interleaved lists with an answer that says something."),
        Fact("People", f"{said.people:,}", f"Who gave these answers. A verdict takes at least {found.least_people}."),
        Fact(
            "Won by the candidate",
            f"{share(said.share)} ({share(said.low)} to {share(said.high)})" if said.sessions else "–",
            "Of the sessions that one side won, with a confidence interval that may be looked at at any time.",
        ),
        Fact("Largest person", share(said.largest), "The share of the sessions of the person who has most of them."),
        Fact(
            "Credit by positions",
            credit,
            "How much higher the candidate ranks what people chose: 1 / rank there minus 1 / rank in the other order, "
            "weighted by the inverse probability of where it stood; ± one standard error.",
        ),
        Fact("Coins", _split(found.coins), f"Which side picked first in each round; {_odd(found.coins)}"),
        Fact(
            "People outside : inside",
            _split(found.people),
            f"Who does not take part, and who does; {_odd(found.people)}",
        ),
        Fact(
            "Interleaved lists answered",
            _of(answered.answered, answered.interleaved),
            "Lists with an answer in favour of an item.",
        ),
        Fact(
            "Other lists answered",
            _of(answered.learned_answered, answered.learned),
            "The same of lists of the loop's own learner, shown meanwhile to people who do not take part.",
        ),
    ]


def _of(n: int, total: int) -> str:
    return f"{n:,} of {total:,} ({share_of(n, total)})"


def _split(split: Split) -> str:
    return f"{split.own:,} : {split.candidate:,}"


def _odd(split: Split) -> str:
    """Return the end of a sentence: whether `split`, a random split of people or coins between two learners, has the
    share that was stated."""
    if split.e_value >= BROKEN:
        return f"this is not the stated share of {split.expected:g}: something is wrong with the drafts or the log."
    return f"a share of {split.expected:g} was stated, and this may be chance (e-value {split.e_value:.2g})."


def _places(places: float | None) -> str:
    return "" if places is None else f"{places:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def sentence(text: str) -> str:
    """Return `text` with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# ---------------------------------------------------------------------------- a plan


class PlanRow(NamedTuple):
    """What a planned experiment would find if the candidate, the learner on trial, won a certain share of the sessions
    that have a winner.

    A session is one list drafted by both learners and answered."""

    won: str
    """the share of those sessions that the candidate is assumed to win, the true effect: "55 %\""""
    found: str
    """the probability that the experiment finds it to be better: "80 %\""""
    bar: float
    """the probability that it is found to be better, in percent"""
    days: str
    """after how many days, in the median; "" if it is seldom found"""


class PlanView(NamedTuple):
    """The plan of an experiment: how many answers it would get, and how likely it would find a better learner."""

    told: str
    """how many people and sessions there would be, and the share of ties, as a sentence"""
    caveat: str
    """why the estimate may be poor, as a sentence; "" if there is no reason known"""
    rows: tuple[PlanRow, ...]
    """a row for each assumed size of the true effect"""


def plan_view(found: PlannedExperiment, part: float) -> PlanView:
    """Return the planned experiment `found` as texts for a page; `part` is the share of people who would take part, 0
    to 1."""
    told = (
        f"With {percent(part)} of the people there would be about {count(found.people, 'person', 'people')} and "
        f"{count(found.sessions, 'session')} in {found.days:g} days, {percent(found.ties, 2)} of them ties."
    )
    rows = [
        PlanRow(
            percent(win.share),
            percent(win.found, 2),
            round(100.0 * win.found, 1),
            "" if win.days is None else f"{win.days:.1f}",
        )
        for win in found.wins
    ]
    return PlanView(told, sentence(found.caveat) if found.caveat else "", tuple(rows))


# ---------------------------------------------------------------------------- promotions


class PromotionRow(NamedTuple):
    """A promotion, a change of the learner that serves: who made it, its evidence, and whether the log still holds that
    evidence."""

    version: str
    """the version of the model at which it took effect (sequence number in the log), as text"""
    learner: str
    """the learner that it made serve"""
    before: str
    """the learner that served until then"""
    by: str
    """who promoted it, as they said"""
    reason: str
    """why, in their words"""
    evidence: str
    """what spoke for it, in words"""
    left: str
    """what is left of the evidence in the log, as a sentence; "" if that was not looked at"""
    changed: bool
    """whether the evidence in the log is no longer what it was"""
    forced: tuple[str, ...]
    """the reasons against it that were overruled, a sentence each"""
    in_effect: bool
    """whether it still counts: False if a rollback has left it out"""


def promotion_row(found: Promotion, checked: bool) -> PromotionRow:
    """Return the promotion `found` as a row of texts; `checked` says whether its evidence was computed again."""
    changed = found.changed if checked else ""
    left = sentence(changed) if changed else "The log still holds this evidence." if checked else ""
    return PromotionRow(
        f"{found.seq:,}", found.learner, found.before, found.by, found.reason, _evidence(found),
        left, bool(changed),
        tuple([sentence(each) for each in found.forced]), found.in_effect,
    )  # fmt: skip


def _evidence(found: Promotion) -> str:
    """Return what spoke for a promotion, in words."""
    told = found.evidence
    people = count(int(told.get("people") or 0), "person", "people")
    if told.get("method") == "interleaving":
        return f"Interleaving: e-value {told['e_value']:.3g}, {count(told['sessions'], 'session')}, {people}."
    if told.get("method") == "agreement":
        lists = count(int(told.get("decisions") or 0), "list")
        return f"Agreement with your order in at least {brief(told['low'])} of the pairs, by {lists}."
    if told.get("difference") is None:
        return "The log could not tell."
    by = f"{told['measure']} differs by {brief(told['difference'])} ({brief(told['low'])} to {brief(told['high'])})"
    return f"The log: {by}, {people}."
