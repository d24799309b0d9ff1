"""Decisions: a request is checked, a list is proposed, and the event for the log is made of both.

`Decider.read` checks a request, `Decider.propose` makes the event of its decision from the published model, and
`Decider.decision_of` returns the decision once the event is in the log. In between, `Decider.decide` submits the event
and waits for it; the server submits those of many requests together. The file is long because the
steps of a decision stand in their order: checked, drawn, proposed, recorded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from heedful.core.validation import describe
from heedful.jit.kernel import Ints
from heedful.loop import records
from heedful.loop.interactions.protocol import Interaction, Pairing, Question
from heedful.loop.log import Event, now
from heedful.loop.model import View
from heedful.loop.packing import LoggedDecision, pack
from heedful.loop.paging import EarlierPages, earlier_pages
from heedful.loop.pending import AGAIN, PendingEvent
from heedful.loop.projection import Projection
from heedful.loop.publication import PublishedState
from heedful.loop.records import DecisionRecord
from heedful.loop.request import Request
from heedful.loop.serving import draft_generator, takes_part
from heedful.loop.settings import Settings
from heedful.loop.strangers import around, shown_names
from heedful.results.answers import Answer, Arm, Decision

T = TypeVar("T")


class DecisionRequest(NamedTuple):
    """A checked request for a decision: what `Decider.read` returns and `Decider.propose` takes."""

    id: str
    """the id of the decision to be made"""
    request: Request
    """the candidates with their features, and the context"""
    person: str | None
    """whom the decision is for; None for nobody in particular"""
    deferred: bool
    """whether it is made ahead of time, and does not count as shown before `Loop.activate`"""
    repeats: bool | None = None
    """whether to show again what the person has rated or compared already; None takes the loop's setting"""
    before: EarlierPages | None = None
    """the pages of the list that this one continues; None if it begins a list"""


class Decider:
    """Checks requests for decisions and makes the decisions, by the model that was published last."""

    def __init__(self, projection: Projection) -> None:
        """Decide for the loop that `projection` writes."""
        self.projection = projection
        self.settings = projection.settings

    @property
    def interaction(self) -> Interaction[Any]:
        """the kind of feedback of the loop (an `Interaction`), with the learner that serves now"""
        return self.projection.interaction

    # ------------------------------------------------------------------------ what is asked

    def read(
        self,
        candidates: object = None,
        *,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        show: int | None = None,
        id: str | None = None,
        deferred: bool = False,
        repeats: bool | None = None,
        strict: bool | None = None,
        after: str | None = None,
        looked: bool = False,
    ) -> DecisionRequest | Decision:
        """Check a request for a decision and return it, or return the decision that was made earlier under its `id`.

        The arguments are those of `Loop.decide`, and `looked`: whether the caller has taken in what other processes
        wrote (`Projection.catch_up`). Raise ValueError, naming the field, on bad input, and LookupError for an item
        that is not on offer in this process, since another process may have put it there. With `looked`, an item that
        is not on offer is noted as unknown instead, unless `strict` (or the loop's setting, where `strict` is None)
        refuses it.
        """
        person = None if person is None else records.check_id("person", person)
        if not isinstance(deferred, bool):
            raise ValueError(f"deferred: expected true or false, got {describe(deferred)}")
        if repeats is not None:
            self._check_repeats(repeats)
        if id is not None and (known := self.projection.find_decision(id := records.check_id("id", id))) is not None:
            return self._earlier_decision(id, known, candidates, person, after)
        before = None if after is None else earlier_pages(self.projection, after, person)
        request = self.parse(candidates, context, prior, show, strict, looked)
        return DecisionRequest(records.new_id() if id is None else id, request, person, deferred, repeats, before)

    def _check_repeats(self, repeats: object) -> None:
        if not self.interaction.by_number:
            raise ValueError(f"repeats: expected none in {self.interaction.words.loop}, got {describe(repeats)}")
        if not isinstance(repeats, bool):
            raise ValueError(f"repeats: expected true or false, got {describe(repeats)}")

    def parse(
        self,
        candidates: object,
        context: object,
        prior: object,
        show: object,
        strict: object = None,
        looked: bool = False,
    ) -> Request:
        """Check the parts of a request; return them as arrays: the candidates with their features, and the features of
        the request.

        `candidates`, `context`, `prior`, `show` and `strict` are those of `Loop.decide`. With `looked`, an item that is
        not on offer is noted as unknown unless `strict` refuses it; otherwise it raises LookupError. Raise ValueError,
        naming the field, on bad input."""
        if show is not None:
            self.interaction.check_show(show)
        if not isinstance(strict, bool | None):
            raise ValueError(f"strict: expected true or false, got {describe(strict)}")
        requests = self.projection.requests
        candidates, prior = requests.without_hits(candidates, prior)
        try:
            return requests.parse(candidates, context, prior, show)
        except (LookupError, ValueError):
            if self.settings.strict if strict is None else strict:
                raise
            sifted = requests.sift(candidates, prior)
            if sifted is None:  # something else is wrong
                raise
        known, prior, strangers = sifted
        if strangers.names and not looked and self.projection.is_behind():
            raise requests.not_on_offer(strangers.names[0])
        request = requests.parse(known, context, prior, show) if known else requests.nothing(context, show)
        return request._replace(strangers=strangers if strangers.names or not known else None)

    def _earlier_decision(
        self, id: str, known: LoggedDecision, candidates: object, person: str | None, after: object
    ) -> Decision:
        """Return `known`, the decision made earlier under `id`, unchanged even if model and items have changed
        since."""
        names, page = self.projection.requests.requested_names(candidates), known.record.after
        same = (page or None) == (None if after is None else records.check_id("after", after))
        if names is not None and page and same and person == known.person:
            gone = earlier_pages(self.projection, page, person).shown
            names = tuple([name for name in names if name not in gone])
        if (names is not None and not _same(names, known)) or person != known.person or not same:
            other = "was shown to somebody else" if person != known.person else "has other candidates"
            other = other if same else "continues another list, or none"
            raise ValueError(f"id: expected a new one, got {describe(id)}, which {other}")
        return to_decision(id, known)

    def look(
        self, candidates: object, person: object, context: object, prior: object, strict: bool | None = True
    ) -> tuple[Request, PublishedState, View[Any]]:
        """Return (request, published state, the same for the person) for a question that is answered without logging
        it.

        The arguments are those of `Loop.decide`."""
        person = None if person is None else records.check_id("person", person)
        request = self.reread(lambda looked: self.parse(candidates, context, prior, None, strict, looked))
        return request, *self.projection.reading_of(request.x, person)

    def reread(self, read: Callable[[bool], T]) -> T:
        """Return `read(False)`; if that raises LookupError, take in what other processes wrote to the log and return
        `read(True)`.

        The argument of `read` says whether that was taken in."""
        try:
            return read(False)
        except LookupError:
            self.projection.catch_up()
            return read(True)

    def decide(self, **asked: Any) -> Decision:
        """Return what to show, as `Loop.decide` says, with its arguments."""
        request = self.reread(lambda looked: self.read(**asked, looked=looked))
        while isinstance(request, DecisionRequest):
            pending = self.propose(request)
            [answer] = self.projection.submit([pending])
            if answer.reason != AGAIN:
                return self.decision_of(pending, answer)
        return request

    def record(self, time: object, **shown: Any) -> Decision:
        """Log a decision that another system made, as `Loop.record` says, with its arguments."""
        pending = self.reread(lambda looked: self.read_record(**shown, time=time, looked=looked))
        [answer] = self.projection.submit([pending])
        return self.decision_of(pending, answer, dated=time is not None)

    # ------------------------------------------------------------------------ what is proposed

    def propose(self, asked: DecisionRequest) -> PendingEvent:
        """Return the event of a new decision on the checked request `asked`, made from the published model; nothing is
        written.

        A random generator keyed by the decision's id (`generator_for`) draws whether the list is the model's, the
        caller's own order for comparison (control), or drawn at random around the model's, and all else that is random.
        Raise ValueError if there is too little to show, and RuntimeError if the learner fails."""
        id, request, person, deferred, repeats, before = asked
        settings = self.settings
        state, view = self.projection.reading_of(request.x, person)
        interaction = state.interaction
        rng = generator_for(settings.seed, id)
        match, rival = self._pairing(state, view, asked)
        arm, settled = _draw_arm(settings, rng), False
        if before is not None and before.arm != "imported":
            arm, settled = before.arm if before.arm != "interleaved" or match is not None else "learned", True
        elif match is not None and arm == "learned":
            arm = "interleaved"
        if before is not None:
            request, _ = request.without(before.shown)
        repeats = settings.repeats if repeats is None else repeats
        question = Question(request, person, repeats, arm, match, settled)
        eligible = interaction.eligible(view, question)
        try:
            made = interaction.propose(view, question, eligible, rng)
        except Exception as error:  # what a learner raises is nobody's bad input
            told = f"{type(interaction.learner).__name__} cannot propose: {type(error).__name__}: {error}"
            raise RuntimeError(told) from error
        places, size = tuple(made.shown.tolist()), made.shown.size
        if rival is not None and eligible is not None:
            rival = rival[np.isin(rival, eligible)]
        kept_names = () if rival is None else tuple([request.called[j] for j in rival[:size].tolist()])
        if made.kept is not None:
            kept = list(made.kept)
            request, places = request.only(kept), tuple(map({j: i for i, j in enumerate(kept)}.__getitem__, places))
        record = DecisionRecord(
            shown=places,
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=request.prior,
            arm=arm,
            learner=state.named,
            seed=settings.seed,
            probability=made.probability,
            proposal=made.carried,
            context=request.context,
            attributes=request.attributes,
            of=made.of,
            deferred=deferred,
            predicted=made.predicted,
            unknown=made.unknown,
            rival=kept_names,
            after="" if before is None else before.last,
            undeclared=request.undeclared,
        )
        when, numbers, version = now(), request.numbers(), state.version
        known = LoggedDecision(id, 0, when, person, record, numbers, request.called, version, request.rows)
        event = Event(0, "decision", id, when, person, None, version, *pack(record, numbers))
        return PendingEvent(event, known, again=True)

    def _pairing(
        self, state: PublishedState, view: View[Any], asked: DecisionRequest
    ) -> tuple[Pairing | None, Ints | None]:
        """Return what an experiment needs of the request `asked`: (pairing, ranking of the candidate learner)."""
        id, request, person, *_, before = asked
        running, seed = state.running, self.settings.seed
        if running is None or not state.interaction.ranks:
            return None, None
        try:
            theirs = running.candidate.order(person, request.x)
        except Exception as error:  # a candidate that fails leaves the list to the learner that serves
            name = type(running.candidate.interaction.learner).__name__
            told = f"{name} cannot rank: {type(error).__name__}: {error}: it waits"
            self.projection.note(f"experiment {running.id}: {told}")
            return None, None
        if before is None or before.arm == "imported":
            drafts = takes_part(running.id, running.record.share, person)
        else:
            drafts = before.experiment == running.id
        if not drafts:
            return None, theirs if before is None else _leave_out_earlier(theirs, request, before)[0]
        own, x = running.own, request.x
        ours = state.interaction.order(view, x) if own is None else own.order(person, x)
        if before is None:
            return Pairing(running.id, ours, theirs, draft_generator(seed, id)), theirs
        (ours, ours_above), (theirs, theirs_above) = (
            _leave_out_earlier(each, request, before) for each in (ours, theirs)
        )
        rng = draft_generator(seed, before.first or id)
        rng.random(before.tossed)
        above = ours_above, theirs_above
        return Pairing(running.id, ours, theirs, rng, before.opening, above), theirs

    def read_record(
        self,
        candidates: object,
        shown: object,
        *,
        id: object,
        person: object = None,
        context: object = None,
        prior: object = None,
        probability: Any = None,
        time: object = None,
        strict: object = None,
        looked: bool = False,
    ) -> PendingEvent:
        """Return the event by which the log keeps a decision that another system made; nothing is written.

        The arguments are those of `Loop.record`; `looked`, and the errors for items that are not on offer, are those of
        `read`. Raise ValueError, naming the field, on bad input."""
        request = self.parse(candidates, context, prior, None, strict, looked)
        named = records.distinct("shown", shown)
        places = {name: j for j, name in enumerate(request.called)}
        strange = () if request.strangers is None else request.strangers.names
        for name in named:
            if name not in places and name not in strange:
                raise ValueError(f"shown: expected candidates, got {describe(name)}")
        names = [name for name in named if name in places]
        if probability is not None and not 0.0 < records.check_number("probability", probability) <= 1.0:
            raise ValueError(f"probability: expected a number above 0, up to 1, got {probability}")
        if self.interaction.by_number:
            of = len(request.called) + len(strange)
            request = request.only([places[name] for name in names])
            places = {name: j for j, name in enumerate(names)}
        else:
            of = 0
        record = DecisionRecord(
            shown=tuple([places[name] for name in names]),
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=request.prior,
            arm="imported",
            probability=None if probability is None else float(probability),
            context=request.context,
            attributes=request.attributes,
            of=of,
            unknown=tuple([(named.index(name) if name in named else -1, name) for name in strange]),
            undeclared=request.undeclared,
        )
        person = None if person is None else records.check_id("person", person)
        when = now() if time is None else records.check_time("time", time)
        version, numbers, id = self.projection.published.version, request.numbers(), records.check_id("id", id)
        known = LoggedDecision(id, 0, when, person, record, numbers, request.called, version, request.rows)
        return PendingEvent(Event(0, "decision", id, when, person, None, version, *pack(record, numbers)), known)

    # ------------------------------------------------------------------------ what is said

    def decision_of(self, pending: PendingEvent, answer: Answer, *, dated: bool = False) -> Decision:
        """Return the decision of the event `pending` after it was submitted to the log, which answered `answer`.

        It is the new decision or, if the id was in the log already, the earlier one. `dated` says whether the caller
        said when it was shown. Raise LookupError if the event was
        rejected or the decision was forgotten, and ValueError if the id belongs to a decision on other candidates, for
        another person, or that showed something else, or at another time.
        """
        event = pending.event
        if answer.status == "rejected":
            raise LookupError(f"id: expected a new one: {answer.reason}")
        if answer.status == "applied" and pending.decision is not None and answer.seq is not None:
            return to_decision(event.id, pending.decision, answer.seq)
        known = self.projection.find_decision(event.id)
        if known is None:
            raise LookupError(f"id: expected a new one: decision {event.id} was forgotten")
        ours = self.projection.decision(event).record
        imported = known.record.arm == "imported" and known.record != ours
        names = _all_names(pending.decision) if pending.decision is not None else ()
        whole = known.record.of == 0
        if pending.decision is not None and pending.decision.record.arm == "imported":  # what was shown is what is told
            imported = imported or to_decision(event.id, known).shown != to_decision(event.id, pending.decision).shown
        imported = imported or known.record.after != ours.after
        imported = imported or (dated and _at_other_time(known, event.time))
        if (whole and names != _all_names(known)) or known.person != event.subject or imported:
            raise ValueError(f"id: expected a new one, got {describe(event.id)}, which was used for another decision")
        return to_decision(event.id, known)


def difference(known: LoggedDecision, ours: LoggedDecision, *, dated: bool) -> str | None:
    """Return in which way a decision of another system (`ours`) is not the one that the log has under its id (`known`),
    such as "other candidates"; None if it is the same.

    What `ours` does not say (context, probability, attributes, with `dated` false its time) is not compared."""
    mine, theirs = ours.record, known.record
    if ours.person != known.person:
        return "another person"
    if ours.names != known.names or (mine.attributes and theirs.attributes and mine.attributes != theirs.attributes):
        return "other candidates"
    kept = mine.attributes and theirs.attributes  # a loop that keeps no texts has features alone
    if mine.names and theirs.names and not kept and ours.arrays != known.arrays:
        return "other features"
    if mine.shown != theirs.shown:
        return "another list"
    if mine.context and theirs.context and mine.context != theirs.context:
        return "another context"
    if None not in (mine.probability, theirs.probability) and mine.probability != theirs.probability:
        return "another probability"
    return "another time" if dated and _at_other_time(known, ours.since) else None


def _at_other_time(known: LoggedDecision, when: int) -> bool:
    """Return whether a decision of another system was shown at another time than `when`, in microseconds since 1970.

    Less than a second apart is the same time, as logs round differently. What this loop decided itself has the time of
    its own clock, which other systems need not know."""
    return known.record.arm == "imported" and not known.record.deferred and abs(known.since - when) >= 1e6


def _leave_out_earlier(order: Ints, request: Request, before: EarlierPages) -> tuple[Ints, Ints]:
    """Return (ranking, above): a ranking of the m candidates that no earlier page showed (m,), and how many that one
    did show stand above each of them (m,)."""
    gone = np.array([name in before.shown for name in request.called], np.bool_)
    number = np.cumsum(~gone) - 1
    left, above = order[~gone[order]], np.cumsum(gone[order])[~gone[order]]
    found = np.empty(left.size, np.int64)
    found[number[left]] = above
    return number[left], found


def _same(names: tuple[str, ...], known: LoggedDecision) -> bool:
    """Return whether `names` were the candidates of the logged decision `known`, as far as the log kept their names."""
    of, unknown = known.record.of, {name for _, name in known.record.unknown}
    if len(set(names)) < len(names):
        names = tuple(dict.fromkeys(names))
    if of:
        return len(names) == of and {*known.names, *unknown} <= set(names)
    if unknown:
        return unknown == set(names) - set(known.names) and known.names == tuple([n for n in names if n not in unknown])
    return names == known.names


def _all_names(known: LoggedDecision) -> tuple[str, ...]:
    """Return the names of all candidates of a decision: in their order if all were on offer, otherwise sorted."""
    unknown = known.record.unknown
    return tuple(sorted([*known.names, *[name for _, name in unknown]])) if unknown else known.names


def to_decision(id: str, known: LoggedDecision, seq: int | None = None) -> Decision:
    """Return the `Decision` that callers get for the logged decision `known` with this `id`.

    `seq` is its sequence number if it was written just now and `known` does not have it yet."""
    record, names = known.record, known.names
    at = known.seq if seq is None else seq
    predicted: tuple[float | None, ...] | None = record.predicted or None
    unknown = None
    if record.unknown:
        predicted = tuple(around(predicted, record, lambda _: None)) if predicted else None
        unknown = tuple([name for _, name in record.unknown])
    shown = shown_names(record, names)
    undeclared = record.undeclared or None
    return Decision(
        id, shown, record.probability, known.version, record.arm, at, predicted, unknown, undeclared,
        record.proposal.get("sure"),
    )  # fmt: skip


def _draw_arm(settings: Settings, rng: np.random.Generator) -> Arm:
    """Return by which policy a decision is made, drawn with `rng` by the shares in `settings`."""
    drawn = rng.random()
    if drawn < settings.control:
        return "control"
    return "sampled" if drawn < settings.control + settings.sampled else "learned"


def generator_for(seed: int, id: str) -> np.random.Generator:
    """Return the random generator of the decision `id`, keyed by that id and the loop's `seed`.

    Making the decision again therefore draws the same, whichever other decisions there were. The generator object is
    reused by this thread's next decision, so it must not be kept.
    """
    key = np.frombuffer(hashlib.blake2b(f"{seed}\0{id}".encode(), digest_size=16).digest(), "<u8")
    if (generator := getattr(_generators, "own", None)) is None:
        made: np.random.Generator = np.random.Generator(np.random.Philox(key=key))
        _generators.own = made
        return made
    # As good as a new one, in a tenth of the time.
    generator.bit_generator.state = {"state": {"counter": _ZEROS, "key": key}, **_FRESH}
    return generator  # type: ignore[no-any-return]


_generators = threading.local()
_ZEROS = np.zeros(4, np.uint64)
_FRESH = {"bit_generator": "Philox", "buffer": _ZEROS, "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
